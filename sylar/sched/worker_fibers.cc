// How a worker suspends, wakes, cancels, moves and abandons its fibers. How it runs them is in worker_batch.cc.
#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar {

SYLAR_SWITCHES WakeReason Worker::park(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) noexcept {
  if (!core.live) return parkByHand(core, waker, deadline, what);
  const tsan::Exempt of_this_thread;
  // If the fiber was cancelled before, the wait is decided here and now, and its delivery goes to the back of the queue like any
  // other.
  if (mayInterrupt(core) && waker.claim(WakeReason::kCanceled)) m_runnable.push(&core);
  if (!deadline.isNever()) {
    m_counts.armed.add();
    arm(core, deadline.ns());
  }
  const bool counted = what == WaitFor::kOutside || !deadline.isNever();
  core.counted = counted;
  m_waiting += counted;
  m_thread_fibers->park(core);
  m_waiting -= counted;
  core.deadline_ns = kNever;
  tsan::acquire(&core.wait);  // sees what the winner of the claim released
  return core.wait.reason();
}

/// Parks a fiber that was resumed by hand. While it waits, it is the worker's.
WakeReason Worker::parkByHand(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) {
  const Fiber::ptr keep = core.fiber->weak_from_this().lock();
  hasResumed(core);
  linkLive(core, m_cancels_all);  // not the scheduler's: if this worker was detached, that may be gone
  const WakeReason reason = park(core, waker, deadline, what);
  unlinkLive(core);
  resumes(core);
  return reason;
}

/// The wait is shielded, because a joiner may have lent the fiber its own stack, and goes on only when that is over. If the last
/// call ends the wait nevertheless, the joiner waits again, and is abandoned.
void Worker::awaitEnd(Fiber& fiber) {
  struct Joiner : EndObserver {
    Waker waker;
  } joiner;
  joiner.claim = [](EndObserver* observer) { return static_cast<Joiner*>(observer)->waker.claim(WakeReason::kReady); };
  joiner.ended = [](EndObserver* observer) { Waker::deliver(*static_cast<Joiner*>(observer)->waker.core); };
  const this_fiber::CancelShield shield;
  Fiber& me = *runningFiber()->fiber;
  for (;;) {
    Wait wait(WaitsFor::kFiber);
    joiner.waker = wait.waker();
    if (!control(fiber).observeEnd(joiner)) {
      wait.withdraw();
      return;
    }
    const tsan::Exempt of_this_thread;
    control(me).setJoins(&fiber);
    ++m_joining;
    const WakeReason reason = wait.park(Deadline::never(), WaitFor::kFibers);
    --m_joining;
    control(me).setJoins(nullptr);
    if (reason == WakeReason::kReady) return;
    control(fiber).unobserveEnd(joiner);
  }
}

/// A fiber that runs elsewhere ends without this scheduler's doing. One of ours does not end if nothing else goes on.
size_t Worker::joinsElsewhere() const {
  if (m_joining == 0) return 0;
  size_t count = 0;
  for (const FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    const Fiber* const joined = control(*core->fiber).joins();
    if (joined == nullptr) continue;
    if (stateOf(*joined) == FiberState::kInit) continue;  // nobody has scheduled it
    auto* const home = static_cast<WorkerSlot*>(ThreadFibers::homeOf(*joined));
    count += home == nullptr || home->scheduler.load(std::memory_order_acquire) != &m_scheduler;
  }
  return count;
}

// ---- Requests of other threads to a fiber. -----------------------------------------------------------------------------------

void WorkerSlot::handleRequests(Fiber::ptr fiber) {
  if (sys::inForkedChild()) return;
  if (QueueNode* const message = FiberRequest::make(std::move(fiber))) push(message);
}

void Worker::handleRequests(const Fiber::ptr& fiber) {
  FiberHome* const home = ThreadFibers::homeOf(*fiber);
  if (home != &m_slot) {
    if (home != nullptr)
      home->handleRequests(fiber);  // it has moved; while on its way it has no home, and the adopting thread looks
    return;
  }
  FiberCore* const core = ThreadFibers::coreOf(*fiber);
  if (core == nullptr || isOver(stateOf(*fiber))) return;
  const uint8_t requested = ThreadFibers::takeRequests(*fiber);
  if ((requested & FiberControl::kCancel) != 0) cancel(*core);
  if ((requested & FiberControl::kPermit) != 0) permit(*fiber);
}

/// Handles schedule() of a fiber that has a core: brings it back if it is held, else leaves a permit.
void Worker::permit(Fiber& fiber) {
  FiberCore* const core = ThreadFibers::coreOf(fiber);
  const FiberState state = stateOf(fiber);
  if (state != FiberState::kHeld && state != FiberState::kHeldByHand && state != FiberState::kReady) {
    core->permit = true;
    return;
  }
  if (!core->live) {  // it was resumed by hand; from here on it is the scheduler's
    ThreadFibers::keepAlive(fiber.shared_from_this());
    linkLive(*core, m_scheduler.cancelsAll());
    core->resumer = nullptr;
  }
  migrate(*core);
}

/// Sends a suspended fiber to its target. Without one, or if that is gone, the fiber goes on here.
void Worker::migrate(FiberCore& core) {
  Fiber& fiber = *core.fiber;
  const std::shared_ptr<MigrationTarget> target = ThreadFibers::takeMigrationTarget(fiber);
  control(fiber).move(FiberState::kQueued);
  if (target != nullptr) {
    if (core.timer_linked) unlinkTimer(core);
    unlinkLive(core);
    ThreadFibers::moveOut(fiber);
    if (target->accept(fiber)) return;  // no longer this worker's from here on
    m_thread_fibers->adopt(fiber);
    linkLive(core, m_scheduler.cancelsAll());
  }
  m_runnable.push(&core);
}

// ---- Cancelling and giving up. -----------------------------------------------------------------------------------------------

/// Cancels `core` with all fibers that it has resumed by hand. The innermost of those is the one that waits.
void Worker::cancel(FiberCore& core) {
  markCancelled(core);
  interrupt(core);
  if (stateOf(*core.fiber) != FiberState::kResuming) return;
  for (FiberCore* inner = m_live; inner != nullptr; inner = inner->live_next) {
    FiberCore* outer = inner->resumer;
    while (outer != nullptr && outer != &core) outer = outer->resumer;
    if (outer == nullptr) continue;
    for (FiberCore* member = inner; member != &core; member = member->resumer) markCancelled(*member);
    interrupt(*inner);
  }
}

void Worker::markCancelled(FiberCore& core) {
  if (core.cancelled) return;
  core.cancelled = true;
  m_cancelled_count += core.live;
}

/// Brings back a cancelled fiber that waits.
void Worker::interrupt(FiberCore& core) {
  if (!mayInterrupt(core)) return;
  const FiberState state = stateOf(*core.fiber);
  if (state == FiberState::kParked) {
    if (core.wait.claim(core.wait.epoch(), WakeReason::kCanceled)) m_runnable.push(&core);
  } else if (state == FiberState::kHeld) {
    control(*core.fiber).move(state, FiberState::kQueued);
    m_runnable.push(&core);
  }
}

/// Returns true if the scheduler asks for something that this worker has not done yet.
bool Worker::behindStop() const {
  return m_cancel_round != m_scheduler.idle().cancelRound() || m_cancel_phase != m_scheduler.idle().cancelPhase();
}

/// Does what the scheduler's stop asks of this worker's fibers.
void Worker::followStop() {
  m_scheduler.watchDeadline();
  if (!behindStop()) return;
  m_cancel_round = m_scheduler.idle().cancelRound();
  const bool phase_changed = m_cancel_phase != m_scheduler.idle().cancelPhase();
  m_cancel_phase = m_scheduler.idle().cancelPhase();
  m_cancels_all = m_scheduler.cancelsAll();
  for (FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    markCancelled(*core);
    if (phase_changed) core->cancelled_waits = std::min(core->cancelled_waits, FiberCore::kLastCancelledWaits);
    interrupt(*core);
  }
}

/// Abandons `core`, which is in no queue and whose wait is decided.
void Worker::abandon(FiberCore& core) {
  if (core.switch_reason == SwitchReason::kParked) {
    m_waiting -= core.counted;
    m_joining -= control(*core.fiber).joins() != nullptr;
  }
  for (FiberCore *member = &core, *outer; member != nullptr; member = outer) {  // and its resumers
    outer = member->resumer;
    if (member->timer_linked) unlinkTimer(*member);
    if (member->live) unlinkLive(*member);
    if (member->by_hand) hasResumed(*member);
    noteAbandoned(*member->fiber);
    ThreadFibers::abandon(*member->fiber);
  }
}

/// Notes and reports a fiber that will not end.
void Worker::noteAbandoned(const Fiber& fiber) {
  m_abandoned.note(fiber);
  if (m_abandoned.count() > kReportedOneByOne) return;
  try {
    log::error("scheduler {}: fiber {} {} is abandoned: {}", m_scheduler.getName(), fiber.getId(), fiber.getName(),
               control(fiber).describe());
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }
}

/// The detached thread goes on with what it runs, and a fiber that was resumed by hand moves between the lists. So the lists are
/// walked under their lock. Telling observers under it is safe, because none of them comes back to it.
void Worker::abandonFibers(NodeList mail, AbandonedFibers& out, NodeList& unrun) {
  {
    Lock lock(m_live_lock);
    for (FiberCore* core = m_by_hand; core != nullptr; core = core->live_next) {
      out.note(*core->fiber);
      ThreadFibers::announceAbandoned(*core->fiber);
    }
    for (FiberCore* core = m_live; core != nullptr; core = core->live_next) {
      out.note(*core->fiber);
      closeWait(*core);
      ThreadFibers::abandonWithThread(*core->fiber);
    }
  }
  // A message to a fiber that has moved on is passed on. The slot has no owner, so other messages get no answer.
  const auto open = [this](QueueNode* message) { handleRequests(FiberRequest::open(message)); };
  sortLeft(m_runnable.takeLeft(), open, unrun);
  sortLeft(mail, open, unrun);
}

/// Halts the thread of a worker that was detached while a fiber ran. `last` has given the thread back.
void Worker::standStill(FiberCore& last) {
  closeWait(last);
  for (FiberCore* member = &last; member != nullptr; member = member->resumer) ThreadFibers::announceAbandoned(*member->fiber);
  sys::haltThread();
}

bool Worker::detach() {
  if (!m_runnable.detach()) return false;
  m_slot.owner.store(0, std::memory_order_release);
  m_slot.fd_driver.store(nullptr, std::memory_order_release);                        // from here on its fiber's calls are libc's
  AutoAdvance* const time = sys::inForkedChild() ? nullptr : m_clock.autoAdvance();  // whose lock may be held for ever
  if (time != nullptr) time->leave(*this);
  return true;
}

// ---- The list of live fibers. ------------------------------------------------------------------------------------------------

/// Makes the worker look after the fiber, also in a stop that is under way. `cancelled` is true if that stop has cancelled all.
void Worker::linkLive(FiberCore& core, bool cancelled) {
  const tsan::Exempt of_this_thread;
  if (cancelled) core.cancelled = true;
  if (m_cancel_phase != CancelPhase::kNone) core.cancelled_waits = std::min(core.cancelled_waits, FiberCore::kLastCancelledWaits);
  Lock lock(m_live_lock);
  core.live = true;
  link(m_live, core);
  ++m_live_count;
  m_cancelled_count += core.cancelled;
}

void Worker::unlinkLive(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  Lock lock(m_live_lock);
  core.live = false;
  unlink(m_live, core);
  --m_live_count;
  m_cancelled_count -= core.cancelled;
}

/// Does nothing in a forked child, where nobody looks at the lists, and where a thread of the parent may have held their lock.
void Worker::resumes(FiberCore& core) {
  if (sys::inForkedChild()) return;
  const tsan::Exempt of_this_thread;
  Lock lock(m_live_lock);
  core.by_hand = true;
  link(m_by_hand, core);
}

void Worker::hasResumed(FiberCore& core) {
  if (sys::inForkedChild()) return;
  const tsan::Exempt of_this_thread;
  Lock lock(m_live_lock);
  core.by_hand = false;
  unlink(m_by_hand, core);
}

inline void Worker::link(FiberCore*& first, FiberCore& core) {
  core.live_prev = nullptr;
  core.live_next = first;
  if (first != nullptr) first->live_prev = &core;
  first = &core;
}

inline void Worker::unlink(FiberCore*& first, FiberCore& core) {
  (core.live_prev == nullptr ? first : core.live_prev->live_next) = core.live_next;
  if (core.live_next != nullptr) core.live_next->live_prev = core.live_prev;
}

/// Takes handles under the lock, which each begin and end of a fiber needs, and describes the fibers outside it.
void Worker::list(std::vector<FiberInfo>& out) {
  const auto describe = [&out](const Fiber& fiber) {
    out.push_back({fiber.getId(), fiber.getName(), control(fiber).describe()});
  };
  std::vector<Fiber::ptr> fibers;
  for (size_t count = 0;; count += count / 8) {
    fibers.reserve(count);
    Lock lock(m_live_lock);
    count = m_live_count;
    if (count > fibers.capacity()) continue;
    for (const FiberCore* core = m_live; core != nullptr; core = core->live_next) {
      fibers.push_back(core->fiber->weak_from_this().lock());
      if (fibers.back() != nullptr) continue;
      fibers.pop_back();
      describe(*core->fiber);  // it lies on a stack, which may go when the lock is released
    }
    break;
  }
  for (const Fiber::ptr& fiber : fibers) describe(*fiber);
}

// ---- Timeouts. A node stays linked at the deadline that it was registered with; a later one is only noted (lazy push). --------

bool Worker::reserveTimeout(FiberCore& core, Deadline deadline) {
  const tsan::Exempt of_this_thread;
  try {
    m_timeouts.insert(core.timer, deadline.ns());  // disarmed, until the fiber parks
  } catch (const std::bad_alloc&) {
    return false;
  }
  core.timer_linked = true;
  return true;
}

void Worker::arm(FiberCore& core, int64_t deadline_ns) {
  core.deadline_ns = deadline_ns;
  if (!core.timer_linked) {
    m_timeouts.insert(core.timer, deadline_ns);
    core.timer_linked = true;
  } else if (deadline_ns < core.timer.deadline_ns) {
    m_timeouts.update(core.timer, deadline_ns);
  } else {
    m_counts.pushed.add(deadline_ns > core.timer.deadline_ns);
  }
}

void Worker::unlinkTimer(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  m_timeouts.erase(core.timer);
  core.timer_linked = false;
}

void Worker::expireTimeouts(int64_t now_ns) {
  const int64_t end_ns = saturatingAdd(now_ns, kTimeoutsNsPerIteration);
  for (size_t i = 1; i <= kTimeoutsPerIteration && m_timeouts.nextDue() <= now_ns; ++i) {
    if (i % 64 == 0 && m_clock.nowNs() >= end_ns) return;
    TimerList due;
    m_timeouts.expire(now_ns, 1, due);  // only one, for which there is room if it is put in again
    TimerNode* const node = due.pop();
    FiberCore& core = FiberCore::ofTimer(*node);
    core.timer_linked = false;
    if (core.deadline_ns == kNever) continue;  // disarmed
    if (core.deadline_ns > now_ns) {
      m_counts.relinked.add();
      arm(core, core.deadline_ns);
    } else if (core.wait.claim(core.wait.epoch(), WakeReason::kTimeout)) {
      m_counts.fired.add();
      m_runnable.push(&core);
    }
  }
}

/// Returns the earliest true deadline, or an earlier time. Disarmed timeouts are removed first, so that an idle worker never
/// wakes for them. A pushed timeout is put right only shortly before its old deadline; otherwise each repeated wait would cost
/// an update of the queue at the next sleep. The price is at most one early wake-up for each pushed timeout and length of it
/// (more, if firstHop() cuts that), and none within kPushedMayWakeNs of another.
int64_t Worker::nextDeadline(int64_t now_ns) {
  while (TimerNode* node = m_timeouts.front()) {
    FiberCore& core = FiberCore::ofTimer(*node);
    const bool pushed = core.deadline_ns != kNever && core.deadline_ns != node->deadline_ns;
    if (core.deadline_ns == kNever) {
      unlinkTimer(core);
    } else if (!pushed || node->deadline_ns > saturatingAdd(now_ns, kPushedMayWakeNs)) {
      return node->deadline_ns;
    } else {
      m_counts.relinked.add();
      m_timeouts.update(core.timer, core.deadline_ns);
    }
  }
  return kNever;
}

// ---- waker.h, park.h. --------------------------------------------------------------------------------------------------------

template <>
void Waker::deliver(FiberCore& core) {
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
  const tsan::Exempt of_its_home;
  static_cast<WorkerSlot&>(*core.home).push(&core);
}

bool mayPark() {
  const FiberCore* const me = runningFiber();
  return me != nullptr && me->home != nullptr;
}

[[gnu::noinline]] bool reserveTimeout(Deadline deadline) {
  const tsan::Exempt of_this_thread;
  return deadline.isNever() || t_running->timer_linked || Worker::currentHere()->reserveTimeout(*t_running, deadline);
}

[[gnu::noinline]] const Clock& waitClock() { return Worker::currentHere()->clock(); }

[[gnu::noinline]] Wait::Wait(WaitsFor what, int fd) {
  FiberCore* const me = t_running;
  SYLAR_CHECK(me != nullptr && me->home != nullptr);  // mayPark()
  control(*me->fiber).noteWait(what, fd);
  m_waker = {me, me->wait.prepare()};
}

WakeReason Wait::park(Deadline deadline, WaitFor what) {
  SYLAR_CHECK(!std::exchange(m_ended, true));
  FiberCore& core = *m_waker.core;
  return static_cast<WorkerSlot*>(core.home)->worker->park(core, m_waker, deadline, what);
}

bool Wait::withdraw() {
  if (m_waker.core->wait.withdraw(m_waker.epoch)) {
    m_ended = true;
    return true;
  }
  park();  // a delivery is on its way
  return false;
}

WakeReason parkUntil(Deadline deadline) {
  if (!reserveTimeout(deadline)) throw std::bad_alloc();
  Wait wait(WaitsFor::kTime);
  return wait.park(deadline);
}

}  // namespace sylar
