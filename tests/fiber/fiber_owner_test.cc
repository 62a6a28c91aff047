// Whose a fiber is: by hand, a scheduler's, another scheduler's, nobody's any more.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "tests/fiber/make.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar::test {
namespace {

// Cause: its end by hand left it in the scheduler's list of live fibers.
TEST(FiberOwner, ASchedulersFiberIsNotResumedByHand) {
  const LeakCheck leaks;
  bool ended = false;
  inFiber([&ended] {
    const Fiber::ptr held = make([&ended] {
      Fiber::YieldToHold();
      ended = true;
    });
    Scheduler::GetThis()->schedule(held);
    while (stateOf(*held) != FiberState::kHeld) Fiber::YieldToReady();
    held->resume();
    EXPECT_EQ(held->getState(), Fiber::HOLD);
    EXPECT_FALSE(ended);
    Scheduler::GetThis()->schedule(held);
    held->join();
  });
  EXPECT_TRUE(ended);
}

// Cause: "held" was published before the fiber had left its stack, and a worker entered it there.
TEST(FiberOwner, MayBeScheduledTheMomentItIsSeenToHold) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "owner");
  scheduler.start();
  for (int round = 0; round < 300; ++round) {
    const Fiber::ptr fiber = make([] { Fiber::YieldToHold(); });
    std::thread other([&] {
      while (fiber->getState() != Fiber::HOLD) std::this_thread::yield();
      scheduler.schedule(fiber);
    });
    fiber->resume();
    other.join();
    fiber->join();
    EXPECT_EQ(fiber->getState(), Fiber::TERM);
  }
  scheduler.stop();
}

// Cause: a join across schedulers did not count as waiting for the outside, was cancelled, and returned.
TEST(FiberOwner, AJoinAcrossSchedulersLastsUntilTheEnd) {
  const LeakCheck leaks;
  Gate go;
  Fiber::State seen = Fiber::INIT;
  Scheduler first(1, false, "first");
  Scheduler second(1, false, "second");
  first.start();
  second.start();
  Gate running;
  const Fiber::ptr fiber = make([&] {
    running.open();
    EXPECT_TRUE(go.wait());
  });
  second.schedule(fiber);
  ASSERT_TRUE(running.wait());
  Gate joining;
  first.schedule([&] {
    joining.open();
    fiber->join();
    seen = fiber->getState();
  });
  ASSERT_TRUE(joining.wait());
  std::thread stopper([&first] { first.stop(); });
  go.open();
  stopper.join();
  EXPECT_EQ(seen, Fiber::TERM);
  second.stop();
}

// Cause: the message lay in a slot that the next scheduler's worker took over, and ran behind its back.
TEST(FiberOwner, AHeldFiberWhoseWorkerHasEndedMayBeScheduledAnew) {
  Fiber::ptr held = make([] { Fiber::YieldToHold(); });
  Scheduler first(1, false, "first");
  first.start();
  first.schedule([&held] { held->resume(); });  // by hand: the scheduler does not own it
  first.stop();
  EXPECT_FALSE(first.trySchedule(held));
  Scheduler second(1, false, "second");
  second.start();
  EXPECT_EQ(held->getState(), Fiber::HOLD);
  EXPECT_TRUE(second.trySchedule(held));
  second.stop();
  EXPECT_EQ(held->getState(), Fiber::TERM);
}

// Cause: reset() kept the home, and what was asked of the next life went to a worker that found no core.
TEST(FiberOwner, AfterResetItIsNobodys) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "owner");
  scheduler.start();
  const Fiber::ptr fiber = make([] {});
  const auto end = [&fiber] {
    fiber->join();
    while (fiber.use_count() > 1) std::this_thread::yield();  // its worker has let it go
  };
  scheduler.schedule(fiber);
  end();
  bool cancelled = false;
  fiber->reset([&cancelled] { cancelled = this_fiber::cancelled(); });
  fiber->cancel();
  const Fiber::ptr behind = make([] {});  // whatever the cancel sent is through when one behind it is
  scheduler.schedule(behind);
  behind->join();
  scheduler.schedule(fiber);
  end();
  EXPECT_TRUE(cancelled) << "it begins cancelled";
  for (int round = 0; round < 1'000; ++round) {
    fiber->reset([] { EXPECT_FALSE(this_fiber::cancelled()); });
    EXPECT_TRUE(scheduler.trySchedule(fiber));
    (void)scheduler.trySchedule(fiber);  // a permit, or too late
    end();
    EXPECT_EQ(fiber->getState(), Fiber::TERM);
  }
}

// Cause: it kept the home of its start. Started by hand on the calling thread, it waits in the worker that this becomes, and the
// other way round.
TEST(FiberOwner, AFiberByHandBelongsToTheWorkerThatItsThreadIsNow) {
  std::vector<WakeReason> reasons;
  const auto wait = [&reasons] {
    if (mayPark()) reasons.push_back(parkUntil(Deadline::after(std::chrono::microseconds(1))));
  };
  const Fiber::ptr before = make([&] {
    wait();
    Fiber::YieldToHold();
    wait();
    Fiber::YieldToHold();
    wait();
  });
  before->resume();
  EXPECT_TRUE(reasons.empty()) << "a plain thread";
  {
    Scheduler scheduler(1, true, "caller");
    scheduler.schedule([&] { before->resume(); });
  }
  EXPECT_EQ(reasons, std::vector<WakeReason>{WakeReason::kTimeout});
  before->resume();
  EXPECT_EQ(reasons.size(), 1u) << "a plain thread again";
  EXPECT_EQ(before->getState(), Fiber::TERM);
}

}  // namespace
}  // namespace sylar::test
