// The part of an iteration that runs fibers: which is next, and what becomes of the one that ran.
#include <algorithm>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

/// Ends a fiber that is done. Not inlined into afterSwitch(), through which every yield and wait comes.
[[gnu::noinline]] void Worker::endFiber(FiberCore& core) {
  SYLAR_DCHECK(core.switch_reason == SwitchReason::kDone && inLoop());
  m_live.remove(core);
  Fiber::ptr last = m_thread_fibers->finish(core);
  runUserCode([&] { last = nullptr; });  // an exception handler may run, and the exception's destructor
}

/// Does what the fiber asked for when it gave the thread back.
[[gnu::always_inline]] inline void Worker::afterSwitch(FiberCore& core) {
  SYLAR_DCHECK(inLoop() && onThreadStack());
  if (core.cancelled != 0 && core.cancelled_waits > 0 &&
      (m_cancel_phase != CancelPhase::kNone || (core.switch_reason != SwitchReason::kReady && !core.shielded))) {
    --core.cancelled_waits;
  }
  switch (core.switch_reason) {
    case SwitchReason::kReady:
      control(*core.fiber).move(FiberState::kRunning, FiberState::kQueued);
      m_batch_over ? m_runnable.pushSpent(&core) : m_runnable.push(&core);
      return;
    case SwitchReason::kHold: {
      const bool goes_on = mayInterrupt(core);
      control(*core.fiber).move(FiberState::kRunning, goes_on ? FiberState::kQueued : FiberState::kHeld);
      if (goes_on) m_runnable.push(&core);
      return;
    }
    case SwitchReason::kParked: return;
    case SwitchReason::kMove: migrate(core); return;
    case SwitchReason::kDone: endFiber(core); return;
  }
}

/// Abandons unstarted work that came too late.
void Worker::refuse(Fiber& fiber) {
  SYLAR_DCHECK(ThreadFibers::coreOf(fiber) == nullptr);
  noteAbandoned(fiber);
  ThreadFibers::abandon(fiber);
  runUserCode([&] { ThreadFibers::drop(fiber); });
}

/// Gives unstarted work a core and a stack. A fiber that comes from another thread has them already. Returns false if it will not
/// run.
bool Worker::prepareUnstarted(Fiber& fiber) {
  SYLAR_DCHECK(stateOf(fiber) == FiberState::kQueued);
  if (ThreadFibers::coreOf(fiber) != nullptr) {
    m_thread_fibers->adopt(fiber);
  } else if (m_cancel_phase != CancelPhase::kNone && m_scheduler.cancelsAll()) {
    refuse(fiber);
    return false;
  } else if (!m_thread_fibers->start(fiber)) {
    runUserCode([&] { ThreadFibers::failToStart(fiber); });
    return false;
  }
  FiberCore& core = *ThreadFibers::coreOf(fiber);
  linkLive(core, m_scheduler.cancelsAll());
  return true;
}

/// Returns true if the fiber joins one that has ended. Then it goes on, and is told.
bool Worker::joinIsOver(const FiberCore& core) {
  const Fiber* const joined = control(*core.fiber).joins();
  return joined != nullptr && isOver(stateOf(*joined));
}

/// Inlined into its callers, together with the switch; see enterFromLoop().
[[gnu::always_inline]] inline void Worker::runNode(QueueNode* node) {
  FiberCore* core;
  if (node->kind == QueueNode::Kind::kFiber) {
    auto& fiber = FiberControl::fiberOf(node);
    if (!prepareUnstarted(fiber)) return;
    core = ThreadFibers::coreOf(fiber);
  } else {
    SYLAR_DCHECK(node->kind == QueueNode::Kind::kCore);
    core = static_cast<FiberCore*>(node);
  }
  if (core->cancelled != 0 && core->cancelled_waits == 0 && !joinIsOver(*core)) {
    abandon(*core);
    return;
  }
  SYLAR_DCHECK(core->live && core->home == &m_slot && !core->wait.isOpen());
  SYLAR_DCHECK(stateOf(*core->fiber) == FiberState::kQueued || stateOf(*core->fiber) == FiberState::kParked);
  control(*core->fiber).move(FiberState::kRunning);
  m_counts.switches.add();
  m_runnable.leaveLoop();
  FiberCore& back = m_thread_fibers->enterFromLoop(*core);
  Worker& self = inRegister(*this);
  if (!self.m_runnable.comeBack()) self.standStill(back);
  self.afterSwitch(back);
}

inline QueueNode* Worker::pick(int round) {
  if (round % kInjectorInterval == 1) {
    if (QueueNode* node = m_scheduler.idle().injector().take()) return node;
  }
  m_unstarted_next = !m_unstarted_next;
  if (m_unstarted_next) {
    if (QueueNode* node = m_spawned.take()) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = m_spawned.take()) return node;
  if (QueueNode* node = m_scheduler.idle().injector().take()) return node;
  return takeSpent();
}

/// Takes a fiber that has used up its budget. All others come first, but not for longer than a batch.
inline QueueNode* Worker::takeSpent() {
  m_spent_overdue = false;
  return m_runnable.popSpent();
}

void Worker::runBatch(int64_t now_ns) {
  SYLAR_DCHECK(isHere() && inLoop());
  m_batch_over = false;
  const bool spent_first = std::exchange(m_spent_overdue, m_runnable.anySpent());
  for (int round = 1; round <= kBatch && !m_batch_over; ++round) {
    QueueNode* const node = round == 1 && spent_first ? takeSpent() : pick(round);
    if (node == nullptr) return;
    m_spawned.share(m_scheduler.idle());
    runNode(node);
    if (round % kFibersPerLook == 0 && m_clock.nowNs() - now_ns >= kBatchNs) return;
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) return;
    }
  }
}

/// Returns true if there is something to do without sleeping. Runs what it has stolen for that.
bool Worker::goesOn() {
  SYLAR_DCHECK(isHere() && inLoop());
  if (!m_runnable.empty() || spawned().count() > 0) return true;
  m_spawned.cameToFetch();
  if (m_scheduler.idle().injector().count() > 0)
    return true;  // the next iteration begins with it, so that no later work overtakes it
  QueueNode* const stolen = m_spawned.steal(m_scheduler.workers());
  if (stolen == nullptr) return false;
  m_spawned.share(m_scheduler.idle());
  runNode(stolen);
  return true;
}

}  // namespace sylar::detail
