#include "sylar/fiber/thread_fibers.h"

#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/base/worker_local.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber/fiber_refused.h"

extern "C" void* __dso_handle;

namespace sylar::detail {

[[gnu::tls_model("initial-exec")]] constinit thread_local FiberCore* t_running = nullptr;

namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadFibers* t_this = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_owner =
    0;  // of the worker that has run it last, by its own pointer
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_in_exit = false;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_is_known = false;  // it has run fibers by its own thread pointer

#ifdef SYLAR_THREAD_POINTER
/// Returns the copy of t_to_worker of the thread with that pointer.
ptrdiff_t& toWorkerOf(uintptr_t thread_pointer) {
  return *reinterpret_cast<ptrdiff_t*>(reinterpret_cast<uintptr_t>(&t_to_worker) - threadPointer() + thread_pointer);
}
#endif

/// Returns true if `address` is on the stack that libc has given the calling thread, and no fiber has it.
bool onStackOfThread(const void* address) {
  if (t_running->stack.contains(address)) return false;
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return true;
  void* base;
  size_t size;
  ::pthread_attr_getstack(&attributes, &base, &size);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base) < size;
}

}  // namespace

[[gnu::noinline]] FiberCore* runningFiber() {
  __asm__ volatile("");
  return t_running;
}

[[gnu::noinline]] void* FiberControl::operator new(size_t size) {
  const tsan::Exempt of_this_thread;
  return t_this != nullptr ? t_this->m_free_controls.take(size) : ::operator new(size);
}
[[gnu::noinline]] void FiberControl::operator delete(void* memory) {
  const tsan::Exempt of_this_thread;
  t_this != nullptr ? t_this->m_free_controls.put(memory) : ::operator delete(memory);
}

/// exit() calls this as well, before all other handlers, on the stack on which it was called. (pthread_exit has left the fiber's
/// stack, which is an error.) Source: glibc, stdlib/exit.c, __call_tls_dtors.
void ThreadFibers::endWithThread(void*) {
  if (t_this == nullptr) return;  // it has been a fiber, and is over
  const bool in_fiber = t_running != nullptr && !onStackOfThread(__builtin_frame_address(0));
  t_in_exit = in_fiber || (t_running == nullptr && t_this->m_host != nullptr);
  if (in_fiber && stack_watch::isOn()) t_this->holdOwnStack();
  if (t_in_exit) return;  // what runs here goes on using all this
  delete t_this;
  t_this = nullptr;
}

bool ThreadFibers::inExit() { return t_in_exit; }

void ThreadFibers::leaveFibers() {
  m_came_back = t_running;  // for the report of an overflow
  t_running = nullptr;
  setHost(nullptr, nullptr);
}

[[gnu::noinline]] ThreadFibers& ThreadFibers::current() {
  __asm__ volatile("");
  return t_this != nullptr ? *t_this : beginWithThread();
}

[[gnu::noinline]] ThreadFibers& ThreadFibers::beginWithThread() {
  SYLAR_DCHECK(t_this == nullptr);
  t_this = new ThreadFibers;
  // Not by a thread_local of our own. Its destructor would run once, but destructors of others that run later may make another
  // ThreadFibers. Source: Itanium C++ ABI, 3.3.5.
  abi::__cxa_thread_atexit(endWithThread, nullptr, &__dso_handle);
  return *t_this;
}

const FiberCore* ThreadFibers::ownerOfGuard(const void* address) {
  // During a switch, t_running already names the next fiber, while the one that leaves is still on its stack. The latter is a
  // resumer, or a fiber that gives control back.
  const FiberCore* const candidates[] = {t_running, t_running != nullptr ? t_running->resumer : nullptr,
                                         t_this != nullptr ? t_this->m_came_back : nullptr};
  for (const FiberCore* core : candidates) {
    if (core != nullptr && core->fiber != nullptr && core->stack.guards(address)) return core;
  }
  return nullptr;
}

void ThreadFibers::setHost(FiberHost* host, FiberHome* home) {
  SYLAR_DCHECK(onThreadStack() && (host == nullptr) == (home == nullptr));
  m_host = host;
  m_home = home;
  m_owner = home != nullptr ? home->owner.load(std::memory_order_relaxed) : 0;
  tsan::release(this);  // for fibers that come from other threads
}

ThreadFibers::Started ThreadFibers::start(Fiber& fiber, bool borrows) {
  SYLAR_DCHECK(this == t_this && control(fiber).core() == nullptr);
  const tsan::Exempt of_this_thread;
  const bool watched = stack_watch::isOn();
  const size_t stack_size = control(fiber).m_stack_size;
  BorrowedThread* thread = nullptr;
  Stack stack;
  if (borrows && m_host != nullptr && m_host->lends_threads && !control(fiber).runsAsWorker()) [[unlikely]] {
    if (control(fiber).threadRefused()) return Started::kNoMemory;
    thread = m_threads.take(stack_size);
    if (thread == nullptr) return Started::kNoThread;
    stack = thread->stack;
  } else {
    stack = m_stacks.take(stack_size << (watched ? 1 : 0));  // frames are larger then
    if (!stack) return Started::kNoMemory;
  }
  FiberCore* core = m_cores.take();
  if (core == nullptr) {
    thread != nullptr ? m_threads.put(*thread) : m_stacks.put(stack);
    return Started::kNoMemory;
  }
  SYLAR_DCHECK(core->fiber == nullptr && !core->live && !core->timer_linked && !core->wait.isOpen());
  tsan::acquire(core);
  tsan::acquire(stack.base);
  core->switch_reason = SwitchReason::kReady;
  core->permit = false;
  core->hook_enabled = true;
  core->cancelled = 0;
  core->shielded = false;
  core->in_deadline_scope = false;
  core->in_cancel_scope = false;
  core->special = watched ? FiberCore::kWatched : 0;
  core->sent_by_ring = false;
  core->cancelled_waits = FiberCore::kCancelledWaits;
  core->fiber = &fiber;
  core->deadline_ns = kNever;
  core->stack = stack;
  if (watched) [[unlikely]]
    stack_watch::begin(stack);
  if (thread != nullptr) [[unlikely]] {
    core->special = FiberCore::kBorrows | FiberCore::kOwnThreadPointer;
    thread->core = core;
    core->context = thread->context;
    control(fiber).m_started = ::new (thread->started) StartedState(*core);
    control(fiber).m_started->thread = thread->id;
    control(fiber).m_started->thread_pointer = thread->thread_pointer;
  } else {
    control(fiber).m_started = ::new (stack.top() - sizeof(StartedState)) StartedState(*core);
    core->context.make<&ThreadFibers::fiberMain>({stack.base, stack.size - static_cast<uint32_t>(sizeof(StartedState))});
  }
  moveIn(fiber);
  return Started::kYes;
}

void ThreadFibers::adopt(Fiber& fiber) {
  SYLAR_DCHECK(this == t_this && control(fiber).core() != nullptr);
  if (!control(fiber).m_requests.at(m_home)) moveIn(fiber);
}

void ThreadFibers::moveIn(Fiber& fiber) {
  SYLAR_DCHECK(control(fiber).core() != nullptr && control(fiber).core()->fiber == &fiber);
  FiberCore& core = *control(fiber).core();
  core.home = m_home;
  core.resumer = nullptr;
  control(fiber).m_thread_id.store(sys::threadId(), std::memory_order_release);
  const uint8_t requested = control(fiber).m_requests.moveIn(m_home);
  if ((requested & FiberControl::kPermit) != 0) core.permit = true;
  if ((requested & FiberControl::kCancel) != 0) core.cancelForGood(FiberCore::kByRequest);
  if ((requested & FiberControl::kScopeFired) != 0) core.setCancelledByScope(FiberControl::inFiredScope(core));
  if ((requested & FiberControl::kThread) != 0) post(fiber, FiberControl::kThread);  // it may have been here before
}

void ThreadFibers::moveOut(Fiber& fiber) {
  SYLAR_DCHECK(control(fiber).core() != nullptr);
  tsan::acquire(control(fiber).core());  // what it did here; the thread may end before it comes back, or for good
  control(fiber).m_requests.moveOut();
}

void ThreadFibers::post(Fiber& fiber, FiberControl::Requested what) {
  tsan::release(&fiber);
  if (!control(fiber).m_requests.post(what)) return;
  FiberHome* const home = homeOf(fiber);
  if (home == nullptr) return;
  if (Fiber::ptr owned = fiber.weak_from_this().lock()) home->handleRequests(std::move(owned));
}

void ThreadFibers::setMigrationTarget(Fiber& fiber, std::shared_ptr<MigrationTarget> target) {
  FiberControl::Extras& extras = control(fiber).extras();
  Lock lock(extras.lock);
  extras.migration_target.swap(target);
  lock.unlock();  // the previous one is destroyed outside the lock
}

std::shared_ptr<MigrationTarget> ThreadFibers::takeMigrationTarget(Fiber& fiber) {
  FiberControl::Extras* const extras = control(fiber).ifExtras();
  if (extras == nullptr) return nullptr;
  Lock lock(extras->lock);
  return std::move(extras->migration_target);
}

SYLAR_SWITCHES FiberCore& ThreadFibers::enter(FiberCore& core) {
  SYLAR_DCHECK(this == t_this && core.fiber != nullptr && &core != t_running);
  const tsan::Exempt of_this_thread;
  FiberCore* const me = t_running;
#ifdef SYLAR_THREAD_POINTER
  if (me != nullptr) {
    if (me->borrowsThread() && threadPointer() != m_thread_pointer && !sys::inForkedChild()) return enterAsWorker(core);
    if (!core.borrowsThread()) core.setOwnThreadPointer(me->ownsThreadPointer() && !me->borrowsThread());
  }
#endif
  t_running = &core;
  if (core.isWatched()) [[unlikely]] {
    switchTelling(contextOf(me), &core, kindOfSwitch(me));
  } else {
    Context::switchTo(contextOf(me), core.context, m_thread_locals, kindOfSwitch(me));
  }
  return *m_came_back;
}

/// In a forked child only the fiber that forked exists; its worker's loop, and all that could wake it, are in the parent. So
/// where it would be suspended it goes on instead, as on a thread's own stack.
void ThreadFibers::stayInChild(FiberCore& me) {
  SYLAR_DCHECK(sys::inForkedChild() && &me == t_running);
  if (me.switch_reason == SwitchReason::kDone) ::_exit(control(*me.fiber).m_exception == nullptr ? 0 : 1);
  if (me.switch_reason != SwitchReason::kParked) return;
  const std::atomic<uint32_t> never{0};
  while (me.wait.isOpen() && steadyClock().nowNs() < me.deadline_ns) sys::futexWait(never, 0, me.deadline_ns);
  (void)me.wait.claim(me.wait.epoch(), WakeReason::kTimeout);
  control(*me.fiber).move(FiberState::kParked, FiberState::kRunning);
}

SYLAR_SWITCHES void ThreadFibers::yield(SwitchReason reason) {
  SYLAR_DCHECK(!onThreadStack());
  SYLAR_DCHECK(reason != SwitchReason::kParked && reason != SwitchReason::kDone);
  FiberCore& me = *t_running;
  ThreadFibers& thread = *t_this;
  me.switch_reason = reason;
  if (me.timer_linked && !me.live) thread.m_host->unlinkTimer(me);  // the fiber may stay longer than the worker
  thread.switchOut(me, me.resumer);
}

#ifdef SYLAR_THREAD_POINTER

/// The fiber that goes on sets its own thread pointer, and all others have the worker's. So from one thread to the next it is
/// written once.
SYLAR_SWITCHES void ThreadFibers::leaveSpecially(FiberCore& me, FiberCore* to) {
  if (!me.ownsThreadPointer()) return leave<true>(me, to);
  if (sys::inForkedChild()) return to == nullptr ? stayInChild(me) : leave<true>(me, to);
  const uintptr_t mine = threadPointer();
  m_came_back = &me;
  if (to == nullptr && me.live) {
    t_running = nullptr;  // as in leave()
    to = m_host->passOn(me);
    t_running = &me;
    if (to == &me) return;
  }
  leaveThreadPointer(me, to);
  if (me.isWatched()) {
    switchTelling(me.context, to, Context::Kind::kCall);
  } else {
    Context::switchTo(me.context, contextOf(to), m_thread_locals);
  }
  arriveAs(mine, me);
}

/// A resumer may have the same thread pointer, and all have in a forked child, where libc gives the worker's to another thread.
[[gnu::noinline]] void ThreadFibers::leaveThreadPointer(const FiberCore& me, FiberCore* to) {
  const bool is_child = sys::inForkedChild();
  if (is_child || (to != nullptr && to == me.resumer && !me.borrowsThread())) t_running = to;
  if (!is_child && (to == nullptr || !to->ownsThreadPointer())) becomeWorker(to);
}
[[gnu::noinline]] void ThreadFibers::becomeWorker(FiberCore* running) {
  becomeThread(m_thread_pointer);
  setRunning(running);
}
[[gnu::noinline]] void ThreadFibers::setRunning(FiberCore* core) { t_running = core; }

void ThreadFibers::callAsWorker(void (*act)()) {
  if (t_to_worker == 0) return act();
  const uintptr_t mine = threadPointer();
  current().becomeWorker(runningFiber());
  act();
  becomeThread(mine);
}

/// Goes on as the thread, on whatever worker. Handlers may ask for that as soon as the thread pointer is set.
[[gnu::noinline]] void ThreadFibers::arriveAs(uintptr_t thread_pointer, FiberCore& me) {
  ThreadFibers& here = *t_this;
  if (me.borrowsThread()) toWorkerOf(thread_pointer) = static_cast<ptrdiff_t>(here.m_thread_pointer - thread_pointer);
  becomeThread(thread_pointer);
  here.takeThreadPointer(me);
}
/// Called under the thread pointer of `me`.
[[gnu::noinline]] void ThreadFibers::takeThreadPointer(FiberCore& me) {
  t_running = &me;
  if (t_owner != m_owner) adoptThreadPointer(me);
}

/// A fiber that is resumed by hand runs as the worker, because it may outlive what its resumer has borrowed.
SYLAR_SWITCHES FiberCore& ThreadFibers::enterAsWorker(FiberCore& core) {
  const uintptr_t mine = threadPointer();
  becomeWorker(t_running);
  FiberCore& back = enter(core);
  becomeThread(mine);
  return back;
}

/// Makes this the one of a thread pointer that has not been here before, or was elsewhere in between.
[[gnu::noinline]] void ThreadFibers::adoptThreadPointer(const FiberCore& me) {
  t_this = this;
  t_owner = m_owner;
  if (me.borrowsThread()) sys::detail::t_thread_id = ofWorker(sys::detail::t_thread_id);  // to the library it is the worker
  if (m_host != nullptr) m_host->adoptThreadPointer();
  if (ThreadLender* const lender = ThreadLender::get()) lender->isRunElsewhere();
  if (std::exchange(t_is_known, true)) return;
  abi::__cxa_thread_atexit(endWithThread, nullptr, &__dso_handle);  // for exit()
}

SYLAR_SWITCHES void ThreadFibers::callOn(BorrowedThread& thread, FiberCore& me, bool lends) {
  const uint8_t before = me.special;
  const Stack first = std::exchange(me.stack, thread.stack);
  thread.core = &me;
  me.started().thread_pointer = thread.thread_pointer;
  me.special = static_cast<uint8_t>(before | FiberCore::kOwnThreadPointer | (lends ? FiberCore::kBorrows : 0)) & 7;
  if (me.isWatched()) stack_watch::hold(me.stack.base, me.stack.size);
  Context::switchTo(thread.caller, thread.context, m_thread_locals);
  if (me.isWatched()) stack_watch::release(me.stack.base, me.stack.size);
  me.started().thread_pointer = 0;
  me.stack = first;
  me.special = before & 7;
}

SYLAR_SWITCHES void ThreadFibers::giveBack(BorrowedThread& mine) {
  SYLAR_DCHECK(t_running == mine.core && threadPointer() == mine.thread_pointer);
  FiberCore& me = *t_running;
  ThreadFibers& here = *t_this;
  if (mine.isWhole(me)) {
    me.switch_reason = SwitchReason::kDone;
    if (me.resumer == nullptr && sys::inForkedChild()) stayInChild(me);
    here.m_came_back = &me;
    here.leaveThreadPointer(me, me.resumer);
    Context::switchTo(me.context, here.contextOf(me.resumer), here.m_thread_locals);
  } else {
    if (!sys::inForkedChild()) here.becomeWorker(&me);
    Context::switchTo(mine.context, mine.caller, here.m_thread_locals);
  }
  if (!mine.over) arriveOn(mine);
}

void ThreadFibers::arriveOn(const BorrowedThread& mine) { arriveAs(mine.thread_pointer, *mine.core); }

[[gnu::noinline]] void ThreadFibers::forgetThread() {
  t_this = nullptr;
  t_running = nullptr;
  t_owner = 0;
  t_to_worker = 0;
}

#else

SYLAR_SWITCHES void ThreadFibers::leaveSpecially(FiberCore& me, FiberCore* to) { leave<true>(me, to); }
void ThreadFibers::callAsWorker(void (*act)()) { act(); }

#endif

void ThreadFibers::fiberMain() {
  SYLAR_DCHECK(!onThreadStack());
  const FiberCore& me = *runningFiber();
  if (me.isWatched()) [[unlikely]]
    arriveTelling(nullptr);
  control(*me.fiber).run();
  // A tail call. A call that never returns leaves one return address too many on the processor's stack of them, and the joiner's
  // next returns are mispredicted. That is also why exitFiber() is not said to be [[noreturn]].
#ifdef __clang__
  [[clang::musttail]]
#endif
  return exitFiber();
}

/// A function of its own, because the fiber may have been moved: the thread is looked up again here.
SYLAR_SWITCHES void ThreadFibers::exitFiber() {
  SYLAR_DCHECK(!onThreadStack());
  FiberCore& me = *t_running;
  ThreadFibers& thread = *t_this;
  me.switch_reason = SwitchReason::kDone;
  if (me.resumer == nullptr && sys::inForkedChild()) stayInChild(me);
  {
    const tsan::Exempt of_this_thread;
    t_running = me.resumer;
    thread.m_came_back = &me;
  }
  if (me.isWatched()) [[unlikely]]
    thread.exitTelling(me);
  Context::exitTo(me.context, thread.contextOf(me.resumer), thread.m_thread_locals);
}

void ThreadFibers::takeBack(BorrowedThread& thread, const Context& rests) {
  thread.context = rests;
  thread.over ? FreeThreads::putOver(thread) : m_threads.put(thread);
}

void ThreadFibers::recycle(FiberCore& core) {
  SYLAR_DCHECK(this == t_this && &core != t_running);
  SYLAR_DCHECK(core.fiber != nullptr && !core.live);
  const tsan::Exempt of_this_thread;
  if (core.timer_linked) m_host->unlinkTimer(core);
  core.context.release();
  if (core.isWatched()) [[unlikely]]
    stack_watch::end(core.stack);
  tsan::release(&core);  // for their next users
  tsan::release(core.stack.base);
  const bool done = core.switch_reason == SwitchReason::kDone;
  if (core.borrowsThread() && done) {
    takeBack(BorrowedThread::of(core.started()), core.context);
  } else if (!core.ownsThreadPointer() || done) {
    m_stacks.put(core.stack);
  }
  core.fiber = nullptr;
  m_cores.put(&core);
}

Fiber::ptr ThreadFibers::finish(FiberCore& core) {
  SYLAR_DCHECK(core.switch_reason == SwitchReason::kDone && core.fiber != nullptr);
  Fiber& fiber = *core.fiber;
  Fiber::ptr last = std::move(control(fiber).m_self);
  recycle(core);
  control(fiber).m_started = nullptr;
  control(fiber).end(control(fiber).m_exception ? FiberState::kFailed : FiberState::kEnded);
  return last;
}

void ThreadFibers::failToStart(Fiber& fiber) {
  SYLAR_DCHECK(control(fiber).core() == nullptr && control(fiber).m_self != nullptr);
  const Fiber::ptr last = std::move(control(fiber).m_self);
  const std::function<void()> captures = std::exchange(control(fiber).m_cb, nullptr);  // destroyed after end()
  if (control(fiber).m_exception == nullptr) control(fiber).m_exception = std::make_exception_ptr(lastRefused());
  control(fiber).move(FiberState::kQueued, FiberState::kRunning);
  control(fiber).end(FiberState::kFailed);
}

void ThreadFibers::abandon(Fiber& fiber) {
  if (control(fiber).core() != nullptr) {
    control(fiber).m_self = fiber.weak_from_this().lock();  // null if it lies on a stack, which is kept with it
    keepForEver(fiber);
  }
  control(fiber).end(FiberState::kAbandoned);
}

void ThreadFibers::drop(Fiber& fiber) {
  if (control(fiber).core() != nullptr) return;  // it has begun, so its stack is never used again
  const Fiber::ptr last = std::move(control(fiber).m_self);
  control(fiber).m_cb = nullptr;
}

/// Leaks the fiber and what its stack holds, on purpose. To a leak checker the stack is still a fiber's.
void ThreadFibers::keepForEver(Fiber& fiber) {
  SYLAR_DCHECK(control(fiber).core() != nullptr);
  static constinit std::atomic<QueueNode*> g_kept{nullptr};
  tsan::acquire(control(fiber).core());
  FiberControl& kept = control(fiber);
  kept.next = g_kept.load(std::memory_order_relaxed);
  while (!g_kept.compare_exchange_weak(kept.next, &kept, std::memory_order_release, std::memory_order_relaxed)) {
  }
  countFiber(-1);
}

void ThreadFibers::abandonWithThread(Fiber& fiber) {
  keepForEver(fiber);
  announceAbandoned(fiber);
}

void ThreadFibers::announceAbandoned(Fiber& fiber) {
  control(fiber).m_ends.end(true, [] {});
}

void ThreadFibers::discard(Fiber& fiber) {
  SYLAR_DCHECK(control(fiber).core() != nullptr && control(fiber).core() != t_running);
  if (control(fiber).started().held.count() > 0) control(fiber).failHolding("ends");
  log::warn("fiber {} is dropped while suspended: its stack is reclaimed, destructors on it do not run", fiber.getId());
  tsan::acquire(control(fiber).core());
  control(fiber).dropStarted();
  current().recycle(*control(fiber).core());  // a destructor may have moved its caller to another thread
}

Fiber::ptr ThreadFibers::ownStackHandle() {
  if (m_own_handle == nullptr) m_own_handle = FiberControl::ownStack();
  return m_own_handle;
}

}  // namespace sylar::detail
