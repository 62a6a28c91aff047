// Adding, collecting and running timers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

// C-1
TEST(TimerManager, AddTimerNeverRunsTheCallbackItself) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(0, [&] { ++runs; });
  timers.addTimer(
      0, [&] { ++runs; }, true);
  EXPECT_EQ(runs, 0);
}

// C-2
TEST(TimerManager, TimerIsDueExactlyAfterItsDelayAndOnce) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(10, [&] { ++runs; });
  timers.advanceMs(9);
  timers.time().advance(999'999ns);
  EXPECT_TRUE(timers.listDue().empty());
  timers.time().advance(1ns);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(runs, 1);
  timers.advanceMs(100);
  EXPECT_TRUE(timers.listDue().empty());
}

// C-2
TEST(TimerManager, DispatchedTimerIsDueExactlyAfterItsDelayAndOnce) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(10, [&] { ++runs; });
  timers.advanceMs(9);
  EXPECT_TRUE(timers.collect().empty());
  timers.advanceMs(1);
  const auto due = timers.collect();
  ASSERT_EQ(due.size(), 1u);
  due[0]->fire();
  due[0]->fire();
  EXPECT_EQ(runs, 1);
  timers.advanceMs(100);
  EXPECT_TRUE(timers.collect().empty());
}

// C-3
TEST(TimerManager, DroppingTheHandleDoesNotCancel) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(10, [&] { ++runs; }).reset();
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_EQ(runs, 1);
}

// C-4
TEST(TimerManager, NextTimerIsTheRemainingTimeRoundedUp) {
  ManualTimers timers;
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
  timers.addTimer(10, [] {});
  EXPECT_EQ(timers.getNextTimer(), 10u);
  timers.time().advance(1ns);
  EXPECT_EQ(timers.getNextTimer(), 10u);
  timers.time().advance(999'999ns);
  EXPECT_EQ(timers.getNextTimer(), 9u);
  timers.time().advance(9ms - 1ns);
  EXPECT_EQ(timers.getNextTimer(), 1u);
  timers.time().advance(1ns);
  EXPECT_EQ(timers.getNextTimer(), 0u);
  timers.advanceMs(5);
  EXPECT_EQ(timers.getNextTimer(), 0u);
  timers.runDue();
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
}

// C-5
TEST(TimerManager, ListExpiredAppendsInDeadlineThenArmingOrder) {
  ManualTimers timers;
  std::string order;
  for (const auto& [ms, name] : {std::pair{3, 'd'}, {1, 'a'}, {2, 'b'}, {2, 'c'}}) {
    timers.addTimer(static_cast<uint64_t>(ms), [&order, name = name] { order += name; });
  }
  timers.advanceMs(3);
  std::vector<std::function<void()>> cbs{[&order] { order += '-'; }};
  timers.listExpiredCb(cbs);
  ASSERT_EQ(cbs.size(), 5u);
  for (const auto& cb : cbs) cb();
  EXPECT_EQ(order, "-abcd");
}

// C-5
TEST(TimerManager, CollectDueKeepsTheOrderOverItsBudget) {
  ManualTimers timers;
  std::string order;
  for (const auto& [ms, name] : {std::pair{3, 'd'}, {1, 'a'}, {2, 'b'}, {2, 'c'}, {4, 'e'}}) {
    timers.addTimer(static_cast<uint64_t>(ms), [&order, name = name] { order += name; });
  }
  timers.advanceMs(3);
  std::vector<Timer::ptr> due;
  EXPECT_TRUE(timers.collectDue(0, due));
  EXPECT_TRUE(timers.collectDue(3, due));
  EXPECT_EQ(due.size(), 3u);
  EXPECT_EQ(timers.getNextTimer(), 0u);
  EXPECT_FALSE(timers.tryCollectDue(3, due));
  ASSERT_EQ(due.size(), 4u);
  for (const auto& timer : due) timer->fire();
  EXPECT_EQ(order, "abcd");
}

// C-6
TEST(TimerManager, HasTimerCountsWhatIsArmed) {
  ManualTimers timers;
  EXPECT_FALSE(timers.hasTimer());
  timers.addTimer(10, [] {});
  EXPECT_TRUE(timers.hasTimer());
  timers.advanceMs(10);
  EXPECT_TRUE(timers.hasTimer());
  const auto cbs = timers.listDue();
  EXPECT_FALSE(timers.hasTimer());
  const auto recurring = timers.addTimer(
      10, [] {}, true);
  timers.advanceMs(10);
  timers.listDue();
  EXPECT_TRUE(timers.hasTimer());
  recurring->cancel();
  EXPECT_FALSE(timers.hasTimer());
}

// C-7
TEST(TimerManager, EmptyCallbackExpiresSilently) {
  ManualTimers timers;
  timers.addTimer(10, nullptr);
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_FALSE(timers.hasTimer());
  timers.addTimer(10, nullptr);
  timers.advanceMs(10);
  timers.dispatchDue();
  EXPECT_FALSE(timers.hasTimer());
}

// C-7
TEST(TimerManager, TimerWithEmptyCallbackCanBeCancelled) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, nullptr);
  EXPECT_TRUE(timer->cancel());
  EXPECT_FALSE(timers.hasTimer());
}

// C-8
TEST(TimerManager, ThrowingCallbackLeavesTheOthersToRun) {
  ManualTimers timers;
  int runs = 0;
  const auto addAll = [&] {
    timers.addTimer(1, [] { throw std::runtime_error("expected by this test"); });
    timers.addTimer(2, [&] { ++runs; });
    timers.addTimer(3, [] { throw 42; });
    timers.addTimer(4, [&] { ++runs; });
    timers.advanceMs(4);
  };
  addAll();
  EXPECT_EQ(timers.runDue(), 4u);
  EXPECT_EQ(runs, 2);
  addAll();
  EXPECT_EQ(timers.dispatchDue(), 4u);
  EXPECT_EQ(runs, 4);
}

// C-29, CD-T8
TEST(TimerManager, RecurringTimerIsDueAnewAfterItsPeriodFromTheCollection) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(
      10, [&] { ++runs; }, true);
  for (int pass = 1; pass <= 100; ++pass) {
    timers.advanceMs(13);
    EXPECT_EQ(timers.runDue(), 1u);
    EXPECT_EQ(runs, pass);
    EXPECT_EQ(timers.getNextTimer(), 10u);
  }
}

TEST(TimerManager, RecurringTimerWhoseRunHasNotBegunIsNotHandedOutAgain) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(
      10, [&] { ++runs; }, true);
  timers.advanceMs(10);
  const auto due = timers.collect();
  ASSERT_EQ(due.size(), 1u);
  timers.advanceMs(10);
  EXPECT_TRUE(timers.collect().empty());
  EXPECT_EQ(timers.getNextTimer(), 10u);
  due[0]->fire();
  due[0]->fire();
  EXPECT_EQ(runs, 1);
  timers.advanceMs(10);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(runs, 2);
}

// C-30
TEST(TimerManager, CallbackMayUseTheWholeInterface) {
  ManualTimers timers;
  const auto later = timers.addTimer(1000, [] {});
  const auto other = timers.addTimer(1000, [] {});
  int runs = 0;
  const auto useAll = [&] {
    ++runs;
    timers.addTimer(5, [] {})->cancel();
    EXPECT_TRUE(later->refresh());
    EXPECT_TRUE(later->reset(2000, true));
    EXPECT_EQ(other->cancel(), runs == 1);
    EXPECT_TRUE(timers.hasTimer());
    EXPECT_EQ(timers.getNextTimer(), 2000u);
    EXPECT_EQ(timers.nextDueNs(), timers.observeNextDue());
    EXPECT_TRUE(timers.listDue().empty());
    EXPECT_TRUE(timers.collect().empty());
  };
  timers.addTimer(1, useAll);
  timers.advanceMs(1);
  timers.runDue();
  timers.addTimer(1, useAll);
  timers.advanceMs(1);
  timers.dispatchDue();
  EXPECT_EQ(runs, 2);
}

// C-32
TEST(TimerManager, ZeroDelayFromACallbackRunsInTheNextPass) {
  ManualTimers timers;
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    timers.addTimer(0, again);
  };
  timers.addTimer(0, again);
  for (int pass = 1; pass <= 5; ++pass) {
    EXPECT_EQ(timers.runDue(), 1u);
    EXPECT_EQ(runs, pass);
  }
}

// C-33, TD-21, CD-T9
TEST(TimerManager, NothingIsEverDueEarly) {
  ManualTimers timers;
  std::mt19937_64 random(20240229);
  for (int i = 0; i < 10'000; ++i) {
    timers.time().advance(std::chrono::nanoseconds(random() % 3'000'000));
    const uint64_t ms = random() % 50;
    const int64_t start_ns = timers.time().nowNs();
    timers.addTimer(ms, [&timers, start_ns, ms] { EXPECT_GE(timers.time().nowNs(), start_ns + msToNs(ms)); });
    timers.runDue();
  }
}

// C-33, TD-21: a sleeper that trusts getNextTimer() finds the timer due, and not a millisecond late.
TEST(TimerManager, SleepingForNextTimerIsEnough) {
  ManualTimers timers;
  std::mt19937_64 random(20240301);
  for (int i = 0; i < 1'000; ++i) {
    timers.addTimer(1 + random() % 50, [] {});
    timers.time().advance(std::chrono::nanoseconds(random() % 1'000'000));
    const uint64_t ms = timers.getNextTimer();
    const int64_t due_ns = timers.nextDueNs();
    timers.advanceMs(static_cast<int64_t>(ms));
    EXPECT_GE(timers.time().nowNs(), due_ns);
    EXPECT_LT(timers.time().nowNs(), due_ns + 1'000'000);
    EXPECT_EQ(timers.runDue(), 1u);
  }
}

// C-34, CD-T8
TEST(TimerManager, RecurringZeroBecomesOneMillisecond) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(
      0, [&] { ++runs; }, true);
  EXPECT_EQ(timers.getNextTimer(), 1u);
  for (int tenth = 0; tenth < 10'000; ++tenth) {
    timers.time().advance(100us);
    EXPECT_LE(timers.runDue(), 1u);
  }
  EXPECT_EQ(runs, 1'000);
  EXPECT_TRUE(timer->reset(0, true));
  EXPECT_EQ(timers.getNextTimer(), 1u);
}

// C-35, TD-4
TEST(TimerManager, HugeDelaysSaturateToNever) {
  for (const uint64_t ms : {~0ull, 1ull << 63, static_cast<unsigned long long>(std::numeric_limits<int64_t>::max())}) {
    ManualTimers timers;
    const auto timer = timers.addTimer(ms, [] { FAIL(); });
    EXPECT_TRUE(timers.listDue().empty());
    EXPECT_TRUE(timers.hasTimer());
    EXPECT_GT(timers.getNextTimer(), 1ull << 40);
    EXPECT_NE(timers.getNextTimer(), ~0ull);
    EXPECT_EQ(timers.nextDueNs(), kNever);
    timers.time().advance(24h * 365 * 200);
    EXPECT_TRUE(timers.collect().empty());
    EXPECT_TRUE(timer->refresh());
    EXPECT_TRUE(timer->reset(std::min<uint64_t>(ms, 1ull << 63) - 1, false));
    EXPECT_TRUE(timer->cancel());
    EXPECT_FALSE(timers.hasTimer());
  }
}

// C-35: what saturated has not forgotten when it was armed.
TEST(TimerManager, SaturatedTimerCanBeResetFromItsStart) {
  ManualTimers timers;
  const auto timer = timers.addTimer(~0ull, [] {});
  timers.advanceMs(30);
  EXPECT_TRUE(timer->reset(100, false));
  EXPECT_EQ(timers.getNextTimer(), 70u);
}

// C-36, TD-5
TEST(TimerManager, DelaysBeyondAnIntAreExact) {
  constexpr uint64_t kThirtyDays = 30ull * 24 * 3600 * 1000;
  for (const uint64_t ms : {(1ull << 31) - 1, 1ull << 31, 1ull << 32, static_cast<unsigned long long>(kThirtyDays)}) {
    ManualTimers timers;
    int runs = 0;
    timers.addTimer(ms, [&] { ++runs; });
    EXPECT_EQ(timers.getNextTimer(), ms);
    EXPECT_EQ(timers.nextDueNs(), timers.time().nowNs() + msToNs(ms));
    timers.advanceMs(static_cast<int64_t>(ms) - 1);
    EXPECT_EQ(timers.runDue(), 0u);
    EXPECT_EQ(timers.getNextTimer(), 1u);
    timers.advanceMs(1);
    timers.runDue();
    EXPECT_EQ(runs, 1);
  }
}

// C-37
TEST(TimerManager, EqualDeadlinesFireInArmingOrderAndReArmingCounts) {
  ManualTimers timers;
  std::string order;
  const auto a = timers.addTimer(10, [&] { order += 'a'; });
  timers.addTimer(10, [&] { order += 'b'; });
  const auto c = timers.addTimer(5, [&] { order += 'c'; });
  timers.addTimer(10, [&] { order += 'd'; });
  EXPECT_TRUE(a->refresh());
  EXPECT_TRUE(c->reset(10, true));
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_EQ(order, "bdac");
}

// C-46, CD-T10, TD-20, as far as the manager goes: bounded passes, and due until empty.
TEST(TimerManager, StormIsServedInBoundedPasses) {
  ManualTimers timers;
  constexpr size_t kTimers = 10'000;
  size_t runs = 0;
  for (size_t i = 0; i < kTimers; ++i) timers.addTimer(1, [&] { ++runs; });
  timers.advanceMs(1);
  for (size_t done = 0; done < kTimers; done += 200) {
    EXPECT_EQ(timers.getNextTimer(), 0u);
    EXPECT_EQ(timers.dispatchDue(200), 200u);
  }
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
  EXPECT_EQ(runs, kTimers);
}

TEST(TimerManager, NextDueIsAHintOfTheEarliestDeadline) {
  ManualTimers timers;
  EXPECT_EQ(timers.nextDueNs(), kNever);
  const int64_t start_ns = timers.time().nowNs();
  const auto late = timers.addTimer(20, [] {});
  EXPECT_EQ(timers.nextDueNs(), start_ns + msToNs(20));
  const auto early = timers.addTimer(10, [] {});
  EXPECT_EQ(timers.nextDueNs(), start_ns + msToNs(10));
  early->reset(30, true);
  EXPECT_EQ(timers.nextDueNs(), start_ns + msToNs(20));
  late->cancel();
  EXPECT_EQ(timers.nextDueNs(), start_ns + msToNs(30));
  EXPECT_EQ(timers.observeNextDue(), start_ns + msToNs(30));
  timers.advanceMs(30);
  timers.collect();
  EXPECT_EQ(timers.nextDueNs(), kNever);
}

}  // namespace
}  // namespace sylar
