// What a worker asks the kernel for when it sleeps, and when its fibers wake: never early, in nanoseconds, whatever the kernel
// does. Nothing sleeps here: kernel_double.h moves the clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "tests/io/kernel_double.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using test::KernelDouble;
using test::SlackDouble;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;
constexpr int64_t kDay = 86'400 * kSecond;

class PreciseSleepTest : public testing::Test {
 protected:
  ManualClock& clock() { return m_clock; }
  KernelDouble& kernel() { return m_kernel; }
  int64_t now() const { return m_clock.nowNs(); }

  /// The calling thread runs one fiber that sleeps for each of `sleeps_ns` in turn; by how much it overslept each.
  std::vector<int64_t> sleep(const std::vector<int64_t>& sleeps_ns,
                             std::chrono::milliseconds cap = std::chrono::milliseconds(0)) {
    std::vector<int64_t> late_ns;
    IOManager iom(SchedulerOptions{.threads = 1, .use_caller = true, .name = "sleep", .clock = &m_clock, .max_wait = cap});
    iom.schedule([&] {
      for (const int64_t ns : sleeps_ns) {
        const Deadline deadline = Deadline::after(std::chrono::nanoseconds(ns), m_clock);
        EXPECT_EQ(parkUntil(deadline), WakeReason::kTimeout);
        late_ns.push_back(now() - deadline.ns());
      }
    });
    iom.stop();
    return late_ns;
  }

 private:
  test::LeakCheck m_leaks;
  ManualClock m_clock{std::chrono::hours(1)};
  KernelDouble m_kernel{m_clock};
};

using Ns = std::vector<int64_t>;
using Ms = std::vector<int>;

// ---- The conversion. ---------------------------------------------------------------------------------------------------------

TEST_F(PreciseSleepTest, AWaitIsAskedForInNanoseconds) {
  const UniqueFd epoll(sys::epollCreate());
  epoll_event event;
  for (const int64_t ns : Ns{1, 20'000, kMs - 1, kMs, kMs + 1, 3 * kSecond + 7, 400 * kDay}) {
    EXPECT_EQ(sys::epollWait(epoll.get(), &event, 1, 5, 5 + ns), 0);
    EXPECT_EQ(kernel().askedNs().back(), ns);
  }
  EXPECT_EQ(kernel().askedMs(), Ms{});
}

TEST_F(PreciseSleepTest, ADeadlineInThePastIsNoWait) {
  const UniqueFd epoll(sys::epollCreate());
  epoll_event event;
  for (const int64_t deadline : Ns{0, 4, 5}) EXPECT_EQ(sys::epollWait(epoll.get(), &event, 1, 5, deadline), 0);
  EXPECT_EQ(kernel().askedNs(), Ns{});
  EXPECT_EQ(kernel().askedMs(), Ms{});
}

// TD-21, C-36: up, never down, and never negative.
TEST_F(PreciseSleepTest, WithoutPwait2AWaitIsRoundedUpToMillisecondsAndHeldInTheirRange) {
  const struct {
    int64_t ns;
    int ms;
  } cases[] = {{1, 1},
               {kMs - 1, 1},
               {kMs, 1},
               {kMs + 1, 2},
               {1'700'000, 2},
               {int64_t{INT_MAX} * kMs, INT_MAX},
               {int64_t{INT_MAX} * kMs + 1, INT_MAX},
               {30 * kDay, INT_MAX},
               {kNever - 6, INT_MAX}};
  const UniqueFd epoll(sys::epollCreate());
  epoll_event event;
  for (const int error : {-ENOSYS, -EPERM}) {
    kernel().pwait2_error = error;
    for (const auto& one : cases) {
      EXPECT_EQ(sys::epollWait(epoll.get(), &event, 1, 5, 5 + one.ns), 0);
      EXPECT_EQ(kernel().askedMs().back(), one.ms) << one.ns << " ns, error " << error;
    }
  }
}

// Any other error is the caller's.
TEST_F(PreciseSleepTest, AnInterruptedWaitIsNotRepeatedInMilliseconds) {
  const UniqueFd epoll(sys::epollCreate());
  epoll_event event;
  kernel().pwait2_error = -EINTR;
  EXPECT_EQ(sys::epollWait(epoll.get(), &event, 1, 0, kMs), -EINTR);
  EXPECT_EQ(kernel().askedMs(), Ms{});
}

// ---- A worker's sleep. -------------------------------------------------------------------------------------------------------

TEST_F(PreciseSleepTest, AShortWaitIsOneSleepOfExactlyItsLength) {
  EXPECT_EQ(sleep({1, 1'700'000, 20 * kMs}), (Ns{0, 0, 0}));
  EXPECT_EQ(kernel().askedNs(), (Ns{1, 1'700'000, 20 * kMs}));
}

// The kernel may be late by 0.1 % of what it is asked for, so most of a long wait is slept first, then the rest.
TEST_F(PreciseSleepTest, ALongWaitIsSleptInTwoHops) {
  EXPECT_EQ(sleep({20 * kMs + 512, kSecond}), (Ns{0, 0}));
  const int64_t first = 20 * kMs + 512;
  EXPECT_EQ(kernel().askedNs(), (Ns{first - first / 512, first / 512, kSecond - kSecond / 512, kSecond / 512}));
}

TEST_F(PreciseSleepTest, TwoHopsTakeTheKernelsSlackOutOfALongWait) {
  kernel().sleeps = [](int64_t ns) { return ns + std::min(ns / 1'000, 100 * kMs); };
  const auto late = sleep({100 * kMs, kSecond, 3 * kSecond});
  ASSERT_EQ(late.size(), 3u);
  EXPECT_EQ(kernel().askedNs().size(), 6u);
  EXPECT_LE(late[0], 100 * kMs / 512 / 1'000 + 1);  // of the last hop
  EXPECT_LE(late[1], kSecond / 512 / 1'000 + 1);
  EXPECT_LE(late[2], 3 * kSecond / 512 / 1'000 + 1);
  EXPECT_GE(*std::min_element(late.begin(), late.end()), 0);
}

// A very long wait has a long rest: that is a long wait, too.
TEST_F(PreciseSleepTest, AWaitOfADayIsAFewSleeps) {
  kernel().sleeps = [](int64_t ns) { return ns + std::min(ns / 1'000, 100 * kMs); };
  const auto late = sleep({kDay});
  EXPECT_LE(late.front(), 20 * kMs / 1'000 + 1);
  EXPECT_LE(kernel().askedNs().size(), 4u);
}

// C-33
TEST_F(PreciseSleepTest, WithoutPwait2AFiberIsLateByLessThanAMillisecondAndNeverEarly) {
  kernel().pwait2_error = -ENOSYS;
  EXPECT_EQ(sleep({1'700'000, kMs, 1}), (Ns{300'000, 0, kMs - 1}));
  EXPECT_EQ(kernel().askedMs(), (Ms{2, 1, 1}));
}

// C-33: signals end waits early, and so may kernels.
TEST_F(PreciseSleepTest, AFiberIsNeverEarlyWhateverTheKernelDoes) {
  std::mt19937_64 random(test::seed());
  kernel().sleeps = [&random](int64_t ns) {
    const int64_t off = static_cast<int64_t>(random() % 1'000);
    return random() % 2 == 0 ? ns - std::min(ns - 1, ns / 1'000 * off) : ns + off;
  };
  Ns sleeps;
  for (int i = 0; i < 10'000; ++i) sleeps.push_back(static_cast<int64_t>(random() % (uint64_t{1} << (1 + random() % 36))));
  const auto late = sleep(sleeps);
  ASSERT_EQ(late.size(), sleeps.size());
  EXPECT_GE(*std::min_element(late.begin(), late.end()), 0);
  EXPECT_LE(*std::max_element(late.begin(), late.end()), 1'000);
}

// io.max_wait_ms: a cap is a sleep of its own length, not two hops.
TEST_F(PreciseSleepTest, ACapCutsALongWait) {
  EXPECT_EQ(sleep({7 * kSecond}, std::chrono::milliseconds(3'000)), Ns{0});
  EXPECT_EQ(kernel().askedNs(), (Ns{3 * kSecond, 3 * kSecond, kSecond - kSecond / 512, kSecond / 512}));
}

// ---- Timer slack. ------------------------------------------------------------------------------------------------------------

class TimerSlackTest : public testing::TestWithParam<std::pair<int, Ns>> {
 protected:
  TimerSlackTest() { SlackDouble::forgetAll(); }

 private:
  test::LeakCheck m_leaks;
};
const auto kSlacks = testing::Values(std::pair(1, Ns{1, SlackDouble::kUsualNs}), std::pair(250, Ns{250, SlackDouble::kUsualNs}),
                                     std::pair(0, Ns{}));
INSTANTIATE_TEST_SUITE_P(Settings, TimerSlackTest, kSlacks);

TEST_P(TimerSlackTest, AWorkersThreadHasItFromItsBeginningToItsEnd) {
  const auto& [slack_ns, set] = GetParam();
  pid_t worker = 0;
  int64_t inside_ns = 0;
  {
    IOManager iom(
        SchedulerOptions{.threads = 1, .use_caller = false, .name = "slack", .timer_slack = std::chrono::nanoseconds(slack_ns)});
    iom.schedule([&] {
      worker = sys::threadId();
      inside_ns = sys::timerSlack();
    });
  }
  EXPECT_EQ(inside_ns, slack_ns == 0 ? SlackDouble::kUsualNs : slack_ns);
  EXPECT_EQ(SlackDouble::of(worker), set);
  EXPECT_EQ(SlackDouble::of(sys::threadId()), Ns{}) << "whoever makes a scheduler is no worker";
}

TEST_P(TimerSlackTest, ACallersThreadHasItInsideStopOnly) {
  const auto& [slack_ns, set] = GetParam();
  const pid_t me = sys::threadId();
  IOManager iom(
      SchedulerOptions{.threads = 1, .use_caller = true, .name = "slack", .timer_slack = std::chrono::nanoseconds(slack_ns)});
  int64_t inside_ns = 0;
  iom.schedule([&] { inside_ns = sys::timerSlack(); });
  EXPECT_EQ(SlackDouble::of(me), Ns{});
  iom.stop();
  EXPECT_EQ(inside_ns, slack_ns == 0 ? SlackDouble::kUsualNs : slack_ns);
  EXPECT_EQ(SlackDouble::of(me), set) << "its old slack is back";
}

}  // namespace
}  // namespace sylar
