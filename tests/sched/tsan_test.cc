// ThreadSanitizer sees fibers as it should: races that are planted between two of them are reported, and what the program orders
// is not. Each run is a process of its own, in the mode that it is given (base/tsan.h).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"

namespace sylar {
namespace {

constexpr int kRuns = 10;
constexpr int kReported = 66;  // the runtime's exit status after a report

int g_plain = 0;

/// Two fibers, on as many workers, run `access` while both are alive, and nothing orders that. One after the other, for what
/// happens in the very same instant the runtime itself may miss. The first rests afterwards, for the runtime remembers only so
/// many steps.
void runTwo(size_t workers, void (*access)()) {
  std::atomic<int> begun{0};
  std::atomic<bool> first_is_done{false};
  const auto count_in = [&] {  // relaxed, as all here: it orders nothing
    begun.fetch_add(1, std::memory_order_relaxed);
    while (begun.load(std::memory_order_relaxed) < 2) Fiber::YieldToReady();
  };
  Scheduler scheduler(workers, false, "planted");
  scheduler.start();
  const auto first = std::make_shared<Fiber>([&] {
    count_in();
    access();
    first_is_done.store(true, std::memory_order_relaxed);
    Fiber::YieldToHold();
  });
  const auto second = [&] {
    count_in();
    while (!first_is_done.load(std::memory_order_relaxed)) Fiber::YieldToReady();
    access();
    scheduler.schedule(first);
  };
  scheduler.schedule(first, coreOf(scheduler).workers().front()->threadId());
  scheduler.schedule(second, coreOf(scheduler).workers().back()->threadId());
  scheduler.stop();
}

/// One write each.
void race(size_t workers) {
  runTwo(workers, [] { ++g_plain; });
}

/// Each handover that the library knows, with something plain in hand.
void handOver(size_t workers) {
  runTwo(workers, [] {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    ++g_plain;
  });
  Scheduler scheduler(workers, false, "ordered");
  int plain = 0;
  const int last = coreOf(scheduler).workers().size() > 1 ? 1 : 0;
  scheduler.schedule([&] {
    const int elsewhere = coreOf(scheduler).workers()[static_cast<size_t>(last)]->threadId();
    ++plain;
    Fiber::ptr held;
    Waker waker;
    held = std::make_shared<Fiber>([&] {
      ++plain;  // after the schedule()
      Wait wait;
      waker = wait.waker();
      scheduler.schedule(
          [&] {
            ++plain;  // after the fiber that scheduled it
            EXPECT_TRUE(waker.wake(WakeReason::kReady));
          },
          elsewhere);
      wait.park();
      ++plain;  // after the wake
      scheduler.schedule(
          [&] {
            ++plain;
            scheduler.schedule(held);
          },
          elsewhere);
      Fiber::YieldToHold();
      ++plain;  // after the schedule() of a held fiber, or of one that is about to be
    });
    scheduler.schedule(held);
    held->join();
    ++plain;  // after its end
    const auto by_hand = std::make_shared<Fiber>([&] {
      ++plain;
      Fiber::GetThis()->yield();
      ++plain;
    });
    by_hand->resume();
    ++plain;
    by_hand->resume();
    EXPECT_TRUE(scheduler.switchTo(elsewhere));
    ++plain;
  });
  scheduler.stop();
  EXPECT_EQ(plain, 11);
}

/// In how many of kRuns processes there was a report.
int reports(const char* strict, void (*program)(size_t), size_t workers) {
  ::setenv("SYLAR_TSAN_STRICT", strict, 1);
  int count = 0;
  const auto ended = [&](int status) {
    count += WIFEXITED(status) && WEXITSTATUS(status) == kReported;
    return WIFEXITED(status) && (WEXITSTATUS(status) == kReported || WEXITSTATUS(status) == 0);
  };
  for (int run = 0; run < kRuns; ++run) {
    const auto whole_process = [&] {
      program(workers);
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(whole_process(), ended, "");
  }
  return count;
}

class TsanDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // executed anew: the mode is read before main
};

// RT-3.2
TEST_F(TsanDeathTest, StrictModeReportsARaceOfTwoFibersOnTwoWorkers) { EXPECT_GE(reports("1", &race, 2), kRuns - 1); }

// RT-3.2: also where one worker happens to run both, as any worker may that steals.
TEST_F(TsanDeathTest, StrictModeReportsARaceOfTwoFibersOnOneWorker) { EXPECT_GE(reports("1", &race, 1), kRuns - 1); }

// RD-8: this is what strict mode is for.
TEST_F(TsanDeathTest, TheUsualModeTakesTheOrderOfOneWorkerForTheProgrammers) { EXPECT_EQ(reports("0", &race, 1), 0); }

// And what the program does order is no race in either mode.
TEST_F(TsanDeathTest, NoHandoverIsReported) {
  for (const size_t workers : {1, 2}) {
    EXPECT_EQ(reports("0", &handOver, workers), 0);
    EXPECT_EQ(reports("1", &handOver, workers), 0);
  }
}

}  // namespace
}  // namespace sylar
