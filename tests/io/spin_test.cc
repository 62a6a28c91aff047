// io.spin_us: what an idle worker finds while it polls, and when it sleeps after all. The kernel below counts polls and sleeps,
// and lets a test act in the middle of a poll, so no luck decides who is first. A spin of an hour never ends here.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

std::atomic<uint64_t> g_looks{0}, g_sleeps{0};
std::function<void()> g_when_idle;  // once, in the midst of the first poll for want of work; set before there is a worker

void look() {
  ++g_looks;
  if (g_when_idle != nullptr && Scheduler::GetThis()->getWorkerStats().sleeps > 0) std::exchange(g_when_idle, nullptr)();
}

class SpinTest : public testing::Test {
 protected:
  SpinTest() {
    g_looks = g_sleeps = 0;
    g_when_idle = nullptr;
  }

  static SchedulerOptions spinning(std::chrono::microseconds spin, const Clock& clock = steadyClock()) {
    return {.threads = 1, .use_caller = false, .name = "spin", .clock = &clock, .spin = spin};
  }
  [[nodiscard]] static bool sleeps() {
    return test::eventually([] { return g_sleeps > 0; });
  }

  test::Gate m_served;

 private:
  test::LeakCheck m_leaks;
};

TEST_F(SpinTest, ADescriptorThatBecomesReadyIsServedWithoutASleep) {
  const test::Ends ends = test::makeSockets();
  g_when_idle = [&] { ends.put(1); };
  IOManager iom(spinning(1h));
  EXPECT_EQ(iom.addEvent(ends[0], IOManager::READ, [&] { m_served.open(); }), 0);
  EXPECT_TRUE(m_served.wait());
  iom.stop();
  EXPECT_EQ(g_sleeps, 0u);
}

TEST_F(SpinTest, WorkOfAnotherThreadIsServedWithoutASleep) {
  g_when_idle = [&] {
    Scheduler* const idle = Scheduler::GetThis();
    std::thread([&] { idle->schedule([&] { m_served.open(); }); }).join();
  };
  IOManager iom(spinning(1h));
  EXPECT_TRUE(m_served.wait());
  iom.stop();
  EXPECT_EQ(g_sleeps, 0u);
}

// Neither early nor when the spin ends.
TEST_F(SpinTest, ATimeoutEndsIt) {
  IOManager iom(spinning(1h));
  iom.schedule([&] {
    const Deadline deadline = Deadline::after(1ms, steadyClock());
    EXPECT_EQ(parkUntil(deadline), WakeReason::kTimeout);
    EXPECT_GE(steadyClock().nowNs(), deadline.ns());
    m_served.open();
  });
  EXPECT_TRUE(m_served.wait());
  iom.stop();
  EXPECT_EQ(g_sleeps, 0u);
}

TEST_F(SpinTest, ATimerEndsIt) {
  IOManager iom(spinning(1h));
  iom.addTimer(1, [&] { m_served.open(); });
  EXPECT_TRUE(m_served.wait());
  iom.stop();
  EXPECT_EQ(g_sleeps, 0u);
}

TEST_F(SpinTest, WhereNothingComesItSleeps) {
  IOManager iom(spinning(1us));
  EXPECT_TRUE(sleeps());
  EXPECT_GT(g_looks, 0u);
  iom.schedule([&] { m_served.open(); });
  EXPECT_TRUE(m_served.wait());
}

TEST_F(SpinTest, WithoutItASleepIsNoPoll) {
  IOManager iom(spinning(0us));
  EXPECT_TRUE(sleeps());
  iom.schedule([&] { m_served.open(); });
  EXPECT_TRUE(m_served.wait());
  iom.stop();
  const WorkerStats stats = iom.getWorkerStats();
  EXPECT_EQ(g_sleeps, stats.sleeps);
  EXPECT_EQ(g_looks, stats.polls - stats.sleeps);
}

// A clock that only the test moves would never end it.
TEST_F(SpinTest, OnAManualClockItDoesNotSpin) {
  const ManualClock clock{1h};
  IOManager iom(spinning(1h, clock));
  EXPECT_TRUE(sleeps());
}

}  // namespace

// ---- In place of sys_wait.cc. ------------------------------------------------------------------------------------------------

namespace sys {

int epollPwait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  timeout_ms == 0 ? look() : void(++g_sleeps);
  return static_cast<int>(call(SYS_epoll_pwait, epoll, events, capacity, timeout_ms, nullptr, 0L));
}

int epollPwait2(int epoll, epoll_event* events, int capacity, const timespec& timeout) {
  ++g_sleeps;
  return static_cast<int>(call(SYS_epoll_pwait2, epoll, events, capacity, &timeout, nullptr, 0L));
}

int64_t timerSlack() { return call(SYS_prctl, PR_GET_TIMERSLACK, 0L, 0L, 0L, 0L); }
void setTimerSlack(int64_t slack_ns) { call(SYS_prctl, PR_SET_TIMERSLACK, slack_ns, 0L, 0L, 0L); }

}  // namespace sys
}  // namespace sylar
