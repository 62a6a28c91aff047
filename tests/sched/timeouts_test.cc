// Waits with a deadline, on a clock that the test moves. A worker looks at the clock once a turn, so whoever moves it makes the
// worker turn, by scheduling something.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using test::eventually;
using test::Gate;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kHour = 3'600'000 * kMs;

class TimeoutTest : public testing::Test {
 protected:
  TimeoutTest() { m_scheduler.start(); }
  ~TimeoutTest() override { m_scheduler.stop(); }

  Scheduler& scheduler() { return m_scheduler; }
  ManualClock& clock() { return m_clock; }

  /// Afterwards the worker has seen the present time and has run whatever became runnable by it: a turn runs at most 256 fibers,
  /// so this one sees two turns begin.
  void turn() {
    const auto fiber = std::make_shared<Fiber>([] {
      for (int i = 0; i < 600; ++i) Fiber::YieldToReady();
    });
    m_scheduler.schedule(fiber);
    fiber->join();
  }
  void setMs(int64_t ms) {
    m_clock.set(std::chrono::milliseconds(ms));
    turn();
  }

  /// Runs `body` in a fiber and returns when that is parked for the first time.
  Fiber::ptr parked(std::function<void()> body) {
    auto fiber = std::make_shared<Fiber>(std::move(body));
    m_scheduler.schedule(fiber);
    EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
    return fiber;
  }

 private:
  test::LeakCheck m_leaks;
  ManualClock m_clock;
  Scheduler m_scheduler{SchedulerOptions{.threads = 1, .use_caller = false, .name = "timeouts", .clock = &m_clock}};
};

/// A waker that one fiber hands to the test, again and again.
class Handed {
 public:
  WakeReason park(Deadline deadline) {
    EXPECT_TRUE(reserveTimeout(deadline));
    Wait wait;
    {
      const std::lock_guard lock(m_mutex);
      m_waker = wait.waker();
      ++m_count;
    }
    return wait.park(deadline);
  }
  Waker waker() {
    const std::lock_guard lock(m_mutex);
    return m_waker;
  }
  int count() {
    const std::lock_guard lock(m_mutex);
    return m_count;
  }

 private:
  std::mutex m_mutex;
  Waker m_waker;
  int m_count = 0;
};

TEST_F(TimeoutTest, AWaitEndsAtItsDeadlineAndNotBefore) {
  std::atomic<bool> woke{false};
  const auto fiber = parked([&] {
    EXPECT_EQ(parkUntil(Deadline::at(10 * kMs)), WakeReason::kTimeout);
    woke = true;
  });
  clock().set(std::chrono::nanoseconds(10 * kMs - 1));
  turn();
  EXPECT_FALSE(woke);
  clock().set(std::chrono::nanoseconds(10 * kMs));
  turn();
  EXPECT_TRUE(woke);
}

TEST_F(TimeoutTest, ADeadlineInThePastEndsTheWaitAtOnce) {
  setMs(100);
  Gate done;
  scheduler().schedule([&] {
    for (const int64_t ns : {int64_t{0}, kMs, 100 * kMs}) EXPECT_EQ(parkUntil(Deadline::at(ns)), WakeReason::kTimeout);
    done.open();
  });
  EXPECT_TRUE(done.wait());
}

TEST_F(TimeoutTest, TheClockOfWaitsIsTheSchedulers) {
  Gate done;
  scheduler().schedule([&] {
    EXPECT_EQ(&waitClock(), &clock());
    EXPECT_TRUE(mayPark());
    done.open();
  });
  EXPECT_TRUE(done.wait());
  EXPECT_FALSE(mayPark());
}

// A fiber that yields in between does not pay for its next timeout again.
TEST_F(TimeoutTest, AYieldLeavesTheTimeoutInTheQueue) {
  Handed handed;
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(10 * kMs)), WakeReason::kReady);
    Fiber::YieldToReady();
    EXPECT_EQ(handed.park(Deadline::at(20 * kMs)), WakeReason::kTimeout);
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  EXPECT_TRUE(eventually([&] { return handed.count() == 2 && stateOf(*fiber) == FiberState::kParked; }));
  EXPECT_EQ(scheduler().getWorkerStats().timeouts_pushed, 1u);
  setMs(20);
  fiber->join();
}

TEST_F(TimeoutTest, AHeldFiberDoesNotHearOfItsLastTimeout) {
  Handed handed;
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(10 * kMs)), WakeReason::kReady);
    Fiber::YieldToHold();
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kHeld; }));
  setMs(10);
  EXPECT_EQ(stateOf(*fiber), FiberState::kHeld);
  scheduler().schedule(fiber);
  fiber->join();
}

TEST_F(TimeoutTest, AFiberThatMovesLeavesNoTimeoutBehind) {
  Scheduler other(SchedulerOptions{.threads = 1, .use_caller = false, .name = "other", .clock = &clock()});
  other.start();
  Handed handed;
  std::atomic<bool> moved{false};
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(10 * kMs)), WakeReason::kReady);
    moved = other.switchTo();
    EXPECT_EQ(parkUntil(Deadline::at(20 * kMs)), WakeReason::kTimeout);
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  EXPECT_TRUE(eventually([&] { return moved && stateOf(*fiber) == FiberState::kParked; }));
  setMs(10);
  EXPECT_EQ(stateOf(*fiber), FiberState::kParked);
  clock().set(std::chrono::milliseconds(20));
  other.schedule([] {});
  fiber->join();
  other.stop();
}

// Arming later than registered only notes it; the old place in the queue must not end the wait.
TEST_F(TimeoutTest, ALaterDeadlineThanTheLastIsKept) {
  Handed handed;
  std::atomic<int> ends{0};
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(10 * kMs)), WakeReason::kReady);
    ends = 1;
    EXPECT_EQ(handed.park(Deadline::at(20 * kMs)), WakeReason::kTimeout);
    ends = 2;
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  turn();
  ASSERT_EQ(ends, 1);
  for (const int64_t ms : {10, 15, 19}) {
    setMs(ms);
    EXPECT_EQ(ends, 1) << "at " << ms;
  }
  setMs(20);
  EXPECT_EQ(ends, 2);
}

// Disarming is a store; what is still linked wakes nobody.
TEST_F(TimeoutTest, ADisarmedDeadlineEndsNoLaterWait) {
  Handed handed;
  std::atomic<int> ends{0};
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(10 * kMs)), WakeReason::kReady);
    ends = 1;
    EXPECT_EQ(handed.park(Deadline::never()), WakeReason::kClosed);
    ends = 2;
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  turn();
  setMs(10);
  setMs(1'000);
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(handed.waker().wake(WakeReason::kClosed));
  turn();
  EXPECT_EQ(ends, 2);
}

TEST_F(TimeoutTest, AnEarlierDeadlineThanTheLastIsKept) {
  Handed handed;
  std::atomic<int> ends{0};
  const auto fiber = parked([&] {
    EXPECT_EQ(handed.park(Deadline::at(kHour)), WakeReason::kReady);
    ends = 1;
    EXPECT_EQ(handed.park(Deadline::at(5 * kMs)), WakeReason::kTimeout);
    ends = 2;
    EXPECT_EQ(handed.park(Deadline::at(7 * kMs)), WakeReason::kTimeout);
    ends = 3;
  });
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  turn();
  setMs(4);
  EXPECT_EQ(ends, 1);
  setMs(5);
  EXPECT_EQ(ends, 2);
  setMs(6);
  EXPECT_EQ(ends, 2);
  setMs(7);
  EXPECT_EQ(ends, 3);
}

TEST_F(TimeoutTest, WaitsEndInTheOrderOfTheirDeadlinesThenOfTheirArming) {
  const uint64_t seed = test::seed();
  std::vector<std::pair<int64_t, int>> waits;  // deadline, arming
  for (int i = 0; i < 300; ++i) waits.emplace_back(1 + i / 3, 0);
  std::shuffle(waits.begin(), waits.end(), std::mt19937_64(seed));
  std::vector<std::pair<int64_t, int>> ended;
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 300; ++i) {
    auto& wait = waits[static_cast<size_t>(i)];
    wait.second = i;
    fibers.push_back(parked([&ended, wait] {
      parkUntil(Deadline::at(wait.first * kMs));
      ended.push_back(wait);
    }));
  }
  setMs(1'000);
  for (const auto& fiber : fibers) fiber->join();
  std::sort(waits.begin(), waits.end());
  EXPECT_EQ(ended, waits);
}

TEST_F(TimeoutTest, OnlyWhatIsDueEnds) {
  std::atomic<int> ended{0};
  std::vector<Fiber::ptr> fibers;
  for (int i = 1; i <= 10; ++i) {
    fibers.push_back(parked([&ended, i] {
      parkUntil(Deadline::at(i * kMs));
      ended.fetch_add(1);
    }));
  }
  for (int ms = 1; ms <= 10; ++ms) {
    setMs(ms);
    EXPECT_EQ(ended, ms);
  }
}

// More than one turn takes at once.
TEST_F(TimeoutTest, ThousandsThatAreDueTogetherAllEnd) {
  std::atomic<int> ended{0};
  constexpr int kFibers = 5'000;
  Gate armed;
  for (int i = 0; i < kFibers; ++i) {
    scheduler().schedule([&] {
      armed.open();
      EXPECT_EQ(parkUntil(Deadline::at(kMs)), WakeReason::kTimeout);
      ended.fetch_add(1);
    });
  }
  ASSERT_TRUE(armed.wait(kFibers));
  setMs(1);
  EXPECT_TRUE(eventually([&] { return ended == kFibers; }));
}

// P1: one winner, and whoever comes later touches nothing.
TEST_F(TimeoutTest, AStaleWakerEndsNoLaterWait) {
  Handed handed;
  std::atomic<int> ends{0};
  const auto fiber = parked([&] {
    for (int i = 1; i <= 2; ++i) {
      handed.park(Deadline::never());
      ends = i;
    }
  });
  const Waker first = handed.waker();
  EXPECT_TRUE(first.wake(WakeReason::kReady));
  EXPECT_FALSE(first.wake(WakeReason::kReady));
  ASSERT_TRUE(eventually([&] { return handed.count() == 2; }));
  turn();
  EXPECT_FALSE(first.wake(WakeReason::kReady));
  turn();
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(handed.waker().wake(WakeReason::kReady));
  fiber->join();
  EXPECT_FALSE(first.wake(WakeReason::kReady)) << "the core is free now, or another fiber's";
}

TEST_F(TimeoutTest, AWakeAfterTheTimeoutComesTooLate) {
  Handed handed;
  const auto fiber = parked([&] { EXPECT_EQ(handed.park(Deadline::at(kMs)), WakeReason::kTimeout); });
  setMs(1);
  fiber->join();
  EXPECT_FALSE(handed.waker().wake(WakeReason::kReady));
}

TEST_F(TimeoutTest, AWaitThatIsWithdrawnLeavesNothing) {
  Gate done;
  scheduler().schedule([&] {
    for (int i = 0; i < 3; ++i) {
      Wait wait;
      EXPECT_TRUE(wait.withdraw());
      EXPECT_FALSE(wait.waker().wake(WakeReason::kReady));
    }
    {
      Wait wait;  // the waker was faster: its delivery is consumed
      EXPECT_TRUE(wait.waker().wake(WakeReason::kReady));
      EXPECT_FALSE(wait.withdraw());
    }
    EXPECT_EQ(parkUntil(Deadline::at(0)), WakeReason::kTimeout);
    done.open();
  });
  EXPECT_TRUE(done.wait());
}

TEST_F(TimeoutTest, AWakeBeforeThePark) {
  Gate done;
  scheduler().schedule([&] {
    Wait wait;
    EXPECT_TRUE(wait.waker().wake(WakeReason::kClosed));
    EXPECT_EQ(wait.park(Deadline::at(0)), WakeReason::kClosed);
    done.open();
  });
  EXPECT_TRUE(done.wait());
}

// stop() waits for the deadline of a waiting fiber.
TEST_F(TimeoutTest, StopWaitsForADeadline) {
  std::atomic<bool> stopped{false};
  std::atomic<bool> woke{false};
  const auto fiber = parked([&] {
    EXPECT_EQ(parkUntil(Deadline::at(kHour)), WakeReason::kTimeout);
    EXPECT_FALSE(stopped);
    woke = true;
  });
  std::thread stopper([&] {
    scheduler().stop();
    stopped = true;
  });
  turn();
  EXPECT_FALSE(stopped);
  clock().set(std::chrono::nanoseconds(kHour));
  scheduler().schedule([] {});  // run or refused: in both cases the worker has seen the time
  stopper.join();
  EXPECT_TRUE(woke);
}

}  // namespace
}  // namespace sylar
