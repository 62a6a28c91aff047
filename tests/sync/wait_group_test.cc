#include "sylar/sync/wait_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

class WaitGroupTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, WaitGroupTest, test::kWorkerCounts);

TEST(WaitGroup, OfNothingIsOver) {
  WaitGroup group;
  EXPECT_TRUE(group.wait());
  group.add(2);
  EXPECT_FALSE(group.wait(Deadline::after(0ns)));
  group.done();
  group.done();
  EXPECT_TRUE(group.wait());
}

TEST_P(WaitGroupTest, WaitsForAllInAFiberAndOnAThread) {
  for (const bool in_fiber : {false, true}) {
    std::atomic<int> ended{0};
    IOManager iom(workers(), false, "group");
    const auto body = [&] {
      WaitGroup group;
      for (int i = 0; i < 100; ++i) {
        group.add();
        iom.schedule([&] {
          Fiber::YieldToReady();
          ++ended;
          group.done();
        });
      }
      EXPECT_TRUE(group.wait());
      EXPECT_EQ(ended, 100);
    };
    if (!in_fiber) {
      body();
      continue;
    }
    iom.schedule(body);
    iom.stop();
  }
}

TEST_P(WaitGroupTest, AllWhoWaitGoOn) {
  WaitGroup group;
  group.add();
  std::atomic<int> over{0};
  IOManager iom(workers(), false, "all");
  for (int i = 0; i < 20; ++i) {
    iom.schedule([&] {
      EXPECT_TRUE(group.wait());
      ++over;
    });
  }
  std::thread thread([&] {
    EXPECT_TRUE(group.wait());
    ++over;
  });
  iom.schedule([&] { group.done(); });
  thread.join();
  iom.stop();
  EXPECT_EQ(over, 21);
}

TEST_P(WaitGroupTest, AWaitEndsAtItsDeadlineOrWhenCancelled) {
  WaitGroup group;
  group.add();
  test::inFiber(
      [&] {
        EXPECT_FALSE(group.wait(Deadline::after(1ms)));
        const auto waiter = std::make_shared<Fiber>([&] { EXPECT_FALSE(group.wait()); });
        IOManager::GetThis()->schedule(waiter);
        Fiber::YieldToReady();
        waiter->cancel();
        waiter->join();
      },
      workers());
  group.done();
}

TEST(WaitGroupDeathTest, MoreEndsThanBeginsAreAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  WaitGroup group;
  EXPECT_DEATH(group.done(), "m_count >= count");
}

}  // namespace
}  // namespace sylar
