// sleep, usleep, nanosleep: at least as long as asked, in nanoseconds. Source: sleep(3), usleep(3), nanosleep(2).
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "sylar/base/sys.h"
#include "sylar/hook/real.h"
#include "sylar/hook/wait_loop.h"

namespace sylar {
namespace {

/// Sleeps `ns` >= 0; 0, or what was left when the fiber was cancelled. Without memory for a timeout the thread sleeps.
int64_t sleepFor(int64_t ns) {
  const Clock& clock = waitClock();
  const Deadline deadline = Deadline::after(std::chrono::nanoseconds(ns), clock);
  if (!reserveTimeout(deadline)) {
    const timespec duration{ns / 1'000'000'000, ns % 1'000'000'000};
    return real::nanosleep(&duration, nullptr);
  }
  if (parkUntil(deadline) == WakeReason::kTimeout) return 0;
  return std::max<int64_t>(deadline.ns() - clock.nowNs(), 1);
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

unsigned int sleep(unsigned int seconds) {
  if (!hookSleeps()) return real::sleep(seconds);
  const int64_t left_ns = sleepFor(int64_t{seconds} * 1'000'000'000);
  return static_cast<unsigned>((left_ns + 999'999'999) / 1'000'000'000);
}

int usleep(useconds_t microseconds) {
  if (!hookSleeps()) return real::usleep(microseconds);
  if (sleepFor(int64_t{microseconds} * 1000) == 0) return 0;
  sys::errnoRef() = ECANCELED;
  return -1;
}

int nanosleep(const timespec* duration, timespec* rest) {
  if (!hookSleeps() || duration == nullptr) return real::nanosleep(duration, rest);
  const timespec wanted = *duration;
  if (wanted.tv_sec < 0 || wanted.tv_nsec < 0 || wanted.tv_nsec >= 1'000'000'000) {
    sys::errnoRef() = EINVAL;
    return -1;
  }
  const int64_t seconds_ns = wanted.tv_sec > kNever / 1'000'000'000 ? kNever : wanted.tv_sec * 1'000'000'000;
  const int64_t left_ns = sleepFor(saturatingAdd(seconds_ns, wanted.tv_nsec));
  if (left_ns == 0) return 0;
  if (rest != nullptr) *rest = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  sys::errnoRef() = ECANCELED;
  return -1;
}

int __nanosleep(const timespec* duration, timespec* rest) { return nanosleep(duration, rest); }

}  // extern "C"
