// schedule() of a fiber that has started: it goes on if it is held, else it keeps a permit for its next YieldToHold.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;
using test::LeakCheck;

class PermitTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, PermitTest, test::kWorkerCounts);

TEST_P(PermitTest, AHeldFiberGoesOnOnItsOwnThread) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  std::atomic<int> before{0};
  std::atomic<int> after{0};
  Gate done;
  const auto fiber = std::make_shared<Fiber>([&] {
    before = sys::threadId();
    Fiber::YieldToHold();
    after = sys::threadId();
    done.open();
  });
  scheduler.schedule(fiber);
  ASSERT_TRUE(eventually([&] { return fiber->getState() == Fiber::HOLD; }));
  scheduler.schedule(fiber);
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(before.load(), after.load());
  scheduler.stop();
}

// Cause: each call allocated a message and sent it, also when one was under way that would bring the same to pass.
TEST_P(PermitTest, AskingAgainSendsNoSecondMessage) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  const auto held = std::make_shared<Fiber>([] { Fiber::YieldToHold(); });
  scheduler.schedule(held);
  ASSERT_TRUE(eventually([&] { return held->getState() == Fiber::HOLD; }));
  Gate inside;
  Gate asked;
  const auto home = static_cast<WorkerSlot*>(ThreadFibers::homeOf(*held));
  const pid_t thread = home->worker->threadId();
  scheduler.schedule(
      [&] {
        inside.open();
        EXPECT_TRUE(asked.wait());
      },
      thread);
  ASSERT_TRUE(inside.wait());
  const uint64_t before = scheduler.getWorkerStats().mail;
  for (int i = 0; i < 1'000; ++i) {
    scheduler.schedule(held);
    held->cancel();
  }
  EXPECT_EQ(held.use_count(), 3);  // the scheduler's, and that of the one message
  asked.open();
  held->join();
  scheduler.stop();
  EXPECT_EQ(scheduler.getWorkerStats().mail - before, 1U);
}

// The schedule comes while the fiber runs; it is not lost.
TEST_P(PermitTest, AScheduleBeforeTheHoldIsKept) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  Gate done;
  scheduler.schedule([&] {
    for (int i = 0; i < 10; ++i) {
      Scheduler::GetThis()->schedule(Fiber::GetThis());
      Fiber::YieldToHold();
    }
    done.open();
  });
  EXPECT_TRUE(done.wait());
  scheduler.stop();
}

// The schedule comes while the fiber stands in the queue after a YieldToReady; it is not lost either.
TEST(Permit, AScheduleWhileTheFiberIsReadyIsKept) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "permit");
  scheduler.start();
  Gate done;
  bool scheduled = false;
  const auto fiber = std::make_shared<Fiber>([&] {
    Scheduler::GetThis()->schedule([&scheduled, me = Fiber::GetThis()] {
      EXPECT_EQ(me->getState(), Fiber::READY);
      Scheduler::GetThis()->schedule(me);
      scheduled = true;
    });
    while (!scheduled) Fiber::YieldToReady();
    Fiber::YieldToHold();
    done.open();
  });
  scheduler.schedule(fiber);
  EXPECT_TRUE(done.wait());
  scheduler.stop();
}

TEST(Permit, ManySchedulesLeaveOnePermit) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "permit");
  scheduler.start();
  std::atomic<int> passed{0};
  Gate looked;
  const auto fiber = std::make_shared<Fiber>([&] {
    for (int i = 0; i < 5; ++i) Scheduler::GetThis()->schedule(Fiber::GetThis());
    for (int i = 0; i < 1'000; ++i) Fiber::YieldToReady();  // more than a turn: the messages are taken
    for (int i = 0; i < 3; ++i) {
      Fiber::YieldToHold();
      passed.fetch_add(1);
    }
  });
  scheduler.schedule(fiber);
  ASSERT_TRUE(eventually([&] { return passed.load() >= 1 && fiber->getState() == Fiber::HOLD; }));
  scheduler.schedule([&] { looked.open(); });
  ASSERT_TRUE(looked.wait());
  EXPECT_EQ(passed.load(), 1);
  scheduler.stop();
}

// CD-F8: a permit never ends a wait.
TEST(Permit, ItDoesNotEndAWait) {
  const LeakCheck leaks;
  ManualClock clock;
  Scheduler scheduler(SchedulerOptions{.threads = 1, .use_caller = false, .name = "permit", .clock = &clock});
  scheduler.start();
  std::atomic<bool> woke{false};
  Gate held;
  const auto fiber = std::make_shared<Fiber>([&] {
    EXPECT_EQ(parkUntil(Deadline::at(1'000)), WakeReason::kTimeout);
    EXPECT_EQ(clock.nowNs(), 1'000);
    woke = true;
    Fiber::YieldToHold();  // here the permit is consumed
    held.open();
  });
  scheduler.schedule(fiber);
  ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
  scheduler.schedule(fiber);
  scheduler.schedule(fiber);
  Gate turned;
  for (size_t i = 0; i < 3; ++i) {
    scheduler.schedule([&] { turned.open(); });
    ASSERT_TRUE(turned.wait(i + 1));
  }
  EXPECT_FALSE(woke.load());
  clock.advance(std::chrono::nanoseconds(1'000));
  scheduler.schedule([] {});
  EXPECT_TRUE(held.wait());
  scheduler.stop();
}

TEST_P(PermitTest, AFiberThatEndedIsRefused) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  const auto fiber = std::make_shared<Fiber>([] {});
  EXPECT_TRUE(scheduler.trySchedule(fiber));
  fiber->join();
  EXPECT_FALSE(scheduler.trySchedule(fiber));
  scheduler.stop();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

// It is what a waker sees that comes too late, as often as it likes.
TEST_P(PermitTest, AFiberThatEndedIsRefusedWithoutALogLine) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  const auto fiber = std::make_shared<Fiber>([] {});
  scheduler.schedule(fiber);
  fiber->join();
  testing::internal::CaptureStderr();
  scheduler.schedule(fiber);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  scheduler.stop();
}

TEST_P(PermitTest, UnstartedWorkThatIsScheduledTwiceStartsOnce) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  std::atomic<int> runs{0};
  for (int i = 0; i < 200; ++i) {
    const auto fiber = std::make_shared<Fiber>([&] { runs.fetch_add(1); });
    scheduler.schedule(fiber);
    scheduler.schedule(fiber);
  }
  scheduler.stop();
  EXPECT_EQ(runs.load(), 200);
}

TEST_P(PermitTest, AFiberThatWasResetRunsAgain) {
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  std::atomic<int> runs{0};
  const auto fiber = std::make_shared<Fiber>([&] { runs.fetch_add(1); });
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(scheduler.trySchedule(fiber));
    fiber->join();
    fiber->reset([&] { runs.fetch_add(1); });
  }
  scheduler.stop();
  EXPECT_EQ(runs.load(), 10);
}

// Two fibers, each of which runs only when the other says so: a lost permit stops both.
TEST_P(PermitTest, TwoFibersHandEachOtherTheTurn) {
#ifdef SYLAR_TSAN
  constexpr int kTurns = 2'000;
#else
  constexpr int kTurns = 20'000;
#endif
  Scheduler scheduler(workers(), false, "permit");
  scheduler.start();
  int turn = 0;  // plain: handed over with the permit
  Fiber::ptr players[2];
  const auto play = [&](int me) {
    while (turn < kTurns) {
      if (turn % 2 == me) {
        ++turn;
        scheduler.schedule(players[1 - me]);
      }
      Fiber::YieldToHold();
    }
    scheduler.schedule(players[1 - me]);
  };
  players[0] = std::make_shared<Fiber>([&] { play(0); });
  players[1] = std::make_shared<Fiber>([&] {
    Fiber::YieldToHold();
    play(1);
  });
  scheduler.schedule(players[1]);
  ASSERT_TRUE(eventually([&] { return players[1]->getState() == Fiber::HOLD; }));
  scheduler.schedule(players[0]);
  players[0]->join();
  players[1]->join();
  EXPECT_EQ(turn, kTurns);
  scheduler.stop();
  players[0] = players[1] = nullptr;
}

}  // namespace
}  // namespace sylar
