// Stops that meet workers and other threads at every moment. Bounded rounds; who waits longer than kPatience waits forever.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/base/memory.h"
#include "sylar/base/sanitizers.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

#if defined(SYLAR_TSAN) || defined(SYLAR_ASAN)
constexpr int kStopScale = 10;
#else
constexpr int kStopScale = 1;
#endif

WakeReason parkForEver() {
  Wait wait;
  return wait.park();
}

/// A little later each time.
void pause(int steps) {
  for (int i = 0; i < steps; ++i) StdMemory::relax();
}

class StopRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, StopRaceTest, test::kWorkerCounts);

// Cause: a worker that was about to fall asleep slept on the round of cancelling; without a deadline it never woke.
TEST_P(StopRaceTest, AFiberThatIsAboutToParkIsCancelled) {
  const int rounds = 3'000 / kStopScale / static_cast<int>(workers());
  for (int round = 0; round < rounds; ++round) {
    Scheduler scheduler(workers(), false, "race");
    scheduler.start();
    std::atomic<bool> begun{false};
    scheduler.schedule([&] {
      begun = true;
      parkForEver();
    });
    while (!begun) std::this_thread::yield();
    pause(round % 200);
    EXPECT_TRUE(scheduler.stop(Deadline::never()).clean);
  }
}

// Cause: it was given to the worker that had started it without asking whether that still takes anything: a check failed.
TEST_P(StopRaceTest, AHandHeldFiberMayBeScheduledAtTheEnd) {
  const int rounds = 1'000 / kStopScale / static_cast<int>(workers());
  for (int round = 0; round < rounds; ++round) {
    Scheduler scheduler(workers(), false, "race");
    scheduler.start();
    const auto held = std::make_shared<Fiber>([] { Fiber::YieldToHold(); });
    test::Gate ready;
    scheduler.schedule([&] {
      held->resume();
      ready.open();
    });
    ASSERT_TRUE(ready.wait());
    std::atomic<int> go{0};
    std::thread other([&] {
      ++go;
      while (go < 2) std::this_thread::yield();
      pause(round % 500);
      (void)scheduler.trySchedule(held);
    });
    while (go < 1) std::this_thread::yield();
    ++go;
    scheduler.stop();
    other.join();
    if (stateOf(*held) == FiberState::kEnded) continue;
    EXPECT_EQ(stateOf(*held), FiberState::kHeldByHand) << "round " << round;
    Scheduler next(1, false, "next");  // it may go on elsewhere
    EXPECT_TRUE(next.trySchedule(held));
    next.stop();
    EXPECT_EQ(stateOf(*held), FiberState::kEnded);
  }
}

// ---- Everything at once. -----------------------------------------------------------------------------------------------------

/// One of the things that a fiber may do, `random` says which.
void doSomething(std::mt19937_64& random, Scheduler& first, Scheduler& second) {
  const auto some_us = [&] { return Deadline::after(std::chrono::microseconds(random() % 200)); };
  switch (random() % 8) {
    case 0: first.switchTo(); break;
    case 1: second.switchTo(); break;
    case 2: parkUntil(some_us()); break;
    case 3: Fiber::YieldToHold(); break;
    case 4: {
      const auto by_hand = std::make_shared<Fiber>([deadline = some_us()] {
        parkUntil(deadline);
        Fiber::YieldToHold();
      });
      by_hand->resume();
      if (stateOf(*by_hand) == FiberState::kHeldByHand) by_hand->resume();
      break;
    }
    case 5: Fiber::YieldToReady(); break;
    case 6: {
      const this_fiber::CancelShield shield;
      parkUntil(some_us());
      break;
    }
    default: {
      const auto child = std::make_shared<Fiber>([] { Fiber::YieldToReady(); });
      if (!Scheduler::GetThis()->trySchedule(child)) break;
      try {
        child->join();
      } catch (const std::runtime_error&) {  // the deadline has passed
      }
    }
  }
}

/// One of the things that other threads may do to a fiber.
void meddle(std::mt19937_64& random, const Fiber::ptr& fiber, Scheduler& first, Scheduler& second) {
  const auto thread = [&](const Scheduler& scheduler) {
    return coreOf(scheduler).workers()[random() % coreOf(scheduler).workers().size()]->threadId();
  };
  if (isOver(stateOf(*fiber))) return;
  switch (random() % 8) {
    case 0:
      if (random() % 16 == 0) fiber->cancel();
      break;
    case 1: {
      std::ostringstream out;
      first.dump(out);
      second.dump(out);
      break;
    }
    case 2: first.trySchedule(fiber, thread(first)); break;
    case 3: second.trySchedule(fiber, thread(second)); break;
    default: first.trySchedule(fiber);
  }
}

// Cause: several; whatever two schedulers, their fibers and a meddler do to one another, all fibers end and both stops return.
TEST_P(StopRaceTest, FibersOfTwoSchedulersAllEnd) {
  const uint64_t seed = test::seed();
  const int rounds = 24 / (kStopScale > 1 ? 3 : 1);
  for (int round = 0; round < rounds; ++round) {
    std::mt19937_64 random(seed + static_cast<uint64_t>(round));
    IOManager io(workers(), false, "io");
    Scheduler plain(workers(), false, "plain");
    plain.start();
    std::vector<Fiber::ptr> fibers;
    std::atomic<bool> ready{false};
    for (int i = 0; i < 40; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, mine = std::mt19937_64(random())]() mutable {
        while (!ready) Fiber::YieldToReady();
        for (int step = 0; step < 400 / kStopScale && !this_fiber::cancelled(); ++step) doSomething(mine, io, plain);
      }));
      (random() % 2 == 0 ? static_cast<Scheduler&>(io) : plain).schedule(fibers.back());
    }
    ready = true;
    for (int step = 0; step < 3'000 / kStopScale; ++step) meddle(random, fibers[random() % fibers.size()], io, plain);
    const bool io_first = round % 2 == 0;
    for (Scheduler* scheduler :
         {io_first ? static_cast<Scheduler*>(&io) : &plain, io_first ? &plain : static_cast<Scheduler*>(&io)}) {
      if (round % 4 < 2) {
        EXPECT_TRUE(scheduler->stop(Deadline::after(test::kPatience)).clean);
      } else {
        for (const Fiber::ptr& fiber : fibers) fiber->cancel();
        scheduler->stop();
      }
    }
    for (const Fiber::ptr& fiber : fibers) EXPECT_NO_THROW(fiber->join());
  }
}

}  // namespace
}  // namespace sylar
