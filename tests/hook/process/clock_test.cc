// clock_nanosleep: the clocks, the arguments, the times. Compared with libc where libc does not need long.
#include <threads.h>

#include <limits>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

timespec nowOn(clockid_t clock) {
  timespec now{};
  EXPECT_EQ(::clock_gettime(clock, &now), 0);
  return now;
}
int64_t nsOf(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }
timespec after(const timespec& time, int64_t ns) {
  return {(nsOf(time) + ns) / 1'000'000'000, (nsOf(time) + ns) % 1'000'000'000};
}

constexpr clockid_t kClocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};

/// The result is the error number; errno stays as it was.
void sleeps(Run& run, const std::string& what, clockid_t clock, int flags, const timespec* time) {
  timespec rest{77, 77};
  errno = EDOM;
  const int result = run.call.clock_nanosleep(clock, flags, time, &rest);
  run.note(what, std::to_string(result) + " " + std::to_string(errno) + " rest " + std::to_string(rest.tv_sec));
}

void everyClock(Run& run) {
  const timespec nothing{};
  const timespec moment{0, 1};
  const timespec past{0, 1};
  const timespec wrong{0, 1'000'000'000};
  const timespec negative{-1, 0};
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                                CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI, 10, 12, 999, -1}) {
    const std::string name = std::to_string(clock);
    sleeps(run, name + " nothing", clock, 0, &nothing);
    sleeps(run, name + " moment", clock, 0, &moment);
    sleeps(run, name + " past", clock, TIMER_ABSTIME, &past);
    sleeps(run, name + " unknown flags", clock, 64, &moment);
    sleeps(run, name + " all flags", clock, ~0, &past);
    for (const int flags : {0, TIMER_ABSTIME}) {
      sleeps(run, name + " wrong", clock, flags, &wrong);
      sleeps(run, name + " negative", clock, flags, &negative);
    }
  }
  sleeps(run, "thread", CLOCK_THREAD_CPUTIME_ID, 0, &moment);
  sleeps(run, "process", CLOCK_PROCESS_CPUTIME_ID, 0, &wrong);
}

void badPointers(Run& run) {
  const auto* const bad = static_cast<const timespec*>(badPointer());
  const timespec* const null = opaque(static_cast<const timespec*>(nullptr));
  for (const clockid_t clock : kClocks) {
    for (const int flags : {0, TIMER_ABSTIME}) {
      sleeps(run, "bad", clock, flags, bad);
      sleeps(run, "null", clock, flags, null);
    }
  }
  run.got("nanosleep", run.call.nanosleep(bad, nullptr));
  run.got("nanosleep", run.call.nanosleep(null, nullptr));
}

// HA-5
TEST_P(SameAsLibc, ResultErrnoAndRest) { compare(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Clocks, SameAsLibc, testing::Values(Case{"EveryClock", everyClock}, Case{"BadPointers", badPointers}),
                         nameOf);

// CD-H9, TD-21: never early, whatever the clock.
TEST(ClockNanosleep, IsNeverShorterThanAsked) {
  inFiber([] {
    for (const clockid_t clock : kClocks) {
      for (const int64_t ns : {1L, 999L, 99'999L, 1'500'001L}) {
        const timespec start = nowOn(clock);
        const timespec duration = after({}, ns);
        EXPECT_EQ(::clock_nanosleep(clock, 0, &duration, nullptr), 0);
        EXPECT_GE(nsOf(nowOn(clock)) - nsOf(start), ns);
        const timespec until = after(nowOn(clock), ns);
        EXPECT_EQ(::clock_nanosleep(clock, TIMER_ABSTIME, &until, nullptr), 0);
        EXPECT_GE(nsOf(nowOn(clock)), nsOf(until));
      }
    }
  });
}

/// Runs `sleep` in a fiber that has been cancelled: its waits end at once.
void whenCancelled(std::function<void()> sleep) {
  bool ran = false;
  inFiber([&] {
    Fiber::YieldToHold();  // until the end of everything, which cancels who still waits
    sleep();
    ran = true;
  });
  EXPECT_TRUE(ran);
}

// FM-40
TEST(ClockNanosleep, TellsWhatIsLeftWhenCancelled) {
  whenCancelled([] {
    const timespec hour{3600, 0};
    timespec rest{};
    errno = EDOM;
    EXPECT_EQ(::clock_nanosleep(CLOCK_REALTIME, 0, &hour, &rest), ECANCELED);
    EXPECT_EQ(errno, EDOM);
    EXPECT_GT(rest.tv_sec, 3500);
    EXPECT_LE(rest.tv_sec, 3600);
    EXPECT_EQ(::thrd_sleep(&hour, nullptr), -1);
  });
}

TEST(ClockNanosleep, LeavesTheRestOfAPointInTimeAlone) {
  whenCancelled([] {
    timespec rest{7, 7};
    const timespec until = after(nowOn(CLOCK_MONOTONIC), 3'600'000'000'000);
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, &rest), ECANCELED);
    EXPECT_EQ(rest.tv_sec, 7);
  });
}

// CD-H9: times at which nanoseconds overflow.
TEST(ClockNanosleep, CountsOverflowingTimesAsForEver) {
  whenCancelled([] {
    for (const int flags : {0, TIMER_ABSTIME}) {
      const timespec forever{std::numeric_limits<time_t>::max(), 999'999'999};
      EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, flags, &forever, nullptr), ECANCELED);
    }
  });
}

}  // namespace
}  // namespace sylar::test
