// Internal. The one way in which a fiber waits.
//
//   Wait wait;                                 opens an epoch
//   list.append(wait.waker());                 hands out copies of the waker
//   switch (wait.park(deadline)) { ... }       suspends until the first of them wakes it, or the deadline passes
//
// A wait that turned out needless is withdrawn instead. Either park() or withdraw() must end it, which the destructor checks.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/waker.h"

namespace sylar::detail {
enum class SyncKind : uint8_t;
}

namespace sylar::detail {

/// Says where the wake-up comes from. stop() waits for fibers that somebody outside will wake, but not for those that only
/// fibers can wake.
enum class WaitFor : uint8_t { kOutside, kFibers };

/// One wait of the running fiber, on a worker. A fiber has one at a time.
class Wait {
 public:
  /// `what` is for reports, and so is `where`, the number of the descriptor or the id of the fiber.
  explicit Wait(WaitsFor what = WaitsFor::kEvent, uint64_t where = 0);
  /// The same where `me`, the running fiber, is at hand.
  Wait(FiberCore& me, WaitsFor what, uint64_t where) : m_waker(open(me, what, where)) {}
  /// A wait at `object`, one of sylar/sync. Without a core, and then it is none, where not mayPark(), and in a forked child, whose
  /// only fiber waits like a thread.
  Wait(SyncKind kind, const void* object);
  Wait(FiberCore& me, SyncKind kind, const void* object) : Wait(me, waitsFor(kind), reinterpret_cast<uintptr_t>(object)) {}
  ~Wait() { SYLAR_CHECK(m_ended); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  const Waker& waker() const { return m_waker; }

  /// Suspends the fiber until a waker wins, `deadline` passes (kTimeout) or the fiber is cancelled (kCanceled). Everything
  /// written before the wake is visible afterwards. A wait with a deadline always counts as kOutside, and needs reserveTimeout()
  /// first.
  /// May suspend: yes.
  WakeReason park(Deadline deadline = Deadline::never(), WaitFor what = WaitFor::kOutside);

  /// The same, but not beyond the deadline of the fiber's scopes.
  WakeReason parkWithinScope(Deadline deadline);

  /// Ends the wait without suspending and returns true if nobody has woken it yet. Otherwise consumes that wake-up and returns
  /// false.
  bool withdraw();

 private:
  static Waker open(FiberCore& me, WaitsFor what, uint64_t where) {
    SYLAR_CHECK(me.home != nullptr);  // mayPark()
    control(*me.fiber).noteWait(what, where);
    return {&me, me.wait.prepare()};
  }

  static WaitsFor waitsFor(SyncKind kind) {
    return static_cast<WaitsFor>(static_cast<unsigned>(WaitsFor::kMutex) + static_cast<unsigned>(kind));
  }

  Waker m_waker;
  bool m_ended = false;
};

/// Returns true in a fiber on a worker. Only there may a Wait be made.
bool mayPark();

/// Makes room for a timeout of the running fiber. Must be called before a Wait with a deadline is opened, so that no wait can
/// fail half-way. Returns false if there is no memory.
[[nodiscard]] bool reserveTimeout(Deadline deadline);

/// Does reserveTimeout() for the earlier of `deadline` and that of the scopes, and nothing where not mayPark().
[[nodiscard]] bool reserveWithinScope(Deadline deadline);

/// Returns false if withinScope() changes nothing for the fiber that runs on `core`.
inline bool mayBeInScope(const FiberCore& core) { return core.in_deadline_scope || core.resumer != nullptr; }

/// Returns the earlier of `deadline` and this_fiber::deadline().
Deadline withinScope(Deadline deadline);

/// Returns the clock of deadlines here, which is the scheduler's. Only where mayPark().
const Clock& waitClock();

/// Suspends the running fiber until `deadline`. Returns kTimeout, or kCanceled if the fiber was cancelled. Throws
/// std::bad_alloc. May suspend: yes.
WakeReason parkUntil(Deadline deadline);

}  // namespace sylar::detail
