// RG-05: each allocation, mapping, thread and descriptor in turn is the one that cannot be had, while fibers are started, joined,
// cancelled, moved and stopped.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/faults/enumerate.h"
#include "tests/sched/gate.h"

namespace sylar::faults {
namespace {

using std::chrono::milliseconds;

/// More than fits into a std::string or a std::function without an allocation.
constexpr const char* kLongName = "a scheduler whose workers have long names";
struct Large {
  long values[8] = {};
};

TEST(SchedFaults, StartAScheduler) {  // FM-04, FM-35
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      Scheduler scheduler(4, false, kLongName);
      for (int i = 0; i < 8; ++i) trial.accepts([&] { return scheduler.trySchedule(trial.work()); });
      if (!trial.passes([&] { scheduler.start(); })) trial.dropsWork();
      scheduler.stop();
    });
  });
}

TEST(SchedFaults, StartASchedulerThatUsesItsCaller) {  // FM-04, FM-35: stop() starts it, and so fails as start() does.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      Scheduler scheduler(2, true, kLongName);
      for (int i = 0; i < 4; ++i) trial.accepts([&] { return scheduler.trySchedule(trial.work()); });
      if (!trial.passes([&] { scheduler.stop(); })) trial.dropsWork();
    });
  });
}

TEST(SchedFaults, StartAnIOManager) {  // FM-04, FM-23, FM-35
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(4, false, kLongName);
      for (int i = 0; i < 8; ++i) trial.accepts([&] { return iom.trySchedule(trial.work()); });
    });
  });
}

/// Each element has a fate of its own: those before the one that had no memory were accepted, the others stay.
void scheduleMany(Trial& trial, IOManager& iom) {
  std::vector<std::function<void()>> batch;
  {
    const Exempt exempt;
    for (int i = 0; i < 4; ++i) batch.emplace_back(trial.work([large = Large()] { (void)large; }));
  }
  trial.passes([&] { iom.schedule(batch.begin(), batch.end()); });
  bool refused = false;
  for (const auto& function : batch) {
    refused |= function != nullptr;
    if (!refused) trial.accepts([] { return true; });
    EXPECT_EQ(refused, function != nullptr);
  }
}

void spawn(Trial& trial) {
  trial.passes([&] {
    IOManager iom(2, false, "spawn");
    const auto some = [&trial, &iom] {
      trial.accepts([&] { return iom.trySchedule(trial.work()); });
      trial.accepts([&] { return iom.trySchedule(trial.work([large = Large()] { (void)large; })); });
      trial.accepts([&] { return iom.place(trial.work()); });
      scheduleMany(trial, iom);
    };
    trial.accepts([&] { return iom.trySchedule(trial.work(some)); });
    some();
  });
}

TEST(SchedFaults, Spawn) { enumerate(usualFaults(), spawn); }  // FM-03, FM-04

TEST(SchedFaults, WorkBehindAPointerStaysIfThereIsNoMemory) {  // FM-04
  enumerate(passingFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(1, false, "pointer");
      auto callable = trial.work([large = std::make_shared<Large>()] { ASSERT_NE(large, nullptr); });
      while (!trial.accepts([&] { return iom.trySchedule(&callable); })) continue;
    });
  });
}

/// On a thread that has nothing yet.
void onNewThread(const std::function<void()>& body) {
  std::optional<std::thread> thread;
  {
    const Exempt exempt;
    thread.emplace([&body] { body(); });
  }
  thread->join();
}

TEST(SchedFaults, ResumeByHand) {  // FM-03
  enumerate(passingFaults(), [](Trial& trial) {
    const auto byHand = [&trial] {
      int steps = 0;
      const auto fiber = std::make_shared<Fiber>([&steps] {
        ++steps;
        Fiber::YieldToHold();
        ++steps;
      });
      while (!trial.passes([&] { fiber->resume(); })) EXPECT_EQ(fiber->getState(), Fiber::INIT);
      EXPECT_EQ(steps, 1);
      fiber->resume();
      EXPECT_EQ(fiber->getState(), Fiber::TERM);
    };
    onNewThread([&] { trial.passes(byHand); });
  });
}

TEST(SchedFaults, HoldAndScheduleAgain) {  // FM-04: what is asked of a fiber by others arrives.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(2, false, "hold");
      for (int i = 0; i < 3; ++i) {
        const auto fiber = std::make_shared<Fiber>(trial.work([] {
          Fiber::YieldToHold();
          EXPECT_FALSE(this_fiber::cancelled());
        }));
        if (!trial.accepts([&] { return iom.trySchedule(fiber); })) continue;
        while (stateOf(*fiber) != FiberState::kHeld && !isOver(stateOf(*fiber))) std::this_thread::yield();
        if (isOver(stateOf(*fiber))) continue;  // no stack
        EXPECT_TRUE(iom.trySchedule(fiber));
        trial.join(*fiber);
      }
    });
  });
}

// FM-04: the request that each fiber has is back for the next time.
TEST(SchedFaults, AHeldFiberIsScheduledAgainAndAgainWithoutMemory) {
  IOManager iom(1, false, "hold");
  constexpr int kRounds = 3;
  std::atomic<int> rounds{0};
  const auto fiber = std::make_shared<Fiber>([&rounds] {
    while (rounds < kRounds) {
      Fiber::YieldToHold();
      ++rounds;
    }
  });
  iom.schedule(fiber);
  for (int round = 1; round <= kRounds && !HasFailure(); ++round) {
    EXPECT_TRUE(test::eventually([&] { return stateOf(*fiber) == FiberState::kHeld; }));
    arm({.kind = Kind::kNew, .width = kAllFromThere}, 1);
    const bool accepted = iom.trySchedule(fiber);
    EXPECT_FALSE(disarm()) << "a request asks for none while no other is on its way";
    EXPECT_TRUE(accepted);
    EXPECT_TRUE(test::eventually([&] { return rounds == round; })) << "round " << round;
  }
  EXPECT_TRUE(iom.stop(Deadline::after(std::chrono::seconds(20), steadyClock())).clean);
}

TEST(SchedFaults, JoinAndCancel) {  // FM-04: cancel() always works.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(2, false, "join");
      const auto held = std::make_shared<Fiber>(trial.work([] {
        while (!this_fiber::cancelled()) Fiber::YieldToHold();
      }));
      const auto sleeper = std::make_shared<Fiber>(
          trial.work([&trial] { trial.passes([] { parkUntil(Deadline::after(std::chrono::seconds(60), waitClock())); }); }));
      const auto joiner = std::make_shared<Fiber>(trial.work([&trial, held] { trial.join(*held); }));
      std::vector<Fiber::ptr> fibers = {held, sleeper, joiner};
      std::erase_if(fibers, [&](const auto& fiber) { return !trial.accepts([&] { return iom.trySchedule(fiber); }); });
      held->cancel();
      sleeper->cancel();
      if (fibers.size() < 3) return;  // a joiner of what was never scheduled ends with the manager
      for (const auto& fiber : fibers) trial.join(*fiber);
    });
  });
}

TEST(SchedFaults, Move) {  // FM-04
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager here(1, false, "here");
      IOManager there(2, false, "there");
      const auto mover = std::make_shared<Fiber>(trial.work([&] {
        if (trial.passes([&] { return there.switchTo(); })) {
          EXPECT_EQ(Scheduler::GetThis(), &there);
        } else {
          EXPECT_EQ(Scheduler::GetThis(), &here);
        }
        Scheduler* const before = Scheduler::GetThis();
        trial.passes([&] { const SchedulerSwitcher visit(before == &here ? &there : &here); });
        EXPECT_EQ(Scheduler::GetThis(), before);
        trial.passes([&] { return here.switchTo(); });
      }));
      if (trial.accepts([&] { return here.trySchedule(mover); })) trial.join(*mover);
    });
  });
}

TEST(SchedFaults, ScheduleAHeldFiberElsewhere) {  // FM-04
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(2, false, "elsewhere");
      const auto held = std::make_shared<Fiber>(trial.work([] { Fiber::YieldToHold(); }));
      if (!trial.accepts([&] { return iom.trySchedule(held); })) return;
      while (stateOf(*held) != FiberState::kHeld && !isOver(stateOf(*held))) std::this_thread::yield();
      for (const auto& worker : coreOf(iom).workers()) {
        if (isOver(stateOf(*held))) break;
        trial.passes([&] { return iom.trySchedule(held, worker->threadId()) || isOver(stateOf(*held)); });
      }
      iom.schedule(held);
      trial.join(*held);
    });
  });
}

// FM-04. Cause: timeouts that had been pushed were taken out by the thousand and had room for 64 to be put in again.
TEST(SchedFaults, ManyTimeoutsThatWerePushed) {
  constexpr size_t kFibers = 150;
  const Fault faults[] = {{Kind::kNew}, {.kind = Kind::kNew, .width = 20}};
  enumerate(faults, [](Trial& trial) {
    std::optional<Exempt> exempt(std::in_place);
    ManualClock clock;
    Scheduler scheduler(SchedulerOptions{.threads = 1, .name = "timeouts", .clock = &clock, .identity = FiberIdentity::kWorker});
    std::vector<Waker> wakers(kFibers);
    for (size_t i = 0; i < kFibers; ++i) {
      trial.accepts([&, i] {
        return scheduler.trySchedule(trial.work([&, i] {
          const Deadline soon = Deadline::after(milliseconds(2), waitClock());
          if (!trial.passes([&] { return reserveTimeout(soon); })) return;
          Wait wait;
          wakers[i] = wait.waker();
          wait.park(soon);
          trial.passes([] { parkUntil(Deadline::after(milliseconds(4), waitClock())); });
        }));
      });
    }
    trial.accepts([&] {
      return scheduler.trySchedule(trial.work([&] {
        for (const Waker& waker : wakers) {
          if (waker.core != nullptr) waker.wake(WakeReason::kReady);
        }
        for (int ms = 0; ms < 5; ++ms) {  // a turn for each: at 2 they are due, and have been pushed
          for (size_t i = 0; i < 2 * kFibers; ++i) Fiber::YieldToReady();
          clock.advance(milliseconds(1));
        }
      }));
    });
    exempt.reset();
    if (!trial.passes([&] { scheduler.start(); })) trial.dropsWork();
    scheduler.stop();
  });
}

TEST(SchedFaults, StopWithADeadline) {  // FM-04, FM-43
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(2, false, "stop");
      for (int i = 0; i < 2; ++i) {
        trial.accepts([&] { return iom.trySchedule(trial.work([] { Fiber::YieldToHold(); })); });
        trial.accepts([&] {
          return iom.trySchedule(
              trial.work([&] { trial.passes([] { parkUntil(Deadline::after(std::chrono::seconds(60), waitClock())); }); }));
        });
        trial.passes([&] { return iom.addTimer(60'000, [] {}) != nullptr; });
      }
      trial.passes([&] { return iom.stop(Deadline::after(std::chrono::seconds(20), steadyClock())).clean; });
    });
  });
}

// FM-03. The last test: the library remembers that the kernel is an old one.
TEST(SchedFaults, SpawnOnAKernelWithoutLightGuards) {
  pretendOldKernel();
  const Fault faults[] = {{Kind::kProtect, ENOMEM}, {.kind = Kind::kProtect, .error = ENOMEM, .width = 3}};
  enumerate(faults, spawn);
}

}  // namespace
}  // namespace sylar::faults
