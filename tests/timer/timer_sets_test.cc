// A manager that has several sets of timers, one for each of its threads. Here one thread plays all of them.
#include "sylar/timer/timer_sets.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/run_waits.h"
#include "sylar/timer_stats.h"
#include "tests/support/manual_timers.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using detail::TimerSets;

constinit const detail::ThreadRunWaits<> s_set_waits;

class SetTimers final : private test::OwnedClock, public TimerManager {
 public:
  explicit SetTimers(size_t threads)
      : OwnedClock{ManualClock{10h}}, TimerManager(OwnedClock::clock, test::queueKind(), s_set_waits, threads) {}
  ~SetTimers() override { close(); }

  using TimerManager::anyWillFallDue;
  using TimerManager::close;
  void advance(std::chrono::nanoseconds by) { OwnedClock::clock.advance(by); }
  int64_t nowNs() const { return OwnedClock::clock.nowNs(); }

  int tickles = 0;
  int gone = 0;

 private:
  void onTimerInsertedAtFront() override { ++tickles; }
  void onLastTimerGone() override { ++gone; }
};

/// Makes this thread the one with that set, for a scope.
class OnSet {
 public:
  explicit OnSet(size_t number) { TimerSets::setOwn(number); }
  ~OnSet() { TimerSets::setOwn(0); }
  OnSet(const OnSet&) = delete;
  OnSet& operator=(const OnSet&) = delete;
};

template <class Make>
auto onSet(size_t number, Make make) {
  const OnSet here(number);
  return make();
}

/// Returns how many timers it ran.
size_t dispatch(TimerManager& timers, size_t budget = 1000) {
  size_t count = 0;
  for (bool more = true; more;) {
    std::vector<Timer::ptr> due;
    more = timers.collectDue(budget, due);
    EXPECT_LE(due.size(), budget);
    for (const auto& timer : due) timer->fire();
    count += due.size();
  }
  return count;
}

TEST(TimerSets, TimersOfAllSetsFallDue) {
  SetTimers timers(4);
  std::vector<size_t> ran;
  for (size_t set = 0; set < 4; ++set) {
    onSet(set, [&] { return timers.addTimer(40 - 10 * set, [&ran, set] { ran.push_back(set); }); });
    onSet(set,
          [&] { return timers.startTimer(std::chrono::milliseconds(400 - 100 * set), [&ran, set] { ran.push_back(set); }); });
  }
  EXPECT_TRUE(timers.hasTimer());
  EXPECT_EQ(timers.getNextTimer(), 10U);
  EXPECT_EQ(timers.observeNextDue() - timers.nowNs(), 10'000'000);
  EXPECT_EQ(timers.getStats().resident, 8U);
  timers.advance(10ms);
  EXPECT_EQ(dispatch(timers), 1U);
  EXPECT_EQ(ran, std::vector<size_t>({3}));
  timers.advance(90ms);
  EXPECT_EQ(dispatch(timers, 1), 4U) << "the earliest set comes first, and the call tells that more is due";
  EXPECT_EQ(ran, std::vector<size_t>({3, 2, 1, 0, 3}));
  std::vector<std::function<void()>> cbs;
  timers.advance(1s);
  timers.listExpiredCb(cbs);
  EXPECT_EQ(cbs.size(), 3U);
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(timers.getNextTimer(), ~0ULL);
  EXPECT_EQ(timers.nextDueNs(), kNever);
}

// Invariant 8 of docs/design/timer.md
TEST(TimerSets, AnIdFindsItsTimerFromAnyThreadAndNoOther) {
  SetTimers timers(4);
  std::vector<TimerId> ids;
  for (size_t set = 0; set < 4; ++set) ids.push_back(onSet(set, [&] { return timers.startTimer(1h, [] {}); }));
  for (size_t set = 0; set < 4; ++set) {
    SCOPED_TRACE(set);
    const OnSet elsewhere(set + 1);
    for (const TimerId number : {4, 77, 255})
      EXPECT_EQ(timers.stopTimer((ids[set] & ~(TimerId{255} << 24)) | number << 24), TimerStop::kGone);
    EXPECT_EQ(timers.getStats().resident, 4 - set);
    EXPECT_EQ(timers.stopTimer(ids[set]), TimerStop::kCancelled);
    EXPECT_EQ(timers.stopTimer(ids[set]), TimerStop::kGone);
    EXPECT_EQ(timers.stopTimerSync(ids[set]), TimerStop::kGone);
  }
  EXPECT_FALSE(timers.hasTimer());
}

TEST(TimerSets, AHandleWorksOnAnyThread) {
  SetTimers timers(2);
  const Timer::ptr timer = onSet(1, [&] { return timers.addTimer(10, [] {}); });
  EXPECT_TRUE(timer->reset(20, true));
  EXPECT_EQ(timers.getNextTimer(), 20U);
  EXPECT_TRUE(timer->refresh());
  EXPECT_TRUE(timer->cancel());
  EXPECT_FALSE(timer->cancel());
  EXPECT_FALSE(timers.hasTimer());
  int runs = 0;
  {
    const ScopedTimer scoped = onSet(1, [&] { return ScopedTimer(timers, 1ms, [&] { ++runs; }); });
    EXPECT_TRUE(timers.hasTimer());
  }
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(runs, 0);
}

TEST(TimerSets, AreAPowerOfTwoAndAtMostAsManyAsAnIdCanName) {
  for (const auto& [threads, sets] : {std::pair(1, 1), {2, 2}, {3, 4}, {256, 256}, {1000, 256}}) {
    SCOPED_TRACE(threads);
    SetTimers timers(static_cast<size_t>(threads));
    TimerSets& all = TimerSets::of(timers);
    const auto own = [&](int number) { return onSet(static_cast<size_t>(number), [&] { return all.own(); }); };
    EXPECT_EQ(own(sets), own(0));
    EXPECT_EQ(own(sets + 1), own(1));
    for (int number = 1; number < sets; ++number) EXPECT_NE(own(number), own(number - 1));
    const TimerId id = onSet(static_cast<size_t>(sets - 1), [&] { return timers.startTimer(1h, [] {}); });
    EXPECT_EQ(timers.stopTimer(id), TimerStop::kCancelled);
  }
}

// C-39: the sleeper wakes for the first timer of all sets.
TEST(TimerSets, TheSleeperIsToldOfWhatComesBeforeItWakes) {
  SetTimers timers(2);
  const Timer::ptr first = timers.addTimer(10, [] {});
  EXPECT_EQ(timers.tickles, 1);
  EXPECT_EQ(timers.observeNextDue() - timers.nowNs(), 10'000'000);
  const OnSet other(1);
  timers.addTimer(30, [] {});
  timers.addTimer(20, [] {});
  EXPECT_EQ(timers.tickles, 1) << "the sleeper wakes before them";
  timers.addTimer(5, [] {});
  EXPECT_EQ(timers.tickles, 2);
  timers.addTimer(4, [] {});
  EXPECT_EQ(timers.tickles, 2) << "it was told, and has not looked since";
  EXPECT_EQ(timers.observeNextDue() - timers.nowNs(), 4'000'000);
  EXPECT_TRUE(onSet(0, [&] { return first->reset(3, true); }));
  EXPECT_EQ(timers.tickles, 3);
}

// C-39: once it has looked again, what it knew before counts no more.
TEST(TimerSets, TheSleeperIsToldByItsLastLook) {
  SetTimers timers(2);
  const Timer::ptr first = timers.addTimer(10, [] {});
  timers.observeNextDue();
  EXPECT_TRUE(first->cancel());
  const OnSet other(1);
  timers.addTimer(20, [] {});
  EXPECT_EQ(timers.tickles, 1) << "it wakes at 10, for nothing, and looks";
  EXPECT_EQ(timers.observeNextDue() - timers.nowNs(), 20'000'000);
  timers.addTimer(15, [] {});
  EXPECT_EQ(timers.tickles, 2);
}

TEST(TimerSets, WhoComesByServesItsOwnSetAtOnceAndOthersThatAreLate) {
  SetTimers timers(2);
  int runs = 0;
  timers.startTimer(10ms, [&] { ++runs; });
  const auto comesBy = [&](size_t set) {
    const OnSet here(set);
    std::vector<Timer::ptr> due;
    const bool has_some = TimerSets::of(timers).nextHere().due_ns <= timers.nowNs();
    EXPECT_FALSE(timers.tryCollectDue(100, due)) << "it leaves none that it should serve";
    EXPECT_EQ(due.size(), has_some ? 1U : 0U);
    for (const auto& timer : due) timer->fire();
    return has_some;
  };
  timers.advance(9ms);
  EXPECT_FALSE(comesBy(0));
  timers.advance(1ms);
  EXPECT_FALSE(comesBy(1)) << "its own worker is to have it";
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(comesBy(0));
  EXPECT_EQ(runs, 1);
  timers.startTimer(10ms, [&] { ++runs; });
  timers.advance(10'100us);
  EXPECT_TRUE(comesBy(1));
  EXPECT_EQ(runs, 2);
}

// C-46: no set is left waiting behind another one that always has some due.
TEST(TimerSets, TheLatestSetComesFirst) {
  SetTimers timers(2);
  std::vector<int> ran;
  for (int i = 0; i < 100; ++i) timers.addTimer(2, [&] { ran.push_back(0); });
  onSet(1, [&] { return timers.addTimer(1, [&] { ran.push_back(1); }); });
  timers.advance(10ms);
  std::vector<Timer::ptr> due;
  EXPECT_TRUE(timers.tryCollectDue(10, due)) << "its own are still due";
  EXPECT_TRUE(timers.tryCollectDue(10, due));
  for (const auto& timer : due) timer->fire();
  EXPECT_EQ(ran.front(), 1);
  EXPECT_EQ(ran.size(), 11U);
  for (int calls = 1; timers.tryCollectDue(10, due); ++calls) ASSERT_LT(calls, 10);
  EXPECT_EQ(due.size(), 101U);
}

TEST(TimerSets, TheEndOfTheLastTimerIsToldByEachSetThatWasAsked) {
  SetTimers timers(2);
  const Timer::ptr here = timers.addTimer(10, [] {});
  const Timer::ptr there = onSet(1, [&] { return timers.addTimer(10, [] {}); });
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_TRUE(here->cancel());
  EXPECT_EQ(timers.gone, 1) << "the set that said yes has none left, and it is to be asked again";
  EXPECT_TRUE(timers.anyWillFallDue());
  EXPECT_TRUE(there->cancel());
  EXPECT_EQ(timers.gone, 2);
  EXPECT_FALSE(timers.anyWillFallDue());
}

// A stop asks whether a timer is armed. Cause: the sets were asked one after the other, so that none was seen.
TEST(TimerSets, ATimerThatIsArmedBeforeAnotherIsStoppedIsSeen) {
  constexpr size_t kSets = 32;
  SetTimers timers(kSets);
  std::atomic<bool> over{false};
  const Timer::ptr first = timers.addTimer(1000, [] {});
  std::thread hopper([&] {
    Timer::ptr last = first;
    for (size_t hop = 1; hop < 30'000; ++hop) {
      TimerSets::setOwn(hop * 37 % kSets);
      Timer::ptr next = timers.addTimer(1000, [] {});
      EXPECT_TRUE(last->cancel());
      last = std::move(next);
    }
    over = true;
  });
  bool seen = true;
  while (!over) seen = timers.anyWillFallDue() && seen;
  hopper.join();
  EXPECT_TRUE(seen);
}

// A step of the clock concerns each set, and is one.
TEST(TimerSets, ARolloverMakesTimersOfAllSetsDueAndIsReportedOnce) {
  SetTimers timers(2);
  timers.addTimer(1000, [] {});
  onSet(1, [&] { return timers.addTimer(1000, [] {}); });
  timers.advance(-2h);
  EXPECT_TRUE(timers.detectClockRollover());
  EXPECT_FALSE(timers.detectClockRollover());
  EXPECT_EQ(dispatch(timers), 2U);
}

TEST(TimerSets, AreAllClosedAndCountedTogether) {
  SetTimers timers(2);
  timers.addTimer(1, [] {});
  const Timer::ptr kept = onSet(1, [&] { return timers.addTimer(1000, [] {}); });
  timers.advance(2ms);
  EXPECT_EQ(dispatch(timers), 1U);
  timers.close();
  EXPECT_FALSE(kept->cancel());
  EXPECT_EQ(onSet(1, [&] { return timers.startTimer(1ms, [] {}); }), 0U);
  const TimerStats stats = timers.getStats();
  EXPECT_EQ(stats.armed, 2U);
  EXPECT_EQ(stats.fired, 1U);
  EXPECT_EQ(stats.cancelled, 1U);
  EXPECT_EQ(stats.resident, 0U);
  EXPECT_EQ(stats.lateness.count(), 1U);
  EXPECT_EQ(stats.lateness.max_ns, 1'000'000);
}

}  // namespace
}  // namespace sylar
