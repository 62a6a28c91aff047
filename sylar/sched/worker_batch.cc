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
  giveThreadTo(*core);
  FiberCore& back = m_thread_fibers->enterFromLoop(*core);
  Worker& self = inRegister(*this);
  if (!self.m_runnable.inLoop() && !self.m_runnable.comeBack()) self.standStill(back);
  self.afterSwitch(back);
}

/// Called before the switch to `core`.
[[gnu::always_inline]] inline void Worker::giveThreadTo(FiberCore& core) {
  SYLAR_DCHECK(core.live && core.home == &m_slot && !core.wait.isOpen());
  SYLAR_DCHECK(stateOf(*core.fiber) == FiberState::kQueued || stateOf(*core.fiber) == FiberState::kParked);
  control(*core.fiber).move(FiberState::kRunning);
  m_counts.switches.add();
  m_runnable.leaveLoop();
}

/// Makes `work`, which a fiber is about to join, the next to run, if it is in this worker's queue. So a tree of fibers grows in depth and
/// needs as many stacks as it is deep, while thieves take the oldest work, which is the largest branches.
[[gnu::noinline]] void Worker::bringForward(SpawnNode& work) {
  if (!m_spawned.queue().takeOut(work)) return;
  m_runnable.pushFirst(&work);
  m_unstarted_next = true;  // this was its turn
}

/// Makes `joiner`, whose join is over, the next to run, so that it goes on with its tree before another branch begins. Returns false if
/// others have to come first: runnable fibers after kFibersPerLook such ends in a row, and the oldest unstarted work after kOldestNs.
bool Worker::resumeNext(FiberCore& joiner) {
  const uint64_t now = m_counts.switches.get();
  if (!inLoop() || std::exchange(m_last_end, now) == now) return false;  // only for the first joiner of a fiber
  const bool oldest_is_due = m_slot.iteration_ns - m_unstarted_ns >= kOldestNs;
  const bool others_are_due = ++m_in_depth >= kFibersPerLook && !m_runnable.empty();
  m_unstarted_next = !oldest_is_due;
  if (oldest_is_due || others_are_due) {
    m_in_depth = 0;
    return false;
  }
  m_runnable.pushFirst(&joiner);
  return true;
}

/// Does what the loop would do between two fibers of a batch, if that is only to take the next one. So a switch from one fiber to another is
/// one jump, and not one into the loop and one out of it. The loop has to come at each look at the clock, at the end of a batch, for
/// unstarted work whose turn it is, and for all that concerns a stop or a cancelled fiber.
FiberCore* Worker::passOn(FiberCore& me) {
  const tsan::Exempt of_this_thread;
  SYLAR_DCHECK(isHere() && me.home == &m_slot);
  if (!m_runnable.comeBack()) return nullptr;  // the loop stands still
  if (m_joined != nullptr) [[unlikely]]
    bringForward(*std::exchange(m_joined, nullptr));
  if (m_round % kFibersPerLook == 0 || m_batch_over || m_scheduler.isStopping()) return nullptr;
  if (me.cancelled != 0 || me.switch_reason > SwitchReason::kParked) return nullptr;
  const bool any_unstarted = m_spawned.queue().count() > 0;
  if (any_unstarted && !m_unstarted_next) return nullptr;
  QueueNode* const front = m_runnable.front();
  FiberCore* const next = front != nullptr ? coreToEnter(*front) : me.switch_reason == SwitchReason::kReady ? &me : nullptr;
  if (next == nullptr) return nullptr;
  if (any_unstarted) {
    m_unstarted_next = false;
    m_spawned.share(m_scheduler.idle());
  }
  afterSwitch(me);
  (void)m_runnable.pop();
  ++m_round;
  giveThreadTo(*next);
  return next;
}

/// Returns the core of a fiber that passOn() can enter, or null. Gives a core to work that has not begun.
inline FiberCore* Worker::coreToEnter(QueueNode& node) {
  if (node.kind == QueueNode::Kind::kCore) {
    auto& core = static_cast<FiberCore&>(node);
    return core.cancelled == 0 ? &core : nullptr;
  }
  Fiber& fiber = FiberControl::fiberOf(&node);
  if (ThreadFibers::coreOf(fiber) != nullptr || !m_thread_fibers->start(fiber)) return nullptr;
  FiberCore& core = *ThreadFibers::coreOf(fiber);
  linkLive(core, false);
  return &core;
}

inline QueueNode* Worker::pick() {
  if (m_round % kInjectorInterval == 1) {
    if (QueueNode* node = takeUnstarted(m_scheduler.idle().injector())) return node;
  }
  m_unstarted_next = !m_unstarted_next;
  if (m_unstarted_next) {
    if (QueueNode* node = takeUnstarted(m_spawned.queue())) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = takeUnstarted(m_spawned.queue())) return node;
  if (QueueNode* node = takeUnstarted(m_scheduler.idle().injector())) return node;
  return takeSpent();
}

/// Takes the oldest work of `queue`, and notes when that was.
inline QueueNode* Worker::takeUnstarted(SpawnQueue<>& queue) {
  QueueNode* const node = queue.take();
  if (node != nullptr) m_unstarted_ns = m_slot.iteration_ns;
  return node;
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
  for (m_round = 1; m_round <= kBatch && !m_batch_over; ++m_round) {
    QueueNode* const node = m_round == 1 && spent_first ? takeSpent() : pick();
    if (node == nullptr) break;
    m_spawned.share(m_scheduler.idle());
    runNode(node);
    if (m_round % kFibersPerLook == 0 && m_clock.nowNs() - now_ns >= kBatchNs) break;
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) break;
    }
  }
  m_round = 0;
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
