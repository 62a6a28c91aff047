#include "sylar/fiber/thread_fibers.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/clock.h"
#include "sylar/base/counter.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/suspend_check.h"

namespace sylar {

[[gnu::tls_model("initial-exec")]] constinit thread_local FiberCore* t_running = nullptr;

namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadFibers* t_this = nullptr;

}  // namespace

[[gnu::noinline]] FiberCore* runningFiber() {
  __asm__ volatile("");
  return t_running;
}

struct ThreadFibers::AtThreadExit {
  ~AtThreadExit() {
    // exit() in a fiber, which goes on using all this. (pthread_exit has left the fiber's stack, and that is an error.)
    const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
    if (t_running != nullptr && here >= t_running->stack.base && here < t_running->stack.top()) return;
    delete t_this;
    t_this = nullptr;  // thread_local destructors that run later make another one
  }
};

[[gnu::noinline]] ThreadFibers& ThreadFibers::current() {
  __asm__ volatile("");
  if (t_this == nullptr) {
    t_this = new ThreadFibers;
    static thread_local AtThreadExit at_exit;
    (void)&at_exit;
  }
  return *t_this;
}

/// What one thread has counted, and those that had its place before. In a list that only grows, so anybody may read it at any
/// time: no fork and no signal finds it locked. Threads that have ended leave their place to later ones.
struct alignas(64) ThreadFibers::Count {
  Counter fibers;
  std::atomic<bool> taken{true};
  Count* next = nullptr;

  static Count& acquire() {
    Count* const first = s_first.load(std::memory_order_acquire);
    for (Count* count = first; count != nullptr; count = count->next) {
      if (!count->taken.load(std::memory_order_relaxed) && !count->taken.exchange(true, std::memory_order_acquire)) return *count;
    }
    auto* const made = new Count;
    made->next = first;
    while (!s_first.compare_exchange_weak(made->next, made, std::memory_order_acq_rel, std::memory_order_acquire)) {
    }
    return *made;
  }

  static constinit std::atomic<Count*> s_first;
  static constinit std::atomic<uint64_t> s_others;  // by threads that run no fibers
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Count* t_own;
};
constinit std::atomic<ThreadFibers::Count*> ThreadFibers::Count::s_first{nullptr};
constinit std::atomic<uint64_t> ThreadFibers::Count::s_others{0};
constinit thread_local ThreadFibers::Count* ThreadFibers::Count::t_own = nullptr;

ThreadFibers::ThreadFibers() {
  m_own_stack.adoptThread();
  tsan::exemptErrno();
  Count::t_own = &Count::acquire();
}

ThreadFibers::~ThreadFibers() {
  SYLAR_CHECK(t_running == nullptr);
  m_own_handle = nullptr;  // counts
  std::exchange(Count::t_own, nullptr)->taken.store(false, std::memory_order_release);
}

[[gnu::noinline]] void ThreadFibers::countFiber(int change) {
  const auto count = static_cast<uint64_t>(int64_t{change});  // less than 0 on a thread where others' fibers end
  if (Count::t_own != nullptr) {
    Count::t_own->fibers.add(count);
  } else {
    Count::s_others.fetch_add(count, std::memory_order_relaxed);
  }
}

uint64_t ThreadFibers::countedFibers() {
  uint64_t total = Count::s_others.load(std::memory_order_relaxed);
  for (const Count* count = Count::s_first.load(std::memory_order_acquire); count != nullptr; count = count->next) {
    total += count->fibers.get();
  }
  return static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(total), 0));
}

const FiberCore* ThreadFibers::ownerOfGuard(const void* address) {
  // Within a switch the one that runs is noted already, while the one that leaves is still on its stack: a resumer, or a fiber
  // that gives control back.
  const FiberCore* const candidates[] = {t_running, t_running != nullptr ? t_running->resumer : nullptr,
                                         t_this != nullptr ? t_this->m_came_back : nullptr};
  for (const FiberCore* core : candidates) {
    if (core != nullptr && core->fiber != nullptr && core->stack.guards(address)) return core;
  }
  return nullptr;
}

void ThreadFibers::setHost(FiberHost* host, FiberHome* home) {
  m_host = host;
  m_home = home;
  tsan::release(this);  // for fibers that come from other threads
}

bool ThreadFibers::start(Fiber& fiber) {
  const tsan::Exempt of_this_thread;
  const Stack stack = m_stacks.take(fiber.m_stack_size);
  if (!stack) return false;
  FiberCore* core = m_cores.take();
  if (core == nullptr) {
    m_stacks.give(stack);
    return false;
  }
  tsan::acquire(core);
  tsan::acquire(stack.base);
  core->request = Request::kReady;
  core->permit = false;
  core->hook_enabled = true;
  core->cancelled = false;
  core->shielded = false;
  core->patience = FiberCore::kPatience;
  core->fiber = &fiber;
  core->stack = stack;
  core->deadline_ns = kNever;
  core->context.make<&ThreadFibers::fiberMain>(stack);
  fiber.m_core = core;
  settleIn(fiber);
  return true;
}

void ThreadFibers::adopt(Fiber& fiber) {
  const uint64_t owner = m_home == nullptr ? 0 : m_home->owner.load(std::memory_order_relaxed);
  const bool at_home =
      fiber.m_home.load(std::memory_order_relaxed) == m_home && fiber.m_home_owner.load(std::memory_order_relaxed) == owner;
  if (!at_home) settleIn(fiber);
}

/// Published first, looked second; who asks does it the other way round, so one of the two sees the other.
void ThreadFibers::settleIn(Fiber& fiber) {
  FiberCore& core = *fiber.m_core;
  core.home = m_home;
  core.resumer = nullptr;
  fiber.m_home_owner.store(m_home == nullptr ? 0 : m_home->owner.load(std::memory_order_relaxed), std::memory_order_relaxed);
  fiber.m_thread_id.store(sys::threadId(), std::memory_order_release);
  fiber.m_home.store(m_home, std::memory_order_seq_cst);
  if (fiber.m_asked.load(std::memory_order_seq_cst) == 0) return;
  const uint8_t asked = takeAsked(fiber);
  if ((asked & Fiber::kPermit) != 0) core.permit = true;
  if ((asked & Fiber::kCancel) != 0) core.cancelled = true;
}

void ThreadFibers::leaveHome(Fiber& fiber) {
  tsan::acquire(fiber.m_core);  // what it did here; the thread may end before it comes back, or for good
  fiber.m_home.store(nullptr, std::memory_order_seq_cst);
}

FiberHome* ThreadFibers::homeOf(const Fiber& fiber) {
  FiberHome* const home = fiber.m_home.load(std::memory_order_seq_cst);
  const bool stands =
      home != nullptr && home->owner.load(std::memory_order_acquire) == fiber.m_home_owner.load(std::memory_order_relaxed);
  return stands ? home : nullptr;
}

void ThreadFibers::ask(Fiber& fiber, Fiber::Asked what) {
  tsan::release(&fiber);
  fiber.m_asked.fetch_or(what, std::memory_order_seq_cst);
  FiberHome* const home = homeOf(fiber);
  if (home == nullptr) return;
  if (Fiber::ptr owned = fiber.weak_from_this().lock()) home->attend(std::move(owned));
}

void ThreadFibers::setDestination(Fiber& fiber, std::shared_ptr<FiberDestination> destination) {
  Lock lock(fiber.m_lock);
  fiber.m_destination.swap(destination);
  lock.unlock();  // the one before ends outside
}

std::shared_ptr<FiberDestination> ThreadFibers::takeDestination(Fiber& fiber) {
  Lock lock(fiber.m_lock);
  return std::move(fiber.m_destination);
}

SYLAR_SWITCHES FiberCore& ThreadFibers::enter(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  FiberCore* const me = t_running;
  t_running = &core;
  Context::switchTo(me != nullptr ? me->context : m_own_stack, core.context, m_places, kindOfSwitch(me));
  return *m_came_back;
}

/// In a forked child there is only the fiber that forked: its worker's loop, and all that could wake it, are the parent's.
void ThreadFibers::stayInChild(FiberCore& me) {
  if (me.request == Request::kDone) ::_exit(me.fiber->m_exception == nullptr ? 0 : 1);
  if (me.request == Request::kReady) return;
  if (me.request == Request::kParked) {
    const std::atomic<uint32_t> never{0};
    while (me.wait.isOpen() && steadyClock().nowNs() < me.deadline_ns) sys::futexWait(never, 0, me.deadline_ns);
    (void)me.wait.claim(me.wait.epoch(), WakeReason::kTimeout);
    me.fiber->move(Fiber::Life::kParked, Fiber::Life::kRunning);
    return;
  }
  sys::haltThread();  // held: only another fiber could schedule it
}

SYLAR_SWITCHES void ThreadFibers::yield(Request request) {
  FiberCore& me = *t_running;
  ThreadFibers& thread = *t_this;
  me.request = request;
  if (me.timer_linked && !me.live) thread.m_host->unlinkTimer(me);  // it may stay longer than the worker
  thread.switchOut(me, me.resumer);
}

void ThreadFibers::fiberMain() {
  runningFiber()->fiber->run();
  leaveForEver();
}

/// The fiber may have been moved meanwhile, so in a function of its own: whose thread this is, is looked up anew.
SYLAR_SWITCHES void ThreadFibers::leaveForEver() {
  FiberCore& me = *t_running;
  ThreadFibers& thread = *t_this;
  me.request = Request::kDone;
  if (me.resumer == nullptr && sys::inForkedChild()) stayInChild(me);
  {
    const tsan::Exempt of_this_thread;
    t_running = me.resumer;
    thread.m_came_back = &me;
  }
  Context::exitTo(me.context, me.resumer != nullptr ? me.resumer->context : thread.m_own_stack, thread.m_places);
}

void ThreadFibers::recycle(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  if (core.timer_linked) m_host->unlinkTimer(core);
  core.context.release();
  tsan::release(&core);  // for those who use them next
  tsan::release(core.stack.base);
  m_stacks.give(core.stack);
  core.fiber = nullptr;
  m_cores.give(&core);
}

void ThreadFibers::finish(FiberCore& core) {
  Fiber& fiber = *core.fiber;
  const Fiber::ptr last = std::move(fiber.m_self);
  fiber.m_core = nullptr;
  recycle(core);
  fiber.end(fiber.m_exception == nullptr ? Fiber::Life::kEnded : Fiber::Life::kFailed);
}

void ThreadFibers::failToStart(Fiber& fiber) {
  const Fiber::ptr last = std::move(fiber.m_self);
  fiber.m_cb = nullptr;
  fiber.m_exception = std::make_exception_ptr(std::bad_alloc());
  fiber.move(Fiber::Life::kQueued, Fiber::Life::kRunning);
  fiber.end(Fiber::Life::kFailed);
}

void ThreadFibers::abandon(Fiber& fiber) {
  if (fiber.m_core == nullptr) {
    const Fiber::ptr last = std::move(fiber.m_self);
    fiber.m_cb = nullptr;
    fiber.end(Fiber::Life::kAbandoned);
    return;
  }
  fiber.m_self = fiber.weak_from_this().lock();  // null: it lies on a stack that is kept with it
  keepForEver(fiber);
  fiber.end(Fiber::Life::kAbandoned);
}

/// It will never be destroyed, and neither will what its stack holds: on purpose.
void ThreadFibers::keepForEver(Fiber& fiber) {
  static constinit std::atomic<QueueNode*> g_kept{nullptr};
  tsan::acquire(fiber.m_core);
  Context::keepForEver(fiber.m_core->stack);
  fiber.next = g_kept.load(std::memory_order_relaxed);
  while (!g_kept.compare_exchange_weak(fiber.next, &fiber, std::memory_order_release, std::memory_order_relaxed)) {
  }
  countFiber(-1);
}

void ThreadFibers::leaveBehind(Fiber& fiber) {
  keepForEver(fiber);
  Lock lock(fiber.m_lock);
  fiber.m_given_up = true;
  fiber.tellObservers();
}

void ThreadFibers::discard(Fiber& fiber) {
  log::warn("fiber {} is dropped while suspended: its stack is reclaimed, destructors on it do not run", fiber.getId());
  tsan::acquire(fiber.m_core);
  recycle(*fiber.m_core);
}

Fiber::ptr ThreadFibers::ownStackHandle() {
  if (m_own_handle == nullptr) m_own_handle.reset(new Fiber(Fiber::OwnStack{}));
  return m_own_handle;
}

}  // namespace sylar
