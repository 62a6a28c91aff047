// A program may derive from the class and ask it for reports.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/scheduler.h"
#include "tests/sched/counting.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::Counting;
using test::eventually;
using test::Gate;

/// Expects work from somewhere that the scheduler knows nothing of.
class Expecting final : public Scheduler {
 public:
  explicit Expecting(size_t threads) : Scheduler(threads, false, "expecting") {}
  ~Expecting() override { stop(); }

  void arrived() {
    m_expected = false;
    tickle();
  }
  bool idle() const { return hasIdleThreads(); }
  std::atomic<int> tickles{0};

 protected:
  void tickle() override {
    ++tickles;
    Scheduler::tickle();
  }
  bool stopping() override { return Scheduler::stopping() && !m_expected; }

 private:
  std::atomic<bool> m_expected{true};
};

class SubclassTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, SubclassTest, test::kWorkerCounts);

// As in sylar, tickle and stopping stay virtual for user-started subclasses.
TEST_P(SubclassTest, StopWaitsUntilItMay) {
  Expecting scheduler(workers());
  scheduler.start();
  ASSERT_TRUE(eventually([&] { return scheduler.idle(); }));
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    scheduler.stop();
    stopped = true;
  });
  ASSERT_TRUE(eventually([&] { return coreOf(scheduler).isStopping(); }));
  bool ran = false;
  Gate done;
  EXPECT_TRUE(scheduler.trySchedule([&] { ran = true, done.open(); }));
  EXPECT_TRUE(done.wait());
  EXPECT_FALSE(stopped);
  scheduler.arrived();
  stopper.join();
  EXPECT_TRUE(ran);
  EXPECT_GE(scheduler.tickles, 1) << "work from outside";
}

TEST_P(SubclassTest, StopWithADeadlineDoesNotAsk) {
  Expecting scheduler(workers());
  scheduler.start();
  EXPECT_TRUE(scheduler.stop(Deadline::never()).clean);
}

// Cause: tickle() was called for a fiber that moved in, under the lock through which all fibers move in.
TEST_P(SubclassTest, AFiberMovesInWhileTickleIsBusy) {
  class Busy final : public Scheduler {
   public:
    explicit Busy(size_t threads) : Scheduler(threads, false, "busy") {}
    ~Busy() override { stop(); }
    Gate leave;

   protected:
    void tickle() override {
      EXPECT_TRUE(leave.wait());
      Scheduler::tickle();
    }
  };
  Scheduler origin(workers(), false, "origin");
  Busy busy(workers());
  origin.start();
  busy.start();
  Gate arrived;
  for (int i = 0; i < 2; ++i) {
    origin.schedule([&] {
      EXPECT_TRUE(busy.switchTo());
      arrived.open();
    });
  }
  EXPECT_TRUE(arrived.wait(2));
  busy.leave.open();
}

// Cause: what a stop with a deadline refuses was destroyed under a lock of the library.
TEST_P(SubclassTest, RefusedWorkMayCallBackWhenItGoes) {
  Counting scheduler(workers());
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
  for (int i = 0; i < 10; ++i) scheduler.schedule([job = std::make_shared<Counting::Job>(scheduler)] { FAIL(); });
  const StopResult result = scheduler.stop(Deadline::after(std::chrono::seconds(0)));
  leaks().excuseLateWorkersOf(scheduler);
  EXPECT_FALSE(result.clean) << "work that was accepted has not run";
  // A worker that was left behind with one of them may be about to end it.
  EXPECT_TRUE(eventually([&] { return scheduler.pending == 0 && *ended == workers(); }));
}

// ---- Reports. ----------------------------------------------------------------------------------------------------------------

// CD-U4
TEST_P(SubclassTest, DumpNamesWhatFibersWaitFor) {
  Scheduler scheduler(workers(), false, "reports");
  scheduler.start();
  const auto spawn = [&](const char* name, std::function<void()> cb) {
    auto fiber = std::make_shared<Fiber>(std::move(cb));
    fiber->setName(name);
    EXPECT_EQ(fiber->getName(), name);
    scheduler.schedule(fiber);
    return fiber;
  };
  const auto parked = [](const Fiber::ptr& fiber) {
    return eventually([&] { return stateOf(*fiber) == FiberState::kParked || stateOf(*fiber) == FiberState::kHeld; });
  };
  Waker waker;
  const Fiber::ptr sleeper = spawn("sleeper", [] { parkUntil(Deadline::after(std::chrono::hours(1))); });
  const Fiber::ptr reader = spawn("reader", [&] {
    Wait wait(WaitsFor::kRead, 4711);
    waker = wait.waker();
    wait.park();
  });
  const Fiber::ptr holder = spawn("holder", [] { Fiber::YieldToHold(); });
  const Fiber::ptr joiner = spawn("joiner", [holder] { holder->join(); });
  for (const Fiber::ptr& fiber : {sleeper, reader, holder, joiner}) ASSERT_TRUE(parked(fiber));
  std::ostringstream out;
  EXPECT_EQ(&scheduler.dump(out), &out);
  for (const char* part : {"scheduler reports", "worker reports_0", "sleeper: sleeps", "reader: reads descriptor 4711",
                           "holder: held", "joiner: joins fiber "}) {
    EXPECT_NE(out.str().find(part), std::string::npos) << part << " in\n" << out.str();
  }
  sleeper->cancel();
  waker.wake(WakeReason::kReady);
  scheduler.schedule(holder);
}

// Reading the list races with fibers that begin and end: for TSan.
TEST_P(SubclassTest, DumpMayBeCalledWhileFibersComeAndGo) {
  std::atomic<int> left{2'000};
  Scheduler scheduler(workers(), false, "reports");
  scheduler.start();
  for (int i = 0; i < 10; ++i) {
    scheduler.schedule([&] {
      while (left.fetch_sub(1) > 0) {
        const auto fiber = std::make_shared<Fiber>([] { Fiber::YieldToReady(); });
        fiber->setName("short");
        scheduler.schedule(fiber);
        fiber->join();
      }
    });
  }
  while (left > 0) {
    std::ostringstream out;
    scheduler.dump(out);
  }
}

// CD-F9: exceptions go to join, else to the handler.
TEST_P(SubclassTest, ExceptionsThatNobodyTookGoToTheHandler) {
  std::mutex mutex;
  std::vector<std::string> seen;
  Fiber::SetExceptionHandler([&](uint64_t id, const std::string& name, const std::exception_ptr& exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex);
      seen.push_back((id != 0 ? name : "no id") + ": " + e.what());
    }
  });
  {
    Scheduler scheduler(workers(), false, "throws");
    scheduler.start();
    const auto taken = std::make_shared<Fiber>([] { throw std::runtime_error("taken"); });
    scheduler.schedule(taken);
    EXPECT_THROW(taken->join(), std::runtime_error);
    const auto named = std::make_shared<Fiber>([] { throw std::runtime_error("not taken"); });
    named->setName("named");
    scheduler.schedule(named);
  }
  Fiber::SetExceptionHandler(nullptr);
  EXPECT_EQ(seen, std::vector<std::string>{"named: not taken"});
}

TEST(SchedulerReports, TheMainFiberStandsForTheThread) {
  EXPECT_EQ(Scheduler::GetMainFiber(), Fiber::GetThis().get());
  EXPECT_EQ(Scheduler::GetMainFiber()->getId(), 0u);
  Scheduler scheduler(1, false, "main");
  EXPECT_FALSE(scheduler.trySchedule(nullptr));
  scheduler.schedule([] { EXPECT_NE(Scheduler::GetMainFiber(), Fiber::GetThis().get()); });
}

TEST(SchedulerReports, ANameIsCutWhereThereIsNoRoom) {
  const Fiber fiber([] {});
  char name[4] = "???";
  EXPECT_EQ(fiber.copyName(name, sizeof name), 0u);
  EXPECT_STREQ(name, "");
  const_cast<Fiber&>(fiber).setName("abcdef");
  EXPECT_EQ(fiber.copyName(name, sizeof name), 3u);
  EXPECT_STREQ(name, "abc");
}

// CD-S9: work offered by other threads while it starts.
TEST_P(SubclassTest, WorkMayBeOfferedWhileItStarts) {
  for (int round = 0; round < 50; ++round) {
    Scheduler scheduler(workers(), false, "start");
    std::atomic<int> runs{0};
    std::thread other([&] {
      for (int i = 0; i < 100; ++i) scheduler.schedule([&runs] { ++runs; });
    });
    scheduler.start();
    other.join();
    scheduler.stop();
    EXPECT_EQ(runs, 100);
  }
}

}  // namespace
}  // namespace sylar
