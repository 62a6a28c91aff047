// The store in Redis keeps the contract, with a real redis-server.
#include "examples/jobs/redis_store.h"

#include "tests/integration/server_process.h"
#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

const auto& g_server = sylar::test::ServerOfAllTests::add("redis");

const MakeStore kRedis{[] { return std::make_unique<RedisStore>(RedisTarget{"127.0.0.1", g_server->port()}, "test"); }};
INSTANTIATE_TEST_SUITE_P(Redis, StoreContract, testing::Values(kRedis), [](const auto&) { return "Store"; });

}  // namespace
}  // namespace jobs
