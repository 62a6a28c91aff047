// pthread_cond_*. Fibers and threads wait in the parking lot, the oldest is woken first. A condition that processes share is
// libc's. Source: pthread_cond_wait(3p), pthread_cond_timedwait(3p), pthread_cond_clockwait(3).
//
// Threads do not wait in libc's own condition, because that unlocks the mutex inside of libc, where no fiber that waits for the
// mutex would be told.
#include <pthread.h>

#include <cerrno>
#include <optional>

#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

constexpr LotKind kCond{SyncKind::kPthreadCond};

// The bits of __wrefs. Source: glibc, bits/thread-shared-types.h.
constexpr unsigned kShared = 1;
constexpr unsigned kMonotonic = 2;

/// Returns true for conditions that are libc's: those of processes, and all in the child of a fork, where nothing is hooked.
bool isOfLibc(const pthread_cond_t& cond) { return (cond.__data.__wrefs & kShared) != 0 || sys::inForkedChild(); }

/// One wait at a condition, with the mutex unlocked meanwhile.
class CondWait {
 public:
  CondWait(pthread_cond_t* cond, pthread_mutex_t* mutex, bool as_fiber)
      : m_cond(cond), m_mutex(mutex), m_as_fiber(as_fiber), m_wait(cond, kCond, as_fiber) {}
  /// A thread may be cancelled in its wait. Then it locks the mutex again, and if it was woken before, somebody else is.
  ~CondWait() {
    if (!m_unlocked) return;
    if (m_wait.withdraw()) ParkingLot::wake(m_cond, 1);  // by its address: after a broadcast it may be gone
    pthread_mutex_lock(m_mutex);
  }
  CondWait(const CondWait&) = delete;
  CondWait& operator=(const CondWait&) = delete;

  int run(const LockTime& until) {
    const Deadline deadline = until.deadline(m_as_fiber);
    const ShieldIfCancelled shield(m_as_fiber);
    return m_as_fiber && !reserveWithinScope(deadline) ? ENOMEM : waitUnlocked(until, deadline);
  }

 private:
  int waitUnlocked(const LockTime& until, Deadline deadline) {
    m_wait.enter();
    if (const int error = pthread_mutex_unlock(m_mutex)) {
      if (m_wait.withdraw()) ParkingLot::wake(m_cond, 1);
      return error;
    }
    m_unlocked = true;
    CallWait call(EndedBy::kCancel);
    call.begin();
    const LotEnd end = m_as_fiber ? m_wait.park(deadline, call) : m_wait.parkCancellably(deadline);
    m_unlocked = false;
    if (const int error = pthread_mutex_lock(m_mutex)) return error;
    return end == LotEnd::kTimeout && until.hasPassed(m_as_fiber) ? ETIMEDOUT : 0;
  }

  pthread_cond_t* const m_cond;
  pthread_mutex_t* const m_mutex;
  const bool m_as_fiber;
  bool m_unlocked = false;
  LotWait m_wait;
};

int wait(Hook hook, pthread_cond_t* cond, pthread_mutex_t* mutex, LockTime until) {
  if (!until.isValid()) return EINVAL;
  const bool as_fiber = !outsideFibers() && locksSuspend();
  if (as_fiber) countCallOf(*runningFiber(), hook);
  return CondWait(cond, mutex, as_fiber).run(until);
}

/// Returns the result of libc's wait.
int ofLibc(int result, pthread_mutex_t* mutex) {
  noteLockedByLibc(*mutex);
  return result;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  if (isOfLibc(*cond)) return ofLibc(real::pthread_cond_wait(cond, mutex), mutex);
  return wait(Hook::pthread_cond_wait, cond, mutex, {});
}
int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* time) {
  if (isOfLibc(*cond)) return ofLibc(real::pthread_cond_timedwait(cond, mutex, time), mutex);
  const clockid_t clock = (cond->__data.__wrefs & kMonotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return wait(Hook::pthread_cond_timedwait, cond, mutex, {clock, time});
}
int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
  if (isOfLibc(*cond)) return ofLibc(real::pthread_cond_clockwait(cond, mutex, clock, time), mutex);
  return wait(Hook::pthread_cond_clockwait, cond, mutex, {clock, time});
}
int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  if (isOfLibc(*cond)) return real::pthread_cond_signal(cond);
  ParkingLot::wake(cond, 1);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  if (isOfLibc(*cond)) return real::pthread_cond_broadcast(cond);
  ParkingLot::wakeAll(cond);
  return 0;
}

}  // extern "C"
