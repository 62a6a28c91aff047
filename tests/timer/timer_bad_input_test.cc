// Bad input and late calls: the rows of the table in docs/design/timer.md that no other test of this folder holds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sylar/timer.h"
#include "sylar/timer_stats.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

constexpr auto kLongest = std::chrono::nanoseconds::max();
constexpr auto kMostNegative = std::chrono::nanoseconds::min();

// -1 and the most negative number, as sylar's uint64_t, mean never: also as a new delay, and can be cancelled.
TEST(TimerBadInput, MinusOneMillisecondIsNever) {
  ManualTimers timers;
  for (const int64_t ms : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    const auto timer = timers.addTimer(static_cast<uint64_t>(ms), [] { FAIL(); });
    const auto reset = timers.addTimer(10, [] { FAIL(); });
    EXPECT_TRUE(reset->reset(static_cast<uint64_t>(ms), true));
    timers.time().advance(24h * 365);
    EXPECT_EQ(timers.runDue() + timers.dispatchDue(), 0u);
    EXPECT_TRUE(timers.hasTimer());
    EXPECT_TRUE(timer->cancel());
    EXPECT_TRUE(reset->cancel());
  }
}

// The longest and the most negative delay and period, for every kind of recurring: never due, and 1 ms.
TEST(TimerBadInput, AbsurdPeriodsOfTimersWithIds) {
  for (const Repeat repeat : {Repeat::kDelay, Repeat::kSkip}) {
    ManualTimers timers;
    int runs = 0;
    const TimerId never = timers.startTimer(
        kLongest, [] { FAIL(); }, repeat);
    const TimerId shortest = timers.startTimer(
        kMostNegative, [&] { ++runs; }, repeat);
    for (int round = 1; round <= 3; ++round) {
      timers.time().advance(20ms);  // more than a tick of any queue
      EXPECT_EQ(timers.dispatchDue(), 1u);
      EXPECT_EQ(runs, round) << "once a pass, whatever it missed";
    }
    timers.time().advance(24h * 365 * 100);
    EXPECT_EQ(timers.dispatchDue(), 1u);
    EXPECT_EQ(timers.stopTimer(shortest), TimerStop::kCancelled);
    EXPECT_EQ(timers.stopTimer(never), TimerStop::kCancelled);
    EXPECT_FALSE(timers.hasTimer());
  }
}

// Null callbacks that repeat, and conditions that never were.
TEST(TimerBadInput, NullCallbacksAndConditionsInEveryCombination) {
  ManualTimers timers;
  for (const Repeat repeat : {Repeat::kNo, Repeat::kDelay, Repeat::kSkip}) {
    const auto plain = timers.addTimer(10, nullptr, repeat);
    const auto conditional = timers.addConditionTimer(10, nullptr, std::weak_ptr<void>{}, repeat);
    const TimerId id = timers.startTimer(10ms, nullptr, repeat);
    ASSERT_NE(id, 0u);
    timers.time().advance(20ms);
    timers.dispatchDue();
    const bool armed = repeat != Repeat::kNo;
    EXPECT_EQ(plain->cancel(), armed);
    EXPECT_FALSE(conditional->cancel()) << "removed when it was due";
    EXPECT_EQ(timers.stopTimer(id), armed ? TimerStop::kCancelled : TimerStop::kGone);
    EXPECT_FALSE(timers.hasTimer());
  }
}

// An id of a timer that ran, for each way in which it may have ended, while its place has a new one.
TEST(TimerBadInput, StaleIdsOfEveryEndFindNothing) {
  ManualTimers timers;
  std::vector<TimerId> stale;
  const auto start = [&] { return timers.startTimer(0ns, [] {}); };
  stale.push_back(start());
  timers.runDue();
  stale.push_back(start());
  timers.stopTimer(stale.back());
  stale.push_back(start());
  const auto due = timers.collect();
  timers.stopTimer(stale.back());
  for (const auto& timer : due) timer->fire();
  int runs = 0;
  for (int i = 0; i < 3'000; ++i) timers.startTimer(0ns, [&] { ++runs; });  // every place is in use again
  for (const TimerId id : stale) {
    EXPECT_EQ(timers.stopTimer(id), TimerStop::kGone);
    EXPECT_EQ(timers.stopTimerSync(id), TimerStop::kGone);
  }
  timers.dispatchDue();
  EXPECT_EQ(runs, 3'000);
}

// C-24: every call on a manager that was closed, in the order of the header.
TEST(TimerBadInput, EveryCallAfterTheEndHasAResult) {
  ManualTimers timers;
  const auto due = [&] {
    timers.addTimer(0, [] { FAIL(); });
    timers.startTimer(0ns, [] { FAIL(); });
    return timers.collect();
  }();
  ASSERT_EQ(due.size(), 2u);
  timers.close();
  const auto condition = std::make_shared<int>();
  EXPECT_FALSE(timers
                   .addTimer(
                       0, [] { FAIL(); }, Repeat::kSkip)
                   ->cancel());
  EXPECT_FALSE(timers
                   .addConditionTimer(
                       0, [] { FAIL(); }, condition, true)
                   ->refresh());
  EXPECT_EQ(timers.startTimer(
                kMostNegative, [] { FAIL(); }, Repeat::kSkip),
            0u);
  EXPECT_EQ(timers.stopTimer(~TimerId{0}), TimerStop::kGone);
  EXPECT_EQ(timers.stopTimerSync(0), TimerStop::kGone);
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
  EXPECT_TRUE(timers.listDue().empty());
  EXPECT_FALSE(timers.hasTimer());
  timers.advanceMs(-4'000'000);
  EXPECT_FALSE(timers.detectClockRollover());
  EXPECT_EQ(timers.nextDueNs(), kNever);
  EXPECT_EQ(timers.observeNextDue(), kNever);
  std::vector<Timer::ptr> none;
  EXPECT_FALSE(timers.collectDue(100, none));
  EXPECT_FALSE(timers.tryCollectDue(100, none));
  EXPECT_TRUE(none.empty());
  ScopedTimer scoped(timers, 0ns, [] { FAIL(); });
  EXPECT_EQ(scoped.stop(), TimerStop::kGone);
  for (const Timer::ptr& timer : due) {
    Timer::rearm(timer);
    timer->fire();
    EXPECT_FALSE(timer->cancel());
  }
  EXPECT_TRUE(timers.collect().empty());
}

// What was given back is handed out again, once: a second return and one after a cancel do nothing.
TEST(TimerBadInput, WhatIsGivenBackTwiceOrAfterACancelRunsOnceOrNever) {
  ManualTimers timers;
  int runs = 0;
  const auto once = timers.addTimer(0, [&] { ++runs; });
  const auto cancelled = timers.addTimer(0, [] { FAIL(); });
  for (const auto& timer : timers.collect()) {
    Timer::rearm(timer);
    Timer::rearm(timer);
  }
  EXPECT_TRUE(cancelled->cancel());
  Timer::rearm(cancelled);
  for (int pass = 0; pass < 3; ++pass) {
    timers.advanceMs(1);
    timers.dispatchDue();
  }
  EXPECT_EQ(runs, 1);
  Timer::rearm(once);
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 0u);
  EXPECT_FALSE(timers.hasTimer());
}

// A negative number that became a delay is refused, and nothing is armed; 2^63 and ~0ull mean never (C-35).
TEST(TimerBadInput, NegativeDelaysAreRefused) {
  ManualTimers timers;
  const auto condition = std::make_shared<int>();
  const auto armed = timers.addTimer(10, [] {});
  for (const int ms : {-2, -5, std::numeric_limits<int>::min()}) {
    const auto delay = static_cast<uint64_t>(ms);
    EXPECT_THROW(timers.addTimer(delay, [] { FAIL(); }), std::invalid_argument);
    EXPECT_THROW(timers.addTimer(
                     delay, [] { FAIL(); }, true),
                 std::invalid_argument);
    EXPECT_THROW(timers.addConditionTimer(
                     delay, [] { FAIL(); }, condition),
                 std::invalid_argument);
    EXPECT_THROW(armed->reset(delay, true), std::invalid_argument);
  }
  EXPECT_THROW(timers.addTimer((uint64_t{1} << 63) + 1, [] { FAIL(); }), std::invalid_argument);
  EXPECT_EQ(timers.getStats().resident, 1u);
  EXPECT_EQ(timers.getNextTimer(), 10u) << "it is as it was";
}

}  // namespace
}  // namespace sylar
