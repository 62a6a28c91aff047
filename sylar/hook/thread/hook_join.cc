// pthread_join and similar calls. Without a time, a helper thread joins. With a time, the fiber asks again until then. A thread
// that is a fiber says when it has left. From then on it has a kernel thread, which ends soon. Source: pthread_join(3),
// pthread_timedjoin_np(3), thrd_join of C11.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "sylar/hook/core/hook_count.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

constinit real::Real<decltype(::thrd_join)> g_thrd_join("thrd_join", nullptr);

/// Returns false if libc's call is to be made here: off fibers, or with the calling thread, which libc refuses.
bool suspendsAt(Hook hook, pthread_t thread) {
  countCall(hook);
  return !outsideFibers() && locksSuspend() && ::pthread_equal(thread, ::pthread_self()) == 0;
}

#ifdef SYLAR_THREAD_POINTER

constexpr LotKind kLeaving{SyncKind::kOnce};

bool threadsAreFibers() { return g_threads_are_fibers.load(std::memory_order_relaxed) != 0; }

/// Waits until `thread`, if it is a fiber, has left that. Returns 0 or ETIMEDOUT.
int awaitLeaving(pthread_t thread, const LockTime& time) {
  const auto runs = [=] { return FiberThread::of(thread).state.load(std::memory_order_acquire) == FiberThread::kRuns; };
  const this_fiber::CancelShield shield;
  Deadline until = time.deadline(true);
  while (runs()) {
    if (!time.isValid()) return EINVAL;
    if (!until.isNever() && !reserveTimeout(until)) return ETIMEDOUT;
    LotWait wait(reinterpret_cast<void*>(thread), kLeaving, true);
    if (!wait.enterUnless([=] { return !runs(); })) break;
    CallWait call(EndedBy::kCancel);
    call.begin();
    const LotEnd end = wait.park(until, call);
    if (end != LotEnd::kTimeout) continue;
    if (time.hasPassed(true)) return ETIMEDOUT;
    until = time.deadline(true);  // the clock was set back
  }
  return 0;
}

/// Joins `thread`, if it is a fiber, or tells why it cannot be joined. Returns ETIMEDOUT if it has not ended.
int joinAtOnce(pthread_t thread, void** value) {
  const timespec past{};
  return FiberThread::of(thread).isFiber() ? real::pthread_timedjoin_np(thread, value, &past) : ETIMEDOUT;
}

#else

bool threadsAreFibers() { return false; }
int joinAtOnce(pthread_t, void**) { return ETIMEDOUT; }
int awaitLeaving(pthread_t, const LockTime&) { return 0; }

#endif

/// Joins until a time. No helper thread does it, because many of them could wait for threads that never end.
int joinUntil(pthread_t thread, void** value, const LockTime& time) {
  if (const int joined = joinAtOnce(thread, value); joined != ETIMEDOUT) return joined;
  if (const int late = awaitLeaving(thread, time); late != 0) return late;
  const auto join = [=] {
    const int error = ::pthread_tryjoin_np(thread, value);
    return error == EBUSY ? -EAGAIN : -error;
  };
  if (const int joined = join(); joined != -EAGAIN) return -joined;
  if (!time.isValid()) return EINVAL;
  const this_fiber::CancelShield shield;
  CallWait call(EndedBy::kCancel);  // nobody gets to see the EINTR: the thread is cancelled
  long ended;
  do {
    ended = call.askAgain(join, time.deadline(true), Pauses(std::chrono::microseconds(50)));
  } while (ended == -ECANCELED ||
           (ended == -ETIMEDOUT && !time.hasPassed(true)));  // behind the deadline of a stop; the clock was set back
  return ended == -ENOMEM ? ETIMEDOUT : static_cast<int>(-ended);
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_join(pthread_t thread, void** value) {
  const auto join = [=] { return real::pthread_join(thread, value); };
  if (!suspendsAt(Hook::pthread_join, thread)) return join();
  return threadsAreFibers() ? joinUntil(thread, value, {}) : offload(join, BlockingPool::Length::kOthers);
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
  if (!suspendsAt(Hook::pthread_join, thread)) return join();
  if (!threadsAreFibers()) return offload(join, BlockingPool::Length::kOthers);
  void* result;
  if (joinUntil(thread, &result, {}) != 0) return thrd_error;
  if (value != nullptr) *value = static_cast<int>(reinterpret_cast<intptr_t>(result));
  return thrd_success;
}

}  // extern "C"
