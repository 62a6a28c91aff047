// cancel, refresh and reset, in every state of a timer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using test::ManualTimers;

// C-10
TEST(Timer, CancelOfAnArmedTimerPreventsTheRun) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, [] { FAIL(); });
  EXPECT_TRUE(timer->cancel());
  timers.advanceMs(100);
  EXPECT_EQ(timers.runDue(), 0u);
  EXPECT_EQ(timers.dispatchDue(), 0u);
}

// C-10
TEST(Timer, CancelDestroysTheCapturesBeforeItReturns) {
  ManualTimers timers;
  for (const bool recurring : {false, true}) {
    auto captured = std::make_shared<int>();
    const std::weak_ptr<int> watch = captured;
    const auto timer = timers.addTimer(
        10, [captured = std::move(captured)] {}, recurring);
    EXPECT_FALSE(watch.expired());
    EXPECT_TRUE(timer->cancel());
    EXPECT_TRUE(watch.expired());
  }
}

TEST(Timer, NothingKeepsADroppedTimerThatWasCancelledOrFired) {
  ManualTimers timers;
  auto cancelled = timers.addTimer(10, [] {});
  auto listed = timers.addTimer(10, [] {});
  auto recurring = timers.addTimer(
      10, [] {}, true);
  const std::vector<std::weak_ptr<Timer>> watches{cancelled, listed, recurring};
  cancelled->cancel();
  timers.advanceMs(10);
  timers.runDue();
  recurring->cancel();
  for (auto* timer : {&cancelled, &listed, &recurring}) timer->reset();
  for (const auto& watch : watches) EXPECT_TRUE(watch.expired());
}

// C-11
TEST(Timer, SecondCancelReturnsFalse) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, [] {});
  EXPECT_TRUE(timer->cancel());
  EXPECT_FALSE(timer->cancel());
  EXPECT_FALSE(timer->refresh());
  EXPECT_FALSE(timer->reset(5, true));
}

// C-12
TEST(Timer, EveryCallAfterTheFireReturnsFalse) {
  ManualTimers timers;
  const auto listed = timers.addTimer(10, [] {});
  timers.advanceMs(10);
  timers.runDue();
  const auto dispatched = timers.addTimer(10, [] {});
  timers.advanceMs(10);
  timers.dispatchDue();
  for (const auto& timer : {listed, dispatched}) {
    EXPECT_FALSE(timer->cancel());
    EXPECT_FALSE(timer->refresh());
    EXPECT_FALSE(timer->reset(20, true));
    EXPECT_FALSE(timer->reset(20, false));
  }
  EXPECT_FALSE(timers.hasTimer());
}

// C-13
TEST(Timer, ListedOneShotCanNoLongerBeCancelled) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(10, [&] { ++runs; });
  timers.advanceMs(10);
  const auto cbs = timers.listDue();
  EXPECT_FALSE(timer->cancel());
  EXPECT_FALSE(timer->refresh());
  for (const auto& cb : cbs) cb();
  EXPECT_EQ(runs, 1);
}

// C-14, TD-6, CD-T5
TEST(Timer, ListedRecurringTimerCanBeCancelledAndItsCallbackDoesNothing) {
  ManualTimers timers;
  const auto timer = timers.addTimer(
      10, [] { FAIL(); }, true);
  timers.advanceMs(10);
  const auto cbs = timers.listDue();
  ASSERT_EQ(cbs.size(), 1u);
  EXPECT_TRUE(timer->cancel());
  cbs[0]();
  EXPECT_FALSE(timers.hasTimer());
}

// C-14: several passes were listed before the first of them ran.
TEST(Timer, EachListedRunOfARecurringTimerRuns) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(
      10, [&] { ++runs; }, true);
  std::vector<std::function<void()>> cbs;
  for (int pass = 0; pass < 3; ++pass) {
    timers.advanceMs(10);
    timers.listExpiredCb(cbs);
  }
  ASSERT_EQ(cbs.size(), 3u);
  cbs[0]();
  cbs[1]();
  EXPECT_TRUE(timer->cancel());
  cbs[2]();
  EXPECT_EQ(runs, 2);
}

// C-15
TEST(Timer, RecurringTimerCancelledInItsOwnCallbackStopsAndLetsGoOfItsCapturesThen) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    int runs = 0;
    Timer::ptr timer;
    auto captured = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = captured;
    timer = timers.addTimer(
        10,
        [&runs, &timer, captured] {
          ++runs;
          EXPECT_TRUE(timer->cancel());
          EXPECT_EQ(*captured, 0);
        },
        true);
    captured.reset();
    timers.advanceMs(10);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_TRUE(watch.expired());
    timers.advanceMs(100);
    EXPECT_EQ(timers.runDue(), 0u);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(timer->cancel());
  }
}

// C-15
TEST(Timer, OneShotCancelledInItsOwnCallbackReturnsFalse) {
  ManualTimers timers;
  Timer::ptr timer;
  int runs = 0;
  const auto tryCancel = [&] {
    ++runs;
    EXPECT_FALSE(timer->cancel());
  };
  timer = timers.addTimer(1, tryCancel);
  timers.advanceMs(1);
  timers.runDue();
  timer = timers.addTimer(1, tryCancel);
  timers.advanceMs(1);
  timers.dispatchDue();
  EXPECT_EQ(runs, 2);
}

// C-16, CD-T5
TEST(Timer, DispatchedTimerThatHasNotRunCanBeCancelledByAnotherOfItsBatch) {
  ManualTimers timers;
  Timer::ptr one_shot;
  Timer::ptr recurring;
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  timers.addTimer(1, [&] {
    EXPECT_TRUE(one_shot->cancel());
    EXPECT_TRUE(watch.expired());
    EXPECT_TRUE(recurring->cancel());
  });
  one_shot = timers.addTimer(2, [captured = std::move(captured)] { FAIL(); });
  recurring = timers.addTimer(
      2, [] { FAIL(); }, true);
  timers.advanceMs(2);
  EXPECT_EQ(timers.dispatchDue(), 3u);
  EXPECT_FALSE(one_shot->cancel());
  EXPECT_FALSE(timers.hasTimer());
}

// C-16
TEST(Timer, ListedTimersAreCancelledByAnotherOfTheirBatchOnlyIfRecurring) {
  ManualTimers timers;
  Timer::ptr one_shot;
  Timer::ptr recurring;
  int runs = 0;
  timers.addTimer(1, [&] {
    EXPECT_FALSE(one_shot->cancel());
    EXPECT_TRUE(recurring->cancel());
  });
  one_shot = timers.addTimer(2, [&] { ++runs; });
  recurring = timers.addTimer(
      2, [] { FAIL(); }, true);
  timers.advanceMs(2);
  EXPECT_EQ(timers.runDue(), 3u);
  EXPECT_EQ(runs, 1);
}

// C-16: what is about to run can be stopped, not put off.
TEST(Timer, DispatchedOneShotThatHasNotRunCanNotBeRefreshed) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(1, [&] { ++runs; });
  timers.advanceMs(1);
  const auto due = timers.collect();
  EXPECT_FALSE(timer->refresh());
  EXPECT_FALSE(timer->reset(50, true));
  EXPECT_FALSE(timer->reset(1, false));
  for (const auto& each : due) each->fire();
  EXPECT_EQ(runs, 1);
}

// C-17
TEST(Timer, RefreshStartsTheDelayAnew) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(10, [&] { ++runs; });
  timers.advanceMs(9);
  EXPECT_TRUE(timer->refresh());
  timers.advanceMs(9);
  EXPECT_EQ(timers.runDue(), 0u);
  EXPECT_EQ(timers.getNextTimer(), 1u);
  timers.advanceMs(1);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(runs, 1);
}

// C-18
TEST(Timer, ResetToTheSameDelayWithoutFromNowChangesNothing) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, [] {});
  timers.getNextTimer();
  timers.advanceMs(4);
  const int tickles = timers.tickles;
  EXPECT_TRUE(timer->reset(10, false));
  EXPECT_EQ(timers.getNextTimer(), 6u);
  EXPECT_EQ(timers.tickles, tickles);
}

// C-18: nor does it lose its place among equals.
TEST(Timer, ResetToTheSameDelayWithoutFromNowIsNoArming) {
  ManualTimers timers;
  std::string order;
  const auto timer = timers.addTimer(10, [&] { order += 'a'; });
  timers.addTimer(10, [&] { order += 'b'; });
  EXPECT_TRUE(timer->reset(10, false));
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_EQ(order, "ab");
}

// C-19
TEST(Timer, ResetToTheSameDelayOfADeadTimerReturnsFalse) {
  ManualTimers timers;
  const auto fired = timers.addTimer(10, [] {});
  timers.advanceMs(10);
  timers.runDue();
  const auto cancelled = timers.addTimer(10, [] {});
  cancelled->cancel();
  EXPECT_FALSE(fired->reset(10, false));
  EXPECT_FALSE(cancelled->reset(10, false));
}

// C-20, TD-9
TEST(Timer, ResetFromNowThatMakesItTheEarliestTicklesOnce) {
  ManualTimers timers;
  timers.addTimer(100, [] {});
  const auto timer = timers.addTimer(1000, [] {});
  timers.getNextTimer();
  const int tickles = timers.tickles;
  timers.advanceMs(10);
  EXPECT_TRUE(timer->reset(50, true));
  EXPECT_EQ(timers.tickles, tickles + 1);
  EXPECT_EQ(timers.getNextTimer(), 50u);
}

// C-21
TEST(Timer, ResetWithoutFromNowCountsFromTheLastArming) {
  ManualTimers timers;
  const auto timer = timers.addTimer(
      100, [] {}, true);
  timers.advanceMs(100);
  timers.runDue();
  timers.advanceMs(30);
  EXPECT_TRUE(timer->reset(50, false));
  EXPECT_EQ(timers.getNextTimer(), 20u);
  EXPECT_TRUE(timer->reset(10, false));
  EXPECT_EQ(timers.getNextTimer(), 0u);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(timers.getNextTimer(), 10u);
}

// C-22
TEST(Timer, ResetChangesThePeriodOfAllLaterRounds) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(
      100, [&] { ++runs; }, true);
  EXPECT_TRUE(timer->reset(7, true));
  for (int round = 1; round <= 5; ++round) {
    timers.advanceMs(6);
    EXPECT_EQ(timers.runDue(), 0u);
    timers.advanceMs(1);
    EXPECT_EQ(timers.runDue(), 1u);
    EXPECT_EQ(runs, round);
  }
}

// C-23
TEST(Timer, RecurringCallbackMayResetAndRefreshItself) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    Timer::ptr timer;
    bool refresh = false;
    timer = timers.addTimer(
        10, [&] { EXPECT_TRUE(refresh ? timer->refresh() : timer->reset(25, true)); }, true);
    timers.advanceMs(10);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_EQ(timers.getNextTimer(), 25u);
    refresh = true;
    timers.advanceMs(25);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_EQ(timers.getNextTimer(), 25u);
  }
}

// C-23
TEST(Timer, OneShotCallbackCanNotReArmItself) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    Timer::ptr timer;
    int runs = 0;
    timer = timers.addTimer(10, [&] {
      ++runs;
      EXPECT_FALSE(timer->refresh());
      EXPECT_FALSE(timer->reset(25, true));
      EXPECT_FALSE(timer->reset(10, false));
    });
    timers.advanceMs(10);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(timers.hasTimer());
  }
}

TEST(Timer, CancelOfTheLastArmedTimerSaysSo) {
  ManualTimers timers;
  timers.on_gone = [&] { EXPECT_FALSE(timers.hasTimer()); };
  const auto a = timers.addTimer(10, [] {});
  const auto b = timers.addTimer(
      10, [] {}, true);
  EXPECT_TRUE(timers.anyWillFallDue());
  a->cancel();
  EXPECT_EQ(timers.gone, 0);
  b->cancel();
  EXPECT_EQ(timers.gone, 1);
  b->cancel();
  EXPECT_EQ(timers.gone, 1);
}

// A manager that has not asked waits for nothing. So the usual timer, which is armed and stopped while others compute, tells
// nobody.
TEST(Timer, TheEndOfTheLastTimerIsToldOnceToWhoHasAskedForIt) {
  ManualTimers timers;
  const auto armTwo = [&] {
    const auto handle = timers.addTimer(10, [] {});
    const TimerId number = timers.startTimer(std::chrono::milliseconds(10), [] {});
    return [&timers, handle, number] {
      EXPECT_TRUE(handle->cancel());
      EXPECT_EQ(timers.stopTimer(number), TimerStop::kCancelled);
    };
  };
  armTwo()();
  EXPECT_EQ(timers.gone, 0) << "nobody has asked";
  EXPECT_FALSE(timers.anyWillFallDue());
  armTwo()();
  EXPECT_EQ(timers.gone, 0) << "there was none to wait for";
  const auto stop = armTwo();
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_TRUE(timers.anyWillFallDue());
  stop();
  EXPECT_EQ(timers.gone, 1);
  armTwo()();
  EXPECT_EQ(timers.gone, 1) << "nobody has asked since";
  const auto put_off = timers.addTimer(10, [] {});
  EXPECT_TRUE(timers.anyWillFallDue());
  put_off->reset(~uint64_t{0}, true);
  EXPECT_EQ(timers.gone, 2) << "it will not fall due";
}

// Cause: in a wheel the first of many in a slot left a bound, at which stop() waited for timers that were gone.
TEST(Timer, NoneWillFallDueWhenAllAreCancelledTheEarliestFirst) {
  ManualTimers timers;
  std::vector<Timer::ptr> slot;
  for (uint64_t i = 0; i < 20; ++i) slot.push_back(timers.addTimer(3'600'000 + 1000 * i, [] {}));
  EXPECT_TRUE(timers.anyWillFallDue());
  for (const auto& timer : slot) EXPECT_TRUE(timer->cancel());
  EXPECT_EQ(timers.gone, 1);
  EXPECT_FALSE(timers.anyWillFallDue());
  EXPECT_EQ(timers.nextDueNs(), kNever);
}

// Cause: those that are never due were taken to be due when one had been that was far off.
TEST(Timer, NoneWillFallDueBesideThoseThatNeverAre) {
  ManualTimers timers;
  const auto far = timers.addTimer(60ull * 24 * 3'600'000, [] {});
  std::vector<Timer::ptr> never;
  for (int i = 0; i < 20; ++i) never.push_back(timers.addTimer(~uint64_t{0}, [] {}));
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_TRUE(far->cancel());
  EXPECT_EQ(timers.gone, 1);
  EXPECT_FALSE(timers.anyWillFallDue());
  EXPECT_EQ(timers.nextDueNs(), kNever);
  EXPECT_TRUE(timers.hasTimer());
  never.front()->reset(10, true);
  EXPECT_TRUE(timers.anyWillFallDue());
  timers.advanceMs(20);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_FALSE(timers.anyWillFallDue());
}

// Cause: a stop waited for the captures of the last timer, whose destructor may wait for that stop.
TEST(Timer, TheEndOfTheLastTimerIsToldBeforeItsCapturesGo) {
  ManualTimers timers;
  int told = -1;
  const auto captured = [&] { return std::shared_ptr<void>(nullptr, [&](void*) { told = timers.gone; }); };
  const auto timer = timers.addTimer(10, [capture = captured()] {});
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_TRUE(timer->cancel());
  EXPECT_EQ(told, 1);
  const TimerId number = timers.startTimer(std::chrono::milliseconds(10), [capture = captured()] {});
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_EQ(timers.stopTimer(number), TimerStop::kCancelled);
  EXPECT_EQ(told, 2);
}

// One that is never due keeps no driver waiting, so its end is no news.
TEST(Timer, CancelOfATimerThatIsNeverDueDoesNotSaySo) {
  ManualTimers timers;
  const auto never = timers.addTimer(~uint64_t{0}, [] {});
  EXPECT_FALSE(timers.anyWillFallDue());
  EXPECT_TRUE(never->cancel());
  const TimerId pooled = timers.startTimer(std::chrono::nanoseconds::max(), [] {});
  EXPECT_EQ(timers.stopTimer(pooled), TimerStop::kCancelled);
  EXPECT_EQ(timers.gone, 0);
}

}  // namespace
}  // namespace sylar
