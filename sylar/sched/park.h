// Internal. The one way in which a fiber waits.
//
//   Wait wait;                                 opens an epoch
//   list.append(wait.waker());                 hands out copies of the waker
//   switch (wait.park(deadline)) { ... }       suspends until the first of them wakes it, or the deadline passes
//
// A wait that turned out needless is given up instead. One of the two must end it; the destructor checks that.
#pragma once

#include "sylar/base/check.h"
#include "sylar/base/clock.h"
#include "sylar/fiber/fiber.h"
#include "sylar/sched/waker.h"

namespace sylar {

/// What a wait is for: stop() waits for fibers that somebody outside will wake, but not for those that only fibers can wake.
enum class WaitFor : uint8_t { kOutside, kFibers };

/// Belongs to the running fiber, on a worker. One at a time.
class Wait {
 public:
  /// `what`, and for a descriptor its number: for reports.
  explicit Wait(Fiber::WaitsFor what = Fiber::WaitsFor::kEvent, int fd = -1);
  ~Wait() { SYLAR_CHECK(m_ended); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  const Waker& waker() const { return m_waker; }

  /// Suspends the fiber until a waker wins, `deadline` passes (kTimeout) or the fiber is cancelled (kCanceled). What was
  /// written before the wake is visible afterwards. A wait with a deadline always counts as kOutside, and needs reserveTimeout()
  /// first. Suspends: yes.
  WakeReason park(Deadline deadline = Deadline::never(), WaitFor what = WaitFor::kOutside);

  /// Ends the wait without suspending if nobody has woken it yet; else consumes that wake-up. True: nobody had.
  bool giveUp();

 private:
  Waker m_waker;
  bool m_ended = false;
};

/// True in a fiber on a worker: there and only there a Wait may be made.
bool mayPark();

/// Makes room for a timeout of the running fiber; to be called before a Wait with a deadline is opened, so that no wait can fail
/// half-way. False: no memory.
[[nodiscard]] bool reserveTimeout(Deadline deadline);

/// The clock of deadlines here: the scheduler's. Only where mayPark().
const Clock& waitClock();

/// Suspends the running fiber until `deadline`; kTimeout, or kCanceled. Throws std::bad_alloc. Suspends: yes.
WakeReason parkUntil(Deadline deadline);

}  // namespace sylar
