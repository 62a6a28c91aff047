// WorkGuard: what somebody outside is going to do keeps a plain stop() waiting; over several counts of workers.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;

class WorkGuardTest : public test::OverWorkers {
 protected:
  /// Returns when a stop has begun, and all workers have found since that there is nothing to do.
  static void awaitIdleInStop(Scheduler& scheduler, uint64_t sleeps_before) {
    const size_t workers = coreOf(scheduler).workers().size();
    EXPECT_TRUE(eventually([&] {
      return coreOf(scheduler).isStopping() && coreOf(scheduler).idle().sleeping() == workers &&
             scheduler.getWorkerStats().sleeps >= sleeps_before + workers;
    }));
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, WorkGuardTest, test::kWorkerCounts);

// sylar's idiom: a thread writes into the stack of the fiber that holds, and schedules it.
TEST_P(WorkGuardTest, StopWaitsForTheThreadThatWillWakeAHeldFiber) {
  Scheduler scheduler(workers(), false, "guard");
  scheduler.start();
  Gate stops;
  uint64_t sleeps = 0;
  int seen = 0;
  bool cancelled = true;
  std::thread computing;
  Gate holds;
  scheduler.schedule([&] {
    int answer = 0;
    computing = std::thread([&, self = Fiber::GetThis(), expected = WorkGuard(scheduler)] {
      EXPECT_TRUE(stops.wait());
      awaitIdleInStop(scheduler, sleeps);
      answer = 42;
      scheduler.schedule(self);
    });
    holds.open();
    Fiber::YieldToHold();
    cancelled = this_fiber::cancelled();
    seen = answer;
  });
  ASSERT_TRUE(holds.wait());
  ASSERT_TRUE(eventually([&] { return coreOf(scheduler).idle().sleeping() == workers(); }));
  sleeps = scheduler.getWorkerStats().sleeps;
  stops.open();
  scheduler.stop();
  computing.join();
  EXPECT_EQ(seen, 42);
  EXPECT_FALSE(cancelled);
}

TEST_P(WorkGuardTest, WorkThatComesMeanwhileRuns) {
  Scheduler scheduler(workers(), false, "guard");
  scheduler.start();
  bool ran = false;
  std::thread outside([&, expected = WorkGuard(scheduler)] {
    awaitIdleInStop(scheduler, 0);
    EXPECT_TRUE(scheduler.trySchedule([&ran] { ran = true; }));
  });
  scheduler.stop();
  outside.join();
  EXPECT_TRUE(ran);
}

// The last one ends the wait without a worker's doing, and only then are held fibers cancelled.
TEST_P(WorkGuardTest, EachCopyCountsUntilItIsReset) {
  Scheduler scheduler(workers(), false, "guard");
  scheduler.start();
  std::atomic<bool> cancelled{false};
  const auto held = std::make_shared<Fiber>([&] {
    Fiber::YieldToHold();
    cancelled = this_fiber::cancelled();
  });
  scheduler.schedule(held);
  WorkGuard first(scheduler);
  WorkGuard copy = first;
  WorkGuard moved = std::move(first);
  first = copy;
  std::thread stopper([&] { scheduler.stop(); });
  for (WorkGuard* guard : {&first, &copy, &moved}) {
    awaitIdleInStop(scheduler, 0);
    EXPECT_FALSE(cancelled.load());
    guard->reset();
    guard->reset();
  }
  stopper.join();
  EXPECT_TRUE(cancelled.load());
}

TEST_P(WorkGuardTest, AStopWithADeadlineDoesNotWaitForIt) {
  std::optional<WorkGuard> guard;
  {
    Scheduler scheduler(workers(), false, "guard");
    scheduler.start();
    scheduler.schedule([] { Fiber::YieldToHold(); });
    guard.emplace(scheduler);
    EXPECT_TRUE(scheduler.stop(Deadline::after(test::kPatience)).clean);
  }
  const WorkGuard copy = *guard;
  guard.reset();  // outlives the scheduler, and disturbs nobody
}

TEST_P(WorkGuardTest, OneThatWasNeverStartedStartsForIt) {
  Scheduler scheduler(workers(), false, "guard");
  WorkGuard guard(scheduler);
  std::thread stopper([&] { scheduler.stop(); });
  awaitIdleInStop(scheduler, 0);
  bool ran = false;
  EXPECT_TRUE(scheduler.trySchedule([&ran] { ran = true; }));
  guard.reset();
  stopper.join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sylar
