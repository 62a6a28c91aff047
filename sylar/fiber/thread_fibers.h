// Internal. What the fibers of one thread share: who runs, the thread's own stack to come back to, free stacks and cores.
// All switches between fibers go through here.
//
// Thread safety: an object belongs to its thread.
#pragma once

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/fiber.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/overflow.h"
#include "sylar/fiber/suspend_check.h"

namespace sylar {

/// The fiber that runs on this thread, or null on the thread's own stack. Never inlined: a fiber that asked to be moved must
/// not use the old thread's answer.
FiberCore* runningFiber();

/// The same, to be read only by the next function.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local FiberCore* t_running;
/// Whether the thread's own stack runs. Inlined, so only for the first line of a function: after a switch in it, it may be the
/// old thread's answer.
inline bool onThreadStack() { return t_running == nullptr; }

/// Where a scheduler's fibers live, for other threads: sched's worker slot. Never destroyed, so a stale pointer may be asked.
class FiberHome {
 public:
  /// Has its thread look at what `fiber` was asked; drops the question if nobody runs there any more. Any thread.
  virtual void attend(Fiber::ptr fiber) = 0;

  /// Which worker owns it, never the same twice; 0: none.
  std::atomic<uint64_t> owner{0};

 protected:
  ~FiberHome() = default;
};

/// Where a fiber wants to go on. Kept by the fiber until it is at rest.
class FiberDestination {
 public:
  virtual ~FiberDestination() = default;
  /// Queues `fiber` there. False: there is no such place any more.
  virtual bool accept(Fiber& fiber) = 0;
};

/// Who runs a thread's fibers, as far as this room must know: sched's worker. Null on plain threads.
class FiberHost {
 public:
  /// Parks the running fiber until `fiber` has ended.
  virtual void awaitEnd(Fiber& fiber) = 0;
  /// Unlinks a timer that is still in the worker's queue: the core leaves the worker's hands.
  virtual void unlinkTimer(FiberCore& core) = 0;

 protected:
  ~FiberHost() = default;
};

class ThreadFibers {
 public:
  static ThreadFibers& current();

  /// Makes `fiber`, which was never run, ready to be entered. False: no memory, nothing has changed.
  [[nodiscard]] bool start(Fiber& fiber);

  /// Runs `core` until a fiber gives control back to the caller, and returns that one; its `request` says why.
  FiberCore& enter(FiberCore& core);
  /// The same for a worker's loop. Inlined, so that the loop has one place from which it jumps, and no call to return from.
  FiberCore& giveTurn(FiberCore& core);

  /// Suspends the running fiber and gives control to its resumer, who notes in its life what became of it: only then may others
  /// take it, for only then has it left its stack.
  static void yield(Request request);
  /// Suspends `me`, which runs, and gives control to the thread's own stack, past any hand resumers. It comes back on this
  /// thread.
  void park(FiberCore& me);

  /// Takes stack and core of a fiber that is done, and tells who waits for its end. May destroy the Fiber.
  void finish(FiberCore& core);

  /// Scheduler's ownership: the fiber lives until it ends.
  static void keepAlive(Fiber::ptr fiber) {
    Fiber& kept = *fiber;
    kept.m_self = std::move(fiber);
  }
  static Fiber::ptr release(Fiber& fiber) { return std::move(fiber.m_self); }
  static FiberCore* coreOf(Fiber& fiber) { return fiber.m_core; }
  /// A suspended fiber that comes from another thread, or was started by hand, is this thread's and its worker's from here on.
  void adopt(Fiber& fiber);
  /// It is nobody's for now; what it is asked meanwhile waits for whoever adopts it.
  static void leaveHome(Fiber& fiber);
  /// Null: on a plain thread, on the way, or its worker has ended.
  static FiberHome* homeOf(const Fiber& fiber);
  /// It was started on a plain thread, and no scheduler has had it since.
  static bool runsByHand(const Fiber& fiber) { return fiber.m_home_owner.load(std::memory_order_relaxed) == 0; }
  static bool hasStarted(const Fiber& fiber) { return fiber.m_thread_id.load(std::memory_order_acquire) != 0; }
  /// Ends a scheduled fiber that got no stack: its join() throws std::bad_alloc.
  static void failToStart(Fiber& fiber);
  /// Gives a scheduled fiber up that is in no queue any more: it never runs again. If it has begun, its stack and core are never
  /// used again. Tells who waits for its end.
  static void abandon(Fiber& fiber);
  /// The same for one whose thread is left behind with it, and which may even run: tells who waits.
  static void leaveBehind(Fiber& fiber);

  /// Asks `fiber`, which has started, for something; its thread attends to it soon. Any thread.
  static void ask(Fiber& fiber, Fiber::Asked what);
  static uint8_t takeAsked(Fiber& fiber) { return fiber.m_asked.exchange(0, std::memory_order_seq_cst); }
  static void setDestination(Fiber& fiber, std::shared_ptr<FiberDestination> destination);
  static std::shared_ptr<FiberDestination> takeDestination(Fiber& fiber);

  /// Stands for the thread's own stack.
  Fiber::ptr ownStackHandle();

  /// The fiber in whose guard `address` lies, if that is one that this thread runs or switches from; else null. For a signal
  /// handler on this thread.
  static const FiberCore* ownerOfGuard(const void* address);

  /// `change` more Fiber objects exist. Any thread.
  static void countFiber(int change);
  /// How many there are. Any thread, in a signal handler, too.
  static uint64_t countedFibers();

  FiberHost* host() const { return m_host; }
  void setHost(FiberHost* host, FiberHome* home);

 private:
  friend class Fiber;
  ThreadFibers();
  ~ThreadFibers();
  struct AtThreadExit;
  struct Count;  // each thread counts alone, or spawning threads would share a cache line

  static void fiberMain();
  [[noreturn]] static void leaveForEver();
  static void keepForEver(Fiber& fiber);
  void settleIn(Fiber& fiber);
  Context::Kind kindOfSwitch(const FiberCore* resumer) const;
  void switchOut(FiberCore& me, FiberCore* to);
  [[gnu::cold]] static void stayInChild(FiberCore& me);
  void discard(Fiber& fiber);
  void recycle(FiberCore& core);
  OverflowReport m_overflow_report;
  const ThreadPlaces m_places = ThreadPlaces::ofThisThread();
  Context m_own_stack;
  FiberCore* m_came_back = nullptr;
  FiberHost* m_host = nullptr;
  FiberHome* m_home = nullptr;
  StackPool m_stacks;
  CorePool m_cores;
  Fiber::ptr m_own_handle;
};

/// A fiber and its resumer call one another; a worker's loop gives turns.
inline Context::Kind ThreadFibers::kindOfSwitch(const FiberCore* resumer) const {
  return resumer == nullptr && m_host != nullptr ? Context::Kind::kTurn : Context::Kind::kCall;
}

[[gnu::always_inline]] inline FiberCore& ThreadFibers::giveTurn(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  t_running = &core;
  Context::switchTo(m_own_stack, core.context, m_places, Context::Kind::kTurn);
  return *m_came_back;
}

/// Nothing that is this thread's is to be used afterwards: it may be another one.
[[gnu::always_inline]] inline void ThreadFibers::switchOut(FiberCore& me, FiberCore* to) {
  if (to == nullptr && sys::inForkedChild()) {
    stayInChild(me);
    return;
  }
  checkSuspend(me);
  const tsan::Exempt of_this_thread;
  t_running = to;
  m_came_back = &me;
  tsan::release(&me);  // for who gives it up
  Context::switchTo(me.context, to != nullptr ? to->context : m_own_stack, m_places, kindOfSwitch(to));
  if (tsan::strict()) tsan::acquire(&current());
}

[[gnu::always_inline]] inline void ThreadFibers::park(FiberCore& me) {
  me.request = Request::kParked;
  me.fiber->move(Fiber::Life::kRunning, Fiber::Life::kParked);
  switchOut(me, nullptr);
}

}  // namespace sylar
