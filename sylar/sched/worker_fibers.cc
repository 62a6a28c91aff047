// What a worker does with its fibers: suspend, wake, cancel, move, give up. How it runs them is in worker_batch.cc.
#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker.h"

namespace sylar {

SYLAR_SWITCHES WakeReason Worker::park(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) noexcept {
  if (!core.live) return parkByHand(core, waker, deadline, what);
  const tsan::Exempt of_this_thread;
  // Cancelled before: the wait is decided here and now, and its delivery goes to the back of the queue like any other.
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
  tsan::acquire(&core.wait);  // what the winner of the claim released
  return core.wait.reason();
}

/// One that was resumed by hand is the worker's while it waits.
WakeReason Worker::parkByHand(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) {
  const Fiber::ptr keep = core.fiber->weak_from_this().lock();
  linkLive(core);
  const WakeReason reason = park(core, waker, deadline, what);
  unlinkLive(core);
  return reason;
}

/// Shielded: a joiner may have lent the fiber its own stack, and goes on only when that is over. Called all the same, it waits
/// again, and is given up.
void Worker::awaitEnd(Fiber& fiber) {
  struct Joiner : Fiber::EndObserver {
    Waker waker;
  } joiner;
  joiner.ended = [](Fiber::EndObserver* observer) { static_cast<Joiner*>(observer)->waker.wake(WakeReason::kReady); };
  const this_fiber::CancelShield shield;
  Fiber& me = *runningFiber()->fiber;
  for (;;) {
    Wait wait(Fiber::WaitsFor::kFiber);
    joiner.waker = wait.waker();
    if (!fiber.observeEnd(joiner)) {
      wait.giveUp();
      return;
    }
    const tsan::Exempt of_this_thread;
    me.setJoins(&fiber);
    ++m_joining;
    const WakeReason reason = wait.park(Deadline::never(), WaitFor::kFibers);
    --m_joining;
    me.setJoins(nullptr);
    if (reason == WakeReason::kReady) return;
    fiber.unobserveEnd(joiner);
  }
}

/// What runs elsewhere ends without this scheduler's doing; what is ours does not end if nothing else goes on.
size_t Worker::joinsElsewhere() const {
  if (m_joining == 0) return 0;
  size_t count = 0;
  for (const FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    const Fiber* const joined = core->fiber->joins();
    if (joined == nullptr) continue;
    if (joined->life() == Fiber::Life::kInit) continue;  // nobody has scheduled it
    auto* const home = static_cast<WorkerSlot*>(ThreadFibers::homeOf(*joined));
    count += home == nullptr || home->scheduler.load(std::memory_order_acquire) != &m_scheduler;
  }
  return count;
}

// ---- What other threads ask of a fiber. --------------------------------------------------------------------------------------

void WorkerSlot::attend(Fiber::ptr fiber) {
  if (QueueNode* const question = Fiber::Question::make(std::move(fiber))) push(question);
}

void Worker::attend(const Fiber::ptr& fiber) {
  FiberHome* const home = ThreadFibers::homeOf(*fiber);
  if (home != &m_slot) {
    if (home != nullptr) home->attend(fiber);  // it has moved; under way it is nobody's, and whoever adopts it looks himself
    return;
  }
  FiberCore* const core = ThreadFibers::coreOf(*fiber);
  if (core == nullptr || Fiber::isOver(fiber->life())) return;
  const uint8_t asked = ThreadFibers::takeAsked(*fiber);
  if ((asked & Fiber::kCancel) != 0) cancel(*core);
  if ((asked & Fiber::kPermit) != 0) permit(*fiber);
}

/// schedule() of a fiber that has a core: brings it back if it is held, else leaves a permit.
void Worker::permit(Fiber& fiber) {
  FiberCore* const core = ThreadFibers::coreOf(fiber);
  const Fiber::Life life = fiber.life();
  if (life != Fiber::Life::kHeld && life != Fiber::Life::kHeldByHand && life != Fiber::Life::kReady) {
    core->permit = true;
    return;
  }
  if (!core->live) {  // it was resumed by hand; from here on it is the scheduler's
    ThreadFibers::keepAlive(fiber.shared_from_this());
    linkLive(*core);
    core->resumer = nullptr;
  }
  moveAway(*core);
}

/// A fiber at rest goes to its destination; without one, or if that is gone, it goes on here.
void Worker::moveAway(FiberCore& core) {
  Fiber& fiber = *core.fiber;
  const std::shared_ptr<FiberDestination> destination = ThreadFibers::takeDestination(fiber);
  fiber.move(fiber.life(), Fiber::Life::kQueued);
  if (destination != nullptr) {
    if (core.timer_linked) unlinkTimer(core);
    unlinkLive(core);
    ThreadFibers::leaveHome(fiber);
    if (destination->accept(fiber)) return;  // somebody else's from here on
    m_thread_fibers->adopt(fiber);
    linkLive(core);
  }
  m_runnable.push(&core);
}

// ---- Cancelling and giving up. -----------------------------------------------------------------------------------------------

/// With all that it has resumed by hand: the innermost of those is the one that waits.
void Worker::cancel(FiberCore& core) {
  markCancelled(core);
  interrupt(core);
  if (core.fiber->life() != Fiber::Life::kResuming) return;
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
  const Fiber::Life life = core.fiber->life();
  if (life == Fiber::Life::kParked) {
    if (core.wait.claim(core.wait.epoch(), WakeReason::kCanceled)) m_runnable.push(&core);
  } else if (life == Fiber::Life::kHeld) {
    core.fiber->move(life, Fiber::Life::kQueued);
    m_runnable.push(&core);
  }
}

/// The scheduler asks for something that this worker has not done yet.
bool Worker::behindStop() const {
  return m_cancel_round != m_scheduler.rest().cancelRound() || m_last_call != m_scheduler.rest().lastCall();
}

/// The scheduler stops: does what that asks of this worker's fibers.
void Worker::followStop() {
  m_scheduler.watchDeadline();
  if (!behindStop()) return;
  m_cancel_round = m_scheduler.rest().cancelRound();
  const bool last_call = m_last_call != m_scheduler.rest().lastCall();
  m_last_call = m_scheduler.rest().lastCall();
  for (FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    markCancelled(*core);
    if (last_call) core->patience = std::min(core->patience, FiberCore::kLastPatience);
    interrupt(*core);
  }
}

/// `core` is in no queue, and its wait is decided.
void Worker::abandon(FiberCore& core) {
  if (core.request == Request::kParked) {
    m_waiting -= core.counted;
    m_joining -= core.fiber->joins() != nullptr;
  }
  for (FiberCore *member = &core, *outer; member != nullptr; member = outer) {  // and those who wait for it to come back
    outer = member->resumer;
    if (member->timer_linked) unlinkTimer(*member);
    if (member->live) unlinkLive(*member);
    leave(*member->fiber);
    ThreadFibers::abandon(*member->fiber);
  }
}

/// Reports a fiber that will not end.
void Worker::leave(const Fiber& fiber) {
  m_leftovers.note(fiber);
  if (m_leftovers.count() > kReportedOneByOne) return;
  try {
    log::error("scheduler {}: fiber {} {} is given up: {}", m_scheduler.getName(), fiber.getId(), fiber.getName(),
               fiber.describe());
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }
}

void Worker::leaveBehind(NodeList mail, Leftovers& out) {
  {
    Lock lock(m_live_lock);
    for (FiberCore* core = m_live; core != nullptr; core = core->live_next) {
      out.note(*core->fiber);
      ThreadFibers::leaveBehind(*core->fiber);
    }
  }
  while (QueueNode* node = mail.pop()) {
    if (node->kind == QueueNode::Kind::kMessage) Fiber::Question::open(node);
    if (node->kind != QueueNode::Kind::kFiber) continue;
    auto& fiber = *static_cast<Fiber*>(node);
    out.note(fiber);
    ThreadFibers::abandon(fiber);
  }
}

bool Worker::detach() {
  Place in_fiber = Place::kFiber;
  if (!m_place.compare_exchange_strong(in_fiber, Place::kDetached, std::memory_order_acq_rel)) return false;
  m_slot.fd_driver.store(nullptr, std::memory_order_release);  // from here on its fiber's calls are libc's
  if (AutoAdvance* const time = m_clock.autoAdvance()) time->leave(*this);
  return true;
}

// ---- The list of live fibers. ------------------------------------------------------------------------------------------------

/// From here on it is cared for as the others are, in a stop that is under way, too.
void Worker::linkLive(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  if (m_scheduler.cancelsAll()) core.cancelled = true;
  if (m_last_call != LastCall::kNone) core.patience = std::min(core.patience, FiberCore::kLastPatience);
  Lock lock(m_live_lock);
  core.live = true;
  core.live_prev = nullptr;
  core.live_next = m_live;
  if (m_live != nullptr) m_live->live_prev = &core;
  m_live = &core;
  ++m_live_count;
  m_cancelled_count += core.cancelled;
}

void Worker::unlinkLive(FiberCore& core) {
  const tsan::Exempt of_this_thread;
  Lock lock(m_live_lock);
  core.live = false;
  (core.live_prev == nullptr ? m_live : core.live_prev->live_next) = core.live_next;
  if (core.live_next != nullptr) core.live_next->live_prev = core.live_prev;
  --m_live_count;
  m_cancelled_count -= core.cancelled;
}

void Worker::list(std::vector<FiberInfo>& out) {
  Lock lock(m_live_lock);
  for (const FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    out.push_back({core->fiber->getId(), core->fiber->getName(), core->fiber->describe()});
  }
}

// ---- Timeouts. A node stays linked at the deadline that it was registered with; a later one is only noted (lazy push). --------

bool Worker::reserveTimeout(FiberCore& core, Deadline deadline) {
  const tsan::Exempt of_this_thread;
  if (deadline.isNever() || core.timer_linked) return true;
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
  const int64_t end_ns = saturatingAdd(now_ns, kTimeoutsNsPerTurn);
  for (size_t i = 1; i <= kTimeoutsPerTurn && m_timeouts.nextDue() <= now_ns; ++i) {
    if (i % 64 == 0 && m_clock.nowNs() >= end_ns) return;
    TimerList due;
    m_timeouts.expire(now_ns, 1, due);  // one, for which there is room if it is put in again
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

/// The earliest true deadline, or an earlier one. What was disarmed is taken out first: an idle worker never wakes for it. What
/// was pushed is put right only shortly before its old deadline: else each wait that begins anew would cost an update of the
/// queue at the next sleep. The price: at most one wake-up too early for each pushed timeout and length of it (more, if firstHop
/// cuts that), and none within kPushedMayWakeNs of another.
int64_t Worker::nextDeadline(int64_t now_ns) {
  while (TimerNode* node = m_timeouts.front()) {
    FiberCore& core = FiberCore::ofTimer(*node);
    const bool pushed = core.deadline_ns != kNever && core.deadline_ns != node->deadline_ns;
    if (core.deadline_ns == kNever) {
      unlinkTimer(core);
    } else if (!pushed || node->deadline_ns > now_ns + kPushedMayWakeNs) {
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
  Worker* const here = Worker::current();
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

bool reserveTimeout(Deadline deadline) {
  return deadline.isNever() || Worker::current()->reserveTimeout(*runningFiber(), deadline);
}

const Clock& waitClock() { return Worker::current()->clock(); }

Wait::Wait(Fiber::WaitsFor what, int fd) {
  FiberCore* const me = runningFiber();
  SYLAR_CHECK(me != nullptr && me->home != nullptr);  // mayPark()
  me->fiber->noteWait(what, fd);
  m_waker = {me, me->wait.prepare()};
}

WakeReason Wait::park(Deadline deadline, WaitFor what) {
  SYLAR_CHECK(!std::exchange(m_ended, true));
  return Worker::current()->park(*m_waker.core, m_waker, deadline, what);
}

bool Wait::giveUp() {
  if (m_waker.core->wait.giveUp(m_waker.epoch)) {
    m_ended = true;
    return true;
  }
  park();  // a delivery is on its way
  return false;
}

WakeReason parkUntil(Deadline deadline) {
  if (!reserveTimeout(deadline)) throw std::bad_alloc();
  Wait wait(Fiber::WaitsFor::kTime);
  return wait.park(deadline);
}

}  // namespace sylar
