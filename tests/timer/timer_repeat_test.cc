// What recurring means: Delay and Skip.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/log_lines.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

// C-29: period 10, one pass every 13 ms: Delay runs in each, 10 ms after the last; so does Skip, and keeps to the multiples
// of 10.
TEST(TimerRepeat, DelayDriftsAndSkipKeepsItsPhase) {
  for (const bool with_id : {false, true}) {
    for (const Repeat repeat : {Repeat::kDelay, Repeat::kSkip}) {
      ManualTimers timers;
      const int64_t start_ns = timers.time().nowNs();
      int runs = 0;
      if (with_id)
        timers.startTimer(
            10ms, [&] { ++runs; }, repeat);
      if (!with_id)
        timers.addTimer(
            10, [&] { ++runs; }, repeat);
      for (int pass = 1; pass <= 100; ++pass) {
        timers.advanceMs(13);
        EXPECT_EQ(timers.dispatchDue(), 1u);
        EXPECT_EQ(runs, pass);
        const int64_t due_ns = timers.time().nowNs() + msToNs(timers.getNextTimer());
        if (repeat == Repeat::kDelay) {
          EXPECT_EQ(timers.getNextTimer(), 10u);
        } else {
          EXPECT_EQ((due_ns - start_ns) % msToNs(10), 0);
        }
      }
    }
  }
}

TEST(TimerRepeat, SkipDoesNotDriftOverAMillionPeriods) {
  for (const uint64_t period : {1, 5, 7, 12, 97}) {
    ManualTimers timers;
    const int64_t start_ns = timers.time().nowNs();
    timers.addTimer(
        period, [] {}, Repeat::kSkip);
    for (uint64_t round = 1; round <= 200'000; ++round) {
      timers.advanceMs(static_cast<int64_t>(round % 11 == 0 ? 3 * period : period));  // now and then it misses some
      ASSERT_EQ(timers.dispatchDue(), 1u);
      ASSERT_EQ((timers.nextDueNs() - start_ns) % msToNs(period), 0);
      ASSERT_EQ(timers.getNextTimer(), period);
    }
  }
}

// Each run is within the one before, as if all of them waited. Nothing ends them, so somebody is told.
TEST(TimerRepeat, TheHundredthRunUnderWayIsToldOnceForEachTimer) {
  int lines = 0;
  const test::LogLines watch([&](log::Level level, std::string_view line) {
    EXPECT_EQ(level, log::Level::kWarn);
    EXPECT_EQ(line, "100 runs of a recurring timer are under way, because its callback takes longer than its period of 10 ms");
    ++lines;
  });
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    for (int timer = 1; timer <= 2; ++timer) {
      SCOPED_TRACE(timer);
      int under_way = 0, most = 0;
      lines = 0;
      const auto recurring = timers.addTimer(
          10,
          [&] {
            EXPECT_EQ(lines, ++under_way >= 100 || most >= 100 ? 1 : 0) << under_way;
            most = std::max(most, under_way);
            timers.advanceMs(10);
            const size_t next = under_way == 150 ? 0 : dispatch ? timers.dispatchDue() : timers.runDue();
            EXPECT_EQ(next, under_way == 150 ? 0u : 1u);
            --under_way;
          },
          true);
      for (int round = 0; round < 2; ++round) {
        timers.advanceMs(10);
        EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), 1u);
        EXPECT_EQ(most, 150);
      }
      EXPECT_EQ(lines, 1);
      EXPECT_TRUE(recurring->cancel());
    }
  }
}

TEST(TimerRepeat, RunsThatEndInTimeAreToldToNobody) {
  int lines = 0;
  const test::LogLines watch([&](log::Level, std::string_view) { ++lines; });
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(
      10, [&] { ++runs; }, true);
  for (int round = 0; round < 1'000; ++round) {
    timers.advanceMs(10);
    timers.dispatchDue();
  }
  EXPECT_EQ(runs, 1'000);
  EXPECT_EQ(lines, 0);
}

TEST(TimerRepeat, SkipLeavesOutWhatItMissed) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(
      10, [&] { ++runs; }, Repeat::kSkip);
  timers.advanceMs(1'004);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(timers.getNextTimer(), 6u);
}

TEST(TimerRepeat, SkipCanBeResetRefreshedAndCancelled) {
  ManualTimers timers;
  int runs = 0;
  const auto timer = timers.addTimer(
      10, [&] { ++runs; }, Repeat::kSkip);
  timers.advanceMs(3);
  EXPECT_TRUE(timer->refresh());
  EXPECT_EQ(timers.getNextTimer(), 10u);
  EXPECT_TRUE(timer->reset(20, true));
  timers.advanceMs(25);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(timers.getNextTimer(), 15u);
  EXPECT_TRUE(timer->reset(0, true));
  EXPECT_EQ(timers.getNextTimer(), 1u);
  EXPECT_TRUE(timer->cancel());
  EXPECT_FALSE(timers.hasTimer());
}

TEST(TimerRepeat, SkipWithAConditionEndsWithIt) {
  ManualTimers timers;
  int runs = 0;
  auto condition = std::make_shared<int>();
  timers.addConditionTimer(
      10, [&] { ++runs; }, condition, Repeat::kSkip);
  timers.advanceMs(15);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  condition.reset();
  timers.advanceMs(5);
  EXPECT_EQ(timers.dispatchDue(), 1u);  // to let go of what it captures
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(timers.hasTimer());
}

// C-45: a rollover does not move the phase.
TEST(TimerRepeat, SkipKeepsItsPhaseOverARollover) {
  ManualTimers timers;
  timers.addTimer(
      100, [] {}, Repeat::kSkip);
  timers.advanceMs(30);
  timers.getNextTimer();
  timers.advanceMs(-3'600'001);
  EXPECT_EQ(timers.dispatchDue(), 1u);
  EXPECT_EQ(timers.getNextTimer(), 70u);
}

TEST(TimerRepeat, HugePeriodsAreNeverDue) {
  ManualTimers timers;
  for (const Repeat repeat : {Repeat::kDelay, Repeat::kSkip}) {
    const auto timer = timers.addTimer(
        ~0ull, [] { FAIL(); }, repeat);
    const TimerId id = timers.startTimer(
        std::chrono::nanoseconds::max(), [] { FAIL(); }, repeat);
    timers.time().advance(24h * 365 * 50);
    EXPECT_EQ(timers.dispatchDue(), 0u);
    EXPECT_TRUE(timer->cancel());
    EXPECT_EQ(timers.stopTimer(id), TimerStop::kCancelled);
  }
}

}  // namespace
}  // namespace sylar
