// Internal. How a hooked call waits, whatever it waits for.
//
//   CallWait call(EndedBy::kNoRestart);
//   call.begin();
//   const WaitEnd end = call.once(deadline, WaitsFor::kRead, fd, [&](const Waker& waker) { return watch(fd, waker); });
//
// A call may wait several times. Each time it hands its waker to its sources, which are what may wake it, and suspends the fiber.
// All that else ends a wait is here, once for all calls: the deadline, a cancel, a signal handler, want of memory, and a fork by a
// handler, in whose child the fiber has no worker.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/sched/park.h"

namespace sylar::detail {

/// Why a wait is over.
enum class WaitEnd : uint8_t {
  kWoken,      ///< by a source, or by a handler that interrupts the call
  kClosed,     ///< by a source, because a number was closed
  kTimeout,    ///< the deadline has passed
  kCancelled,  ///< the fiber was cancelled
  kNoMemory,   ///< for a timeout; the fiber was not suspended
  kRefused,    ///< nor was it here: a source did not take the waker, for the reason that refusal() tells
  kInChild,    ///< of a fork. Wakers that sources have there wake nobody.
};

/// The pauses between looks at what no event tells: each twice as long as the one before, up to a limit.
class Pauses {
 public:
  using Length = std::chrono::duration<uint32_t, std::micro>;

  constexpr explicit Pauses(Length first = std::chrono::milliseconds(1), Length longest = std::chrono::milliseconds(50))
      : m_next(first), m_longest(longest) {}

  Length next() {
    const Length pause = std::min(m_next, m_longest);
    m_next = 2 * pause;
    return pause;
  }
  /// Returns when to look again, if no event comes first.
  Deadline nextLook() { return Deadline::after(std::chrono::nanoseconds(next()), waitClock()); }
  void limit(Length longest) { m_longest = longest; }

 private:
  Length m_next;
  Length m_longest;
};

class CallWait : public Interruptible {
 public:
  using Interruptible::Interruptible;

  /// Waits until a source wakes the fiber, or `deadline` passes. `what` and `where` are for reports. `watch(waker)` hands the waker
  /// to the sources, and returns 0, or -errno if one of them refuses it; it takes back then what the others have. May suspend: yes.
  template <class Watch>
  [[gnu::always_inline]] WaitEnd once(Deadline deadline, WaitsFor what, uint64_t where, Watch watch) {
    if (sys::inForkedChild()) return WaitEnd::kInChild;
    if (!deadline.isNever() && !reserveTimeout(deadline)) return WaitEnd::kNoMemory;
    Wait wait(*t_running, what, where);
    if (const int error = watch(wait.waker())) [[unlikely]] {
      wait.withdraw();
      m_refusal = error;
      return WaitEnd::kRefused;
    }
    const WakeReason reason = park(wait, deadline);
    if (sys::inForkedChild()) return WaitEnd::kInChild;
    switch (reason) {
      case WakeReason::kClosed: return WaitEnd::kClosed;
      case WakeReason::kTimeout: return WaitEnd::kTimeout;
      case WakeReason::kCanceled: return WaitEnd::kCancelled;
      default: return WaitEnd::kWoken;
    }
  }
  /// Waits for nothing but the time.
  WaitEnd pause(Deadline deadline) {
    return once(deadline, WaitsFor::kTime, 0, [](const Waker&) { return 0; });
  }
  int refusal() const { return m_refusal; }

  /// Makes attempts, with pauses in between, until one gives something else than -EAGAIN: for what no event tells, such as a lock
  /// of a file that another process gives up. No helper thread waits instead, because it could not be interrupted, and enough of
  /// them would fill the pool for those on whom they wait. Returns what the last attempt gave, -ECANCELED, -EINTR, -ETIMEDOUT at
  /// `latest` or at the deadline of the fiber's DeadlineScope, or -ENOMEM. Only where a fiber may wait. May suspend: yes.
  template <class Attempt>
  long askAgain(Attempt attempt, Deadline latest = Deadline::never(), Pauses pauses = Pauses()) {
    SYLAR_DCHECK(mayPark());
    begin();
    const Deadline end = withinScope(latest);
    for (;;) {
      const long result = attempt();
      if (result != -EAGAIN) return result;
      if (interrupted()) return -EINTR;
      if (!end.isNever() && waitClock().nowNs() >= end.ns()) return -ETIMEDOUT;
      switch (pause(std::min(end, pauses.nextLook()))) {
        case WaitEnd::kNoMemory: return -ENOMEM;
        case WaitEnd::kCancelled: return -ECANCELED;
        case WaitEnd::kInChild: sys::call(SYS_sched_yield); break;
        default: break;
      }
    }
  }

 private:
  int m_refusal = 0;
};

}  // namespace sylar::detail
