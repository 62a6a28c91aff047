// How a worker cancels, moves and abandons its fibers. How it runs them is in worker_batch.cc, how they wait in worker_wait.cc.
#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

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
  if ((requested & FiberControl::kScopeFired) != 0) followScope(*core);
  if (const uintptr_t thread = core->started().thread_pointer; (requested & FiberControl::kThread) != 0 && thread != 0)
    runUserCode([thread] { ThreadLender::get()->hear(thread); });
  if ((requested & FiberControl::kPermit) != 0) permit(*fiber);
}

/// Handles schedule() of a fiber that has a core: brings it back if it is held, else leaves a permit.
void Worker::permit(Fiber& fiber) {
  SYLAR_DCHECK(isHere() && ThreadFibers::coreOf(fiber) != nullptr);
  FiberCore* const core = ThreadFibers::coreOf(fiber);
  const FiberState state = stateOf(fiber);
  if (state != FiberState::kHeld && state != FiberState::kHeldByHand && state != FiberState::kReady) {
    core->permit = true;
    return;
  }
  if (!core->live) {  // it was resumed by hand; from here on it is the scheduler's
    ThreadFibers::keepAlive(fiber.shared_from_this());
    core->resumer = nullptr;  // before the link, because dump() looks at it
    linkLive(*core, m_scheduler.cancelsAll());
  }
  migrate(*core);
}

/// Sends a suspended fiber to its target. Without one, or if that is gone, the fiber goes on here.
void Worker::migrate(FiberCore& core) {
  SYLAR_DCHECK(isHere() && core.live && core.home == &m_slot);
  Fiber& fiber = *core.fiber;
  const std::shared_ptr<MigrationTarget> target = ThreadFibers::takeMigrationTarget(fiber);
  control(fiber).move(FiberState::kQueued);
  if (target != nullptr) {
    if (core.timer_linked) m_timeouts.unlink(core);
    m_live.remove(core);
    ThreadFibers::moveOut(fiber);
    if (target->accept(fiber)) return;  // no longer this worker's from here on
    m_thread_fibers->adopt(fiber);
    linkLive(core, m_scheduler.cancelsAll());
  }
  m_runnable.push(&core);
}

// ---- Cancelling and abandoning. ----------------------------------------------------------------------------------------------

/// Returns the fiber that waits and that `core` has resumed by hand, be it through others; or null.
FiberCore* Worker::innermostOf(const FiberCore& core) const {
  if (stateOf(*core.fiber) != FiberState::kResuming) return nullptr;
  for (FiberCore* inner = m_live.first(); inner != nullptr; inner = inner->live_next) {
    const FiberCore* outer = inner->resumer;
    while (outer != nullptr && outer != &core) outer = outer->resumer;
    if (outer != nullptr) return inner;
  }
  return nullptr;
}

/// Cancels `core` with all fibers that it has resumed by hand.
void Worker::cancel(FiberCore& core) {
  SYLAR_DCHECK(isHere() && core.home == &m_slot);
  m_live.markCancelled(core, FiberCore::kByRequest);
  interrupt(core);
  FiberCore* const inner = innermostOf(core);
  if (inner == nullptr) return;
  for (FiberCore* member = inner; member != &core; member = member->resumer) m_live.markCancelled(*member, FiberCore::kByRequest);
  interrupt(*inner);
}

/// Brings back `core`, or the fiber that waits for it, if a CancelScope says so. The scope may have ended since it said so.
void Worker::followScope(FiberCore& core) {
  SYLAR_DCHECK(isHere() && core.home == &m_slot);
  FiberCore* const inner = innermostOf(core);
  for (FiberCore* one : {&core, inner}) {
    if (one == nullptr) continue;
    one->setCancelledByScope(FiberControl::inFiredScope(*one));
    interrupt(*one);
  }
}

/// Brings back a cancelled fiber that waits.
void Worker::interrupt(FiberCore& core) {
  SYLAR_DCHECK(isHere() && core.home == &m_slot);
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
  SYLAR_DCHECK(isHere() && inLoop());
  m_scheduler.watchDeadline();
  if (!behindStop()) return;
  m_cancel_round = m_scheduler.idle().cancelRound();
  const bool phase_changed = m_cancel_phase != m_scheduler.idle().cancelPhase();
  m_cancel_phase = m_scheduler.idle().cancelPhase();
  m_cancels_all = m_scheduler.cancelsAll();
  for (FiberCore* core = m_live.first(); core != nullptr; core = core->live_next) {
    m_live.markCancelled(*core, FiberCore::kByStop);
    if (phase_changed) core->cancelled_waits = std::min(core->cancelled_waits, FiberCore::kLastCancelledWaits);
    interrupt(*core);
  }
}

/// Abandons `core`, which is in no queue and whose wait is decided. Outside of a stop it must hold no lock.
void Worker::abandon(FiberCore& core) {
  SYLAR_DCHECK(isHere() && inLoop() && !core.wait.isOpen());
  if (core.switch_reason == SwitchReason::kParked) {
    m_waiting -= core.counted;
    m_joining -= core.started().joins != nullptr;
  }
  for (FiberCore *member = &core, *outer; member != nullptr; member = outer) {  // and its resumers
    outer = member->resumer;
    if (member->started().held.count() > 0 && !m_scheduler.isStopping()) control(*member->fiber).failHolding("is abandoned");
    if (member->timer_linked) m_timeouts.unlink(*member);
    if (member->live) m_live.remove(*member);
    if (member->by_hand) hasResumed(*member);
    m_driver->abandon(*member);
    noteAbandoned(*member->fiber);
    ThreadFibers::abandon(*member->fiber);
  }
}

/// Notes and reports a fiber that will not end.
void Worker::noteAbandoned(const Fiber& fiber) {
  m_abandoned.note(fiber);
  if (m_abandoned.count() > kReportedOneByOne) return;
  try {
    log::error("scheduler {}: fiber {} {} is abandoned: {}{}", m_scheduler.getName(), fiber.getId(), fiber.getName(),
               control(fiber).describe(), control(fiber).describeHeld());
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }
}

/// The detached thread goes on with what it runs, and a fiber that was resumed by hand moves between the lists. So the lists are
/// walked under their lock. Telling observers under it is safe, because none of them comes back to it.
void Worker::abandonFibers(NodeList mail, AbandonedFibers& out, NodeList& unrun) {
  SYLAR_DCHECK(detached());
  const auto runs = [&out](FiberCore& core) {
    out.note(*core.fiber);
    ThreadFibers::announceAbandoned(*core.fiber);
  };
  const auto is_suspended = [&out](FiberCore& core) {
    out.note(*core.fiber);
    closeWait(core);
    ThreadFibers::abandonWithThread(*core.fiber);
  };
  m_live.visit(runs, is_suspended);
  // A message to a fiber that has moved on is passed on. The slot has no owner, so other messages get no answer.
  const auto open = [this](QueueNode* message) { handleRequests(FiberRequest::open(message)); };
  sortLeft(m_runnable.takeLeft(), open, unrun);
  sortLeft(mail, open, unrun);
}

/// Halts the thread of a worker that was detached while a fiber ran. `last` has given the thread back.
void Worker::standStill(FiberCore& last) {
  SYLAR_DCHECK(detached() && onThreadStack());
  closeWait(last);
  for (FiberCore* member = &last; member != nullptr; member = member->resumer) ThreadFibers::announceAbandoned(*member->fiber);
  sys::haltThread();
}

bool Worker::detach() {
  if (!m_runnable.detach()) return false;
  m_slot.owner.store(0, std::memory_order_release);
  m_slot.fd_driver.store(nullptr, std::memory_order_release);                        // from here on its fiber's calls are libc's
  AutoAdvance* const time = sys::inForkedChild() ? nullptr : m_clock.autoAdvance();  // whose lock may be held forever
  if (time != nullptr) time->leave(*this);
  return true;
}

// ---- The fibers of this worker. ----------------------------------------------------------------------------------------------

/// Makes the worker look after the fiber, also in a stop that is under way. `cancelled` is true if that stop has cancelled all.
void Worker::linkLive(FiberCore& core, bool cancelled) {
  SYLAR_DCHECK(isHere() && core.home == &m_slot);
  const tsan::Exempt of_this_thread;
  if (cancelled) core.cancelForGood(FiberCore::kByStop);
  if (m_cancel_phase != CancelPhase::kNone) core.cancelled_waits = std::min(core.cancelled_waits, FiberCore::kLastCancelledWaits);
  m_live.add(core);
}

/// Does nothing in a forked child, where nobody looks at the lists, and where a thread of the parent may have held their lock.
void Worker::resumes(FiberCore& core) {
  if (!sys::inForkedChild()) m_live.addResumed(core);
}

void Worker::hasResumed(FiberCore& core) {
  if (!sys::inForkedChild()) m_live.removeResumed(core);
}

}  // namespace sylar::detail
