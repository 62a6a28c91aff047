// startTimer, stopTimer, ScopedTimer: timers that are named by a number.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

TEST(TimerIds, RunsOnceAfterItsDelay) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    int runs = 0;
    const TimerId id = timers.startTimer(10ms, [&] { ++runs; });
    EXPECT_NE(id, 0u);
    timers.advanceMs(9);
    EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), 0u);
    timers.advanceMs(1);
    EXPECT_EQ(timers.getNextTimer(), 0u);
    EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), 1u);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(timers.hasTimer());
    EXPECT_EQ(timers.stopTimer(id), TimerStop::kGone);
  }
}

TEST(TimerIds, ShareTheOrderWithOtherTimers) {
  ManualTimers timers;
  std::string order;
  timers.startTimer(10ms, [&] { order += 'a'; });
  timers.addTimer(10, [&] { order += 'b'; });
  timers.startTimer(10ms, [&] { order += 'c'; });
  timers.addTimer(5, [&] { order += '0'; });
  timers.advanceMs(10);
  EXPECT_EQ(timers.dispatchDue(3), 3u);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(order, "0abc");
}

TEST(TimerIds, StoppedTimerDoesNotRunAndLetsGoOfItsCaptures) {
  ManualTimers timers;
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  const TimerId id = timers.startTimer(10ms, [captured = std::move(captured)] { FAIL(); });
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_EQ(timers.stopTimer(id), TimerStop::kCancelled);
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(timers.gone, 1);
  timers.advanceMs(10);
  EXPECT_EQ(timers.runDue(), 0u);
}

// C-11, TD-18
TEST(TimerIds, SecondStopAndStopOfAReusedSlotAreGone) {
  ManualTimers timers;
  std::vector<TimerId> stale;
  for (int i = 0; i < 3'000; ++i) {  // more than the pool holds
    stale.push_back(timers.startTimer(1ms, [] {}));
    EXPECT_EQ(timers.stopTimer(stale.back()), TimerStop::kCancelled);
    EXPECT_EQ(timers.stopTimer(stale.back()), TimerStop::kGone);
  }
  int runs = 0;
  timers.startTimer(1ms, [&] { ++runs; });
  for (const TimerId id : stale) EXPECT_EQ(timers.stopTimer(id), TimerStop::kGone);
  timers.advanceMs(1);
  timers.dispatchDue();
  EXPECT_EQ(runs, 1);
}

// C-16
TEST(TimerIds, HandedOutTimerCanBeStoppedByAnotherOfItsBatch) {
  for (const Repeat repeat : {Repeat::kNo, Repeat::kDelay, Repeat::kSkip}) {
    ManualTimers timers;
    auto captured = std::make_shared<int>();
    const std::weak_ptr<int> watch = captured;
    TimerId second = 0;
    timers.startTimer(10ms, [&] {
      EXPECT_EQ(timers.stopTimer(second), TimerStop::kCancelled);
      EXPECT_TRUE(watch.expired());
      EXPECT_EQ(timers.stopTimer(second), TimerStop::kGone);
    });
    second = timers.startTimer(
        10ms, [captured = std::move(captured)] { FAIL(); }, repeat);
    timers.advanceMs(10);
    EXPECT_EQ(timers.dispatchDue(), 2u);
    EXPECT_FALSE(timers.hasTimer());
  }
}

// C-54: inside the own callback it returns at once.
TEST(TimerIds, StopInTheOwnCallbackSaysRunningAndEndsTheRounds) {
  for (const bool sync : {false, true}) {
    for (const Repeat repeat : {Repeat::kNo, Repeat::kDelay}) {
      ManualTimers timers;
      int runs = 0;
      TimerId id = 0;
      id = timers.startTimer(
          10ms,
          [&] {
            ++runs;
            EXPECT_EQ(sync ? timers.stopTimerSync(id) : timers.stopTimer(id), TimerStop::kRunning);
          },
          repeat);
      timers.advanceMs(10);
      timers.dispatchDue();
      timers.advanceMs(100);
      timers.dispatchDue();
      EXPECT_EQ(runs, 1);
      EXPECT_FALSE(timers.hasTimer());
      EXPECT_EQ(timers.stopTimerSync(id), TimerStop::kGone);
    }
  }
}

// C-54
TEST(TimerIds, SyncStopOfATimerThatDoesNotRunDoesNotWait) {
  ManualTimers timers;
  EXPECT_EQ(timers.stopTimerSync(timers.startTimer(1ms, [] {})), TimerStop::kCancelled);
  const TimerId queued = timers.startTimer(1ms, [] { FAIL(); });
  timers.advanceMs(1);
  const auto due = timers.collect();
  EXPECT_EQ(timers.stopTimerSync(queued), TimerStop::kCancelled);
  for (const auto& timer : due) timer->fire();
}

TEST(TimerIds, RecurringTimerIsNotHandedOutAgainWhileItsRunIsPending) {
  ManualTimers timers;
  int runs = 0;
  timers.startTimer(
      10ms, [&] { ++runs; }, Repeat::kDelay);
  timers.advanceMs(10);
  const auto due = timers.collect();
  ASSERT_EQ(due.size(), 1u);
  timers.advanceMs(10);
  EXPECT_TRUE(timers.collect().empty());
  due[0]->fire();
  EXPECT_EQ(runs, 1);
  timers.advanceMs(10);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(runs, 2);
}

// A driver that found no memory for the callback gives it back, and it is handed out a millisecond later.
TEST(TimerIds, WhatIsGivenBackIsHandedOutAgain) {
  ManualTimers timers;
  int runs = 0;
  timers.startTimer(10ms, [&] { ++runs; });
  timers.advanceMs(10);
  for (auto& timer : timers.collect()) Timer::rearm(std::move(timer));
  EXPECT_EQ(timers.getNextTimer(), 1u);
  EXPECT_TRUE(timers.collect().empty());
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(timers.hasTimer());
}

TEST(TimerIds, TicklesLikeOtherTimers) {
  ManualTimers timers;
  timers.startTimer(10ms, [] {});
  EXPECT_EQ(timers.tickles, 1);
  timers.getNextTimer();
  timers.startTimer(20ms, [] {});
  EXPECT_EQ(timers.tickles, 1);
  timers.startTimer(5ms, [] {});
  EXPECT_EQ(timers.tickles, 2);
}

TEST(TimerIds, ThrowingCallbackLeavesTheOthersToRun) {
  ManualTimers timers;
  int runs = 0;
  timers.startTimer(1ms, [] { throw std::runtime_error("expected by this test"); });
  timers.startTimer(1ms, [&] { ++runs; });
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 2u);
  EXPECT_EQ(runs, 1);
}

void countRun() {}

// Bad input: each has a result.
TEST(TimerIds, BadInputHasAResult) {
  ManualTimers timers;
  for (const TimerId id : {TimerId{0}, TimerId{1}, TimerId{12'345}, ~TimerId{0}}) {
    EXPECT_EQ(timers.stopTimer(id), TimerStop::kGone);
    EXPECT_EQ(timers.stopTimerSync(id), TimerStop::kGone);
  }
  int runs = 0;
  for (const auto after : {-1ns, std::chrono::nanoseconds::min(), 0ns}) timers.startTimer(after, [&] { ++runs; });
  EXPECT_EQ(timers.runDue(), 3u);
  EXPECT_EQ(runs, 3);
  const TimerId never = timers.startTimer(std::chrono::nanoseconds::max(), [] { FAIL(); });
  timers.time().advance(24h * 365 * 100);
  EXPECT_EQ(timers.runDue(), 0u);
  EXPECT_EQ(timers.stopTimer(never), TimerStop::kCancelled);
  timers.startTimer(1ms, nullptr);
  timers.startTimer(1ms, std::function<void()>{});
  timers.startTimer(1ms, static_cast<void (*)()>(nullptr));
  timers.startTimer(1ms, countRun);
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 4u);
  const TimerId recurring = timers.startTimer(
      -5s, [&] { ++runs; }, Repeat::kDelay);
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(timers.stopTimer(recurring), TimerStop::kCancelled);
}

// Use after the manager has ended.
TEST(TimerIds, ClosedManagerStartsNothingAndKnowsNoId) {
  ManualTimers timers;
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  const TimerId id = timers.startTimer(1ms, [captured] { FAIL(); });
  const TimerId recurring = timers.startTimer(
      1ms, [captured] { FAIL(); }, Repeat::kDelay);
  timers.startTimer(0ms, [captured = std::move(captured)] { FAIL(); });
  const auto due = timers.collect();
  timers.close();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(timers.stopTimer(id), TimerStop::kGone);
  EXPECT_EQ(timers.stopTimerSync(recurring), TimerStop::kGone);
  EXPECT_EQ(timers.startTimer(1ms, [] { FAIL(); }), 0u);
  for (const auto& timer : due) timer->fire();
}

TEST(TimerIds, HandedOutRunOutlivesTheManagerAndDoesNothing) {
  std::optional<ManualTimers> timers(std::in_place);
  timers->startTimer(0ms, [] { FAIL(); });
  const auto due = timers->collect();
  const auto listed = [&] {
    timers->startTimer(0ms, [] { FAIL(); });
    return timers->listDue();
  }();
  timers.reset();
  for (const auto& timer : due) timer->fire();
  for (const auto& run : listed) run();
}

// C-45: a rollover concerns them, too.
TEST(TimerIds, RolloverFiresThemOnce) {
  ManualTimers timers;
  int runs = 0;
  timers.startTimer(100ms, [&] { ++runs; });
  timers.startTimer(
      200ms, [&] { ++runs; }, Repeat::kDelay);
  timers.advanceMs(-3'600'001);
  EXPECT_EQ(timers.dispatchDue(), 2u);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(timers.getNextTimer(), 200u);
}

TEST(ScopedTimerTest, StopsAtTheEndOfItsScope) {
  ManualTimers timers;
  {
    const ScopedTimer timer(timers, 1ms, [] { FAIL(); });
    EXPECT_TRUE(timers.hasTimer());
  }
  EXPECT_FALSE(timers.hasTimer());
}

TEST(ScopedTimerTest, MovesAndMayOutliveTheManager) {
  std::optional<ManualTimers> timers(std::in_place);
  int runs = 0;
  ScopedTimer kept;
  EXPECT_EQ(kept.stop(), TimerStop::kGone);
  {
    ScopedTimer timer(*timers, 1ms, [&] { ++runs; });
    kept = std::move(timer);
    ScopedTimer other(std::move(kept));
    kept = std::move(other);
  }
  timers->advanceMs(1);
  timers->dispatchDue();
  EXPECT_EQ(runs, 1);
  kept = ScopedTimer(*timers, 1ms, [] { FAIL(); });
  timers.reset();
  EXPECT_EQ(kept.stop(), TimerStop::kGone);
}

// The order of ten thousand of them, all due at once, over bounded passes.
TEST(TimerIds, StormRunsInOrderInBoundedPasses) {
  ManualTimers timers;
  std::vector<int> order;
  std::array<int, 10'000> numbers;
  for (int i = 0; i < 10'000; ++i) {
    numbers[static_cast<size_t>(i)] = i;
    timers.startTimer(1ms, [&order, number = &numbers[static_cast<size_t>(i)]] { order.push_back(*number); });
  }
  timers.advanceMs(1);
  while (timers.hasTimer()) EXPECT_LE(timers.dispatchDue(200), 200u);
  EXPECT_EQ(order, std::vector(numbers.begin(), numbers.end()));
}

}  // namespace
}  // namespace sylar
