// Internal. The state that the fibers of one thread share: the running fiber, the thread's own stack to come back to, free
// stacks and cores. All switches between fibers go through here.
//
// Thread safety: an object belongs to its thread.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/borrowed_thread.h"
#include "sylar/fiber/control_memory.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/overflow.h"
#include "sylar/fiber/stack_watch.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

/// Returns the fiber that runs on this thread, or null on the thread's own stack. Never inlined, because a fiber that asked to
/// be moved must not use the old thread's answer.
FiberCore* runningFiber();

/// The variable behind runningFiber(). Read it only where the fiber cannot have changed its thread since the function began.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local FiberCore* t_running;
/// Returns true if the thread's own stack runs. Inlined, so use it only in the first line of a function. After a switch in that
/// function it may give the old thread's answer.
inline bool onThreadStack() { return t_running == nullptr; }

/// The place where a scheduler's fibers live, as other threads see it: sched's worker slot. Never destroyed, so a stale pointer
/// may be asked.
class FiberHome {
 public:
  /// Makes its thread handle the requests to `fiber`. Drops the message if nobody runs there any more. Any thread.
  virtual void handleRequests(Fiber::ptr fiber) = 0;

  /// Id of the worker that owns it, never the same twice, or 0 if none does.
  std::atomic<uint64_t> owner{0};

 protected:
  ~FiberHome() = default;
};

/// The target of a fiber that wants to continue elsewhere. The fiber keeps it until it is suspended.
class MigrationTarget {
 public:
  virtual ~MigrationTarget() = default;
  /// Queues `fiber` there. Returns false if the target does not exist any more.
  virtual bool accept(Fiber& fiber) = 0;
};

/// The worker that runs a thread's fibers, as far as this module must know it. Null on plain threads.
class FiberHost {
 public:
  bool lends_threads = false;  ///< its fibers borrow threads at their beginning
  /// Notes that the thread pointer under which this is called is run by this worker now.
  virtual void adoptThreadPointer() = 0;
  /// Parks the running fiber until `fiber` has ended.
  virtual void awaitEnd(Fiber& fiber) = 0;
  /// Notes that `core` is about to be resumed by hand.
  virtual void resumes(FiberCore& core) = 0;
  /// Notes that `core` has come back to its resumer, on the same thread.
  virtual void hasResumed(FiberCore& core) = 0;
  /// Unlinks a timer that is still in the worker's queue, because the core leaves the worker's hands.
  virtual void unlinkTimer(FiberCore& core) = 0;
  /// Called on the stack of `me`, which gives its thread back to the worker, so runningFiber() is null. Returns the fiber that runs
  /// next, be it `me`, or null if the worker's loop has to come first. In a forked child it calls ThreadFibers::stayInChild().
  virtual FiberCore* passOn(FiberCore& me) = 0;

 protected:
  ~FiberHost() = default;
};

class ThreadFibers {
 public:
  static ThreadFibers& current();

  /// Returns true on a thread that is in exit(), if a fiber has called that, or the program's code in a worker's loop.
  static bool inExit();
  /// Makes the calling fiber its thread for good: it waits as threads do, and has no host. In exit(), when the host is to go.
  void leaveFibers();

  enum class Started { kYes, kNoMemory, kNoThread };
  /// Makes `fiber`, which has never run, ready to be entered. If that is not possible now, nothing has changed. `borrows`: it is to
  /// borrow a thread, if the host lends some.
  [[nodiscard]] Started start(Fiber& fiber, bool borrows);

  /// Runs `core` until a fiber gives control back to the caller, and returns that one; its `switch_reason` says why.
  FiberCore& enter(FiberCore& core);
  /// Does what enter() does, for a worker's loop. Inlined, so that the loop jumps from one place and has no call to return from.
  FiberCore& enterFromLoop(FiberCore& core);

  /// Suspends the running fiber and gives control to its resumer, which records the fiber's new state. Only then may others take
  /// the fiber, because only then has it left its stack.
  static void yield(SwitchReason reason);
  /// Suspends `me`, the running fiber, and gives control to the thread's own stack, past any hand resumers, or to the fiber that
  /// the host names instead. The fiber resumes on this thread.
  void park(FiberCore& me);

  /// Lets `me`, the running fiber of a forked child, go on where it would be suspended, or waits on the thread's own account.
  [[gnu::cold]] static void stayInChild(FiberCore& me);

  /// Takes back the stack and core of a fiber that is done, and notifies its end observers. Returns the scheduler's handle,
  /// which may be the last. Dropping that may run an exception handler of the program.
  Fiber::ptr finish(FiberCore& core);

  /// Makes the scheduler an owner of the fiber, so that it lives until it ends.
  static void keepAlive(Fiber::ptr fiber) {
    SYLAR_DCHECK(fiber != nullptr && control(*fiber).m_self == nullptr);
    Fiber& kept = *fiber;
    control(kept).m_self = std::move(fiber);
  }
  static Fiber::ptr release(Fiber& fiber) {
    SYLAR_DCHECK(control(fiber).m_self != nullptr);
    return std::move(control(fiber).m_self);
  }
  /// Gives back a fiber that was to be queued and had the state `before`. If it has never run, notifies its end observers.
  static void refuse(Fiber& fiber, FiberState before) {
    isUnstarted(before) ? control(fiber).end(FiberState::kRefused) : control(fiber).move(FiberState::kQueued, before);
  }
  static FiberCore* coreOf(Fiber& fiber) { return control(fiber).core(); }
  /// Makes a suspended fiber that comes from another thread, or was started by hand, this thread's and its worker's.
  void adopt(Fiber& fiber);
  /// Leaves the fiber without a home. Requests to it from now on wait for the thread that adopts it.
  static void moveOut(Fiber& fiber);
  /// Returns null if the fiber is on a plain thread or on its way, or if its worker has ended.
  static FiberHome* homeOf(const Fiber& fiber) { return control(fiber).m_requests.home(); }
  /// Returns true if the fiber was started on a plain thread and no scheduler has had it since.
  static bool runsByHand(const Fiber& fiber) { return control(fiber).m_requests.byHand(); }
  static bool hasStarted(const Fiber& fiber) { return control(fiber).m_thread_id.load(std::memory_order_acquire) != 0; }
  /// Ends a scheduled fiber that got no stack: its join() throws std::bad_alloc.
  static void failToStart(Fiber& fiber);
  /// Abandons a scheduled fiber that is in no queue any more, so that it never runs again. If it has begun, its stack and core
  /// are never used again. If not, drop() must follow. Notifies its end observers.
  static void abandon(Fiber& fiber);
  /// Releases a fiber that was abandoned before it began, and destroys its captures, which is the program's code.
  static void drop(Fiber& fiber);
  /// Abandons a fiber whose thread is left behind with it, and which may even be running. Notifies its end observers.
  static void abandonWithThread(Fiber& fiber);
  /// Tells the end observers that the fiber will not end. It may still end, because it runs on a thread that is left behind.
  static void announceAbandoned(Fiber& fiber);

  /// Makes a request to `fiber`, which has started. Its thread handles that soon. Any thread.
  static void post(Fiber& fiber, FiberControl::Requested what);
  static uint8_t takeRequests(Fiber& fiber) { return control(fiber).m_requests.take(); }
  static void setMigrationTarget(Fiber& fiber, std::shared_ptr<MigrationTarget> target);
  static std::shared_ptr<MigrationTarget> takeMigrationTarget(Fiber& fiber);

  /// Returns the handle that stands for the thread's own stack.
  Fiber::ptr ownStackHandle();

  /// Returns the fiber whose guard contains `address`, if this thread runs it or is switching from it, else null. For a signal
  /// handler on this thread.
  static const FiberCore* ownerOfGuard(const void* address);

  /// Adds `change` to the number of Fiber objects that exist. Any thread.
  static void countFiber(int change);
  /// Returns how many Fiber objects exist. Any thread, and signal handlers.
  static uint64_t countedFibers();

  FiberHost* host() const { return m_host; }
  /// Calls `act` as the worker, whose thread_local variables have initialisers and destructors that only it can run. It must be
  /// brief and must not suspend.
  static void callAsWorker(void (*act)());
#ifdef SYLAR_THREAD_POINTER
  /// Returns the thread pointer of the thread itself, under which its loop and most of its fibers run.
  uintptr_t ownThreadPointer() const { return m_thread_pointer; }
  /// Lets `me`, the running fiber, be the thread until that gives it back. `lends`: to the library the thread is its worker.
  void callOn(BorrowedThread& thread, FiberCore& me, bool lends);
  /// Called in the thread, which gives its fiber back or, if it began as this thread, ends it. Returns when another fiber runs the
  /// thread or, if it is over, on its kernel thread.
  static void giveBack(BorrowedThread& mine);
  /// Sets the worker's own thread pointer, under which `running` is the fiber that runs.
  void becomeWorker(FiberCore* running);
  /// Called in the thread when a fiber runs it for the first time.
  static void arriveOn(const BorrowedThread& mine);
  /// Takes a free thread for a call, or returns null.
  BorrowedThread* takeThread(size_t stack_size) { return m_threads.take(stack_size); }
  void putThread(BorrowedThread& thread) { m_threads.put(thread); }
  /// Takes from the calling thread what that gave it, because it is no fiber any more.
  static void forgetThread();
#endif
  void setHost(FiberHost* host, FiberHome* home);

 private:
  friend Fiber;
  friend FiberControl;
  ThreadFibers();
  ~ThreadFibers();
  static ThreadFibers& beginWithThread();
  static void endWithThread(void*);
  struct Count;  // one per thread, so that spawning threads do not share a cache line

  static void fiberMain();
  static void exitFiber();
  static void keepForEver(Fiber& fiber);
  void moveIn(Fiber& fiber);
  Context::Kind kindOfSwitch(const FiberCore* resumer) const;
  void switchOut(FiberCore& me, FiberCore* to);
  template <bool kTells>
  void leave(FiberCore& me, FiberCore* resumer);
  void leaveSpecially(FiberCore& me, FiberCore* to);
#ifdef SYLAR_THREAD_POINTER
  void leaveThreadPointer(const FiberCore& me, FiberCore* to);
  static void arriveAs(uintptr_t thread_pointer, FiberCore& me);
  void takeThreadPointer(FiberCore& me);
  void adoptThreadPointer(const FiberCore& me);
#endif
  void takeBack(BorrowedThread& thread, const Context& rests);
  static void setRunning(FiberCore* core);
  [[gnu::cold]] FiberCore& enterAsWorker(FiberCore& core);
  void switchTelling(Context& from, FiberCore* to, Context::Kind kind);
  [[noreturn]] void exitTelling(FiberCore& me);
  static void arriveTelling(void* fake_stack);
  void holdOwnStack() const;
  Context& contextOf(FiberCore* core) { return core != nullptr ? core->context : m_own_stack; }
#ifdef SYLAR_THREAD_POINTER
  const uintptr_t m_thread_pointer = threadPointer();
#endif
  void discard(Fiber& fiber);
  void recycle(FiberCore& core);
  OverflowReport m_overflow_report{ownerOfGuard};
  const ThreadLocals m_thread_locals = ThreadLocals::ofThisThread();
  Context m_own_stack;
  FiberCore* m_came_back = nullptr;
  Stack m_own_bounds;               // of m_own_stack, as the sanitizer knows it
  bool m_leaves_own_stack = false;  // in a switch that it is told of
  FiberHost* m_host = nullptr;
  FiberHome* m_home = nullptr;
  uint64_t m_owner = 0;  // of m_home, when this was its worker's
  StackPool m_stacks;
  FreeThreads m_threads;
  CorePool m_cores;
  ControlMemory m_free_controls;
  Fiber::ptr m_own_handle;
};

/// A fiber and its resumer call one another, while a worker's loop enters one after the other.
inline Context::Kind ThreadFibers::kindOfSwitch(const FiberCore* resumer) const {
  return resumer == nullptr && m_host != nullptr ? Context::Kind::kLoop : Context::Kind::kCall;
}

[[gnu::always_inline]] inline FiberCore& ThreadFibers::enterFromLoop(FiberCore& core) {
  SYLAR_DCHECK(onThreadStack() && core.fiber != nullptr);
  SYLAR_DCHECK(core.resumer == nullptr || core.live);
  const tsan::Exempt of_this_thread;
  t_running = &core;
  if (core.isWatched()) [[unlikely]] {
    switchTelling(m_own_stack, &core, Context::Kind::kLoop);
  } else {
    Context::switchTo(m_own_stack, core.context, m_thread_locals, Context::Kind::kLoop);
  }
  return *m_came_back;
}

/// Afterwards nothing that belongs to this thread may be used, because the fiber may be on another one.
[[gnu::always_inline]] inline void ThreadFibers::switchOut(FiberCore& me, FiberCore* to) {
  SYLAR_DCHECK(&me == t_running && to != &me);
  if (to == nullptr && !me.live && sys::inForkedChild()) {  // for those that are live the host looks, in passOn()
    stayInChild(me);
    return;
  }
  if (me.special != 0) [[unlikely]] {
    leaveSpecially(me, to);
    return;
  }
  leave<false>(me, to);
}

/// `kTells`: a fiber that is watched tells of the switch.
template <bool kTells>
[[gnu::always_inline]] inline void ThreadFibers::leave(FiberCore& me, FiberCore* resumer) {
  const tsan::Exempt of_this_thread;
  FiberCore* to = resumer;
  m_came_back = &me;
  if (resumer == nullptr && me.live) {  // not a fiber that the host's own code has resumed by hand
    t_running = nullptr;                // a signal handler interrupts the host from here on, and no fiber
    to = m_host->passOn(me);
  }
  t_running = to;
  if (to == &me) return;
  tsan::release(&me);  // for the thread that gives the fiber up
  if (kTells && me.isWatched()) {
    switchTelling(me.context, to, kindOfSwitch(resumer));
  } else {
    Context::switchTo(me.context, contextOf(to), m_thread_locals, kindOfSwitch(resumer));
  }
  if (tsan::strict()) tsan::acquire(&current());
}

[[gnu::always_inline]] inline void ThreadFibers::park(FiberCore& me) {
  SYLAR_DCHECK(&me == t_running);
  me.switch_reason = SwitchReason::kParked;
  control(*me.fiber).move(FiberState::kRunning, FiberState::kParked);
  switchOut(me, nullptr);
}

}  // namespace sylar::detail
