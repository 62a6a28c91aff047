// stop() while fibers join others: who is awaited may move, come here, wait in a queue elsewhere, or run on a plain thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;

class JoinStopTest : public test::OverWorkers {
 protected:
  /// Schedules one that joins `fiber`, and returns when it waits.
  static Fiber::ptr join(Scheduler& scheduler, const Fiber::ptr& fiber) {
    const auto joiner = std::make_shared<Fiber>([fiber] { fiber->join(); });
    scheduler.schedule(joiner);
    EXPECT_TRUE(eventually([&] { return joiner->life() == Fiber::Life::kParked; }));
    return joiner;
  }

  /// stop(), and `release` when all workers have slept for a while: what they would do to those that wait, they have done.
  template <class Release>
  static void stopAndOnceAtRest(Scheduler& scheduler, Release release) {
    std::thread stopper([&] { scheduler.stop(); });
    int looks = 0;
    EXPECT_TRUE(eventually([&] {
      const auto asleep = [](const auto& worker) { return worker->slot().mailbox.sleeping(); };
      const auto& workers = scheduler.workers();
      looks = scheduler.isStopping() && std::all_of(workers.begin(), workers.end(), asleep) ? looks + 1 : 0;
      return looks == 500;
    }));
    release();
    stopper.join();
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, JoinStopTest, test::kWorkerCounts);

// Cause: where the joined fiber runs was looked at once, when the join began: it counted as elsewhere for ever.
TEST_P(JoinStopTest, OneThatHasComeHereAndHoldsIsCancelled) {
  Scheduler here(workers(), false, "here");
  Scheduler elsewhere(1, false, "elsewhere");
  here.start();
  elsewhere.start();
  std::atomic<bool> go{false};
  const auto joined = std::make_shared<Fiber>([&] {
    while (!go) Fiber::YieldToReady();
    EXPECT_TRUE(here.switchTo());
    Fiber::YieldToHold();
  });
  elsewhere.schedule(joined);
  ASSERT_TRUE(eventually([&] { return ThreadFibers::homeOf(*joined) != nullptr; }));
  const Fiber::ptr joiner = join(here, joined);
  go = true;
  ASSERT_TRUE(eventually([&] { return joined->life() == Fiber::Life::kHeld; }));
  here.stop();
  EXPECT_EQ(joined->life(), Fiber::Life::kEnded);
  EXPECT_EQ(joiner->life(), Fiber::Life::kEnded);
}

// Cause: the same the other way round: it counted as one of ours, and the joiner was given up.
TEST_P(JoinStopTest, OneThatHasGoneElsewhereIsAwaited) {
  Scheduler here(workers(), false, "here");
  Scheduler elsewhere(1, false, "elsewhere");
  here.start();
  elsewhere.start();
  std::atomic<bool> go{false};
  Gate arrived;
  Gate release;
  const auto joined = std::make_shared<Fiber>([&] {
    while (!go) Fiber::YieldToReady();
    EXPECT_TRUE(elsewhere.switchTo());
    arrived.open();
    EXPECT_TRUE(release.wait());
  });
  here.schedule(joined);
  const Fiber::ptr joiner = join(here, joined);
  go = true;
  ASSERT_TRUE(arrived.wait());
  stopAndOnceAtRest(here, [&] { release.open(); });
  EXPECT_EQ(joined->life(), Fiber::Life::kEnded);
  EXPECT_EQ(joiner->life(), Fiber::Life::kEnded);
}

// Cause: one that has not begun has no home, and counted as one of ours.
TEST_P(JoinStopTest, OneThatHasNotBegunElsewhereIsAwaited) {
  Scheduler here(workers(), false, "here");
  Scheduler elsewhere(1, false, "elsewhere");
  here.start();
  elsewhere.start();
  Gate busy;
  Gate release;
  elsewhere.schedule([&] {
    busy.open();
    EXPECT_TRUE(release.wait());
  });
  ASSERT_TRUE(busy.wait());
  const auto joined = std::make_shared<Fiber>([] {});
  elsewhere.schedule(joined);
  const Fiber::ptr joiner = join(here, joined);
  stopAndOnceAtRest(here, [&] { release.open(); });
  EXPECT_EQ(joined->life(), Fiber::Life::kEnded);
  EXPECT_EQ(joiner->life(), Fiber::Life::kEnded);
}

// Cause: one that runs by hand has no home, and counted as one of ours.
TEST_P(JoinStopTest, OneThatRunsByHandOnAPlainThreadIsAwaited) {
  Scheduler here(workers(), false, "here");
  here.start();
  Gate busy;
  Gate release;
  const auto joined = std::make_shared<Fiber>([&] {
    busy.open();
    EXPECT_TRUE(release.wait());
  });
  std::thread plain([&] { joined->resume(); });
  ASSERT_TRUE(busy.wait());
  const Fiber::ptr joiner = join(here, joined);
  stopAndOnceAtRest(here, [&] { release.open(); });
  plain.join();
  EXPECT_EQ(joined->life(), Fiber::Life::kEnded);
  EXPECT_EQ(joiner->life(), Fiber::Life::kEnded);
}

// Cause: one that nobody has scheduled counted as somebody else's, whose end might come.
TEST(JoinStop, AJoinerOfAFiberThatWasNeverScheduledIsGivenUp) {
  const auto never = std::make_shared<Fiber>([] {});
  Scheduler scheduler(1, false, "join");
  scheduler.start();
  const auto joiner = std::make_shared<Fiber>([&] { never->join(); });
  scheduler.schedule(joiner);
  ASSERT_TRUE(eventually([&] { return joiner->life() == Fiber::Life::kParked; }));
  scheduler.stop();
  EXPECT_EQ(joiner->life(), Fiber::Life::kAbandoned);
}

// Cause: the joiner spent its last waits while the worker of a polite fiber was still on its way.
TEST(JoinStop, AJoinerIsToldByAPoliteFiberOfAnotherWorker) {
  for (int round = 0; round < 30; ++round) {
    Scheduler scheduler(2, false, "join");
    scheduler.start();
    const auto polite = std::make_shared<Fiber>([] {
      const this_fiber::CancelShield shield;
      parkUntil(Deadline::after(std::chrono::hours(1)));
    });
    const auto joiner = std::make_shared<Fiber>([&] { polite->join(); });
    scheduler.schedule(polite, scheduler.workers()[0]->threadId());
    ASSERT_TRUE(eventually([&] { return polite->life() == Fiber::Life::kParked; }));
    scheduler.schedule(joiner, scheduler.workers()[1]->threadId());
    ASSERT_TRUE(eventually([&] { return joiner->life() == Fiber::Life::kParked; }));
    ASSERT_TRUE(scheduler.stop(Deadline::after(std::chrono::milliseconds(5))).clean) << round;
  }
}

}  // namespace
}  // namespace sylar
