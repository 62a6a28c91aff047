// An IOManager with each timer queue: timers by handle and by id run in its fibers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "sylar/fiber.h"
#include "sylar/iomanager.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

class IOManagerQueueTest : public testing::TestWithParam<TimerQueueKind> {};
INSTANTIATE_TEST_SUITE_P(Queues, IOManagerQueueTest,
                         testing::Values(TimerQueueKind::kFourAryHeap, TimerQueueKind::kBinaryHeap, TimerQueueKind::kOrderedSet,
                                         TimerQueueKind::kWheel, TimerQueueKind::kWheel10Ms));

TEST_P(IOManagerQueueTest, TimersByHandleAndByIdRunInFibers) {
  std::atomic<int> runs{0};
  const auto count = [&runs] {
    EXPECT_NE(Fiber::GetFiberId(), 0u);
    runs.fetch_add(1);
  };
  IOManager iom({.threads = 2, .use_caller = false, .name = "queues"}, GetParam());
  for (uint64_t i = 0; i < 100; ++i) {
    iom.addTimer(i % 7, count);
    EXPECT_NE(iom.startTimer(std::chrono::milliseconds(i % 5), count), 0u);
  }
  EXPECT_EQ(iom.stopTimer(iom.startTimer(1h, count)), TimerStop::kCancelled);
  EXPECT_TRUE(iom.addTimer(3'600'000, count)->cancel());
  iom.stop();
  EXPECT_EQ(runs, 200);
}

TEST_P(IOManagerQueueTest, RecurringTimerByIdRunsUntilItStopsItself) {
  std::atomic<int> runs{0};
  std::atomic<TimerId> id{0};
  // One worker: each run knows the id, and none begins before the last one is over.
  IOManager iom({.threads = 1, .use_caller = false, .name = "queues"}, GetParam());
  iom.schedule([&] {
    id = iom.startTimer(
        1ms,
        [&] {
          if (runs.fetch_add(1) != 4) return;
          EXPECT_NE(iom.stopTimer(id), TimerStop::kGone);
        },
        Repeat::kSkip);
  });
  iom.stop();
  EXPECT_EQ(runs, 5);
}

}  // namespace
}  // namespace sylar
