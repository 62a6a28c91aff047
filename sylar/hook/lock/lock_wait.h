// Internal. How a fiber waits for a lock of libc.
//
//   int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
//     if (outsideFibers()) return real::pthread_mutex_lock(mutex);
//     ...
//
// A fiber first tries, and only if that fails it comes to the parking lot. Off fibers the call is libc's. (Conditions, barriers and
// pthread_once, whose waits are no attempts that could be made for somebody, are the lot's on all threads.)
#pragma once

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "sylar/base/internal.h"
#include "sylar/base/own_thread.h"
#include "sylar/fiber.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/hook_count.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/lock/parking_lot.h"

namespace sylar::detail {

extern constinit std::atomic<bool> g_hook_locks;

/// Returns true on a thread's own stack. Inlined, so only where the fiber cannot have changed its thread since the function began.
[[gnu::always_inline]] inline bool outsideFibers() { return t_running == nullptr; }

/// Returns true if the caller is a fiber that may be suspended at a lock here. It may not in the middle of making a thread of the
/// library's, with a lock of that held: an allocator that has locks takes them there.
inline bool locksSuspend() {
  return g_hook_locks.load(std::memory_order_relaxed) && !sys::detail::t_makes_own_thread && maySuspendHere();
}

/// Shields a fiber whose waits would end at once, because it was cancelled or the deadline of its scope has passed. For calls whose
/// callers cannot be told of a cancel and wait again: a cancel ends the wait that it meets, and no later one.
class ShieldIfCancelled {
 public:
  explicit ShieldIfCancelled(bool in_fiber);

 private:
  std::optional<this_fiber::CancelShield> m_shield;
};

/// Until when a call waits: a time of one of the clocks, or forever.
class LockTime {
 public:
  LockTime() = default;
  LockTime(clockid_t clock, const timespec* time) : m_clock(clock), m_time(time) {}

  /// Returns false for times and clocks that libc refuses with EINVAL.
  bool isValid() const {
    const bool known = m_clock == CLOCK_REALTIME || m_clock == CLOCK_MONOTONIC;
    return m_time == nullptr || (known && m_time->tv_nsec >= 0 && m_time->tv_nsec < 1'000'000'000);
  }
  /// Returns it as a deadline on the clock with which the caller waits.
  Deadline deadline(bool as_fiber) const;
  /// Returns true if the clock shows the time. It may have been set back since deadline().
  bool hasPassed(bool as_fiber) const;

 private:
  clockid_t m_clock = CLOCK_MONOTONIC;
  const timespec* m_time = nullptr;
};

/// What a call that takes an object asks for.
struct Taking {
  Hook hook;
  const LotKind& kind;
  LockTime until = {};
  EndedBy by = EndedBy::kNone;
  bool shielded = false;     ///< neither a cancel nor the deadline of a scope ends it
  bool polls = false;        ///< others may release the object without a word: other processes, and threads that end
  bool stands_back = false;  ///< it comes behind those who wait already
};

/// Takes `object`, which a first attempt could not have, for the calling fiber. Returns 0, ETIMEDOUT, ECANCELED, EINTR, ENOMEM or
/// what the attempt gave. Only where locksSuspend(). May suspend: yes.
int takeInLot(void* object, const Taking& wanted);

/// The same for a call of `me`, the running fiber, that only the end of the fiber ends, of an object that nobody releases without a
/// word.
int takeInLotForEver(FiberCore& me, Hook hook, void* object, const LotKind& kind);

/// Makes a mutex that libc has locked for the calling fiber, in a wait at a condition, that fiber's.
void noteLockedByLibc(pthread_mutex_t& mutex);

/// The mutexes that are locked and unlocked without libc. For tests: libc's words may be others than they were.
struct InPlace {
  bool plain, recursive;
};
InPlace locksInPlace();

}  // namespace sylar::detail
