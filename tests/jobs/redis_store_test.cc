// The store in Redis keeps the contract, with a real redis-server.
#include "examples/jobs/redis_store.h"

#include "tests/integration/server_process.h"
#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

/// Begins and ends on the main thread, whose child it is.
class Server final : public testing::Environment {
 public:
  void SetUp() override { process = std::make_unique<sylar::test::ServerProcess>("redis"); }
  void TearDown() override { process = nullptr; }
  std::unique_ptr<sylar::test::ServerProcess> process;
};
const auto* const g_server = static_cast<Server*>(testing::AddGlobalTestEnvironment(new Server));

const MakeStore kRedis{[] { return std::make_unique<RedisStore>(RedisTarget{"127.0.0.1", g_server->process->port()}, "test"); }};
INSTANTIATE_TEST_SUITE_P(Redis, StoreContract, testing::Values(kRedis), [](const auto&) { return "Store"; });

}  // namespace
}  // namespace jobs
