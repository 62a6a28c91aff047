// pthread_join and its kin. Without a time, a helper thread joins. With a time, the fiber asks again until then. Source: pthread_join(3), pthread_timedjoin_np(3), thrd_join of C11.
#include <pthread.h>
#include <threads.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "sylar/hook/hook_count.h"
#include "sylar/hook/lock_wait.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/real.h"

namespace sylar {
namespace {

constinit real::Real<decltype(::thrd_join)> g_thrd_join("thrd_join", nullptr);

/// Returns false if libc's call is to be made here: off fibers, or with the calling thread, which libc refuses.
bool suspendsAt(Hook hook, pthread_t thread) {
  countCall(hook);
  return !outsideFibers() && locksSuspend() && ::pthread_equal(thread, ::pthread_self()) == 0;
}

/// Joins until a time. No helper thread does it, because many of them could wait for threads that never end.
int joinUntil(pthread_t thread, void** value, const LockTime& time) {
  int error = ::pthread_tryjoin_np(thread, value);
  if (error == EBUSY && !time.isValid()) return EINVAL;
  const this_fiber::CancelShield shield;
  Interruptible call(EndedBy::kNone);
  Deadline until = time.deadline(true);
  for (std::chrono::milliseconds pause(1); error == EBUSY; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const Deadline look = std::min(until, Deadline::after(pause, waitClock()));
    if (!reserveTimeout(look)) return ETIMEDOUT;
    call.parkUntil(look);
    error = ::pthread_tryjoin_np(thread, value);
    if (error == EBUSY && look == until) {
      if (time.hasPassed(true)) return ETIMEDOUT;
      until = time.deadline(true);  // the clock was set back
    }
  }
  return error;
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_join(pthread_t thread, void** value) {
  const auto join = [=] { return real::pthread_join(thread, value); };
  return suspendsAt(Hook::pthread_join, thread) ? offload(join, BlockingPool::Length::kOthers) : join();
}
int pthread_timedjoin_np(pthread_t thread, void** value, const timespec* time) {
  if (!suspendsAt(Hook::pthread_timedjoin_np, thread)) return real::pthread_timedjoin_np(thread, value, time);
  return joinUntil(thread, value, {CLOCK_REALTIME, time});
}
int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock, const timespec* time) {
  if (!suspendsAt(Hook::pthread_clockjoin_np, thread)) return real::pthread_clockjoin_np(thread, value, clock, time);
  return joinUntil(thread, value, {clock, time});
}
int thrd_join(thrd_t thread, int* value) {
  const auto join = [=] { return g_thrd_join(thread, value); };
  return suspendsAt(Hook::pthread_join, thread) ? offload(join, BlockingPool::Length::kOthers) : join();
}

}  // extern "C"
