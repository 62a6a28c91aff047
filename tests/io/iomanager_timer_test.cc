// Timers of an IOManager: who runs their callbacks, when it looks at them, and what they mean for stop(). How early or late they
// are on the real clock is not asked here; the contract of the timers themselves is in tests/timer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/timer/timer_sets.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using detail::SchedulerCore;
using detail::TimerCore;
using detail::TimerSets;
using test::eventually;
using test::Gate;
using test::LeakCheck;

constexpr uint64_t kHourMs = 3'600'000;

class IOTimerTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, IOTimerTest, test::kWorkerCounts);

TEST_P(IOTimerTest, AOneShotRunsOnceInAFiberOfItsManager) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0};
  iom.addTimer(1, [&] {
    EXPECT_NE(Fiber::GetFiberId(), 0u);
    EXPECT_EQ(IOManager::GetThis(), &iom);
    runs.fetch_add(1);
  });
  EXPECT_TRUE(iom.hasTimer());
  iom.stop();
  EXPECT_EQ(runs.load(), 1);
  EXPECT_FALSE(iom.hasTimer());
}

// Cause: it was destroyed on the worker's own stack, where it may not block, and where no stop could leave it behind.
TEST_P(IOTimerTest, WhatATimerOfADeadConditionCapturedIsDestroyedInAFiber) {
  IOManager iom(workers(), false, "timers");
  for (const bool recurring : {false, true}) {
    Gate gone;
    std::atomic<uint64_t> fiber{0};
    auto condition = std::make_shared<int>(0);
    std::shared_ptr<void> capture(nullptr, [&](void*) {
      fiber = Fiber::GetFiberId();
      gone.open();
    });
    iom.addConditionTimer(
        1, [held = std::move(capture)] {}, condition, recurring);
    condition.reset();
    ASSERT_TRUE(gone.wait());
    EXPECT_NE(fiber, 0U) << recurring;
  }
  iom.stop();
}

// C-1: never inside the call, not even without a delay.
TEST_P(IOTimerTest, AddTimerNeverRunsTheCallbackItself) {
  IOManager iom(workers(), false, "timers");
  Gate done;
  iom.schedule([&] {
    std::atomic<bool> added{false};
    const auto me = Fiber::GetThis();
    iom.addTimer(0, [&, me] {
      EXPECT_NE(Fiber::GetFiberId(), me->getId());
      EXPECT_TRUE(added || workers() > 1);
      iom.schedule(me);
    });
    added = true;
    Fiber::YieldToHold();
    done.open();
  });
  EXPECT_TRUE(done.wait());
  iom.stop();  // while what the fibers use is alive
}

// Trap 11, C-15
TEST_P(IOTimerTest, ARecurringTimerRunsUntilItsOwnCallbackCancelsIt) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0}, cancels{0};
  Timer::ptr timer;
  Gate set;
  timer = iom.addTimer(
      1,
      [&] {
        EXPECT_TRUE(set.wait());
        if (runs.fetch_add(1) + 1 < 5) return;
        cancels += timer->cancel();
      },
      true);
  set.open();
  iom.stop();
  EXPECT_GE(runs.load(), 5);
  EXPECT_LE(runs.load(), 4 + static_cast<int>(workers())) << "on a slow machine others begin before the fifth has cancelled it";
  EXPECT_EQ(cancels.load(), 1);
}

// Trap 12
TEST_P(IOTimerTest, ARecurringTimerMayBeResetFromItsOwnCallback) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0}, resets{0}, cancels{0};
  Timer::ptr timer;
  Gate set;
  timer = iom.addTimer(
      kHourMs,
      [&] {
        EXPECT_TRUE(set.wait());
        const int run = runs.fetch_add(1) + 1;
        // On a slow machine the next run begins before this one is over, and may cancel the timer first.
        (run < 4 ? resets : cancels) += run < 4 ? timer->reset(static_cast<uint64_t>(run), true) : timer->cancel();
      },
      true);
  set.open();
  EXPECT_TRUE(timer->reset(1, true));
  iom.stop();
  EXPECT_GE(runs.load(), 4);
  EXPECT_GE(resets.load(), 1);
  EXPECT_EQ(cancels.load(), 1);
}

// The callback is a fiber: it may wait, and the timers behind it do not.
TEST_P(IOTimerTest, ACallbackMayWaitWithoutKeepingOthers) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> others{0};
  Gate woken;
  iom.addTimer(1, [&] {
    while (others < 10) parkUntil(Deadline::after(std::chrono::milliseconds(1)));
    woken.open();
  });
  for (int i = 0; i < 10; ++i) iom.addTimer(2, [&] { others.fetch_add(1); });
  EXPECT_TRUE(woken.wait());
  iom.stop();  // while what the fibers use is alive
}

/// Runs `body` in a fiber of that worker.
void runOn(IOManager& iom, size_t worker, std::function<void()> body) {
  const detail::Worker& there = *SchedulerCore::of(iom).workers()[worker];
  ASSERT_TRUE(eventually([&] { return there.threadId() != 0; })) << "it has begun";
  iom.schedule(std::move(body), there.threadId());
}

// Each worker has a set of timers of its own. While it computes, another one serves them, whether that has slept or has work.
TEST(IOTimerSets, TimersOfAWorkerThatComputesRunOnAnother) {
  for (const bool has_work : {false, true}) {
    SCOPED_TRACE(has_work);
    IOManager iom(2, false, "timers");
    std::atomic<int> ran{0};
    std::atomic<bool> works{!has_work};
    if (has_work) {
      runOn(iom, 1, [&] {
        for (works = true; ran < 2;) Fiber::YieldToReady();
      });
    }
    runOn(iom, 0, [&] {
      while (!works) continue;
      iom.addTimer(1, [&] { ran.fetch_add(1); });
      EXPECT_NE(iom.startTimer(std::chrono::milliseconds(1), [&] { ran.fetch_add(1); }), 0U);
      while (ran < 2) continue;
    });
    iom.stop();
    EXPECT_EQ(ran, 2);
  }
}

TEST(IOTimerSets, EachWorkerHasOneOnTheSteadyClockAndAllHaveOneOnAnyOther) {
  ManualClock clock;
  for (const Clock* const time : {&steadyClock(), static_cast<const Clock*>(&clock)}) {
    IOManager iom({.threads = 2, .use_caller = false, .name = "timers", .clock = time});
    TimerSets& sets = TimerSets::of(iom);
    std::array<std::shared_ptr<TimerCore>, 2> of;
    for (size_t i = 0; i < 2; ++i) {
      Gate done;
      runOn(iom, i, [&, i] {
        of[i] = sets.own();
        done.open();
      });
      ASSERT_TRUE(done.wait());
    }
    EXPECT_EQ(of[0] != of[1], time == &steadyClock());
    EXPECT_EQ(sets.own(), of[0]) << "a thread that is no worker has the first one";
    iom.stop();
  }
}

// C-38 to C-41: the sleepers' deadline is an hour away, or there is none, when a nearer timer comes.
TEST_P(IOTimerTest, AnEarlierTimerIsNotKeptByALaterOne) {
  IOManager iom(workers(), false, "timers");
  const Timer::ptr far = iom.addTimer(kHourMs, [] { FAIL(); });
  const Timer::ptr near = iom.addTimer(kHourMs / 2, [] { FAIL(); });
  Gate fired;
  iom.addTimer(1, [&] { fired.open(); });
  ASSERT_TRUE(fired.wait(1));
  EXPECT_TRUE(near->cancel());
  iom.addTimer(1, [&] { fired.open(); });
  ASSERT_TRUE(fired.wait(2));
  EXPECT_TRUE(far->cancel());
  iom.stop();  // while what the fibers use is alive
}

// CD-T4
TEST_P(IOTimerTest, ResetToAnEarlierDeadlineWakesTheSleeper) {
  IOManager iom(workers(), false, "timers");
  Gate fired;
  const Timer::ptr timer = iom.addTimer(kHourMs, [&] { fired.open(); });
  EXPECT_TRUE(timer->reset(1, true));
  EXPECT_TRUE(fired.wait());
  iom.stop();  // while what the fibers use is alive
}

// C-37
TEST(IOTimerOrder, TimersOfOneDeadlineRunInTheOrderOfTheirArming) {
  const LeakCheck leaks;
  ManualClock clock;
  IOManager iom({.threads = 1, .use_caller = false, .name = "timers", .clock = &clock});
  std::vector<int> order;  // plain: one worker
  iom.schedule([&] {
    for (int i = 0; i < 100; ++i) {
      iom.addTimer(static_cast<uint64_t>(i) / 10, [&order, i] { order.push_back(i); });
    }
    clock.advance(std::chrono::milliseconds(10));
    while (order.size() < 100) Fiber::YieldToReady();
  });
  iom.stop();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// C-47, TD-11: nobody ever sleeps, and the timers run.
TEST_P(IOTimerTest, TimersRunWhileAllWorkersAreBusyTurning) {
  std::atomic<bool> over{false};  // these outlive the fibers
  Gate spinning;
  Gate fired;
  IOManager iom(workers(), false, "timers");
  for (size_t i = 0; i < workers(); ++i) {
    iom.place([&] {
      spinning.open();
      while (!over) Fiber::YieldToReady();
    });
  }
  ASSERT_TRUE(spinning.wait(workers()));
  for (size_t i = 1; i <= 5; ++i) {
    iom.addTimer(1, [&] { fired.open(); });
    EXPECT_TRUE(fired.wait(i));
  }
  over = true;
}

// C-49: one computes; the public timers are served by the others.
TEST_P(IOTimerTest, TimersRunWhileOneWorkerComputes) {
  if (workers() == 1) return;
  Gate computing;
  Gate fired;
  IOManager iom(workers(), false, "timers");
  iom.schedule([&] {
    computing.open();
    EXPECT_TRUE(fired.wait(3));
  });
  ASSERT_TRUE(computing.wait());
  for (size_t i = 1; i <= 3; ++i) {
    iom.addTimer(1, [&] { fired.open(); });
    EXPECT_TRUE(fired.wait(i));
  }
}

// C-46: more than one pass takes.
TEST_P(IOTimerTest, ThousandsThatAreDueTogetherAllRunOnce) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0};
  constexpr int kTimers = 10'000;
  for (int i = 0; i < kTimers; ++i) iom.addTimer(1, [&] { runs.fetch_add(1); });
  iom.stop();
  EXPECT_EQ(runs.load(), kTimers);
}

TEST_P(IOTimerTest, TimersMayBeAddedFromCallbacks) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0};
  std::function<void(int)> chain = [&](int left) {
    runs.fetch_add(1);
    if (left > 0) iom.addTimer(static_cast<uint64_t>(left % 2), [&chain, left] { chain(left - 1); });
  };
  iom.addTimer(0, [&] { chain(20); });
  iom.stop();
  EXPECT_EQ(runs.load(), 21);
}

// C-8
TEST_P(IOTimerTest, ACallbackThatThrowsHarmsNobody) {
  IOManager iom(workers(), false, "timers");
  std::atomic<int> runs{0};
  for (int i = 0; i < 5; ++i) {
    iom.addTimer(1, [] { throw std::runtime_error("on purpose"); });
    iom.addTimer(1, [&] { runs.fetch_add(1); });
  }
  iom.stop();
  EXPECT_EQ(runs.load(), 5);
}

// ---- Timers and the end. -----------------------------------------------------------------------------------------------------

TEST_P(IOTimerTest, StopWaitsForAnArmedTimerAndEndsWithItsCancel) {
  IOManager iom(workers(), false, "timers");
  const Timer::ptr first = iom.addTimer(kHourMs, [] { FAIL(); });
  const Timer::ptr second = iom.addTimer(
      kHourMs, [] { FAIL(); }, true);
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    iom.stop();
    stopped = true;
  });
  Gate turned;
  for (size_t i = 1; i <= 3; ++i) {
    iom.schedule([&] { turned.open(); });
    ASSERT_TRUE(turned.wait(i));
  }
  EXPECT_FALSE(stopped);
  EXPECT_TRUE(first->cancel());
  iom.schedule([&] { turned.open(); });
  ASSERT_TRUE(turned.wait(4));
  EXPECT_FALSE(stopped);
  EXPECT_TRUE(second->cancel());
  stopper.join();
  iom.stop();  // while what the fibers use is alive
}

TEST_P(IOTimerTest, StopRunsWhatIsArmedAndWhatThatArms) {
  std::atomic<int> runs{0};
  {
    IOManager iom(workers(), false, "timers");
    iom.addTimer(2, [&] {
      runs.fetch_add(1);
      iom.addTimer(2, [&] { runs.fetch_add(1); });
    });
  }
  EXPECT_EQ(runs.load(), 2);
}

// TD-7, C-28: what can never run again does not keep the manager from stopping.
TEST_P(IOTimerTest, ARecurringTimerWhoseConditionDiedLetsStopEnd) {
  IOManager iom(workers(), false, "timers");
  auto condition = std::make_shared<int>(0);
  Gate ran;
  iom.addConditionTimer(
      1, [&] { ran.open(); }, condition, true);
  ASSERT_TRUE(ran.wait(2));
  condition.reset();
  iom.stop();
  EXPECT_FALSE(iom.hasTimer());
}

// C-24, CD-T7
TEST_P(IOTimerTest, TimersOutliveTheirManager) {
  Timer::ptr fired;
  Timer::ptr cancelled;
  {
    IOManager iom(workers(), false, "timers");
    fired = iom.addTimer(1, [] {});
    cancelled = iom.addTimer(kHourMs, [] { FAIL(); });
    EXPECT_TRUE(cancelled->cancel());
  }
  for (const auto& timer : {fired, cancelled}) {
    EXPECT_FALSE(timer->cancel());
    EXPECT_FALSE(timer->refresh());
    EXPECT_FALSE(timer->reset(1, true));
  }
}

// Trap 6: the caller's manager serves timers inside stop() only.
TEST(IOTimerCaller, TheOnlyWorkerServesTimersInsideStop) {
  const LeakCheck leaks;
  IOManager iom(1, true, "caller");
  int runs = 0;  // plain: this thread's
  const int me = sys::threadId();
  iom.addTimer(0, [&] {
    ++runs;
    EXPECT_EQ(sys::threadId(), me);
  });
  EXPECT_EQ(runs, 0);
  iom.stop();
  EXPECT_EQ(runs, 1);
}

TEST(IOTimerCaller, TheOtherWorkersServeTimersAllTheTime) {
  const LeakCheck leaks;
  IOManager iom(2, true, "caller");
  Gate fired;
  iom.addTimer(1, [&] { fired.open(); });
  EXPECT_TRUE(fired.wait());
  iom.stop();  // while what the fibers use is alive
}

// With the seed's cap on sleeps.
TEST(IOTimerCapped, TimersRun) {
  const LeakCheck leaks;
  IOManager iom(SchedulerOptions{.threads = 2, .use_caller = false, .name = "cap", .max_wait = std::chrono::milliseconds(3'000)});
  Gate fired;
  for (size_t i = 1; i <= 10; ++i) {
    iom.addTimer(1, [&] { fired.open(); });
    EXPECT_TRUE(fired.wait(i));
  }
  iom.stop();  // while what the fibers use is alive
}

// A timer that is never due is nothing to wait for, also if it becomes that while somebody waits.
TEST_P(IOTimerTest, AStopDoesNotWaitForATimerThatIsNeverDue) {
  IOManager iom(workers(), false, "timers");
  iom.addTimer(~0ull, [] { FAIL(); });
  const auto far = iom.addTimer(kHourMs, [] { FAIL(); });
  EXPECT_TRUE(iom.hasTimer());
  std::thread stopper([&] { iom.stop(); });
  ASSERT_TRUE(eventually([&] { return coreOf(iom).isStopping(); }));
  EXPECT_TRUE(far->reset(~0ull, true));
  stopper.join();
}

/// Says where it was destroyed.
struct DestroyedIn {
  explicit DestroyedIn(std::atomic<uint64_t>& out) : fiber(&out) {}
  ~DestroyedIn() { *fiber = Fiber::GetFiberId(); }
  std::atomic<uint64_t>* fiber;
};

// Foreign code runs in fibers: hooks work there, and a stop with a deadline can leave it behind. On the worker's own stack it
// could do neither.
TEST_P(IOTimerTest, CapturesOfADeadConditionAreDestroyedInAFiber) {
  for (const bool recurring : {false, true}) {
    std::atomic<uint64_t> one_shot{0}, other{0};
    IOManager iom(workers(), false, "timers");
    auto condition = std::make_shared<int>();
    std::vector<Timer::ptr> timers;
    for (std::atomic<uint64_t>* const out : {&one_shot, &other}) {
      timers.push_back(iom.addConditionTimer(
          kHourMs, [captured = std::make_shared<DestroyedIn>(*out)] { FAIL(); }, condition, recurring));
    }
    iom.addTimer(kHourMs, [] {})->cancel();
    condition.reset();
    for (const Timer::ptr& timer : timers) EXPECT_TRUE(timer->reset(1, true));  // none is due before
    iom.stop();
    EXPECT_NE(one_shot, 0u);
    EXPECT_NE(other, 0u);
  }
}

}  // namespace
}  // namespace sylar
