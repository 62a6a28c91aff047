// The store in memory keeps the contract.
#include "examples/jobs/memory_store.h"

#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

/// Passes all calls on, so that two stores are one.
class View final : public Store {
 public:
  explicit View(std::shared_ptr<MemoryStore> store) : m_store(std::move(store)) {}

  void put(const std::vector<Job>& jobs) override { m_store->put(jobs); }
  Cancelled cancel(const std::string& id) override { return m_store->cancel(id); }
  Claims claim(const ClaimOptions& options) override { return m_store->claim(options); }
  size_t settle(const std::vector<Outcome>& outcomes) override { return m_store->settle(outcomes); }
  std::vector<DeadLetter> deadLetters(size_t limit) override { return m_store->deadLetters(limit); }
  bool retry(const std::string& id) override { return m_store->retry(id); }
  std::optional<size_t> sweepDead(uint64_t fence, Micros keep, size_t limit) override {
    return m_store->sweepDead(fence, keep, limit);
  }
  StoreCounts counts() override { return m_store->counts(); }
  void listen(const std::function<void(Time)>& earlier) override { m_store->listen(earlier); }

 private:
  const std::shared_ptr<MemoryStore> m_store;
};

const MakeStore kMemory{[store = std::make_shared<MemoryStore>()] { return std::make_unique<View>(store); }};
INSTANTIATE_TEST_SUITE_P(Memory, StoreContract, testing::Values(kMemory), [](const auto&) { return "Store"; });

}  // namespace
}  // namespace jobs
