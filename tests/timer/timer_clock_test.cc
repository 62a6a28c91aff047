// A clock that goes back.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/log_lines.h"
#include "tests/support/manual_timers.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

// C-42, TD-1, CD-T2
TEST(TimerClock, StepBackSoonAfterBootFiresNothingAndDelaysNothing) {
  for (const std::chrono::milliseconds step : {1ms, 1000ms, 540'000ms}) {
    SCOPED_TRACE(step.count());
    ManualTimers timers(10min);
    int runs = 0;
    timers.addTimer(60'000, [&] { ++runs; });
    timers.addTimer(1'000'000, [&] { ++runs; });
    timers.advanceMs(1'000);
    timers.runDue();
    timers.time().advance(-step);
    EXPECT_EQ(timers.runDue(), 0u);
    EXPECT_EQ(timers.getNextTimer(), 59'000u);
    timers.advanceMs(58'999);
    EXPECT_EQ(timers.runDue(), 0u);
    timers.advanceMs(1);
    EXPECT_EQ(timers.runDue(), 1u);
    EXPECT_EQ(timers.getNextTimer(), 940'000u);
    EXPECT_FALSE(timers.detectClockRollover());
  }
}

// C-42: the sleeper's deadline is on the clock's own scale.
TEST(TimerClock, NextDueFollowsTheClockBack) {
  ManualTimers timers(10min);
  timers.addTimer(60'000, [] {});
  timers.time().advance(-1min);
  timers.getNextTimer();
  EXPECT_EQ(timers.observeNextDue(), std::chrono::nanoseconds(10min).count());
  EXPECT_EQ(timers.nextDueNs(), std::chrono::nanoseconds(10min).count());
}

// C-42: after a step back the sleeper would sleep too long by the step, so whoever notices it tells.
TEST(TimerClock, StepBackNoticedByAnAddTicklesTheSleeper) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.getNextTimer();
  timers.time().advance(-1min);
  timers.addTimer(1'000, [] {});
  EXPECT_EQ(timers.tickles, 2);
  timers.addTimer(1'000, [] {});
  timers.getNextTimer();
  timers.addTimer(1'000, [] {});
  EXPECT_EQ(timers.tickles, 2);
}

// C-42
TEST(TimerClock, ManySmallStepsBackAddUpToNoRollover) {
  ManualTimers timers;
  timers.addTimer(60'000, [] { FAIL(); });
  for (int i = 0; i < 10; ++i) {
    timers.time().advance(-30min);
    EXPECT_EQ(timers.runDue(), 0u);
  }
  EXPECT_EQ(timers.getNextTimer(), 60'000u);
  EXPECT_FALSE(timers.detectClockRollover());
}

/// The machine's clock as it was some time after boot.
class YoungClock final : public Clock {
 public:
  explicit YoungClock(std::chrono::nanoseconds uptime) : m_zero_ns(steadyClock().nowNs() - uptime.count()) {}
  int64_t nowNs() const override { return steadyClock().nowNs() - m_zero_ns; }

 private:
  const int64_t m_zero_ns;
};

class YoungTimers final : public TimerManager {
 public:
  explicit YoungTimers(const Clock& clock) : TimerManager(clock, test::queueKind()) {}
  ~YoungTimers() override { close(); }

 protected:
  void onTimerInsertedAtFront() override {}
};

// C-43, TD-2, CD-T2: eight threads, at uptimes from 0 to an hour.
TEST(TimerClock, ThreadsThatSampleTheClockAtOnceFireNothing) {
  for (const std::chrono::minutes uptime : {0min, 1min, 22min, 59min}) {
    const YoungClock clock(uptime);
    YoungTimers timers(clock);
    timers.addTimer(60'000, [] { FAIL(); });
    timers.addTimer(
        60'000, [] { FAIL(); }, true);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&timers] {
        std::vector<std::function<void()>> cbs;
        for (int round = 0; round < 5'000; ++round) timers.listExpiredCb(cbs);
        EXPECT_TRUE(cbs.empty());
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(timers.detectClockRollover());
  }
}

// Whatever call notices a rollover writes its line when the lock is released: a sink is foreign code.
TEST(TimerClock, EachCallThatNoticesARolloverTellsOfItOutsideTheLock) {
  using Call = void (*)(ManualTimers&, const Timer::ptr&);
  const std::vector<Call> calls{
      [](ManualTimers& timers, const Timer::ptr&) { timers.addTimer(10, [] {}); },
      [](ManualTimers& timers, const Timer::ptr&) { timers.startTimer(1s, [] {}); },
      [](ManualTimers&, const Timer::ptr& timer) { timer->refresh(); },
      [](ManualTimers&, const Timer::ptr& timer) { timer->reset(70'000, true); },
      [](ManualTimers& timers, const Timer::ptr&) { timers.getNextTimer(); },
      [](ManualTimers& timers, const Timer::ptr&) { timers.detectClockRollover(); },
      [](ManualTimers& timers, const Timer::ptr&) { timers.listDue(); },
      [](ManualTimers& timers, const Timer::ptr&) { timers.collect(); },
      [](ManualTimers& timers, const Timer::ptr&) {
        std::vector<Timer::ptr> due;
        timers.tryCollectDue(10, due);
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    ManualTimers timers;
    timers.addTimer(
        60'000, [] {}, true);
    const auto timer = timers.addTimer(60'000, [] {});
    timers.time().advance(-2h);
    int lines = 0;
    const test::LogLines watch([&](log::Level level, std::string_view line) {
      EXPECT_EQ(level, log::Level::kWarn);
      EXPECT_EQ(line, "the clock went back by 7200 s: all timers are due");
      EXPECT_TRUE(timers.hasTimer());  // takes the lock
      ++lines;
    });
    calls[i](timers, timer);
    EXPECT_EQ(lines, 1);
  }
}

// C-44, TD-3
TEST(TimerClock, StepBackWithoutTimersDoesNotFireTheNextOne) {
  ManualTimers timers;
  timers.runDue();
  timers.time().advance(-2h);
  int runs = 0;
  timers.addTimer(60'000, [&] { ++runs; });
  EXPECT_EQ(timers.getNextTimer(), 60'000u);
  timers.advanceMs(59'999);
  EXPECT_EQ(timers.runDue(), 0u);
  timers.advanceMs(1);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(runs, 1);
}

// C-44: the clock's last sample moves on while there are no timers.
TEST(TimerClock, ClockIsFollowedWithoutTimers) {
  ManualTimers timers(10h);
  timers.time().set(20h);
  timers.getNextTimer();
  timers.time().set(19h - 1ms);
  EXPECT_TRUE(timers.detectClockRollover());
}

// C-45
TEST(TimerClock, StepBackOfExactlyAnHourIsNoRollover) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.advanceMs(4);
  timers.runDue();
  timers.advanceMs(-3'600'000);
  EXPECT_EQ(timers.runDue(), 0u);
  EXPECT_FALSE(timers.detectClockRollover());
  EXPECT_EQ(timers.getNextTimer(), 6u);
  timers.advanceMs(6);
  EXPECT_EQ(timers.runDue(), 1u);
}

// C-45
TEST(TimerClock, StepBackOfMoreThanAnHourFiresEveryTimerOnce) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    std::string order;
    timers.addTimer(200, [&] { order += 'b'; });
    timers.addTimer(100, [&] { order += 'a'; });
    timers.addTimer(~0ull, [&] { order += 'd'; });
    timers.addTimer(
        1'000'000, [&] { order += 'c'; }, true);
    timers.advanceMs(-3'600'001);
    EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), 4u);
    EXPECT_EQ(order, "abcd");
    EXPECT_TRUE(timers.detectClockRollover());
    EXPECT_FALSE(timers.detectClockRollover());
    EXPECT_EQ(timers.runDue(), 0u);
    EXPECT_EQ(timers.getNextTimer(), 1'000'000u);
    timers.advanceMs(1'000'000);
    EXPECT_EQ(timers.runDue(), 1u);
    EXPECT_EQ(order, "abcdc");
  }
}

// C-45: whoever notices the rollover, what was armed before is due and what is armed after is not.
TEST(TimerClock, RolloverNoticedByAnAddSparesTheNewTimer) {
  ManualTimers timers;
  std::string order;
  timers.addTimer(100, [&] { order += 'a'; });
  timers.addTimer(100'000, [&] { order += 'b'; });
  timers.getNextTimer();
  timers.advanceMs(-3'600'001);
  timers.addTimer(50, [&] { order += 'c'; });
  EXPECT_EQ(timers.tickles, 2);
  EXPECT_EQ(timers.nextDueNs(), timers.time().nowNs());
  EXPECT_EQ(timers.runDue(), 2u);
  EXPECT_EQ(order, "ab");
  EXPECT_TRUE(timers.detectClockRollover());
  EXPECT_EQ(timers.getNextTimer(), 50u);
}

// C-45
TEST(TimerClock, RolloverIsServedInBoundedPasses) {
  ManualTimers timers;
  for (int i = 0; i < 1'000; ++i) timers.addTimer(100 + static_cast<uint64_t>(i), [] {});
  timers.advanceMs(-4'000'000);
  for (int pass = 0; pass < 10; ++pass) EXPECT_EQ(timers.dispatchDue(100), 100u);
  EXPECT_EQ(timers.dispatchDue(100), 0u);
}

// A pause of the machine: everything is due, each recurring timer once.
TEST(TimerClock, JumpForwardFiresARecurringTimerOnce) {
  ManualTimers timers;
  int runs = 0;
  timers.addTimer(
      10, [&] { ++runs; }, true);
  timers.time().advance(24h);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(timers.getNextTimer(), 10u);
}

}  // namespace
}  // namespace sylar
