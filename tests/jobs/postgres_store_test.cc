// The store in PostgreSQL keeps the contract, with a real server.
#include "examples/jobs/postgres_store.h"

#include "tests/integration/server_process.h"
#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

const auto& g_server = sylar::test::ServerOfAllTests::add("postgres");

const MakeStore kPostgres{[] {
  const std::string port = std::to_string(g_server->port());
  return std::make_unique<PostgresStore>(PostgresTarget{"host=127.0.0.1 user=test dbname=postgres port=" + port});
}};
INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract, testing::Values(kPostgres), [](const auto&) { return "Store"; });

}  // namespace
}  // namespace jobs
