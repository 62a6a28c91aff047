// Tests when a worker looks at its descriptors and timers again, by a clock that its fibers move.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/scheduler.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

class BatchTest : public testing::Test {
 protected:
  /// Lets a fiber yield 2 000 times, alone, and returns how long the batches were, but the first and last one. Its turn number n
  /// takes `time(n)`, where n counts from the begin of the batch.
  std::vector<int> batches(const std::function<std::chrono::nanoseconds(int)>& time) {
    std::vector<int> lengths;
    Scheduler scheduler(SchedulerOptions{.threads = 1, .use_caller = false, .name = "batches", .clock = &m_clock});
    scheduler.start();
    const auto fiber = std::make_shared<Fiber>([&] {
      int length = 0;
      uint64_t polls = scheduler.getWorkerStats().polls;
      for (int i = 0; i < 2000; ++i) {
        ++length;
        m_clock.advance(time(length));
        Fiber::YieldToReady();
        if (scheduler.getWorkerStats().polls == polls) continue;
        polls = scheduler.getWorkerStats().polls;
        lengths.push_back(std::exchange(length, 0));
      }
    });
    scheduler.schedule(fiber);
    fiber->join();
    scheduler.stop();
    lengths.erase(lengths.begin());
    return lengths;
  }

 private:
  test::LeakCheck m_leaks;
  ManualClock m_clock{1h};
};

// FM-46
TEST_F(BatchTest, LastsForAMillisecondOrFor256Fibers) {
  const auto always = [](std::chrono::nanoseconds time) { return [time](int) { return time; }; };
  EXPECT_EQ(batches(always(0us)), std::vector<int>(6, 256));
  EXPECT_EQ(batches(always(1us)), std::vector<int>(6, 256));
  EXPECT_EQ(batches(always(10us)), std::vector<int>(16, 112));  // looks at 16, 32, and so on, of which that is the first too late
  EXPECT_EQ(batches(always(100us)), std::vector<int>(124, 16));
}

// FM-46
TEST_F(BatchTest, IsSeenToTakeLongerBeforeAQuarterOfItHasRun) {
  const auto slow_from = [](int first) { return [first](int n) { return n < first ? 0us : 100us; }; };
  EXPECT_EQ(batches(slow_from(17)), std::vector<int>(30, 64));
  EXPECT_EQ(batches(slow_from(65)), std::vector<int>(14, 128));
}

}  // namespace
}  // namespace sylar
