// What a manager counts, exactly.
#include "sylar/timer_stats.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"
#include "tests/support/seed.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

void expectBalance(const ManualTimers& timers) {
  const TimerStats stats = timers.getStats();
  EXPECT_EQ(stats.armed, stats.fired + stats.dropped + stats.cancelled + stats.resident);
  EXPECT_EQ(stats.fired, stats.lateness.count());
  EXPECT_LE(stats.recalled, stats.fired);
  EXPECT_LE(stats.pushed, stats.relinked);
}

// M-1
TEST(TimerStats, OfANewManagerAreZero) {
  ManualTimers timers;
  const TimerStats stats = timers.getStats();
  EXPECT_EQ(stats.armed + stats.fired + stats.dropped + stats.cancelled + stats.recalled, 0u);
  EXPECT_EQ(stats.pushed + stats.relinked + stats.cascaded + stats.budget_exhausted + stats.clamps + stats.rollovers, 0u);
  EXPECT_EQ(stats.resident, 0u);
  EXPECT_EQ(stats.lateness.count(), 0u);
  EXPECT_EQ(stats.lateness.max_ns, 0);
  EXPECT_EQ(stats.lateness.quantileNs(0.99), 0);
}

// M-2: both kinds of timer, one-shot and recurring.
TEST(TimerStats, CountArmedAndFired) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.addTimer(
      10, [] {}, true);
  timers.startTimer(10ms, [] {});
  timers.startTimer(
      10ms, [] {}, Repeat::kSkip);
  EXPECT_EQ(timers.getStats().armed, 4u);
  EXPECT_EQ(timers.getStats().resident, 4u);
  timers.advanceMs(10);
  timers.dispatchDue();
  EXPECT_EQ(timers.getStats().fired, 4u);
  EXPECT_EQ(timers.getStats().armed, 6u);  // and two next rounds
  EXPECT_EQ(timers.getStats().resident, 2u);
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_EQ(timers.getStats().fired, 6u);
  EXPECT_EQ(timers.getStats().armed, 8u);
  expectBalance(timers);
}

// M-3
TEST(TimerStats, TellCancelledFromRecalled) {
  ManualTimers timers;
  const auto early = timers.addTimer(10, [] {});
  const auto late = timers.addTimer(10, [] { FAIL(); });
  const auto recurring = timers.addTimer(
      10, [] { FAIL(); }, true);
  const TimerId id = timers.startTimer(10ms, [] { FAIL(); });
  const TimerId again = timers.startTimer(
      10ms, [] { FAIL(); }, Repeat::kDelay);
  early->cancel();
  early->cancel();  // finds nothing, counts nothing
  EXPECT_EQ(timers.getStats().cancelled, 1u);
  EXPECT_EQ(timers.getStats().recalled, 0u);
  timers.advanceMs(10);
  const auto due = timers.collect();
  EXPECT_EQ(timers.getStats().fired, 4u);
  late->cancel();
  recurring->cancel();  // the next round and the run
  timers.stopTimer(id);
  timers.stopTimer(again);
  timers.stopTimer(again);
  EXPECT_EQ(timers.getStats().cancelled, 3u);
  EXPECT_EQ(timers.getStats().recalled, 4u);
  for (const auto& timer : due) timer->fire();
  EXPECT_EQ(timers.getStats().resident, 0u);
  expectBalance(timers);
}

// M-4
TEST(TimerStats, CountWhatWasDueButNotHandedOutAsDropped) {
  ManualTimers timers;
  auto condition = std::make_shared<int>();
  timers.addConditionTimer(
      10, [] { FAIL(); }, condition);
  timers.addTimer(
      10, [] {}, true);
  timers.startTimer(
      10ms, [] {}, Repeat::kDelay);
  condition.reset();
  timers.advanceMs(10);
  const auto due = timers.collect();
  EXPECT_EQ(timers.getStats().dropped, 1u);  // its condition is gone
  timers.advanceMs(10);
  timers.collect();
  EXPECT_EQ(timers.getStats().dropped, 3u);  // the last runs have not begun
  EXPECT_EQ(timers.getStats().fired, 2u);
  expectBalance(timers);
}

// M-5
TEST(TimerStats, TellPushedFromRelinked) {
  ManualTimers timers;
  const auto timer = timers.addTimer(100, [] {});
  timers.advanceMs(10);
  timer->refresh();          // later
  timer->reset(200, true);   // later
  timer->reset(200, false);  // no change, no count
  timer->reset(50, true);    // earlier
  timer->cancel();
  timer->refresh();  // too late
  EXPECT_EQ(timers.getStats().pushed, 2u);
  EXPECT_EQ(timers.getStats().relinked, 3u);
  EXPECT_EQ(timers.getStats().armed, 1u);
  expectBalance(timers);
}

// M-6: lateness goes by the true deadline, so a wheel's tick does not count, and by powers of two.
TEST(TimerStats, LatenessIsFromDeadlineToHandingOut) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.startTimer(10ms, [] {});
  timers.advanceMs(10);
  timers.dispatchDue();
  EXPECT_EQ(timers.getStats().lateness.buckets[0], 2u);
  EXPECT_EQ(timers.getStats().lateness.max_ns, 0);
  timers.addTimer(10, [] {});
  timers.startTimer(10ms, [] {});
  timers.advanceMs(13);  // 3 ms late: 2^21 <= 3 000 000 < 2^22
  timers.runDue();
  const TimerStats stats = timers.getStats();
  EXPECT_EQ(stats.lateness.buckets[0], 2u);
  EXPECT_EQ(stats.lateness.buckets[22], 2u);
  EXPECT_EQ(stats.lateness.count(), 4u);
  EXPECT_EQ(stats.lateness.max_ns, 3'000'000);
  EXPECT_EQ(stats.lateness.quantileNs(0.5), 0);
  EXPECT_EQ(stats.lateness.quantileNs(1.0), 3'000'000);
}

// M-6
TEST(LatenessHistogram, BucketsArePowersOfTwo) {
  LatenessHistogram histogram;
  for (const int64_t late : {0, 1, 2, 3, 4, 7, 8}) histogram.add(late);
  EXPECT_EQ(histogram.buckets[0], 1u);
  EXPECT_EQ(histogram.buckets[1], 1u);
  EXPECT_EQ(histogram.buckets[2], 2u);
  EXPECT_EQ(histogram.buckets[3], 2u);
  EXPECT_EQ(histogram.buckets[4], 1u);
  histogram.add(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(histogram.buckets[LatenessHistogram::kBuckets - 1], 1u);
  EXPECT_EQ(histogram.quantileNs(0.5), 3);
  EXPECT_EQ(histogram.quantileNs(1.0), std::numeric_limits<int64_t>::max());
}

// M-7, C-46
TEST(TimerStats, CountPassesThatLeftSomethingBehind) {
  ManualTimers timers;
  for (int i = 0; i < 10; ++i) timers.addTimer(10, [] {});
  timers.advanceMs(10);
  timers.dispatchDue(4);
  timers.dispatchDue(4);
  EXPECT_EQ(timers.getStats().budget_exhausted, 2u);
  timers.dispatchDue(4);
  EXPECT_EQ(timers.getStats().budget_exhausted, 2u);
  expectBalance(timers);
}

// M-8, C-42, C-45
TEST(TimerStats, CountStepsBackOfTheClock) {
  ManualTimers timers;
  timers.addTimer(60'000, [] {});
  timers.time().advance(-1ms);
  timers.getNextTimer();
  timers.time().advance(-1h);
  timers.getNextTimer();
  EXPECT_EQ(timers.getStats().clamps, 2u);
  EXPECT_EQ(timers.getStats().rollovers, 0u);
  timers.time().advance(-1h - 1ms);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(timers.getStats().clamps, 2u);
  EXPECT_EQ(timers.getStats().rollovers, 1u);
  expectBalance(timers);
}

// M-9: a timer 20 s ahead lies two levels up.
TEST(TimerStats, CountMovesWithinAWheel) {
  ManualTimers timers;
  timers.startTimer(20s, [] {});
  timers.advanceMs(20'000);
  timers.dispatchDue();
  EXPECT_EQ(timers.getStats().fired, 1u);
  const bool wheel = test::queueKind() == TimerQueueKind::kWheel;
  EXPECT_EQ(timers.getStats().cascaded > 0, wheel);
  EXPECT_LE(timers.getStats().cascaded, wheel ? 4u : 0u);
}

// M-10
TEST(TimerStats, OutliveTheEndOfTheManager) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.startTimer(20s, [] {});
  timers.close();
  EXPECT_EQ(timers.getStats().cancelled, 2u);
  EXPECT_EQ(timers.getStats().resident, 0u);
  EXPECT_EQ(timers.getStats().cascaded, 0u);
  EXPECT_EQ(timers.addTimer(10, [] {})->cancel(), false);
  EXPECT_EQ(timers.startTimer(10ms, [] {}), 0u);
  EXPECT_EQ(timers.getStats().armed, 2u);
  expectBalance(timers);
}

// M-11: what was given back is handed out twice, but fired once.
TEST(TimerStats, CountWhatWasGivenBackOnce) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.startTimer(10ms, [] {});
  timers.advanceMs(10);
  for (auto& timer : timers.collect()) Timer::rearm(std::move(timer));
  timers.advanceMs(1);
  EXPECT_EQ(timers.dispatchDue(), 2u);
  EXPECT_EQ(timers.getStats().fired, 2u);
  expectBalance(timers);
}

// M-1 to M-5
TEST(TimerStats, BalanceAfterEachOfManyRandomCalls) {
  std::mt19937_64 random(test::seed());
  ManualTimers timers;
  std::vector<Timer::ptr> handles;
  std::vector<TimerId> ids;
  for (int i = 0; i < 5'000; ++i) {
    const auto ms = static_cast<int64_t>(random() % 300);
    const auto pick = random();
    switch (random() % 8) {
      case 0:
        handles.push_back(timers.addTimer(
            static_cast<uint64_t>(ms), [] {}, pick % 8 == 0));
        break;
      case 1:
        ids.push_back(timers.startTimer(
            std::chrono::milliseconds(ms), [] {}, pick % 8 == 0 ? Repeat::kSkip : Repeat::kNo));
        break;
      case 2:
        if (!handles.empty()) handles[pick % handles.size()]->cancel();
        break;
      case 3:
        if (!ids.empty()) timers.stopTimer(ids[pick % ids.size()]);
        break;
      case 4:
        if (!handles.empty()) handles[pick % handles.size()]->refresh();
        break;
      case 5:
        if (!handles.empty()) handles[pick % handles.size()]->reset(static_cast<uint64_t>(ms), pick % 2 == 0);
        break;
      case 6: timers.advanceMs(ms / 10); break;
      case 7: pick % 2 == 0 ? timers.runDue() : timers.dispatchDue(pick % 5); break;
    }
    expectBalance(timers);
  }
  timers.close();
  expectBalance(timers);
  EXPECT_EQ(timers.getStats().resident, 0u);
}

}  // namespace
}  // namespace sylar
