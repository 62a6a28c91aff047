// The store in PostgreSQL keeps the contract, with a real server.
#include "examples/jobs/postgres_store.h"

#include "tests/integration/server_process.h"
#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

/// Begins and ends on the main thread, whose child it is.
class Server final : public testing::Environment {
 public:
  void SetUp() override { process = std::make_unique<sylar::test::ServerProcess>("postgres"); }
  void TearDown() override { process = nullptr; }
  std::unique_ptr<sylar::test::ServerProcess> process;
};
const auto* const g_server = static_cast<Server*>(testing::AddGlobalTestEnvironment(new Server));

const MakeStore kPostgres{[] {
  const std::string port = std::to_string(g_server->process->port());
  return std::make_unique<PostgresStore>(PostgresTarget{"host=127.0.0.1 user=test dbname=postgres port=" + port});
}};
INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract, testing::Values(kPostgres), [](const auto&) { return "Store"; });

}  // namespace
}  // namespace jobs
