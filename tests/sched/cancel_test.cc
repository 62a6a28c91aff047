// Cancelling a fiber: sticky, from any thread, kept off by a shield, and giving up those that wait regardless.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::Gate;
using test::lateWorkersOf;

WakeReason parkForEver() {
  Wait wait;
  return wait.park();
}

class CancelTest : public test::OverWorkers {
 protected:
  Fiber::ptr spawn(Scheduler& scheduler, std::function<void()> cb) {
    auto fiber = std::make_shared<Fiber>(std::move(cb));
    EXPECT_TRUE(scheduler.trySchedule(fiber));
    return fiber;
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, CancelTest, test::kWorkerCounts);

// FM-40: a cancel is for good.
TEST_P(CancelTest, EveryWaitEndsFromThenOn) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  std::vector<WakeReason> reasons;
  bool before = true;
  bool after = false;
  const Fiber::ptr fiber = spawn(scheduler, [&] {
    before = this_fiber::cancelled();
    for (int i = 0; i < 3; ++i) reasons.push_back(parkForEver());
    reasons.push_back(parkUntil(Deadline::after(1h)));
    Fiber::YieldToHold();
    after = this_fiber::cancelled();
  });
  ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
  fiber->cancel();
  fiber->join();
  EXPECT_EQ(reasons, std::vector<WakeReason>(4, WakeReason::kCanceled));
  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
  fiber->cancel();  // it has ended: nothing happens
}

// After a turn at the back of the queue: the others of its worker run in between.
TEST(Cancel, ACancelledFiberThatWaitsOnDoesNotStarveOthers) {
  Scheduler scheduler(1, false, "cancel");
  scheduler.start();
  std::string order;
  Gate both;
  const auto loop = [&](char name) {
    Fiber::GetThis()->cancel();
    Fiber::YieldToReady();  // the message arrives
    for (int i = 0; i < 3; ++i) {
      parkForEver();
      order += name;
    }
    both.open();
  };
  scheduler.schedule([&] {
    scheduler.schedule([&] { loop('a'); });
    scheduler.schedule([&] { loop('b'); });
  });
  ASSERT_TRUE(both.wait(2));
  scheduler.stop();
  EXPECT_EQ(order, "ababab");
}

TEST_P(CancelTest, BeforeItsStartItBeginsCancelled) {
  Scheduler scheduler(workers(), false, "cancel");
  bool cancelled = false;
  const auto fiber = std::make_shared<Fiber>([&] {
    cancelled = this_fiber::cancelled();
    EXPECT_EQ(parkForEver(), WakeReason::kCanceled);
  });
  fiber->cancel();
  scheduler.schedule(fiber);
  scheduler.start();
  fiber->join();
  EXPECT_TRUE(cancelled);
}

TEST_P(CancelTest, AHeldFiberGoesOn) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  const Fiber::ptr fiber = spawn(scheduler, [] { Fiber::YieldToHold(); });
  ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kHeld; }));
  fiber->cancel();
  fiber->join();
}

TEST_P(CancelTest, AShieldKeepsItOff) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  WakeReason inside{};
  WakeReason outside{};
  Waker waker;
  std::atomic<bool> shielded{false};
  const Fiber::ptr fiber = spawn(scheduler, [&] {
    {
      const this_fiber::CancelShield shield;
      { const this_fiber::CancelShield inner; }
      Wait wait;
      waker = wait.waker();
      shielded = true;
      inside = wait.park();
    }
    outside = parkForEver();
  });
  ASSERT_TRUE(eventually([&] { return shielded && stateOf(*fiber) == FiberState::kParked; }));
  fiber->cancel();
  const Fiber::ptr behind = spawn(scheduler, [] {});  // the cancel's message is through when a pinned one behind it is
  behind->join();
  EXPECT_EQ(stateOf(*fiber), FiberState::kParked);
  EXPECT_TRUE(waker.wake(WakeReason::kReady));
  fiber->join();
  EXPECT_EQ(inside, WakeReason::kReady);
  EXPECT_EQ(outside, WakeReason::kCanceled);
}

// Cancelling any member of a chain acts on the innermost first; then each finds itself cancelled.
TEST_P(CancelTest, OfAChainTheInnermostGoesFirst) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  std::vector<std::string> order;
  Fiber::ptr innermost;
  const Fiber::ptr outer = spawn(scheduler, [&] {
    innermost = std::make_shared<Fiber>([&] {
      EXPECT_EQ(parkForEver(), WakeReason::kCanceled);
      order.push_back("innermost");
    });
    const auto middle = std::make_shared<Fiber>([&] {
      innermost->resume();
      EXPECT_EQ(parkForEver(), WakeReason::kCanceled);
      order.push_back("middle");
    });
    middle->resume();
    EXPECT_EQ(parkForEver(), WakeReason::kCanceled);
    order.push_back("outer");
  });
  ASSERT_TRUE(eventually([&] { return stateOf(*outer) == FiberState::kResuming && stateOf(*innermost) == FiberState::kParked; }));
  outer->cancel();
  outer->join();
  EXPECT_EQ(order, (std::vector<std::string>{"innermost", "middle", "outer"}));
}

// Abandoned after 1 000 waits; its wakers are told false, who joins it gets an exception.
TEST_P(CancelTest, AFiberThatWaitsRegardlessIsAbandoned) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  std::atomic<int> waits{0};
  Waker last;
  const Fiber::ptr fiber = spawn(scheduler, [&] {
    for (;;) {
      Wait wait;
      last = wait.waker();
      ++waits;
      wait.park();
    }
  });
  fiber->setName("stubborn");
  fiber->cancel();
  EXPECT_THROW(fiber->join(), std::runtime_error);
  EXPECT_EQ(stateOf(*fiber), FiberState::kAbandoned);
  EXPECT_EQ(fiber->getState(), Fiber::HOLD);
  EXPECT_GE(waits.load(), 1000);
  EXPECT_LE(waits.load(), 1002);
  EXPECT_FALSE(last.wake(WakeReason::kReady));
  EXPECT_FALSE(scheduler.trySchedule(fiber));
  fiber->resume();  // refused
  const StopResult result = scheduler.stop(Deadline::never());
  EXPECT_FALSE(result.clean);
  ASSERT_EQ(result.abandoned.size(), 1u);
  EXPECT_EQ(result.abandoned[0].id, fiber->getId());
  EXPECT_EQ(result.abandoned[0].name, "stubborn");
}

// Cause: a line for each function of a deep queue took longer than the stop may.
TEST_P(CancelTest, OfManyThatAreAbandonedTheFirstAreLogged) {
  constexpr size_t kFunctions = 2'000;
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  Gate ready;
  const auto ended = std::make_shared<std::atomic<size_t>>(0);
  for (size_t i = 0; i < workers(); ++i) {
    scheduler.schedule([&, ended] {
      ready.open();
      while (!coreOf(scheduler).isStopping()) std::this_thread::yield();
      ++*ended;
    });
  }
  ASSERT_TRUE(ready.wait(workers()));
  for (size_t i = 0; i < kFunctions; ++i) scheduler.schedule([] { FAIL(); });
  testing::internal::CaptureStderr();
  const StopResult result = scheduler.stop(Deadline::after(0ms));
  const std::string log = testing::internal::GetCapturedStderr();
  leaks().excuseLateWorkersOf(scheduler);
  EXPECT_GE(result.abandoned.size(), kFunctions);
  EXPECT_LE(result.abandoned.size(), kFunctions + lateWorkersOf(scheduler)) << "and those that kept a worker that was late";
  EXPECT_TRUE(eventually([&] { return *ended == workers(); }));  // they look at the scheduler
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 100 * static_cast<int>(workers()));
}

// A plain stop() ends, too, whatever a fiber does with its cancel.
TEST_P(CancelTest, StopDoesNotWaitForAFiberThatHoldsForEver) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  const Fiber::ptr fiber = spawn(scheduler, [] {
    for (;;) Fiber::YieldToHold();
  });
  scheduler.stop();
  EXPECT_EQ(stateOf(*fiber), FiberState::kAbandoned);
}

TEST_P(CancelTest, StopDoesNotWaitForFibersThatJoinOneAnother) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  Fiber::ptr a;
  Fiber::ptr b;
  a = std::make_shared<Fiber>([&] { b->join(); });
  b = std::make_shared<Fiber>([&] { a->join(); });
  scheduler.schedule(a);
  scheduler.schedule(b);
  scheduler.stop();
  EXPECT_TRUE(stateOf(*a) == FiberState::kAbandoned || stateOf(*b) == FiberState::kAbandoned);
}

// Those that are abandoned take no other work with them: what is accepted afterwards, in a plain stop, runs as always.
TEST_P(CancelTest, WorkThatIsAcceptedAfterTheLastPhaseRuns) {
  for (int round = 0; round < 50; ++round) {
    Scheduler scheduler(workers(), false, "cancel");
    scheduler.start();
    Fiber::ptr a;
    Fiber::ptr b;
    a = std::make_shared<Fiber>([&] { b->join(); });
    b = std::make_shared<Fiber>([&] { a->join(); });
    scheduler.schedule(a);
    scheduler.schedule(b);
    bool accepted = false;
    std::atomic<bool> ran{false};
    std::thread told([&] {
      EXPECT_THROW(a->join(), std::runtime_error);
      accepted = scheduler.trySchedule([&ran] {
        EXPECT_FALSE(this_fiber::cancelled());
        ran = true;
      });
    });
    scheduler.stop();
    told.join();
    EXPECT_EQ(ran, accepted);
  }
}

// Cause: whoever began to wait by hand after the round of cancelling was in no list that the next one would have gone through.
TEST_P(CancelTest, AFiberThatWaitsByHandAfterTheRoundIsCancelled) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  std::vector<WakeReason> reasons;
  const Fiber::ptr outer = spawn(scheduler, [&] {
    reasons.push_back(parkForEver());
    for (int i = 0; i < 3; ++i) {
      const auto inner = std::make_shared<Fiber>([&] { reasons.push_back(parkUntil(Deadline::after(1h))); });
      inner->resume();
      EXPECT_EQ(stateOf(*inner), FiberState::kEnded);
    }
  });
  ASSERT_TRUE(eventually([&] { return stateOf(*outer) == FiberState::kParked; }));
  EXPECT_TRUE(scheduler.stop(Deadline::never()).clean);
  EXPECT_EQ(reasons, std::vector<WakeReason>(4, WakeReason::kCanceled));
}

// Cause: a fiber that no shared_ptr owns has none that could be kept.
TEST_P(CancelTest, AFiberObjectOnAStackMayBeAbandoned) {
  Scheduler scheduler(workers(), false, "cancel");
  scheduler.start();
  std::atomic<bool> waits{false};
  const Fiber::ptr outer = spawn(scheduler, [&] {
    Fiber inner([&] {
      const this_fiber::CancelShield shield;
      waits = true;
      for (;;) parkForEver();
    });
    inner.resume();
    ADD_FAILURE() << "it never comes back";
  });
  ASSERT_TRUE(eventually([&] { return waits.load(); }));
  EXPECT_EQ(scheduler.stop(Deadline::after(0ms)).abandoned.size(), 2u);
  leaks().excuseLateWorkersOf(scheduler);
  if (lateWorkersOf(scheduler) == 0) {
    EXPECT_EQ(stateOf(*outer), FiberState::kAbandoned);
  }
}

// On a plain thread nobody interrupts anything, but the fiber may look.
TEST(Cancel, AHandMadeFiberOfAPlainThreadMayLook) {
  bool first = true;
  bool second = false;
  const auto fiber = std::make_shared<Fiber>([&] {
    first = this_fiber::cancelled();
    Fiber::YieldToHold();
    second = this_fiber::cancelled();
  });
  fiber->resume();
  fiber->cancel();
  fiber->resume();
  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(this_fiber::cancelled());
}

}  // namespace
}  // namespace sylar
