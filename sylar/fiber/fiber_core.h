// Internal. The state of a started fiber, in two cache lines.
//
// Cores live in slabs that are never unmapped, so a late Waker reads valid memory and a wrong epoch. Unstarted work has no
// core. The thread that first runs it takes one, and the thread on which the fiber ends gets the core back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/core_pool.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/started_state.h"
#include "sylar/fiber/wait_word.h"
#include "sylar/timer/timer_node.h"

namespace sylar {
class Fiber;
}

namespace sylar::detail {

class FiberHome;

/// Why a fiber gave its thread back.
enum class SwitchReason : uint8_t {
  kReady,   ///< run me again, behind the others
  kHold,    ///< keep me until somebody schedules or resumes me
  kParked,  ///< the winner of my wait word brings me back
  kMove,    ///< take me to where my Fiber says
  kDone,    ///< my function has ended
};

/// All fields but `wait` belong to the home thread. Between a won claim and the delivery, the link and `home` belong to the
/// winner.
struct alignas(64) FiberCore : QueueNode {
  FiberCore() : QueueNode(Kind::kCore) {}

  /// How many waits a fiber may begin after it was cancelled, before it is abandoned.
  static constexpr uint16_t kCancelledWaits = 1000;
  /// How many waits a cancelled fiber may still begin after the deadline of a stop. Enough to return through a few failing
  /// calls.
  static constexpr uint16_t kLastCancelledWaits = 100;

  SwitchReason switch_reason = SwitchReason::kReady;
  bool counted = false;                        ///< the wake-up of its present or last park comes from outside
  bool permit : 1 = false;                     ///< a schedule() that no YieldToHold has consumed yet
  bool timer_linked : 1 = false;               ///< `timer` is linked in the home worker's queue
  bool hook_enabled : 1 = true;                ///< set_hook_enable of this fiber
  bool in_cancel_scope : 1 = false;            ///< its StartedState has the scope
  bool shielded : 1 = false;                   ///< its waits must not end early: cancelling does not touch them
  bool live : 1 = false;                       ///< is in the home worker's list of live fibers
  bool by_hand : 1 = false;                    ///< is in the home worker's list of fibers that were resumed by hand
  bool in_deadline_scope : 1 = false;          ///< its StartedState has the deadline
  uint8_t cancelled : 4 = 0;                   ///< the sum of why every park from now on ends at once
  bool sent_by_ring : 1 = false;               ///< a ring has made a send of it since its last receive that waited
  uint8_t special : 3 = 0;                     ///< the sum of what its switches do besides; one field, for one test
  uint8_t hook = 0;                            ///< the hooked call that it has made last (sylar/hook/core/hook_count.h)
  uint16_t cancelled_waits = kCancelledWaits;  ///< waits that are left after it was cancelled
  // `special`.
  static constexpr uint8_t kOwnThreadPointer = 1;  ///< it is a thread of libc's by itself (sylar/hook/thread/fiber_thread.h)
  static constexpr uint8_t kWatched = 2;           ///< a sanitizer is told of its stack and its switches (stack_watch.h)
  static constexpr uint8_t kBorrows = 4;  ///< it borrows a thread of libc's for its function (sylar/hook/thread/identity.h)
  bool ownsThreadPointer() const { return (special & kOwnThreadPointer) != 0; }
  bool isWatched() const { return (special & kWatched) != 0; }
  void setOwnThreadPointer(bool on) {
    special = static_cast<uint8_t>((special & (kWatched | kBorrows)) | (on ? kOwnThreadPointer : 0)) & 7;
  }
  bool borrowsThread() const { return (special & kBorrows) != 0; }
  // `cancelled`.
  static constexpr uint8_t kByRequest = 1;  ///< Fiber::cancel(); sticky
  static constexpr uint8_t kByScope = 2;    ///< a CancelScope that it, or one of its resumers, is in
  static constexpr uint8_t kByStop = 4;     ///< a stop of its scheduler, unless it was cancelled by request before; sticky
  bool isCancelledForGood() const { return (cancelled & (kByRequest | kByStop)) != 0; }
  /// Cancels it by request or by a stop, if neither has been before. Returns true if it did.
  bool cancelForGood(uint8_t by) {
    SYLAR_DCHECK(by == kByRequest || by == kByStop);
    if (isCancelledForGood()) return false;
    setCancelled(cancelled | by);
    return true;
  }
  void setCancelledByScope(bool on) { setCancelled((cancelled & ~kByScope) | (on ? kByScope : 0)); }
  void setCancelled(int by) { cancelled = static_cast<uint8_t>(by) & (kByRequest | kByScope | kByStop); }

  WaitWord<> wait;
  FiberHome* home = nullptr;     ///< where it is pinned from its first run on; null on a plain thread
  Fiber* fiber = nullptr;        ///< the user's handle; alive as long as the fiber
  FiberCore* resumer = nullptr;  ///< gets control at a yield; null for the thread's own stack
  Context context;
  Stack stack;
  TimerNode timer;                 ///< for its sleeps and timeouts, with the deadline that it is linked at
  int64_t deadline_ns = kNever;    ///< of the present wait; later than the linked one after a lazy push
  FiberCore* live_prev = nullptr;  ///< the home worker's list of fibers to bring to their end, or of those resumed by hand
  FiberCore* live_next = nullptr;  ///< in a free core: see nextChunk()

  /// From the fiber's start to its end.
  StartedState& started() const {
    SYLAR_DCHECK(fiber != nullptr);
    return control(*fiber).started();
  }

  /// Links chunks, in a free core that is first in its chunk (core_pool.h).
  FiberCore*& nextChunk() { return live_next; }

  /// Returns the core that contains `node` as its `timer`.
  static FiberCore& ofTimer(TimerNode& node);
};
#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)
static_assert(sizeof(FiberCore) <= 128);
#endif

inline FiberCore* FiberControl::core() const { return m_started == nullptr ? nullptr : &m_started->core; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // a base class; every compiler that we use lays it out plainly
inline FiberCore& FiberCore::ofTimer(TimerNode& node) {
  return *reinterpret_cast<FiberCore*>(reinterpret_cast<char*>(&node) - offsetof(FiberCore, timer));
}
#pragma GCC diagnostic pop

/// The free cores of one thread, in front of the reserve of all threads. Not thread safe.
class CorePool {
 public:
  /// The number of cores in a slab. A thread keeps at most twice as many.
  static constexpr size_t kChunk = 512;

  /// Returns a core whose epoch goes on from its last use, or null if no memory is left.
  [[nodiscard]] FiberCore* take() { return m_cores.take(mapSlab); }
  void put(FiberCore* core) {
    SYLAR_DCHECK(core->fiber == nullptr && !core->timer_linked);
    m_cores.put(core);
  }

 private:
  static FiberCore* mapSlab();  // never unmapped
  [[gnu::constructor]] static void followForks();
  static CoreReserve<FiberCore> s_reserve;

  CoreCache<FiberCore, kChunk> m_cores{s_reserve};
};

}  // namespace sylar::detail
