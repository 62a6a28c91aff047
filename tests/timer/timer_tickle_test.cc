// When the driver is told that the earliest deadline moved nearer.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

// C-38
TEST(TimerTickle, IsCalledByTheArmingThreadWithoutTheLock) {
  ManualTimers timers;
  std::thread::id caller;
  timers.on_tickle = [&] {
    caller = std::this_thread::get_id();
    EXPECT_TRUE(timers.hasTimer());
    timers.addTimer(100, [] {});
    EXPECT_EQ(timers.getNextTimer(), 10u);
  };
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 1);
  EXPECT_EQ(caller, std::this_thread::get_id());
}

// C-39, CD-T3
TEST(TimerTickle, IsCalledOnceUntilTheSleeperLooks) {
  ManualTimers timers;
  timers.addTimer(30, [] {});
  timers.addTimer(20, [] {});
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 1);
  timers.getNextTimer();
  timers.addTimer(5, [] {});
  EXPECT_EQ(timers.tickles, 2);
  timers.observeNextDue();
  timers.addTimer(4, [] {});
  EXPECT_EQ(timers.tickles, 3);
}

// C-39
TEST(TimerTickle, IsCalledForResetAndRefreshThatComeFirst) {
  ManualTimers timers;
  const auto front = timers.addTimer(50, [] {});
  const auto timer = timers.addTimer(1000, [] {});
  timers.getNextTimer();
  EXPECT_TRUE(timer->reset(20, true));
  EXPECT_EQ(timers.tickles, 2);
  timers.getNextTimer();
  EXPECT_TRUE(timer->reset(10, true));  // it was the front, and is nearer now
  EXPECT_EQ(timers.tickles, 3);
  timers.getNextTimer();
  EXPECT_TRUE(timer->reset(1000, true));
  EXPECT_TRUE(front->refresh());
  EXPECT_EQ(timers.tickles, 3);
}

// C-39: also for a deadline that is never reached, if there was none.
TEST(TimerTickle, IsCalledForTheFirstTimerWhateverItsDelay) {
  ManualTimers timers;
  const auto timer = timers.addTimer(~0ull, [] {});
  EXPECT_EQ(timers.tickles, 1);
  timer->cancel();
  timers.getNextTimer();
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 2);
}

// C-40
TEST(TimerTickle, IsNotCalledForLaterOrEqualDeadlines) {
  ManualTimers timers;
  const auto front = timers.addTimer(10, [] {});
  timers.getNextTimer();
  timers.addTimer(10, [] {});
  const auto later = timers.addTimer(11, [] {});
  EXPECT_TRUE(later->reset(10, true));
  EXPECT_TRUE(later->reset(500, true));
  timers.time().advance(1ns);
  EXPECT_TRUE(front->refresh());
  EXPECT_EQ(timers.tickles, 1);
}

// C-40: the sleeper wakes once too early and looks again; a timer that is refreshed on each message costs no wake-up.
TEST(TimerTickle, IsNotCalledForTheOnlyTimerMovedLater) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, [] {});
  timers.getNextTimer();
  timers.advanceMs(5);
  EXPECT_TRUE(timer->refresh());
  EXPECT_TRUE(timer->reset(20, true));
  EXPECT_EQ(timers.tickles, 1);
}

// C-40
TEST(TimerTickle, IsNotCalledForCancelExpiryAndTheCollectorsReArming) {
  ManualTimers timers;
  const auto cancelled = timers.addTimer(5, [] {});
  timers.addTimer(
      10, [] {}, true);
  timers.addTimer(20, [] {});
  timers.getNextTimer();
  cancelled->cancel();
  timers.advanceMs(10);
  timers.runDue();
  timers.advanceMs(10);
  timers.dispatchDue();
  EXPECT_EQ(timers.tickles, 1);
}

// C-41, as far as the manager goes: what the sleeper arms after a tickle is the true front, whoever armed in between.
TEST(TimerTickle, ObservedDeadlineIncludesTimersThatWereNotReported) {
  ManualTimers timers;
  const int64_t start_ns = timers.time().nowNs();
  timers.on_tickle = [&] {
    if (timers.tickles == 1) timers.addTimer(5, [] {});
    EXPECT_EQ(timers.observeNextDue(), start_ns + msToNs(5));
  };
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 1);
}

/// A thread that has armed its timer and is kept from telling the sleeper of it; in between `others` arm theirs.
void whileATickleIsUnderWay(ManualTimers& timers, const std::function<void()>& others) {
  timers.on_tickle = [&timers, others] {
    if (timers.tickles == 1) others();
  };
}

// P4: the earlier one of another thread, and even a later one, does not depend on the thread that was first.
TEST(TimerTickle, IsCalledForOthersUntilACallHasBeenMade) {
  for (const uint64_t ms : {5, 10, 20}) {
    ManualTimers timers;
    whileATickleIsUnderWay(timers, [&] {
      std::thread other([&] { timers.addTimer(ms, [] {}); });
      other.join();
      EXPECT_EQ(timers.tickles, 2);
      timers.addTimer(1, [] {});
      EXPECT_EQ(timers.tickles, 2) << "one was made, and nobody has looked since";
    });
    timers.addTimer(10, [] {});
    EXPECT_EQ(timers.tickles, 2);
  }
}

// P4: the sleeper has looked while the call was under way, so the end of that call says nothing of what comes now.
TEST(TimerTickle, ACallThatEndsAfterTheSleeperLookedCountsForNothing) {
  ManualTimers timers;
  whileATickleIsUnderWay(timers, [&] { timers.getNextTimer(); });
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 1);
  timers.addTimer(20, [] {});
  EXPECT_EQ(timers.tickles, 1) << "the sleeper knows of an earlier one";
  timers.addTimer(5, [] {});
  EXPECT_EQ(timers.tickles, 2);
}

}  // namespace
}  // namespace sylar
