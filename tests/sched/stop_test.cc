// Start, stop, the end of fibers, and the calling thread as a worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/memory.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "sylar/thread.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;
using test::LeakCheck;

class StopTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, StopTest, test::kWorkerCounts);

TEST_P(StopTest, WithoutWorkItEndsAtOnce) {
  for (int i = 0; i < 20; ++i) {
    Scheduler scheduler(workers(), false, "stop");
    scheduler.start();
    scheduler.stop();
  }
}

TEST_P(StopTest, WithoutStartItRunsWhatWasScheduled) {
  Scheduler scheduler(workers(), false, "stop");
  bool ran = false;
  scheduler.schedule([&] { ran = true; });
  scheduler.stop();
  EXPECT_TRUE(ran);
}

TEST_P(StopTest, ASecondStartOrStopDoesNothing) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  scheduler.start();
  scheduler.stop();
  scheduler.stop();
  scheduler.start();
  EXPECT_FALSE(scheduler.trySchedule([] {}));
}

// Cause: it made threads for a scheduler that was over, and nobody joined them.
TEST_P(StopTest, AStartAfterTheStopOfOneThatWasNeverStartedDoesNothing) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.stop();
  scheduler.start();
  for (const auto& worker : coreOf(scheduler).workers()) EXPECT_EQ(worker->threadId(), 0);
  EXPECT_FALSE(scheduler.trySchedule([] {}));
}

TEST_P(StopTest, TheDestructorStops) {
  std::atomic<int> runs{0};
  {
    Scheduler scheduler(workers(), false, "stop");
    scheduler.start();
    for (int i = 0; i < 100; ++i) scheduler.schedule([&] { runs.fetch_add(1); });
  }
  EXPECT_EQ(runs.load(), 100);
}

TEST_P(StopTest, OneThatWasNeverStartedMayEnd) { const Scheduler scheduler(workers(), false, "stop"); }

// CD-S8
TEST_P(StopTest, DrainsWhatWorkSchedules) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  std::atomic<int> runs{0};
  std::function<void(int)> tree = [&](int depth) {
    runs.fetch_add(1);
    if (depth == 0) return;
    for (int i = 0; i < 2; ++i) scheduler.schedule([&tree, depth] { tree(depth - 1); });
  };
  std::function<void(int)> chain = [&](int length) {
    runs.fetch_add(1);
    if (length > 1) scheduler.schedule([&chain, length] { chain(length - 1); });
  };
  scheduler.schedule([&] { tree(9); });
  scheduler.schedule([&] { chain(1'000); });
  scheduler.stop();
  EXPECT_EQ(runs.load(), 1'023 + 1'000);
}

// CD-S12: not run, not kept, and the caller may know.
TEST_P(StopTest, WorkOfferedAfterwardsIsRefusedAndDestroyed) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  scheduler.stop();
  const auto capture = std::make_shared<int>(0);
  const auto work = [capture] { FAIL(); };
  EXPECT_FALSE(scheduler.trySchedule(work));
  EXPECT_FALSE(scheduler.place(work));
  EXPECT_FALSE(scheduler.trySchedule(work, sys::threadId()));
  scheduler.schedule(work);
  std::vector<std::function<void()>> many(3, work);
  scheduler.schedule(many.begin(), many.end());
  EXPECT_EQ(capture.use_count(), 2) << "mine, and the one in `work`";
  const auto fiber = std::make_shared<Fiber>([] {});
  EXPECT_FALSE(scheduler.trySchedule(fiber));
  EXPECT_EQ(fiber->getState(), Fiber::INIT);
  EXPECT_EQ(fiber.use_count(), 1);
}

// Cause: nobody told them, and they waited without an end.
TEST_P(StopTest, WhoJoinsAFiberThatIsRefusedIsTold) {
  Scheduler ended(1, false, "ended");
  ended.start();
  ended.stop();
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  bool ran = false;
  const auto fiber = std::make_shared<Fiber>([&ran] { ran = true; });
  std::atomic<bool> told{false};
  const auto joiner = std::make_shared<Fiber>([&] {
    try {
      fiber->join();
    } catch (const std::runtime_error&) {
      told = true;
    }
  });
  scheduler.schedule(joiner);
  ASSERT_TRUE(eventually([&] { return stateOf(*joiner) == FiberState::kParked; }));
  EXPECT_FALSE(ended.trySchedule(fiber));
  joiner->join();
  EXPECT_TRUE(told.load());
  EXPECT_THROW(fiber->join(), std::runtime_error) << "later, too";
  EXPECT_FALSE(scheduler.trySchedule(fiber, -2)) << "no worker has this thread id";
  EXPECT_THROW(fiber->join(), std::runtime_error);
  EXPECT_EQ(fiber->getState(), Fiber::INIT);
  EXPECT_TRUE(scheduler.trySchedule(fiber)) << "another scheduler may have it";
  EXPECT_NO_THROW(fiber->join());
  EXPECT_TRUE(ran);
  scheduler.stop();
}

TEST_P(StopTest, ARefusedFiberRunsByHand) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  scheduler.stop();
  int ran = 0;
  const auto fiber = std::make_shared<Fiber>([&ran] { ++ran; });
  EXPECT_FALSE(scheduler.trySchedule(fiber));
  fiber->reset([&ran] { ran = 10; });
  EXPECT_FALSE(scheduler.trySchedule(fiber));
  fiber->resume();
  EXPECT_EQ(ran, 10);
  EXPECT_NO_THROW(fiber->join());
}

// Every item is run or refused, whenever the end comes. One at a time, with pauses: stop() waits as long as there is work.
TEST_P(StopTest, WorkOfferedMeanwhileIsRunOrRefused) {
  for (int round = 0; round < 30; ++round) {
    Scheduler scheduler(workers(), false, "stop");
    scheduler.start();
    std::atomic<int> runs{0};
    int accepted = 0;
    Gate offering;
    std::thread source([&] {
      while (scheduler.trySchedule([&] { runs.fetch_add(1); })) {
        ++accepted;
        if (!eventually([&] { return runs == accepted; })) break;
        offering.open();
        for (int i = 0; i < 100 * (accepted % 50); ++i) StdMemory::relax();
      }
    });
    EXPECT_TRUE(offering.wait(static_cast<size_t>(round % 5) + 1));
    scheduler.stop();
    source.join();
    EXPECT_EQ(runs.load(), accepted);
  }
}

// CD-F6, CD-S7: they end through their own returns.
TEST_P(StopTest, FibersThatAreHeldForEverAreCancelled) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  struct Local {
    std::atomic<int>& ended;
    ~Local() { ended.fetch_add(1); }
  };
  std::atomic<int> ended{0};
  for (int i = 0; i < 100; ++i) {
    scheduler.schedule([&] {
      const Local local{ended};
      Fiber::YieldToHold();
      Fiber::YieldToHold();
    });
  }
  scheduler.stop();
  EXPECT_EQ(ended.load(), 100);
}

TEST_P(StopTest, FibersThatWaitForOneAnotherAreCancelled) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  const auto held = std::make_shared<Fiber>([] { Fiber::YieldToHold(); });
  scheduler.schedule(held);
  for (int i = 0; i < 20; ++i) {
    scheduler.schedule([&] { held->join(); });
    scheduler.schedule([] {
      Wait wait;
      EXPECT_EQ(wait.park(Deadline::never(), WaitFor::kFibers), WakeReason::kCanceled);
      Wait again;  // sticky
      EXPECT_EQ(again.park(Deadline::never(), WaitFor::kFibers), WakeReason::kCanceled);
    });
  }
  scheduler.stop();
  EXPECT_EQ(held->getState(), Fiber::TERM);
}

// Work that a cancelled fiber schedules on its way out runs, too, and is cancelled if need be.
TEST_P(StopTest, CancelledFibersMayStillSchedule) {
  Scheduler scheduler(workers(), false, "stop");
  scheduler.start();
  std::atomic<int> runs{0};
  std::function<void(int)> heir = [&](int generation) {
    Fiber::YieldToHold();
    runs.fetch_add(1);
    if (generation > 0) scheduler.schedule([&heir, generation] { heir(generation - 1); });
  };
  scheduler.schedule([&] { heir(5); });
  scheduler.stop();
  EXPECT_EQ(runs.load(), 6);
}

TEST_P(StopTest, SeveralSchedulersDoNotConcernOneAnother) {
  const LeakCheck leaks;
  Scheduler first(workers(), false, "first");
  Scheduler second(workers(), false, "second");
  first.start();
  second.start();
  Gate done;
  first.schedule([&] {
    EXPECT_EQ(Scheduler::GetThis(), &first);
    second.schedule([&] {
      EXPECT_EQ(Scheduler::GetThis(), &second);
      done.open();
    });
  });
  ASSERT_TRUE(done.wait());
  first.stop();
  second.schedule([&] { done.open(); });
  EXPECT_TRUE(done.wait(2));
  second.stop();
}

#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)  // they keep what was freed
size_t mappedBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4'096;
}

// Cores are never unmapped, so those of threads that have ended must serve the threads to come: all of them.
TEST(StopMemory, StartsAndStopsTakeNoMoreMemoryEachTime) {
  const auto cycle = [] {
    Scheduler scheduler(4, false, "memory");
    scheduler.start();
    Gate arrived;
    for (int i = 0; i < 4; ++i) {
      scheduler.schedule([&] {
        arrived.open();
        EXPECT_TRUE(arrived.wait(4));
      });
    }
    scheduler.stop();
  };
  for (int i = 0; i < 50; ++i) cycle();
  const size_t before = mappedBytes();
  for (int i = 0; i < 200; ++i) cycle();
  EXPECT_LT(mappedBytes(), before + (8 << 20));
}
#endif

// ---- Ends of fibers. ---------------------------------------------------------------------------------------------------------

// CD-F9, FM-39
TEST_P(StopTest, AnExceptionEndsItsFiberAndNotTheWorker) {
  Scheduler scheduler(workers(), false, "throw");
  scheduler.start();
  std::atomic<int> runs{0};
  for (int i = 0; i < 5; ++i) {
    scheduler.schedule([] { throw std::runtime_error("on purpose"); });
    scheduler.schedule([] { throw 1; });
    scheduler.schedule([&] { runs.fetch_add(1); });
  }
  const auto fiber = std::make_shared<Fiber>([] { throw std::logic_error("for join"); });
  scheduler.schedule(fiber);
  EXPECT_THROW(fiber->join(), std::logic_error);
  EXPECT_NO_THROW(fiber->join());
  scheduler.stop();
  EXPECT_EQ(runs.load(), 5);
  EXPECT_EQ(fiber->getState(), Fiber::EXCEPT);
}

TEST_P(StopTest, FibersJoinAcrossWorkers) {
  Scheduler scheduler(workers(), false, "join");
  scheduler.start();
  std::atomic<int> joined{0};
  int result = 0;  // plain: join orders it
  const auto target = std::make_shared<Fiber>([&] {
    for (int i = 0; i < 100; ++i) Fiber::YieldToReady();
    result = 42;
  });
  for (int i = 0; i < 50; ++i) {
    scheduler.schedule([&, target] {
      target->join();
      if (result == 42) joined.fetch_add(1);
    });
  }
  scheduler.schedule(target);
  target->join();  // a plain thread, too
  EXPECT_EQ(result, 42);
  scheduler.stop();
  EXPECT_EQ(joined.load(), 50);
}

TEST_P(StopTest, AChainOfJoinsEndsFromItsEnd) {
  Scheduler scheduler(workers(), false, "join");
  scheduler.start();
  std::vector<int> order;  // plain: each join orders it
  Fiber::ptr last;
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 50; ++i) {
    fibers.push_back(std::make_shared<Fiber>([&order, i, before = last] {
      if (before != nullptr) before->join();
      order.push_back(i);
    }));
    last = fibers.back();
  }
  for (size_t i = fibers.size(); i-- > 0;) scheduler.schedule(fibers[i]);
  last->join();
  scheduler.stop();
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// ---- The calling thread as a worker. -----------------------------------------------------------------------------------------

// Trap 6
TEST_P(StopTest, TheCallerWorksOnlyInsideStop) {
  Scheduler scheduler(workers(), true, "caller");
  EXPECT_EQ(Scheduler::GetThis(), &scheduler);
  scheduler.start();
  const int me = sys::threadId();
  std::atomic<bool> stopping{false};
  std::atomic<int> right{0};
  for (int i = 0; i < 10; ++i) {
    scheduler.schedule(
        [&] {
          if (stopping && sys::threadId() == me) right.fetch_add(1);
        },
        me);
  }
  std::atomic<int> wrong{0};
  Gate others;
  for (int i = 0; i < 10; ++i) {
    scheduler.schedule([&] {
      if (!stopping && sys::threadId() == me) wrong.fetch_add(1);
      others.open();
    });
  }
  if (workers() > 1) {
    EXPECT_TRUE(others.wait(10)) << "the other workers need no stop()";
  } else {
    EXPECT_EQ(others.count(), 0u);
  }
  EXPECT_EQ(right.load(), 0);
  stopping = true;
  scheduler.stop();
  EXPECT_EQ(right.load(), 10);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(others.count(), 10u);
  EXPECT_EQ(Fiber::GetFiberId(), 0u);
}

TEST_P(StopTest, TheCallerIsWorkerZeroAndTheOthersAreNamedFromOne) {
  Scheduler scheduler(workers(), true, "caller");
  scheduler.start();
  std::mutex mutex;
  std::vector<std::string> names;
  Gate arrived;
  for (size_t i = 1; i < workers(); ++i) {
    scheduler.schedule([&] {
      {
        const std::lock_guard lock(mutex);
        names.push_back(Thread::GetName());
      }
      arrived.open();
      EXPECT_TRUE(arrived.wait(workers() - 1));
    });
  }
  EXPECT_TRUE(arrived.wait(workers() - 1));
  scheduler.stop();
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), workers() - 1);
  for (size_t i = 1; i < workers(); ++i) EXPECT_EQ(names[i - 1], "caller_" + std::to_string(i));
}

TEST_P(StopTest, PlacementLeavesTheCallerOutWhileItDoesNotWork) {
  Scheduler scheduler(workers(), true, "caller");
  scheduler.start();
  const int me = sys::threadId();
  std::atomic<int> here{0};
  for (size_t i = 0; i < 4 * workers(); ++i) {
    scheduler.place([&] {
      if (sys::threadId() == me) here.fetch_add(1);
    });
  }
  scheduler.stop();
  EXPECT_EQ(here.load(), workers() == 1 ? 4 : 0) << "alone it is the only one";
}

// CD-S4
TEST_P(StopTest, TheCallerIsAPlainThreadAgainAfterwards) {
  for (int i = 0; i < 3; ++i) {
    {
      Scheduler scheduler(workers(), true, "caller");
      scheduler.schedule([] { EXPECT_NE(Fiber::GetFiberId(), 0u); });
      scheduler.stop();
      EXPECT_EQ(Fiber::GetFiberId(), 0u);
    }
    EXPECT_EQ(Scheduler::GetThis(), nullptr);
    EXPECT_FALSE(mayPark());
  }
}

// ---- What is refused. --------------------------------------------------------------------------------------------------------

// FM-47. Cause: it was found only in stop(), by a failed check.
TEST(SchedulerOptionsTest, ACallerThatIsAWorkerAlreadyIsRefused) {
  Scheduler outer(1, false, "outer");
  outer.start();
  bool ran = false;
  outer.schedule([&ran] {
    EXPECT_THROW(Scheduler(1, true, "inner"), std::invalid_argument);
    EXPECT_THROW(IOManager(1), std::invalid_argument);
    Scheduler inner(1, false, "inner");
    inner.schedule([&ran] { ran = true; });
    inner.stop();
  });
  outer.stop();
  EXPECT_TRUE(ran);
}

// Cause: destroyed on another thread it was still the scheduler of the one that made it.
TEST(SchedulerCaller, IsTheThreadsUntilItHasStopped) {
  auto scheduler = std::make_unique<Scheduler>(1, true, "caller");
  EXPECT_EQ(Scheduler::GetThis(), scheduler.get());
  scheduler->stop();
  EXPECT_EQ(Scheduler::GetThis(), nullptr);
  std::thread([&scheduler] { scheduler.reset(); }).join();
  EXPECT_EQ(Scheduler::GetThis(), nullptr);
}

// FM-53
TEST(SchedulerOptionsTest, AThreadCountOutOfRangeIsRefused) {
  EXPECT_THROW(Scheduler(0, false, "none"), std::invalid_argument);
  EXPECT_THROW(Scheduler(1'025, false, "many"), std::invalid_argument);
  EXPECT_NO_THROW(Scheduler(1'024, false, "most"));
}

using SchedulerDeathTest = testing::Test;

TEST(SchedulerDeathTest, StopFromAnOwnFiberIsAProgrammerError) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Scheduler scheduler(1, false, "death");
        scheduler.start();
        scheduler.schedule([&] { scheduler.stop(); });
        scheduler.stop();
      },
      "check failed");
}

TEST(SchedulerDeathTest, StopWithACallerFromAnotherThreadIsAProgrammerError) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Scheduler scheduler(1, true, "death");
        std::thread([&] { scheduler.stop(); }).join();
      },
      "check failed");
}

}  // namespace
}  // namespace sylar
