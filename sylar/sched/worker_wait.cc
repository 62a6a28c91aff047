// How fibers wait: the bodies of waker.h and park.h, and what a worker does with a fiber that parks.
#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

SYLAR_SWITCHES WakeReason Worker::park(const Waker& waker, Deadline deadline, WaitFor what) noexcept {
  FiberCore& core = *waker.core;
  Worker& self = *static_cast<WorkerSlot*>(core.home)->worker;
  if (!core.live) return self.parkByHand(waker, deadline, what);
  SYLAR_DCHECK(&core == t_running && self.isHere() && (!self.inLoop() || sys::inForkedChild()));
  const tsan::Exempt of_this_thread;
  // If the fiber was cancelled before, the wait is decided here and now, and its delivery goes to the back of the queue like any
  // other.
  if (self.mayInterrupt(core) && waker.claim(WakeReason::kCanceled)) self.m_runnable.push(&core);
  if (!deadline.isNever()) {
    self.m_timeouts.arm(core, deadline.ns());
    control(*core.fiber).noteDeadline();
  }
  core.counted = what == WaitFor::kOutside || !deadline.isNever();
  self.m_waiting += core.counted;
  self.m_thread_fibers->park(inRegister(core));
  self.m_waiting -= core.counted;
  core.deadline_ns = kNever;
  tsan::acquire(&core.wait);  // sees what the winner of the claim released
  return core.wait.reason();
}

/// Parks a fiber that was resumed by hand. While it waits, it is the worker's.
[[gnu::noinline]] WakeReason Worker::parkByHand(const Waker& waker, Deadline deadline, WaitFor what) {
  FiberCore& core = *waker.core;
  SYLAR_DCHECK(!core.live && core.resumer != nullptr);
  const Fiber::ptr keep = core.fiber->weak_from_this().lock();
  core.setCancelledByScope(FiberControl::inFiredScope(core));  // of its resumers, which it may outlive
  hasResumed(core);
  linkLive(core, m_cancels_all);  // not the scheduler's: if this worker was detached, that may be gone
  const WakeReason reason = park(waker, deadline, what);
  m_live.remove(core);
  resumes(core);
  return reason;
}

/// The wait is shielded, because a joiner may have lent the fiber its own stack, and goes on only when that is over. If the
/// last phase of cancelling ends the wait nevertheless, the joiner waits again, and is abandoned.
void Worker::awaitEnd(Fiber& fiber) {
  SYLAR_DCHECK(!onThreadStack() && runningFiber()->fiber != &fiber);
  struct Joiner : EndObserver {
    Waker waker;
  } joiner;
  joiner.claim = [](EndObserver* observer) { return static_cast<Joiner*>(observer)->waker.claim(WakeReason::kReady); };
  joiner.ended = [](EndObserver* observer) {
    FiberCore& core = *static_cast<Joiner*>(observer)->waker.core;
    Worker* const here = Worker::currentHere();
    if (here == nullptr || &here->slot() != core.home || !here->resumeNext(core)) Waker::deliver(core);
  };
  const this_fiber::CancelShield shield;
  FiberCore& me = *runningFiber();
  for (;;) {
    Wait wait(me, WaitsFor::kFiber, fiber.getId());
    joiner.waker = {&me, wait.waker().epoch};  // a load of both at once would wait for the two stores that have just made them
    if (!control(fiber).observeEnd(joiner)) {
      wait.withdraw();
      return;
    }
    const tsan::Exempt of_this_thread;
    me.started().joins = &fiber;
    ++m_joining;
    if (stateOf(fiber) == FiberState::kQueued) m_joined = &control(fiber);
    const WakeReason reason = wait.park(Deadline::never(), WaitFor::kFibers);
    --m_joining;
    me.started().joins = nullptr;
    if (reason == WakeReason::kReady) return;
    control(fiber).unobserveEnd(joiner);
  }
}

/// A fiber that runs elsewhere ends without this scheduler's doing. One of ours does not end if nothing else goes on.
size_t Worker::joinsElsewhere() const {
  if (m_joining == 0) return 0;
  size_t count = 0;
  for (const FiberCore* core = m_live.first(); core != nullptr; core = core->live_next) {
    const Fiber* const joined = core->started().joins;
    if (joined == nullptr) continue;
    if (stateOf(*joined) == FiberState::kInit) continue;  // nobody has scheduled it
    auto* const home = static_cast<WorkerSlot*>(ThreadFibers::homeOf(*joined));
    count += home == nullptr || home->scheduler.load(std::memory_order_acquire) != &m_scheduler;
  }
  return count;
}

template <>
void Waker::deliver(FiberCore& core) {
  SYLAR_DCHECK(core.home != nullptr && !core.wait.isOpen());
  const tsan::Exempt of_its_home;
  Worker* const here = Worker::currentHere();
  auto& home = static_cast<WorkerSlot&>(*core.home);
  if (here != nullptr && &here->slot() == &home) {
    here->makeRunnable(&core);
  } else {
    home.push(&core);
  }
}

template <>
void Waker::deliverByMail(FiberCore& core) {
  SYLAR_DCHECK(core.home != nullptr && !core.wait.isOpen());
  const tsan::Exempt of_its_home;
  static_cast<WorkerSlot&>(*core.home).push(&core);
}

bool mayPark() {
  const FiberCore* const me = runningFiber();
  return me != nullptr && me->home != nullptr;
}

[[gnu::noinline]] bool reserveTimeout(Deadline deadline) {
  SYLAR_DCHECK(deadline.isNever() || mayPark());
  const tsan::Exempt of_this_thread;
  return deadline.isNever() || t_running->timer_linked || Worker::currentHere()->timeouts().reserve(*t_running, deadline.ns());
}

[[gnu::noinline]] bool reserveWithinScope(Deadline deadline) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const me = t_running;
  if (me == nullptr || me->home == nullptr) return true;
  if (deadline.isNever() && !mayBeInScope(*me)) return true;
  return sys::inForkedChild() || reserveTimeout(withinScope(deadline));
}

[[gnu::noinline]] Deadline withinScope(Deadline deadline) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const me = t_running;
  return me == nullptr || !mayBeInScope(*me) ? deadline : std::min(deadline, this_fiber::deadline());
}

[[gnu::noinline]] const Clock& waitClock() {
  SYLAR_DCHECK(mayPark());
  return Worker::currentHere()->clock();
}

[[gnu::noinline]] Wait::Wait(WaitsFor what, uint64_t where) {
  FiberCore* const me = t_running;
  SYLAR_CHECK(me != nullptr);  // mayPark()
  m_waker = open(*me, what, where);
}

[[gnu::noinline]] Wait::Wait(SyncKind kind, const void* object) {
  FiberCore* const me = t_running;
  m_ended = me == nullptr || me->home == nullptr || sys::inForkedChild();
  if (m_ended) return;
  m_waker = open(*me, waitsFor(kind), reinterpret_cast<uintptr_t>(object));
}

WakeReason Wait::park(Deadline deadline, WaitFor what) {
  SYLAR_CHECK(!std::exchange(m_ended, true));
  return Worker::park(m_waker, deadline, what);
}

WakeReason Wait::parkWithinScope(Deadline deadline) {
  bool bounded;
  {
    const tsan::Exempt of_this_thread;
    bounded = mayBeInScope(*m_waker.core);
  }
  return park(bounded ? withinScope(deadline) : deadline);
}

bool Wait::withdraw() {
  SYLAR_DCHECK(!m_ended);
  if (m_waker.core->wait.withdraw(m_waker.epoch)) {
    m_ended = true;
    return true;
  }
  park();  // a delivery is on its way
  return false;
}

WakeReason parkUntil(Deadline deadline) {
  SYLAR_DCHECK(mayPark());
  if (!reserveTimeout(deadline)) throw std::bad_alloc();
  Wait wait(WaitsFor::kTime);
  return wait.park(deadline);
}

}  // namespace sylar::detail
