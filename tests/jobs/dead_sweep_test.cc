// The recurring sweep, on virtual time: who sweeps, and when.
#include "examples/jobs/dead_sweep.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "examples/jobs/memory_store.h"
#include "sylar/sync/task_group.h"
#include "sylar/testing/virtual_time.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

class DeadSweepTest : public testing::Test {
 protected:
  /// Makes so many dead letters.
  void bury(size_t count) {
    std::vector<Job> jobs;
    for (size_t i = 0; i < count; ++i) jobs.push_back({"job:" + std::to_string(++m_last), "1", When::in(0s)});
    store.put(jobs);
    std::vector<Outcome> outcomes;
    for (const Claim& each : store.claim({count, 0s, 1h, 1}).taken) {
      outcomes.push_back({each.id, each.token, Verdict::kDead, 0s, "no"});
    }
    ASSERT_EQ(store.settle(outcomes), count);
  }
  size_t dead() { return store.counts().dead; }
  /// Calls `body` while a replica sweeps.
  void sweeping(const std::function<void(const DeadSweep&)>& body) {
    time.run([&] {
      DeadSweep sweep(store, [this] { return fence; }, {.keep = 1h, .period = 10min});
      sylar::TaskGroup group;
      group.spawn([&] { sweep.run(); });
      body(sweep);
      group.cancel();
    });
  }

  sylar::VirtualTime time;
  MemoryStore store{time};
  std::optional<uint64_t> fence;

 private:
  int m_last = 0;
};

// J-9
TEST_F(DeadSweepTest, TheLeaderDeletesWhatIsOldEnough) {
  fence = 1;
  sweeping([this](const DeadSweep& sweep) {
    bury(2'500);
    std::this_thread::sleep_for(55min);
    bury(1);
    EXPECT_EQ(dead(), 2'501U);
    std::this_thread::sleep_for(10min);
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(sweep.swept(), 2'500U);
  });
}

// J-9
TEST_F(DeadSweepTest, WhoDoesNotLeadDeletesNothing) {
  sweeping([this](const DeadSweep& sweep) {
    bury(1);
    std::this_thread::sleep_for(2h);
    EXPECT_EQ(dead(), 1U);
    fence = 1;
    std::this_thread::sleep_for(10min);
    EXPECT_EQ(dead(), 0U);
    EXPECT_EQ(sweep.swept(), 1U);
  });
}

// J-9
TEST_F(DeadSweepTest, WhoBelievesThatItLeadsAfterAnotherWasElectedDeletesNothing) {
  fence = 7;
  sweeping([this](const DeadSweep& sweep) {
    bury(1);
    EXPECT_EQ(store.sweepDead(8, 1h, 1), 0U);  // of the later leader
    std::this_thread::sleep_for(2h);
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(sweep.swept(), 0U);
  });
}

}  // namespace
}  // namespace jobs
