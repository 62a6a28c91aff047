// sleep, usleep, nanosleep, clock_nanosleep. They sleep at least as long as asked, counted in nanoseconds. And sched_yield, which
// lets other fibers run as well as other threads. Source: sleep(3), usleep(3), nanosleep(2), clock_nanosleep(2), thrd_sleep(3),
// sched_yield(2).
#include <sched.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/call_wait.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {
namespace {

timespec toTimespec(int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

/// How a sleep has ended: whole, or early because the fiber was cancelled (ECANCELED), because a signal handler ran (EINTR), or
/// because the fiber's DeadlineScope ended while it slept (EINTR) or before (ETIMEDOUT).
struct Slept {
  int64_t left_ns = 0;
  int error = 0;
};

/// Sleeps for `ns` >= 0. Without memory for a timeout the thread sleeps.
Slept sleepFor(int64_t ns, CallWait& call) {
  SYLAR_DCHECK(ns >= 0 && mayPark());
  const Clock& clock = waitClock();
  const int64_t begin_ns = clock.nowNs();
  const Deadline end = Deadline::at(saturatingAdd(begin_ns, ns));
  const Deadline until = ns > 0 ? withinScope(end) : end;
  call.begin();
  const WaitEnd woken = call.pause(until);
  if (woken == WaitEnd::kNoMemory) {
    timespec left = toTimespec(ns);
    while (real::nanosleep(&left, &left) != 0) {
      if (hookEintr() == HookEintr::kPosix) return {attempt::toNs(left), EINTR};
    }
    return {};
  }
  if (woken == WaitEnd::kTimeout && until == end) return {};
  const int64_t left_ns = std::max<int64_t>(end.ns() - clock.nowNs(), 1);
  if (woken == WaitEnd::kCancelled) return {left_ns, ECANCELED};
  if (woken != WaitEnd::kTimeout) return {left_ns, EINTR};
  return {left_ns, until.ns() <= begin_ns ? ETIMEDOUT : EINTR};
}

/// Implements nanosleep and relative clock_nanosleep. Returns 0 or an error number.
int sleepRelative(const timespec* duration, timespec* rest) {
  timespec wanted;
  if (const int error = probe::duration(duration, &wanted)) return -error;
  CallWait call(EndedBy::kAny);
  const Slept slept = sleepFor(attempt::toNs(wanted), call);
  if (slept.error == 0 || rest == nullptr) return slept.error;
  const timespec left = toTimespec(slept.left_ns);
  return probe::copyOut(rest, &left, sizeof left) ? slept.error : EFAULT;
}

/// Sleeps until `clock` shows `time`. Asks the clock again at the end, because it may have been set back.
int sleepUntil(clockid_t clock, const timespec* time) {
  timespec wanted;
  if (const int error = probe::duration(time, &wanted)) return -error;
  const int64_t until_ns = attempt::toNs(wanted);
  CallWait call(EndedBy::kAny);
  for (;;) {
    timespec now;
    ::clock_gettime(clock, &now);
    if (attempt::toNs(now) >= until_ns) return 0;
    if (const int error = sleepFor(until_ns - attempt::toNs(now), call).error) return error;
    if (&waitClock() != &steadyClock()) return 0;  // the scheduler's clock is driven by hand, and `clock` is not
  }
}

/// Returns true for the clocks that sleeps may use. The others count processor time, wake the machine, or do not exist.
bool isWallClock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

unsigned int sleep(unsigned int seconds) {
  countCall(Hook::sleep);
  if (!maySuspendHere()) return real::sleep(seconds);
  CallWait call(EndedBy::kAny);
  const Slept slept = sleepFor(int64_t{seconds} * 1'000'000'000, call);
  if (call.interrupted() && slept.error == EINTR) {  // libc does not round, either
    sys::errnoRef() = EINTR;
    return static_cast<unsigned>(slept.left_ns / 1'000'000'000);
  }
  if (slept.error == ETIMEDOUT) return 0;  // so that a loop that sleeps the rest ends
  return static_cast<unsigned>((slept.left_ns + 999'999'999) / 1'000'000'000);
}

int usleep(useconds_t microseconds) {
  countCall(Hook::usleep);
  if (!maySuspendHere()) return real::usleep(microseconds);
  CallWait call(EndedBy::kAny);
  const int error = sleepFor(int64_t{microseconds} * 1000, call).error;
  if (error == 0) return 0;
  sys::errnoRef() = error;
  return -1;
}

int nanosleep(const timespec* duration, timespec* rest) {
  countCall(Hook::nanosleep);
  if (!maySuspendHere()) return real::nanosleep(duration, rest);
  const int error = sleepRelative(duration, rest);
  if (error == 0) return 0;
  sys::errnoRef() = error;
  return -1;
}
int __nanosleep(const timespec* duration, timespec* rest) { return nanosleep(duration, rest); }

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  countCall(Hook::clock_nanosleep);
  if (!maySuspendHere() || !isWallClock(clock)) return real::clock_nanosleep(clock, flags, time, rest);
  return (flags & TIMER_ABSTIME) != 0 ? sleepUntil(clock, time) : sleepRelative(time, rest);
}

int thrd_sleep(const timespec* duration, timespec* rest) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, duration, rest);
  if (error == 0) return 0;
  return error == EINTR || error == ECANCELED ? -1 : -2;  // -1: interrupted, and loops sleep the rest
}

// A loop around it often waits for what a fiber of the same worker does.
int sched_yield() noexcept {
  countCall(Hook::sched_yield);
  if (EpollEngine* const engine = hookEngine()) {
    engine->chargeCall();
    yieldIfBudgetIsSpent(*engine);
  }
  return real::sched_yield();
}
int __sched_yield() noexcept { return sched_yield(); }
void thrd_yield() { sched_yield(); }

}  // extern "C"
