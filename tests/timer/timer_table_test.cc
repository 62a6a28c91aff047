// Every call in every state of a timer, at ordinary and at absurd times.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

struct Call {
  const char* name;
  std::function<bool(Timer&)> make;
};
const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      {"cancel", [](Timer& timer) { return timer.cancel(); }},
      {"refresh", [](Timer& timer) { return timer.refresh(); }},
      {"reset, same", [](Timer& timer) { return timer.reset(10, false); }},
      {"reset, same, from now", [](Timer& timer) { return timer.reset(10, true); }},
      {"reset, other", [](Timer& timer) { return timer.reset(20, false); }},
      {"reset, other, from now", [](Timer& timer) { return timer.reset(20, true); }},
  };
  return all;
}

struct Way {
  const char* name;
  bool recurring;
  bool live;  ///< what every call returns
  std::function<void(std::optional<ManualTimers>&, const Timer::ptr&)> go;
};
const std::vector<Way>& ways() {
  using Manager = std::optional<ManualTimers>;
  static const std::vector<Way> all{
      {"armed", false, true, [](Manager&, const Timer::ptr&) {}},
      {"armed, recurring", true, true, [](Manager&, const Timer::ptr&) {}},
      {"ran, recurring", true, true,
       [](Manager& timers, const Timer::ptr&) {
         timers->advanceMs(10);
         timers->runDue();
       }},
      {"due", false, true, [](Manager& timers, const Timer::ptr&) { timers->advanceMs(100); }},
      {"fired", false, false,
       [](Manager& timers, const Timer::ptr&) {
         timers->advanceMs(10);
         timers->runDue();
       }},
      {"dispatched", false, false,
       [](Manager& timers, const Timer::ptr&) {
         timers->advanceMs(10);
         timers->dispatchDue();
       }},
      {"cancelled", false, false, [](Manager&, const Timer::ptr& timer) { timer->cancel(); }},
      {"cancelled, recurring", true, false, [](Manager&, const Timer::ptr& timer) { timer->cancel(); }},
      {"manager closed", false, false, [](Manager& timers, const Timer::ptr&) { timers->close(); }},
      {"manager gone", false, false, [](Manager& timers, const Timer::ptr&) { timers.reset(); }},
      {"manager gone, recurring", true, false, [](Manager& timers, const Timer::ptr&) { timers.reset(); }},
  };
  return all;
}

// CD-T6, CD-T7, C-11, C-12, C-19, C-24
TEST(TimerTable, CallsReturnTrueOnLiveTimersOnly) {
  for (const Way& way : ways()) {
    for (const Call& call : calls()) {
      SCOPED_TRACE(std::string(way.name) + ": " + call.name);
      std::optional<ManualTimers> timers(std::in_place);
      const auto timer = timers->addTimer(
          10, [] {}, way.recurring);
      way.go(timers, timer);
      EXPECT_EQ(call.make(*timer), way.live);
      if (timers) {
        EXPECT_EQ(timers->hasTimer(), way.live && std::string(call.name) != "cancel");
      }
    }
  }
}

// CD-T11, CD-T10: the deadline goes with the timer, and so do the captures.
TEST(TimerTable, CancelErasesAtOnce) {
  ManualTimers timers;
  const auto later = timers.addTimer(20, [] {});
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  const auto timer = timers.addTimer(10, [captured = std::move(captured)] {});
  EXPECT_TRUE(timer->cancel());
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(timers.getNextTimer(), 20u);
  EXPECT_EQ(timers.nextDueNs(), timers.time().nowNs() + msToNs(20));
  EXPECT_TRUE(later->cancel());
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
}

// CD-T10: a condition that died holds nothing longer than until the expiry. Dispatch hands the timer out, so that its captures
// end where callbacks run.
TEST(TimerTable, ExpiryOfADeadConditionLetsGoOfTheCaptures) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    auto captured = std::make_shared<int>();
    const std::weak_ptr<int> watch = captured;
    const auto timer = timers.addConditionTimer(
        10, [captured = std::move(captured)] { FAIL(); }, std::weak_ptr<void>{});
    timers.advanceMs(10);
    EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), dispatch ? 1u : 0u);
    EXPECT_TRUE(watch.expired());
  }
}

// CD-T1, FM-26: a manager that names no clock uses CLOCK_MONOTONIC, which wall-clock steps do not touch.
TEST(TimerTable, ClockIsTheMonotonicOne) {
  class Plain final : public TimerManager {
   public:
    ~Plain() override { close(); }

   protected:
    void onTimerInsertedAtFront() override {}
  } timers;
  const auto monotonicNs = [] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  };
  const int64_t before_ns = monotonicNs();
  timers.addTimer(60'000, [] {});
  EXPECT_GE(timers.nextDueNs(), before_ns + msToNs(60'000));
  EXPECT_LE(timers.nextDueNs(), monotonicNs() + msToNs(60'000));
}

// ---- Absurd times. -----------------------------------------------------------------------------------------------------------

constexpr uint64_t kAbsurd[] = {1ull << 31, 1ull << 32, 1ull << 43, 1ull << 44, (1ull << 63) - 1, 1ull << 63, ~0ull};

// C-35, TD-4, FM-30
TEST(AbsurdTimes, DelaysFromLateInTheClocksLifeSaturate) {
  constexpr auto kLate = std::chrono::nanoseconds(std::numeric_limits<int64_t>::max() - 1'000'000);  // 1 ms before never
  for (const uint64_t ms : kAbsurd) {
    for (const bool recurring : {false, true}) {
      ManualTimers timers(kLate);
      const auto timer = timers.addTimer(
          ms, [] { FAIL(); }, recurring);
      timers.time().advance(999'999ns);
      EXPECT_EQ(timers.runDue() + timers.dispatchDue(), 0u);
      EXPECT_TRUE(timer->refresh());
      EXPECT_TRUE(timer->reset(ms / 2, true));
      EXPECT_TRUE(timer->reset(ms, false));
      EXPECT_EQ(timers.nextDueNs(), kNever);
      EXPECT_TRUE(timer->cancel());
    }
  }
}

// C-21, C-35
TEST(AbsurdTimes, ResetToAndFro) {
  ManualTimers timers;
  const auto timer = timers.addTimer(10, [] {});
  for (const uint64_t ms : kAbsurd) {
    EXPECT_TRUE(timer->reset(ms, false));
    EXPECT_NE(timers.getNextTimer(), 0u);
    EXPECT_TRUE(timer->reset(10, false));
    EXPECT_EQ(timers.getNextTimer(), 10u);
  }
}

// C-45: the largest step that a clock can make.
TEST(AbsurdTimes, ClockThatStartsAnewFiresEverythingOnceAndGoesOn) {
  ManualTimers timers(std::chrono::nanoseconds(std::numeric_limits<int64_t>::max() / 2));
  int runs = 0;
  timers.addTimer(1'000, [&] { ++runs; });
  timers.addTimer(~0ull, [&] { ++runs; });
  timers.time().set(0ns);
  timers.runDue();
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(timers.detectClockRollover());
  timers.addTimer(5, [&] { ++runs; });
  timers.advanceMs(4);
  EXPECT_EQ(timers.runDue(), 0u);
  timers.advanceMs(1 + test::queueLatenessMs());  // our time is no multiple of a tick now
  EXPECT_EQ(timers.runDue(), 1u);
}

// ---- Null callbacks. ---------------------------------------------------------------------------------------------------------

// C-7
TEST(NullCallback, IsHarmlessInEveryKindOfTimer) {
  ManualTimers timers;
  const auto condition = std::make_shared<int>();
  for (const bool recurring : {false, true}) {
    const auto plain = timers.addTimer(10, nullptr, recurring);
    const auto conditional = timers.addConditionTimer(10, nullptr, condition, recurring);
    timers.advanceMs(10);
    timers.runDue();
    timers.advanceMs(10);
    timers.dispatchDue();
    EXPECT_EQ(plain->cancel(), recurring);
    EXPECT_EQ(conditional->cancel(), recurring);
    EXPECT_FALSE(timers.hasTimer());
  }
}

}  // namespace
}  // namespace sylar
