// Internal. What a started fiber is made of, in two cache lines.
//
// Cores live in slabs that are never unmapped, so a late Waker reads valid memory and a wrong epoch. Fresh work has no core:
// the thread that first runs it takes one, and where the fiber ends the core goes back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/fiber/context.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/wait_word.h"
#include "sylar/timer/timer_node.h"

namespace sylar {

class Fiber;
class FiberHome;

/// Why a fiber gave its thread back.
enum class Request : uint8_t {
  kReady,   ///< run me again, behind the others
  kHold,    ///< keep me until somebody schedules or resumes me
  kParked,  ///< the one who wins my wait word brings me back
  kMove,    ///< take me to where my Fiber says
  kDone,    ///< my function has ended
};

/// All fields but `wait` belong to the home thread; between a won claim and the delivery, link and home belong to the winner.
struct alignas(64) FiberCore : QueueNode {
  FiberCore() : QueueNode(Kind::kCore) {}

  /// Waits that a fiber may begin after it was cancelled, before it is given up.
  static constexpr uint16_t kPatience = 1000;
  /// The same, after the deadline of a stop: enough for returns through a few failing calls.
  static constexpr uint16_t kLastPatience = 100;

  Request request = Request::kReady;
  bool permit : 1 = false;        ///< a schedule() that no YieldToHold has consumed yet
  bool timer_linked : 1 = false;  ///< `timer` stands in the home worker's queue
  bool hook_enabled : 1 = true;   ///< set_hook_enable of this fiber
  bool cancelled : 1 = false;     ///< sticky: every park from now on ends at once
  bool shielded : 1 = false;      ///< waits that must not end early: cancelling does not touch them
  bool live : 1 = false;          ///< stands in the home worker's list of live fibers
  bool counted : 1 = false;       ///< its present or last park: the wake-up comes from outside
  uint16_t patience = kPatience;  ///< cancelled: how many waits are left
  WaitWord<> wait;
  FiberHome* home = nullptr;     ///< who runs it, null: a plain thread; a fiber is pinned from its first run on
  Fiber* fiber = nullptr;        ///< the user's handle; alive as long as the fiber
  FiberCore* resumer = nullptr;  ///< who gets control at a yield; null: the thread's own stack
  Context context;
  Stack stack;
  TimerNode timer;                 ///< of its sleeps and timeouts; the deadline it is linked at
  int64_t deadline_ns = kNever;    ///< of the present wait; later than the linked one after a lazy push
  FiberCore* live_prev = nullptr;  ///< the home worker's list of fibers that it must bring to their end
  FiberCore* live_next = nullptr;

  /// The core whose `timer` this is.
  static FiberCore& ofTimer(TimerNode& node);
};
#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)
static_assert(sizeof(FiberCore) <= 128);
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // a base class; every compiler that we use lays it out plainly
inline FiberCore& FiberCore::ofTimer(TimerNode& node) {
  return *reinterpret_cast<FiberCore*>(reinterpret_cast<char*>(&node) - offsetof(FiberCore, timer));
}
#pragma GCC diagnostic pop

/// The free cores of one thread. Not thread safe; threads share only the reserve behind it.
class CorePool {
 public:
  CorePool() = default;
  ~CorePool();
  CorePool(const CorePool&) = delete;
  CorePool& operator=(const CorePool&) = delete;

  /// A core whose epoch goes on from its last use. Null if no memory is left.
  [[nodiscard]] FiberCore* take();
  void give(FiberCore* core);

 private:
  bool refill();
  QueueNode* m_free = nullptr;
};

}  // namespace sylar
