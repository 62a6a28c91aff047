// Moving between workers and schedulers by request: switchTo, SchedulerSwitcher, schedule(fiber, thread).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "sylar/base/sys.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::Gate;

[[gnu::noinline]] int thread() {
  __asm__ volatile("");
  return sys::threadId();
}

class MoveTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, MoveTest, test::kWorkerCounts);

TEST_P(MoveTest, SwitchToGoesToTheOtherSchedulerAndBack) {
  Scheduler first(workers(), false, "first");
  Scheduler second(workers(), false, "second");
  first.start();
  second.start();
  const auto fiber = std::make_shared<Fiber>([&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(second.switchTo());
      EXPECT_EQ(Scheduler::GetThis(), &second);
      EXPECT_EQ(parkUntil(Deadline::after(1us)), WakeReason::kTimeout);
      EXPECT_EQ(Scheduler::GetThis(), &second) << "a wait does not bring it back";
      EXPECT_TRUE(first.switchTo());
      EXPECT_EQ(Scheduler::GetThis(), &first);
      Fiber::YieldToReady();
    }
  });
  first.schedule(fiber);
  fiber->join();
}

TEST_P(MoveTest, SwitchToAThreadGoesThere) {
  Scheduler scheduler(workers(), false, "move");
  scheduler.start();
  const auto fiber = std::make_shared<Fiber>([&] {
    for (const auto& worker : coreOf(scheduler).workers()) {
      EXPECT_TRUE(scheduler.switchTo(worker->threadId()));
      EXPECT_EQ(thread(), worker->threadId());
      Fiber::YieldToReady();
      EXPECT_EQ(thread(), worker->threadId()) << "CD-S6: it stays there";
    }
    EXPECT_FALSE(scheduler.switchTo(1)) << "no worker has this id";
  });
  scheduler.schedule(fiber);
  fiber->join();
}

// The state of the computation moves with it.
TEST_P(MoveTest, ExceptionsAndErrnoMoveWithIt) {
  Scheduler first(workers(), false, "first");
  Scheduler second(workers(), false, "second");
  first.start();
  second.start();
  const auto fiber = std::make_shared<Fiber>([&] {
    try {
      throw std::runtime_error("mine");
    } catch (...) {
      sys::errnoRef() = 4711;
      second.switchTo();
      EXPECT_EQ(sys::errnoRef(), 4711);
      try {
        throw;
      } catch (const std::exception& e) {
        EXPECT_STREQ(e.what(), "mine");
      }
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    throw std::logic_error("to join");
  });
  first.schedule(fiber);
  EXPECT_THROW(fiber->join(), std::logic_error);
}

TEST_P(MoveTest, TheSwitcherGoesBackAtTheEndOfItsScope) {
  Scheduler first(workers(), false, "first");
  Scheduler second(workers(), false, "second");
  first.start();
  second.start();
  const auto fiber = std::make_shared<Fiber>([&] {
    {
      const SchedulerSwitcher there(&second);
      EXPECT_EQ(Scheduler::GetThis(), &second);
    }
    EXPECT_EQ(Scheduler::GetThis(), &first);
    const SchedulerSwitcher nowhere;
    EXPECT_EQ(Scheduler::GetThis(), &first);
  });
  first.schedule(fiber);
  fiber->join();
}

// A started fiber with another tid migrates, because the user asked; if it is not held, at its next YieldToHold.
TEST_P(MoveTest, ScheduleWithAnotherThreadMovesAHeldFiber) {
  Scheduler scheduler(workers(), false, "move");
  scheduler.start();
  std::atomic<int> where{0};
  std::atomic<int> rounds{0};
  const auto fiber = std::make_shared<Fiber>([&] {
    for (size_t i = 0; i < coreOf(scheduler).workers().size(); ++i) {
      Fiber::YieldToHold();
      where = thread();
      ++rounds;
    }
  });
  scheduler.schedule(fiber);
  int expected = 0;
  for (const auto& worker : coreOf(scheduler).workers()) {
    if (expected % 2 == 0) {  // held, or on its way there
      ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kHeld; }));
    }
    EXPECT_TRUE(scheduler.trySchedule(fiber, worker->threadId()));
    ++expected;
    ASSERT_TRUE(eventually([&] { return rounds == expected; }));
    EXPECT_EQ(where.load(), worker->threadId());
  }
  fiber->join();
}

TEST_P(MoveTest, AMoveKeepsPermitsAndCancels) {
  for (int round = 0; round < 300; ++round) {
    Scheduler first(workers(), false, "first");
    Scheduler second(workers(), false, "second");
    first.start();
    second.start();
    std::atomic<bool> moving{false};
    std::atomic<int> permits{0};
    const auto fiber = std::make_shared<Fiber>([&] {
      moving = true;
      for (int i = 0; i < 20; ++i) (i % 2 == 0 ? second : first).switchTo();
      Fiber::YieldToHold();  // a permit that came at any moment ends it
      ++permits;
      while (!this_fiber::cancelled()) (Scheduler::GetThis() == &first ? second : first).switchTo();
    });
    first.schedule(fiber);
    while (!moving) sched_yield();
    EXPECT_TRUE(first.trySchedule(fiber));
    while (permits == 0) sched_yield();
    fiber->cancel();
    fiber->join();
  }
}

TEST_P(MoveTest, IsRefusedWhereThereIsNothingToMove) {
  Scheduler scheduler(workers(), false, "move");
  EXPECT_FALSE(scheduler.switchTo()) << "a plain thread";
  const auto by_hand = std::make_shared<Fiber>([&] { EXPECT_FALSE(scheduler.switchTo()); });
  by_hand->resume();
  Scheduler other(1, false, "other");
  other.start();
  scheduler.start();
  scheduler.stop();
  const auto late = std::make_shared<Fiber>([&] {
    EXPECT_FALSE(scheduler.switchTo()) << "it has stopped";
    EXPECT_EQ(Scheduler::GetThis(), &other);
    const auto inner = std::make_shared<Fiber>([&] { EXPECT_FALSE(scheduler.switchTo()) << "one that is resumed by hand"; });
    inner->resume();
  });
  other.schedule(late);
  late->join();
}

// The scheduler that somebody asked it to move to is gone when the fiber comes to rest: it goes on where it is.
TEST_P(MoveTest, ADestinationThatIsGoneIsPassedOver) {
  Scheduler first(workers(), false, "first");
  first.start();
  auto second = std::make_unique<Scheduler>(1, false, "second");
  second->start();
  Gate gone;
  std::atomic<bool> started{false};
  const auto fiber = std::make_shared<Fiber>([&] {
    started = true;
    EXPECT_TRUE(gone.wait());
    Fiber::YieldToHold();
    EXPECT_EQ(Scheduler::GetThis(), &first);
  });
  first.schedule(fiber);
  ASSERT_TRUE(eventually([&] { return started.load(); }));
  EXPECT_TRUE(second->trySchedule(fiber, coreOf(*second).workers()[0]->threadId()));
  second.reset();
  gone.open();
  fiber->join();
}

// Cause: the switcher kept a pointer to where it came from.
TEST_P(MoveTest, TheSwitcherStaysWhereItIsIfItsOriginIsGone) {
  Scheduler there(workers(), false, "there");
  there.start();
  auto origin = std::make_unique<Scheduler>(workers(), false, "origin");
  origin->start();
  Gate arrived;
  Gate gone;
  bool stayed = false;
  const auto fiber = std::make_shared<Fiber>([&] {
    {
      const SchedulerSwitcher switcher(&there);
      arrived.open();
      EXPECT_TRUE(gone.wait());
    }
    stayed = Scheduler::GetThis() == &there;
  });
  origin->schedule(fiber);
  ASSERT_TRUE(arrived.wait());
  origin.reset();
  gone.open();
  fiber->join();
  EXPECT_TRUE(stayed);
}

// A fiber placed on one scheduler may end on another, after the first is gone.
TEST_P(MoveTest, APlacedFiberMayOutliveItsScheduler) {
  Gate over;
  Scheduler second(workers(), false, "second");
  second.start();
  {
    Scheduler first(workers(), false, "first");
    first.start();
    first.place([&] {
      second.switchTo();
      EXPECT_TRUE(over.wait());
    });
  }
  over.open();
}

}  // namespace
}  // namespace sylar
