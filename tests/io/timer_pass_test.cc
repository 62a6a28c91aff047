// How many timers a worker serves at once, what it does in between, and what it counts. Time is the test's; kernel_double.h looks
// on at each poll.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/timer_stats.h"
#include "tests/io/kernel_double.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;
using test::KernelDouble;

constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kHourMs = 3'600'000;
constexpr uint64_t kPass = 2'000;

/// Time goes on by a step with every look at it.
class SteppingClock final : public Clock {
 public:
  explicit SteppingClock(int64_t step_ns) : m_step_ns(step_ns) {}
  int64_t nowNs() const override { return m_now_ns.fetch_add(m_step_ns); }

 private:
  const int64_t m_step_ns;
  mutable std::atomic<int64_t> m_now_ns{1};
};

class TimerPassTest : public testing::Test {
 protected:
  ManualClock& clock() { return m_clock; }
  KernelDouble& kernel() { return m_kernel; }
  SchedulerOptions options(const Clock& clock) { return {.threads = 1, .use_caller = false, .name = "pass", .clock = &clock}; }
  SchedulerOptions options() { return options(m_clock); }

 private:
  test::LeakCheck m_leaks;
  ManualClock m_clock{std::chrono::hours(1)};
  KernelDouble m_kernel{m_clock};
};

// C-46: more than one pass takes. Descriptors get their turn all the time, and the driver of the timers knows that some are due.
TEST_F(TimerPassTest, DuePublicTimersAreServedInPassesWithPollsBetween) {
  constexpr uint64_t kTimers = 3 * kPass + 1;
  std::atomic<uint64_t> runs{0};
  std::atomic<IOManager*> storm{nullptr};
  uint64_t runs_before = 0;
  uint64_t most = 0;
  uint64_t backlogs = 0;
  uint64_t backlogs_not_due = 0;
  kernel().on_look = [&] {
    IOManager* const iom = storm.load();
    if (iom == nullptr) return;
    most = std::max(most, runs - runs_before);
    runs_before = runs;
    if (!iom->hasTimer()) return;
    ++backlogs;
    backlogs_not_due += iom->getNextTimer() != 0;
  };
  IOManager iom(options());
  for (uint64_t i = 0; i < kTimers; ++i) iom.addTimer(1, [&] { ++runs; });
  // The worker sleeps, so it begins with them when `storm` is set, and not before.
  ASSERT_TRUE(eventually([&] { return coreOf(iom).workers().front()->slot().mailbox.sleeping(); }));
  clock().advance(std::chrono::milliseconds(1));
  storm = &iom;
  iom.schedule([] {});
  ASSERT_TRUE(eventually([&] { return runs == kTimers; }));
  iom.stop();
  storm = nullptr;
  EXPECT_EQ(runs, kTimers);
  EXPECT_LE(most, kPass);
  EXPECT_GE(backlogs, 3u);
  EXPECT_EQ(backlogs_not_due, 0u);
  const IOTimerStats stats = iom.getIOTimerStats();
  EXPECT_GE(stats.passes, 4u) << "of at most 2 000 timers";
  EXPECT_EQ(stats.passes_cut, stats.passes - 1);
}

// 0.5 ms a pass: each look at this clock costs 0.1 ms.
TEST_F(TimerPassTest, APassOfPublicTimersIsBoundedInTime) {
  constexpr uint64_t kTimers = 3'000;
  std::atomic<uint64_t> runs{0};
  const SteppingClock clock(100'000);
  IOManager iom(options(clock));
  for (uint64_t i = 0; i < kTimers; ++i) iom.addTimer(0, [&] { ++runs; });
  iom.schedule([&] {
    while (runs < kTimers) Fiber::YieldToReady();  // so that the worker looks at the clock
  });
  iom.stop();
  EXPECT_EQ(runs, kTimers);
  EXPECT_GE(iom.getIOTimerStats().passes, kTimers / 640) << "five looks, 128 timers each";
}

// Callbacks that do not wait share a fiber, and the one behind a callback that waits has another.
TEST_F(TimerPassTest, ABatchHasOneFiberUntilACallbackWaits) {
  std::vector<uint64_t> fibers;  // plain: one worker
  Gate done;
  IOManager iom(options());
  for (int i = 0; i < 10; ++i) {
    iom.addTimer(1, [&, i] {
      fibers.push_back(Fiber::GetFiberId());
      if (i == 4) Fiber::YieldToReady();
      if (fibers.size() == 10) done.open();
    });
  }
  clock().advance(std::chrono::milliseconds(1));
  iom.schedule([] {});
  ASSERT_TRUE(done.wait());
  iom.stop();
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(fibers[i] == fibers[0], i < 5) << i;
  for (size_t i = 5; i < 10; ++i) EXPECT_EQ(fibers[i], fibers[5]) << i;
}

// Callbacks share a fiber, not what one does to it: who finds it other than new gets another.
TEST_F(TimerPassTest, ACallbackLeavesNothingToTheNext) {
  IOManager iom(options());
  Fiber::ptr kept;
  const std::vector<std::function<void()>> changes{
      [] { runningFiber()->hook_enabled = false; },
      [] { Fiber::GetThis()->setName("first"); },
      [] { Fiber::GetThis()->cancel(); },
      [&] { iom.schedule(Fiber::GetThis()); },  // a permit
      [&] { kept = Fiber::GetThis(); },         // who joins or cancels it means that callback
  };
  std::vector<uint64_t> changed;  // plain: one worker
  std::vector<uint64_t> next;
  Gate done;
  for (const auto& change : changes) {
    iom.addTimer(1, [&] {
      changed.push_back(Fiber::GetFiberId());
      change();
    });
    iom.addTimer(1, [&] {
      next.push_back(Fiber::GetFiberId());
      EXPECT_TRUE(runningFiber()->hook_enabled);
      EXPECT_FALSE(this_fiber::cancelled());
      EXPECT_FALSE(runningFiber()->permit);
      EXPECT_EQ(Fiber::GetThis()->getName(), "");
      if (next.size() == changes.size()) done.open();
    });
  }
  clock().advance(std::chrono::milliseconds(1));
  iom.schedule([] {});
  ASSERT_TRUE(done.wait());
  kept->join();
  kept.reset();
  iom.stop();
  for (size_t i = 0; i < changes.size(); ++i) EXPECT_NE(next[i], changed[i]) << i;
  for (size_t i = 1; i < changes.size(); ++i) EXPECT_EQ(changed[i], next[i - 1]) << i << ": nothing was changed";
}

// C-49, the other side: what stands behind a callback that computes is done by a worker that has nothing to do. It is woken for
// that, and for nothing else: when the batch begins, no other work is there.
TEST_F(TimerPassTest, ABatchIsSharedWithAnIdleWorker) {
  std::atomic<int> others{0};
  Gate rest_ran;
  Gate done;
  SchedulerOptions two = options();
  two.threads = 2;
  IOManager iom(two);
  for (int i = 0; i < 10; ++i) {
    iom.addTimer(1, [&, i] {
      if (i == 0) {
        EXPECT_TRUE(rest_ran.wait());
        done.open();
      } else if (++others == 9) {
        rest_ran.open();
      }
    });
  }
  ASSERT_TRUE(eventually([&] {
    return std::all_of(coreOf(iom).workers().begin(), coreOf(iom).workers().end(),
                       [](const auto& worker) { return worker->slot().mailbox.sleeping(); });
  }));
  clock().advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(coreOf(iom).workers().front()->slot().wake());
  EXPECT_TRUE(done.wait());
  iom.stop();
}

// What is due while callbacks wait for their turn would only pile up behind them: memory, and an order of its own.
TEST_F(TimerPassTest, AStormDoesNotPileUpFibers) {
  constexpr uint64_t kTimers = 10 * kPass;
  std::atomic<uint64_t> runs{0};
  std::atomic<IOManager*> storm{nullptr};
  uint64_t most = 0;
  kernel().on_look = [&] {
    if (IOManager* const iom = storm.load()) most = std::max<uint64_t>(most, coreOf(*iom).workers().front()->spawned().count());
  };
  IOManager iom(options());
  for (uint64_t i = 0; i < kTimers; ++i) iom.addTimer(1, [&] { ++runs; });
  clock().advance(std::chrono::milliseconds(1));
  storm = &iom;
  iom.schedule([] {});
  ASSERT_TRUE(eventually([&] { return runs == kTimers; }));
  iom.stop();
  storm = nullptr;
  EXPECT_LE(most, kPass + 256);
}

// C-47, the other side: work that never ends does not keep timers from their place in it.
TEST_F(TimerPassTest, AFloodOfUnstartedWorkDoesNotStarveTimers) {
  std::atomic<bool> over{false};
  Gate flooded;
  Gate fired;
  IOManager iom(options());
  const auto flood = [&](const auto& again) -> void {
    if (!over) iom.schedule([&again] { again(again); });
  };
  iom.schedule([&] {
    for (int i = 0; i < 1'000; ++i) flood(flood);
    flooded.open();
  });
  ASSERT_TRUE(flooded.wait());
  iom.addTimer(1, [&] { fired.open(); });
  clock().advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(fired.wait());
  over = true;
  iom.stop();
}

// The same bound for what fibers wait for.
TEST_F(TimerPassTest, DuePrivateTimeoutsAreServedInPassesWithPollsBetween) {
  constexpr uint64_t kFibers = 2 * kPass + 1;
  std::atomic<IOManager*> storm{nullptr};
  uint64_t fired_before = 0;
  uint64_t most = 0;
  uint64_t looks = 0;
  kernel().on_look = [&] {
    IOManager* const iom = storm.load();
    if (iom == nullptr) return;
    const uint64_t fired = iom->getWorkerStats().timeouts_fired;
    most = std::max(most, fired - fired_before);
    fired_before = fired;
    looks += fired < kFibers;
  };
  IOManager iom(options());
  const Deadline deadline = Deadline::after(std::chrono::hours(1), clock());
  std::atomic<uint64_t> woken{0};
  Gate gate;
  storm = &iom;
  iom.schedule([&] {  // the worker does not sleep, and time does not move, before all of them wait
    for (uint64_t i = 0; i < kFibers; ++i) {
      iom.schedule([&] {
        EXPECT_EQ(parkUntil(deadline), WakeReason::kTimeout);
        if (++woken == kFibers) gate.open();
      });
    }
  });
  EXPECT_TRUE(gate.wait());
  iom.stop();
  storm = nullptr;
  EXPECT_EQ(most, kPass);
  EXPECT_GE(looks, 2u);
}

TEST_F(TimerPassTest, APassOfPrivateTimeoutsIsBoundedInTime) {
  constexpr uint64_t kFibers = 2'000;
  std::atomic<IOManager*> storm{nullptr};
  uint64_t fired_before = 0;
  uint64_t most = 0;
  kernel().on_look = [&] {
    if (IOManager* const iom = storm.load()) {
      const uint64_t fired = iom->getWorkerStats().timeouts_fired;
      most = std::max(most, fired - std::exchange(fired_before, fired));
    }
  };
  const SteppingClock clock(100'000);
  IOManager iom(options(clock));
  storm = &iom;
  const Deadline deadline = Deadline::at(3'000 * kMs);  // nobody gets there before all of them wait
  for (uint64_t i = 0; i < kFibers; ++i) iom.schedule([&] { parkUntil(deadline); });
  iom.stop();
  storm = nullptr;
  EXPECT_EQ(iom.getWorkerStats().timeouts_fired, kFibers);
  EXPECT_LE(most, 6u * 64u) << "five looks at the clock, 64 timeouts each";
}

// ---- Who is told, and who arms. ----------------------------------------------------------------------------------------------

bool eventuallyAllSleep(IOManager& iom) {
  return eventually([&] { return coreOf(iom).idle().sleeping() == coreOf(iom).workers().size(); });
}

// C-41. The manual clock's manager has no descriptor, but the same decisions.
TEST_F(TimerPassTest, OnlyANewFrontIsTold) {
  IOManager iom(options());
  ASSERT_TRUE(eventuallyAllSleep(iom));
  const auto sent = [&] { return iom.getIOTimerStats().tickles_sent; };
  const auto first = iom.addTimer(5 * kHourMs, [] {});
  EXPECT_EQ(sent(), 1u);
  const auto equal = iom.addTimer(5 * kHourMs, [] {});
  const auto later = iom.addTimer(6 * kHourMs, [] {});
  EXPECT_EQ(sent(), 1u);
  const auto earlier = iom.addTimer(4 * kHourMs, [] {});
  EXPECT_EQ(sent(), 2u);
  for (const auto& timer : {first, equal, later, earlier}) EXPECT_TRUE(timer->cancel());
  EXPECT_EQ(sent(), 2u);
  EXPECT_EQ(iom.getIOTimerStats().tickles_suppressed, 0u);
  const auto again = iom.addTimer(4 * kHourMs, [] {});  // the front that it is set to
  EXPECT_EQ(sent(), 2u);
  EXPECT_EQ(iom.getIOTimerStats().tickles_suppressed, 1u);
  EXPECT_TRUE(again->cancel());
}

// C-41: on the real clock, with a descriptor. That nobody wakes is seen from outside: idle_trace_test.py.
TEST(TimerStats, ANewFrontIsOneSetting) {
  const test::LeakCheck leaks;
  IOManager iom(1, false, "front");
  ASSERT_TRUE(eventuallyAllSleep(iom));
  std::vector<Timer::ptr> timers;
  for (uint64_t hours = 9; hours >= 1; --hours) timers.push_back(iom.addTimer(hours * kHourMs, [] {}));
  for (uint64_t hours = 2; hours <= 9; ++hours) timers.push_back(iom.addTimer(hours * kHourMs, [] {}));
  for (const auto& timer : timers) EXPECT_TRUE(timer->cancel());
  EXPECT_EQ(iom.getIOTimerStats().timer_fd_settings, 9u);
  EXPECT_EQ(iom.getIOTimerStats().tickles_sent, 9u);
  EXPECT_EQ(iom.getIOTimerStats().passes, 0u);
}

// C-41: nobody waits for the descriptor, so it is not set. The worker that sleeps next sets it, once.
TEST(TimerStats, WhileNoWorkerSleepsNothingIsSet) {
  const test::LeakCheck leaks;
  IOManager iom(1, false, "busy");
  Gate armed;
  Gate fired;
  IOTimerStats busy;
  iom.schedule([&] {
    const uint64_t before = iom.getIOTimerStats().timer_fd_settings;
    for (uint64_t hours = 9; hours >= 1; --hours) iom.addTimer(hours * kHourMs, [] {})->cancel();
    iom.addTimer(1, [&] { fired.open(); });
    busy = iom.getIOTimerStats();
    busy.timer_fd_settings -= before;
    armed.open();
  });
  ASSERT_TRUE(armed.wait());
  EXPECT_EQ(busy.timer_fd_settings, 0u);
  EXPECT_EQ(busy.tickles_sent, 0u);
  EXPECT_TRUE(fired.wait());
}

// Another worker may sleep on the descriptor while the callback runs.
TEST(TimerStats, WhoServesArmsAnewBeforeTheCallbackRuns) {
  const test::LeakCheck leaks;
  IOManager iom(1, false, "arm");
  ASSERT_TRUE(eventuallyAllSleep(iom));
  const auto far = iom.addTimer(kHourMs, [] {});
  IOTimerStats inside;
  Gate fired;
  iom.addTimer(1, [&] {
    inside = iom.getIOTimerStats();
    fired.open();
  });
  ASSERT_TRUE(fired.wait());
  EXPECT_EQ(inside.tickles_sent, 2u);
  EXPECT_GE(inside.passes, 1u);
  EXPECT_EQ(inside.timer_fd_settings, inside.tickles_sent + inside.passes);
  EXPECT_TRUE(far->cancel());
}

// ---- The private set. --------------------------------------------------------------------------------------------------------

// A wait with the same timeout again and again is a store each, and one link for all of them.
TEST_F(TimerPassTest, RepeatedTimeoutsLeaveTheQueueAlone) {
  constexpr uint64_t kWaits = 1'000;
  IOManager iom(options());
  WorkerStats pushed;
  iom.schedule([&] {
    for (uint64_t i = 0; i < kWaits; ++i) {
      const Deadline deadline = Deadline::after(std::chrono::seconds(5), clock());
      ASSERT_TRUE(reserveTimeout(deadline));
      Wait wait;
      wait.waker().wake(WakeReason::kReady);
      EXPECT_EQ(wait.park(deadline), WakeReason::kReady);
      clock().advance(std::chrono::microseconds(1));
    }
    pushed = iom.getWorkerStats();
    EXPECT_EQ(parkUntil(Deadline::after(std::chrono::seconds(5), clock())), WakeReason::kTimeout);
  });
  iom.stop();
  EXPECT_EQ(pushed.timeouts_armed, kWaits);
  EXPECT_EQ(pushed.timeouts_pushed, kWaits - 1);
  EXPECT_EQ(pushed.timeouts_relinked, 0u);
  EXPECT_EQ(pushed.timeouts_fired, 0u);
  const WorkerStats end = iom.getWorkerStats();
  EXPECT_EQ(end.timeouts_armed, kWaits + 1);
  EXPECT_EQ(end.timeouts_relinked, 1u) << "when its old deadline was near";
  EXPECT_EQ(end.timeouts_fired, 1u);
}

// C-55: a disarmed timeout is taken out before the sleep, so that is forever.
TEST_F(TimerPassTest, ADisarmedTimeoutIsNoReasonToWake) {
  IOManager iom(options());
  Gate held;
  Fiber::ptr fiber = std::make_shared<Fiber>([&] {
    const Deadline deadline = Deadline::after(std::chrono::seconds(5), clock());
    ASSERT_TRUE(reserveTimeout(deadline));
    {
      Wait wait;
      wait.waker().wake(WakeReason::kReady);
      wait.park(deadline);
    }
    held.open();
    Fiber::YieldToHold();
  });
  iom.schedule(fiber);
  ASSERT_TRUE(held.wait());
  ASSERT_TRUE(eventually([&] { return coreOf(iom).workers().front()->slot().mailbox.sleeping(); }));
  iom.schedule(fiber);
  fiber->join();
  iom.stop();
  EXPECT_EQ(kernel().askedNs(), std::vector<int64_t>{});
}

// ---- Wake-ups. ---------------------------------------------------------------------------------------------------------------

// P2: one notification for each sleep at most, whatever comes.
TEST_F(TimerPassTest, MailForAWorkerThatIsAwakeTicklesNobody) {
  IOManager iom(options());
  ASSERT_TRUE(eventually([&] { return coreOf(iom).workers().front()->slot().mailbox.sleeping(); }));
  const int worker = coreOf(iom).workers().front()->threadId();
  Gate busy;
  Gate go_on;
  Gate done;
  iom.schedule(
      [&] {
        busy.open();
        EXPECT_TRUE(go_on.wait());
      },
      worker);
  ASSERT_TRUE(busy.wait());
  const WorkerStats before = iom.getWorkerStats();
  for (int i = 0; i < 100; ++i) iom.schedule([&] { done.open(); }, worker);
  go_on.open();
  ASSERT_TRUE(done.wait(100));
  const WorkerStats after = iom.getWorkerStats();
  EXPECT_EQ(after.mail - before.mail, 100u);
  EXPECT_LE(after.tickles, before.tickles + 1) << "one that was on its way";
  iom.stop();
}

}  // namespace
}  // namespace sylar
