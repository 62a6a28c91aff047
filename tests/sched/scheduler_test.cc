// Tests what a Scheduler runs, where, and in which order, over several counts of workers.
#include "sylar/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/thread.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;
using test::LeakCheck;

/// Values in the order in which threads and fibers wrote them down.
template <class T>
class Record {
 public:
  void add(T value) {
    const std::lock_guard lock(m_mutex);
    m_values.push_back(std::move(value));
  }
  std::vector<T> values() {
    const std::lock_guard lock(m_mutex);
    return m_values;
  }

 private:
  std::mutex m_mutex;
  std::vector<T> m_values;
};

class SchedulerTest : public test::OverWorkers {
 protected:
  /// The kernel ids of all workers: each is kept busy until all have come.
  std::vector<int> threadIds(Scheduler& scheduler) {
    Record<int> ids;
    Gate arrived;
    Gate left;
    for (size_t i = 0; i < workers(); ++i) {
      scheduler.schedule([&, gone = std::shared_ptr<Gate>(&left, [](Gate* gate) { gate->open(); })] {
        ids.add(sys::threadId());
        arrived.open();
        EXPECT_TRUE(arrived.wait(workers()));
      });
    }
    EXPECT_TRUE(left.wait(workers()));
    return ids.values();
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, SchedulerTest, test::kWorkerCounts);
class SeveralWorkersTest : public SchedulerTest {};
INSTANTIATE_TEST_SUITE_P(Workers, SeveralWorkersTest, testing::Values(2, 4, 8));

// ---- Forms of work. ----------------------------------------------------------------------------------------------------------

std::atomic<int> g_calls{0};
void countCall() { g_calls.fetch_add(1); }

// Trap 3
TEST_P(SchedulerTest, EveryFormOfWorkRunsOnce) {
  g_calls = 0;
  Scheduler scheduler(workers(), false, "forms");
  scheduler.start();
  scheduler.schedule(countCall);
  scheduler.schedule(&countCall);
  scheduler.schedule([] { countCall(); });
  scheduler.schedule([count = 0]() mutable { g_calls.fetch_add(++count); });
  std::function<void()> function = countCall;
  scheduler.schedule(function);
  scheduler.schedule(std::make_shared<Fiber>(countCall));
  scheduler.schedule(std::bind([](int n) { g_calls.fetch_add(n); }, 1));
  scheduler.stop();
  EXPECT_EQ(g_calls.load(), 7);
  EXPECT_NE(function, nullptr);
}

// Trap 3: who passes a pointer gives the work away.
TEST_P(SchedulerTest, PointerFormsAreMovedOut) {
  g_calls = 0;
  Scheduler scheduler(workers(), false, "forms");
  scheduler.start();
  std::function<void()> function = countCall;
  Fiber::ptr fiber = std::make_shared<Fiber>(countCall);
  scheduler.schedule(&function);
  scheduler.schedule(&fiber);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(fiber, nullptr);
  scheduler.stop();
  EXPECT_EQ(g_calls.load(), 2);
}

// Trap 3
TEST_P(SchedulerTest, ElementsOfARangeAreMovedOut) {
  g_calls = 0;
  Scheduler scheduler(workers(), false, "forms");
  scheduler.start();
  std::vector<std::function<void()>> functions(3, countCall);
  std::list<Fiber::ptr> fibers = {std::make_shared<Fiber>(countCall), std::make_shared<Fiber>(countCall)};
  std::vector<void (*)()> pointers(4, &countCall);
  scheduler.schedule(functions.begin(), functions.end());
  scheduler.schedule(fibers.begin(), fibers.end());
  scheduler.schedule(pointers.begin(), pointers.end());
  scheduler.schedule(functions.begin(), functions.begin());
  EXPECT_TRUE(std::all_of(functions.begin(), functions.end(), [](const auto& f) { return f == nullptr; }));
  EXPECT_TRUE(std::all_of(fibers.begin(), fibers.end(), [](const auto& f) { return f == nullptr; }));
  scheduler.stop();
  EXPECT_EQ(g_calls.load(), 9);
}

// Trap 4: the cast that sylar's users copied.
TEST_P(SchedulerTest, TheMemberPointerCastStaysValid) {
  g_calls = 0;
  Scheduler scheduler(workers(), false, "cast");
  scheduler.start();
  const auto schedule_fiber = (void(Scheduler::*)(Fiber::ptr, int)) & Scheduler::schedule;
  const std::function<void()> bound = std::bind(schedule_fiber, &scheduler, std::make_shared<Fiber>(countCall), -1);
  bound();
  scheduler.stop();
  EXPECT_EQ(g_calls.load(), 1);
}

TEST_P(SchedulerTest, NullWorkIsRefused) {
  Scheduler scheduler(workers(), false, "null");
  scheduler.start();
  EXPECT_FALSE(scheduler.trySchedule(std::function<void()>()));
  EXPECT_FALSE(scheduler.trySchedule(static_cast<void (*)()>(nullptr)));
  EXPECT_FALSE(scheduler.trySchedule(Fiber::ptr()));
  EXPECT_FALSE(scheduler.trySchedule(static_cast<Fiber::ptr*>(nullptr)));
  EXPECT_FALSE(scheduler.trySchedule(static_cast<std::function<void()>*>(nullptr)));
  Fiber::ptr empty;
  EXPECT_FALSE(scheduler.trySchedule(&empty));
  EXPECT_FALSE(scheduler.place(nullptr));
  scheduler.schedule(std::function<void()>());
  scheduler.stop();
}

TEST_P(SchedulerTest, CapturesAreDestroyedWhenTheWorkHasRun) {
  const auto capture = std::make_shared<int>(0);
  Scheduler scheduler(workers(), false, "captures");
  scheduler.start();
  Gate done;
  scheduler.schedule([capture, &done] { done.open(); });
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(eventually([&] { return capture.use_count() == 1; }));
  scheduler.stop();
}

// ---- Where. ------------------------------------------------------------------------------------------------------------------

// P2: who takes from the injector and leaves some behind wakes one more.
TEST_P(SchedulerTest, ABurstFromOutsideUsesAllWorkers) {
  Scheduler scheduler(workers(), false, "burst");
  scheduler.start();
  const std::vector<int> ids = threadIds(scheduler);
  EXPECT_EQ(std::set<int>(ids.begin(), ids.end()).size(), workers());
  scheduler.stop();
}

// CD-S6
TEST_P(SchedulerTest, PinnedWorkRunsAndStaysOnItsWorker) {
  Scheduler scheduler(workers(), false, "pinned");
  scheduler.start();
  std::atomic<int> right{0};
  const std::vector<int> ids = threadIds(scheduler);
  for (const int id : ids) {
    for (int i = 0; i < 20; ++i) {
      scheduler.schedule(
          [&right, id] {
            for (int yields = 0; yields < 5; ++yields) {
              if (sys::threadId() == id) right.fetch_add(1);
              Fiber::YieldToReady();
            }
          },
          id);
    }
  }
  scheduler.stop();
  EXPECT_EQ(right.load(), static_cast<int>(workers()) * 100);
}

TEST_P(SchedulerTest, AnUnknownThreadIsRefused) {
  Scheduler scheduler(workers(), false, "unknown");
  scheduler.start();
  threadIds(scheduler);
  const auto capture = std::make_shared<int>(0);
  for (const int id : {0, -2, sys::threadId(), 1}) {
    EXPECT_FALSE(scheduler.trySchedule([capture] { FAIL(); }, id)) << id;
    EXPECT_EQ(capture.use_count(), 1) << id;
  }
  scheduler.stop();
}

// Cause: a worker whose thread does not exist yet has the id 0, and was found by it.
TEST_P(SchedulerTest, BeforeTheStartNoThreadIsKnown) {
  Scheduler scheduler(workers(), false, "unknown");
  EXPECT_FALSE(scheduler.trySchedule([] { FAIL(); }, 0));
}

// CD-S5, CD-S6: no thief may have it, however long its worker is busy and the others are not.
TEST_P(SeveralWorkersTest, PinnedWorkIsNotStolen) {
  Scheduler scheduler(workers(), false, "pinned");
  scheduler.start();
  Gate arrived;
  Gate go_on;
  std::atomic<int> id{0};
  scheduler.schedule([&] {
    id = sys::threadId();
    arrived.open();
    EXPECT_TRUE(go_on.wait());
  });
  ASSERT_TRUE(arrived.wait());
  std::atomic<int> ran_on{0};
  scheduler.schedule([&] { ran_on = sys::threadId(); }, id);
  Gate others;
  for (int i = 0; i < 100; ++i) {
    scheduler.schedule([&] { others.open(); });
    ASSERT_TRUE(others.wait(static_cast<size_t>(i) + 1)) << "another worker runs what is not pinned";
  }
  EXPECT_EQ(ran_on.load(), 0);
  go_on.open();
  scheduler.stop();
  EXPECT_EQ(ran_on.load(), id.load());
}

// RT-7.5: none of these can end before all have begun, each on a worker of its own.
TEST_P(SchedulerTest, UnstartedWorkIsStolenByIdleWorkers) {
  Scheduler scheduler(workers(), false, "steal");
  scheduler.start();
  Gate arrived;
  std::atomic<size_t> together{0};
  scheduler.schedule([&] {
    for (size_t i = 0; i < workers(); ++i) {
      Scheduler::GetThis()->schedule([&] {
        arrived.open();
        if (arrived.wait(workers())) together.fetch_add(1);
      });
    }
  });
  EXPECT_TRUE(arrived.wait(workers()));
  scheduler.stop();
  EXPECT_EQ(together.load(), workers());
}

// FM-45: the second pair is scheduled when the worker that was woken for the first sleeps again, all within one turn.
TEST_P(SeveralWorkersTest, UnstartedWorkNeverWaitsBehindAComputationWhileAWorkerSleeps) {
  Scheduler scheduler(workers(), false, "steal");
  scheduler.start();
  threadIds(scheduler);
  const auto asleep = [&] {
    return static_cast<size_t>(std::count_if(coreOf(scheduler).workers().begin(), coreOf(scheduler).workers().end(),
                                             [](const auto& worker) { return worker->slot().mailbox.sleeping(); }));
  };
  constexpr int kRounds = 20;
  std::atomic<int> right{0};
  Gate done;
  // Half of each pair computes until the other half has run, which must be elsewhere.
  std::function<void(int)> round = [&](int n) {
    if (n == kRounds) return done.open();
    const auto other_ran = std::make_shared<Gate>();
    Scheduler::GetThis()->schedule([&, n, other_ran] {
      if (other_ran->wait()) right.fetch_add(1);
      EXPECT_TRUE(eventually([&] { return asleep() == workers() - 1; }));
      round(n + 1);
    });
    Scheduler::GetThis()->schedule([other_ran] { other_ran->open(); });
  };
  scheduler.schedule([&] { round(0); });
  EXPECT_TRUE(done.wait());
  scheduler.stop();
  EXPECT_EQ(right.load(), kRounds);
}

// Cause: only the next run of its worker woke somebody for what a fiber had scheduled; while it computed, everybody slept.
TEST_P(SeveralWorkersTest, WhatAComputingFiberSchedulesStartsOnSleepingWorkers) {
  Scheduler scheduler(workers(), false, "wake");
  scheduler.start();
  threadIds(scheduler);
  const size_t others = workers() - 1;
  Gate done;
  scheduler.schedule([&] {
    for (int round = 0; round < 20; ++round) {
      EXPECT_TRUE(eventually([&] { return coreOf(scheduler).idle().sleeping() == others; }));
      const auto begun = std::make_shared<Gate>();
      const size_t burst = round % 2 == 0 ? 1 : others;
      for (size_t i = 0; i < burst; ++i) {
        scheduler.schedule([begun, burst] {
          begun->open();
          EXPECT_TRUE(begun->wait(burst)) << "each on a worker of its own";
        });
      }
      EXPECT_TRUE(begun->wait(burst));  // blocks the thread, as a computation does
    }
    done.open();
  });
  EXPECT_TRUE(done.wait());
  scheduler.stop();
}

TEST_P(SchedulerTest, StolenWorkRunsOnce) {
  Scheduler scheduler(workers(), false, "steal");
  scheduler.start();
  constexpr int kTasks = 5'000;
  std::vector<std::atomic<int>> runs(kTasks);
  scheduler.schedule([&] {
    for (int i = 0; i < kTasks; ++i) {
      Scheduler::GetThis()->schedule([&runs, i] { runs[static_cast<size_t>(i)].fetch_add(1); });
      if (i % 100 == 0) Fiber::YieldToReady();
    }
  });
  scheduler.stop();
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n.load() == 1; }));
}

// CD-F4
TEST_P(SchedulerTest, AStartedFiberStaysOnItsThread) {
  Scheduler scheduler(workers(), false, "stay");
  scheduler.start();
  std::atomic<int> moved{0};
  for (int i = 0; i < 64; ++i) {
    scheduler.schedule([&] {
      const int home = sys::threadId();
      for (int yields = 0; yields < 200; ++yields) {
        Fiber::YieldToReady();
        if (sys::threadId() != home) moved.fetch_add(1);
      }
    });
  }
  scheduler.stop();
  EXPECT_EQ(moved.load(), 0);
}

TEST_P(SchedulerTest, WorkersAreNamedAfterTheSchedulerAndKnowIt) {
  Scheduler scheduler(workers(), false, "named");
  scheduler.start();
  Record<std::string> names;
  Gate arrived;
  for (size_t i = 0; i < workers(); ++i) {
    scheduler.schedule([&] {
      EXPECT_EQ(Scheduler::GetThis(), &scheduler);
      names.add(Thread::GetName());
      arrived.open();
      EXPECT_TRUE(arrived.wait(workers()));
    });
  }
  scheduler.stop();
  std::set<std::string> expected;
  for (size_t i = 0; i < workers(); ++i) expected.insert("named_" + std::to_string(i));
  const std::vector<std::string> seen = names.values();
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()), expected);
  EXPECT_EQ(scheduler.getName(), "named");
  EXPECT_EQ(Scheduler::GetThis(), nullptr);
}

// ---- Placement. --------------------------------------------------------------------------------------------------------------

/// Places `count` functions that stay, and returns how many each worker got.
std::vector<size_t> placeAndCount(Scheduler& scheduler, size_t count) {
  Record<int> homes;
  Gate arrived;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(scheduler.place([&] {
      const int home = sys::threadId();
      homes.add(home);
      arrived.open();
      Fiber::YieldToReady();
      EXPECT_EQ(sys::threadId(), home);
      Fiber::YieldToHold();  // until stop() cancels it
    }));
  }
  EXPECT_TRUE(arrived.wait(count));
  const std::vector<int> all = homes.values();
  std::vector<size_t> counts;
  for (const int id : std::set<int>(all.begin(), all.end())) {
    counts.push_back(static_cast<size_t>(std::count(all.begin(), all.end(), id)));
  }
  return counts;
}

// P-16: 4 on 2 workers are 2 and 2, from the first moment on.
TEST_P(SchedulerTest, TwicePlacedPerWorkerMeansTwoOnEach) {
  for (int round = 0; round < 20; ++round) {
    Scheduler scheduler(workers(), false, "place");
    scheduler.start();
    EXPECT_EQ(placeAndCount(scheduler, 2 * workers()), std::vector<size_t>(workers(), 2)) << "round " << round;
    scheduler.stop();
  }
}

// P-16: 100 on 2 workers are 50 and 50.
TEST_P(SchedulerTest, ManyPlacedAreSpreadEvenlyAndTheCountFalls) {
  Scheduler scheduler(workers(), false, "place");
  scheduler.start();
  threadIds(scheduler);
  EXPECT_EQ(placeAndCount(scheduler, 50 * workers()), std::vector<size_t>(workers(), 50));
  for (const auto& worker : coreOf(scheduler).workers()) EXPECT_EQ(worker->placed()->load(), 50u);
  scheduler.stop();
  for (const auto& worker : coreOf(scheduler).workers()) EXPECT_EQ(worker->placed()->load(), 0u);
}

TEST_P(SchedulerTest, PlaceFillsUpWhereTheFewestAre) {
  Scheduler scheduler(workers(), false, "place");
  scheduler.start();
  const std::vector<int> ids = threadIds(scheduler);
  Record<Fiber::ptr> to_end;
  Gate arrived;
  for (size_t i = 0; i < 2 * workers(); ++i) {
    scheduler.place([&] {
      if (sys::threadId() != ids[0]) to_end.add(Fiber::GetThis());
      arrived.open();
      Fiber::YieldToHold();
    });
  }
  ASSERT_TRUE(arrived.wait(2 * workers()));
  const std::vector<Fiber::ptr> ending = to_end.values();
  EXPECT_EQ(ending.size(), 2 * (workers() - 1));
  for (const Fiber::ptr& fiber : ending) {
    scheduler.schedule(fiber);
    fiber->join();
  }
  for (size_t i = 0; i < ending.size(); ++i) scheduler.place([] { Fiber::YieldToHold(); });
  for (const auto& worker : coreOf(scheduler).workers()) EXPECT_EQ(worker->placed()->load(), 2u);
  scheduler.stop();
}

TEST_P(SchedulerTest, APlacedFunctionThatThrowsIsCountedDown) {
  Scheduler scheduler(workers(), false, "place");
  scheduler.start();
  scheduler.place([] { throw std::runtime_error("on purpose"); });
  scheduler.stop();
  for (const auto& worker : coreOf(scheduler).workers()) EXPECT_EQ(worker->placed()->load(), 0u);
}

// ---- Order. ------------------------------------------------------------------------------------------------------------------

std::vector<int> numbersUpTo(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(SchedulerOrder, WorkFromOutsideRunsInItsOrderOnOneWorker) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "order");
  scheduler.start();
  Gate go_on;
  Record<int> order;
  scheduler.schedule([&] { EXPECT_TRUE(go_on.wait()); });
  for (int i = 0; i < 1'000; ++i) scheduler.schedule([&order, i] { order.add(i); });
  go_on.open();
  scheduler.stop();
  EXPECT_EQ(order.values(), numbersUpTo(1'000));
}

TEST(SchedulerOrder, WorkFromAFiberRunsInItsOrderOnOneWorker) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "order");
  scheduler.start();
  Record<int> order;
  scheduler.schedule([&] {
    for (int i = 0; i < 1'000; ++i) Scheduler::GetThis()->schedule([&order, i] { order.add(i); });
  });
  scheduler.stop();
  EXPECT_EQ(order.values(), numbersUpTo(1'000));
}

TEST(SchedulerOrder, PinnedWorkRunsInItsOrder) {
  const LeakCheck leaks;
  Scheduler scheduler(2, false, "order");
  scheduler.start();
  Gate arrived;
  Gate go_on;
  std::atomic<int> id{0};
  scheduler.schedule([&] {
    id = sys::threadId();
    arrived.open();
    EXPECT_TRUE(go_on.wait());
  });
  ASSERT_TRUE(arrived.wait());
  Record<int> order;
  for (int i = 0; i < 1'000; ++i) scheduler.schedule([&order, i] { order.add(i); }, id);
  go_on.open();
  scheduler.stop();
  EXPECT_EQ(order.values(), numbersUpTo(1'000));
}

TEST(SchedulerOrder, FibersThatYieldTakeTurns) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "turns");
  scheduler.start();
  Record<int> order;
  scheduler.schedule([&] {
    for (int i = 0; i < 4; ++i) {
      const auto take_turns = [&order, i] {
        for (int turn = 0; turn < 50; ++turn) {
          order.add(i);
          Fiber::YieldToReady();
        }
      };
      Scheduler::GetThis()->schedule(take_turns, sys::threadId());
    }
  });
  scheduler.stop();
  const std::vector<int> seen = order.values();
  ASSERT_EQ(seen.size(), 200u);
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<int>(i % 4)) << "turn " << i;
}

// FM-46: one that yields forever keeps nobody out: neither work from outside, nor pinned, nor of fibers.
TEST_P(SchedulerTest, FibersThatYieldForEverStarveNobody) {
  Scheduler scheduler(workers(), false, "fair");
  scheduler.start();
  const std::vector<int> ids = threadIds(scheduler);
  std::atomic<bool> over{false};
  for (size_t i = 0; i < 2 * workers(); ++i) {
    scheduler.schedule([&] {
      while (!over) Fiber::YieldToReady();
    });
  }
  Gate outside;
  Gate pinned;
  Gate nested;
  for (int i = 0; i < 10; ++i) {
    scheduler.schedule([&] { outside.open(); });
    scheduler.schedule([&] { pinned.open(); }, ids[0]);
    scheduler.schedule([&] { Scheduler::GetThis()->schedule([&] { nested.open(); }); });
  }
  EXPECT_TRUE(outside.wait(10));
  EXPECT_TRUE(pinned.wait(10));
  EXPECT_TRUE(nested.wait(10));
  over = true;
  scheduler.stop();
}

// A fiber that schedules another at its end, again and again, is never the last word either.
TEST_P(SchedulerTest, AnEndlessChainOfUnstartedWorkStarvesNobody) {
  Scheduler scheduler(workers(), false, "fair");
  scheduler.start();
  std::atomic<bool> over{false};
  std::function<void()> chain = [&] {
    if (!over) Scheduler::GetThis()->schedule(chain);
  };
  for (size_t i = 0; i < 2 * workers(); ++i) scheduler.schedule(chain);
  Gate outside;
  Gate woken;
  for (int i = 0; i < 10; ++i) scheduler.schedule([&] { outside.open(); });
  scheduler.schedule([&] {
    for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
    woken.open();
  });
  EXPECT_TRUE(outside.wait(10));
  EXPECT_TRUE(woken.wait());
  over = true;
  scheduler.stop();
}

}  // namespace
}  // namespace sylar
