// Internal. What the fibers of one thread share: who runs, the thread's own stack to come back to, free stacks and cores.
// All switches between fibers go through here.
//
// Thread safety: an object belongs to its thread.
#pragma once

#include "sylar/fiber/fiber.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar {

/// The fiber that runs on this thread, or null on the thread's own stack. Never inlined: a fiber that asked to be moved must
/// not use the old thread's answer.
FiberCore* runningFiber();

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

  /// Suspends the running fiber and gives control to its resumer, who notes in its life what became of it: only then may others
  /// take it, for only then has it left its stack.
  void yield(Request request);
  /// Suspends the running fiber and gives control to the thread's own stack, past any hand resumers.
  void park();

  /// Takes stack and core of a fiber that is done, and tells who waits for its end. May destroy the Fiber.
  void finish(FiberCore& core);

  /// Scheduler's ownership: the fiber lives until it ends.
  static void keepAlive(Fiber& fiber) { fiber.m_self = fiber.shared_from_this(); }
  static void release(Fiber& fiber) { fiber.m_self = nullptr; }
  static FiberCore* coreOf(Fiber& fiber) { return fiber.m_core; }
  /// A fiber that was started by hand is scheduled now: it belongs to this thread, and yields to the thread's own stack.
  void adopt(Fiber& fiber);
  /// Ends a scheduled fiber that got no stack: its exception is std::bad_alloc.
  static void failToStart(Fiber& fiber);

  FiberHost* host() const { return m_host; }
  void setHost(FiberHost* host, WorkerSlot* home, uint64_t worker_id);

 private:
  friend class Fiber;
  ThreadFibers();
  ~ThreadFibers();
  struct AtThreadExit;

  static void fiberMain();
  void switchOut(FiberCore& me, FiberCore* to);
  void discard(Fiber& fiber);
  void recycle(FiberCore& core);
  Fiber::ptr ownStackHandle();

  Context m_own_stack;
  FiberCore* m_came_back = nullptr;
  FiberHost* m_host = nullptr;
  WorkerSlot* m_home = nullptr;
  uint64_t m_worker_id = 0;
  StackPool m_stacks;
  CorePool m_cores;
  Fiber::ptr m_own_handle;
};

}  // namespace sylar
