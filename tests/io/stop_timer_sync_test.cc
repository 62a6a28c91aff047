// C-54 in fibers: when stopTimerSync() returns, the callback is not running and will not run; who waits for that is parked.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::Gate;
using test::LeakCheck;

/// Keeps a fiber until it is opened. The thread goes on.
class Bar {
 public:
  void await() {
    for (;;) {
      Wait wait;
      Lock lock(m_mutex);
      m_waker = wait.waker();
      const bool open = m_open;
      lock.unlock();
      if (open) return void(wait.withdraw());
      if (wait.park() == WakeReason::kReady) return;
    }
  }
  void open() {
    Lock lock(m_mutex);
    m_open = true;
    const Waker waker = m_waker;
    lock.unlock();
    if (waker.core != nullptr) waker.wake(WakeReason::kReady);
  }

 private:
  OsMutex m_mutex;
  Waker m_waker;
  bool m_open = false;
};

/// A timer whose callback has begun, and waits.
class SlowTimer {
 public:
  explicit SlowTimer(IOManager& iom) {
    captured = m_captured;
    id = iom.startTimer(0ms, [this, held = std::exchange(m_captured, nullptr)] {
      begun.open();
      bar.await();
      ended = true;
    });
    EXPECT_TRUE(begun.wait());
  }

  Gate begun;
  Bar bar;
  std::atomic<bool> ended{false};
  TimerId id = 0;
  std::weak_ptr<int> captured;
  void expectEnd(TimerStop result) const {
    EXPECT_EQ(result, TimerStop::kDone);
    expectOver();
  }
  /// Somebody opens the bar at the same time: the callback may have ended before it was to be stopped.
  void expectOver() const {
    EXPECT_TRUE(ended);
    EXPECT_TRUE(captured.expired());
  }

 private:
  std::shared_ptr<int> m_captured = std::make_shared<int>();
};

class StopTimerSyncTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, StopTimerSyncTest, test::kWorkerCounts);

// On the callback's worker and on any other: it opens the bar from a fiber of the same worker, which must go on for that.
TEST_P(StopTimerSyncTest, AFiberWaitsWithoutItsThread) {
  IOManager iom(workers(), false, "sync");
  SlowTimer timer(iom);
  Gate done;
  for (const auto& worker : coreOf(iom).workers()) {
    iom.schedule(
        [&] {
          const pid_t here = Worker::current()->threadId();
          iom.schedule([&] { done.open(); }, here);
          timer.expectEnd(iom.stopTimerSync(timer.id));
        },
        worker->threadId());
  }
  EXPECT_TRUE(done.wait(workers())) << "fibers of those workers do not run";
  EXPECT_FALSE(timer.ended);
  timer.bar.open();
  iom.stop();
}

TEST_P(StopTimerSyncTest, AThreadBlocks) {
  IOManager iom(workers(), false, "sync");
  SlowTimer timer(iom);
  std::thread opener([&] { timer.bar.open(); });
  EXPECT_NE(iom.stopTimerSync(timer.id), TimerStop::kRunning);
  timer.expectOver();
  opener.join();
  EXPECT_EQ(iom.stopTimerSync(timer.id), TimerStop::kGone);
}

TEST_P(StopTimerSyncTest, AFiberOfAnotherManagerWaits) {
  IOManager iom(workers(), false, "sync");
  SlowTimer timer(iom);
  IOManager other(1, false, "other");
  Gate asked;
  other.schedule([&] {
    other.schedule([&] { asked.open(); });
    timer.expectEnd(iom.stopTimerSync(timer.id));
  });
  EXPECT_TRUE(asked.wait());
  std::thread stopper([&] { other.stop(); });  // waits for somebody outside to end it
  timer.bar.open();
  stopper.join();
}

// Also where the callback has moved to another thread since it began, and in what it resumes by hand.
TEST_P(StopTimerSyncTest, TheCallbackItselfDoesNotWait) {
  IOManager iom(workers(), false, "sync");
  Gate done;
  std::atomic<TimerId> id{0};
  Gate known;
  id = iom.startTimer(1ms, [&] {
    EXPECT_TRUE(known.wait());
    EXPECT_EQ(iom.stopTimerSync(id), TimerStop::kRunning);
    for (const auto& worker : coreOf(iom).workers()) {
      iom.switchTo(worker->threadId());
      EXPECT_EQ(iom.stopTimerSync(id), TimerStop::kRunning);
    }
    const auto inner = std::make_shared<Fiber>([&] { EXPECT_EQ(iom.stopTimerSync(id), TimerStop::kRunning); });
    inner->resume();
    done.open();
  });
  known.open();
  EXPECT_TRUE(done.wait());
  iom.stop();
}

// A cancel is noted and does not end the wait: what the fiber does next relies on the callback's end.
TEST_P(StopTimerSyncTest, ACancelledFiberWaitsAllTheSame) {
  IOManager iom(workers(), false, "sync");
  SlowTimer timer(iom);
  Gate asked;
  const auto waiter = std::make_shared<Fiber>([&] {
    asked.open();
    EXPECT_NE(iom.stopTimerSync(timer.id), TimerStop::kRunning);
    timer.expectOver();
    EXPECT_TRUE(this_fiber::cancelled());
  });
  iom.schedule(waiter);
  ASSERT_TRUE(asked.wait());
  waiter->cancel();
  EXPECT_FALSE(timer.ended);
  timer.bar.open();
  waiter->join();
  iom.stop();
}

// A stop does not wait for two fibers that wait for one another and for nobody else: the callback is cancelled, ends, and with it
// the wait.
TEST_P(StopTimerSyncTest, AStopEndsTheCallbackThatIsWaitedFor) {
  IOManager iom(workers(), false, "sync");
  Gate begun;
  std::atomic<bool> ended{false};
  const TimerId id = iom.startTimer(0ms, [&] {
    begun.open();
    Fiber::YieldToHold();
    ended = true;
  });
  ASSERT_TRUE(begun.wait());
  iom.schedule([&] {
    EXPECT_EQ(iom.stopTimerSync(id), TimerStop::kDone);
    EXPECT_TRUE(ended);
  });
  iom.stop();
  EXPECT_TRUE(ended);
}

// Where a worker runs what is no fiber, a wait would keep the callback from its thread.
TEST_P(StopTimerSyncTest, AnExceptionHandlerOfItsWorkerDoesNotWait) {
  IOManager iom(workers(), false, "sync");
  Gate begun;
  Bar bar;
  pid_t home = 0;
  const TimerId id = iom.startTimer(0ms, [&] {
    home = Worker::current()->threadId();
    begun.open();
    bar.await();
  });
  ASSERT_TRUE(begun.wait());
  Gate returned;
  Fiber::SetExceptionHandler([&](uint64_t, const std::string&, const std::exception_ptr&) {
    EXPECT_EQ(iom.stopTimerSync(id), TimerStop::kRunning);
    returned.open();
  });
  iom.schedule([] { throw std::runtime_error("for the handler"); }, home);
  EXPECT_TRUE(returned.wait());
  bar.open();
  iom.stop();
  Fiber::SetExceptionHandler(nullptr);
}

}  // namespace
}  // namespace sylar
