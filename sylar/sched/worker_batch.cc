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

/// Queues a fiber that has given the thread back and stays on this worker, unless it waits.
[[gnu::always_inline]] inline void Worker::queueAgain(FiberCore& core) {
  SYLAR_DCHECK(inLoop() && core.switch_reason <= SwitchReason::kParked);
  if (core.switch_reason == SwitchReason::kReady) {
    control(*core.fiber).move(FiberState::kRunning, FiberState::kQueued);
    m_batch_over ? m_runnable.pushSpent(&core) : m_runnable.pushBack(&core);
  } else if (core.switch_reason == SwitchReason::kHold) {
    const bool goes_on = mayInterrupt(core);
    control(*core.fiber).move(FiberState::kRunning, goes_on ? FiberState::kQueued : FiberState::kHeld);
    if (goes_on) m_runnable.pushBack(&core);
  }
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
    case SwitchReason::kHold:
    case SwitchReason::kParked: queueAgain(core); return;
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

inline ThreadFibers::Started Worker::tryStart(Fiber& fiber) { return m_thread_fibers->start(fiber, true); }

/// Starts a fiber for which no thread is free as soon as one has been made, if time is virtual: there fibers begin in their order,
/// and real time does not count. The maker may need what a fiber of this worker holds (ThreadLending), so the wait has a limit.
template <class Start>
[[gnu::cold]] ThreadFibers::Started startInOrder(const Clock& clock, const Fiber& fiber, Start start) {
  constexpr int64_t kPauseNs = 20'000, kLongestNs = 200'000'000;
  constexpr size_t kMadeAhead = threadRoomFor(kDefaultStackSize);
  auto started = ThreadFibers::Started::kNoThread;
  if (clock.autoAdvance() == nullptr || threadRoomFor(control(fiber).stackSize()) > kMadeAhead) return started;
  ThreadLender::get()->call();
  for (int64_t waited = 0; started == ThreadFibers::Started::kNoThread && waited < kLongestNs; waited += kPauseNs) {
    sys::sleepFor(kPauseNs);
    started = start();
  }
  return started;
}

/// Gives unstarted work a core and a stack. If there is no thread for it, it is queued again when there is one, here only if it is
/// pinned. A fiber that comes from another thread has them already. Returns false if it will not
/// run.
bool Worker::prepareUnstarted(Fiber& fiber) {
  SYLAR_DCHECK(stateOf(fiber) == FiberState::kQueued);
  const void* const pinned_to = control(fiber).queue.load(std::memory_order_relaxed);
  if (pinned_to != nullptr) control(fiber).queue.store(nullptr, std::memory_order_relaxed);
  if (ThreadFibers::coreOf(fiber) != nullptr) {
    m_thread_fibers->adopt(fiber);
  } else if (m_cancel_phase != CancelPhase::kNone && m_scheduler.cancelsAll()) {
    refuse(fiber);
    return false;
  } else if (auto started = tryStart(fiber); started != ThreadFibers::Started::kYes) {
    if (started == ThreadFibers::Started::kNoThread) started = startInOrder(m_clock, fiber, [&] { return tryStart(fiber); });
    if (started == ThreadFibers::Started::kNoThread) {
      m_scheduler.awaitThread(control(fiber), pinned_to);
      return false;
    }
    if (started != ThreadFibers::Started::kYes) {
      runUserCode([&] { ThreadFibers::failToStart(fiber); });
      return false;
    }
  }
  FiberCore& core = *ThreadFibers::coreOf(fiber);
  linkLive(core, m_scheduler.cancelsAll());
  return true;
}

/// Returns true if the fiber joins one that has ended. Then it goes on, and is told.
bool Worker::joinIsOver(const FiberCore& core) {
  const Fiber* const joined = core.started().joins;
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

/// Returns true if a joined fiber, or its joiner, may run next, out of its turn, so that a tree of fibers grows in depth. Others
/// are due from time to time: runnable fibers after kFibersPerLook such turns, and the oldest unstarted work after kDepthTurns or
/// kDepthNs.
[[gnu::always_inline]] inline bool Worker::mayGoInDepth() {
  SYLAR_DCHECK(inLoop());
  m_unstarted_next = true;  // so the alternation goes on with what was woken
  return ++m_depth_turns % kFibersPerLook != 0 || !othersAreDue();
}

[[gnu::noinline]] bool Worker::othersAreDue() {
  const bool oldest_is_due = m_depth_turns - m_oldest_turn >= kDepthTurns || m_slot.iteration_ns - m_spawned_ns >= kDepthNs;
  m_unstarted_next = !oldest_is_due;
  return !m_runnable.empty() || (oldest_is_due && m_spawned.queue().count() > 0);
}

/// Takes the unstarted work that the fiber that ran last has begun to join. Returns null if thieves have it, or others are due.
inline QueueNode* Worker::takeJoined() {
  SpawnNode& joined = *std::exchange(m_joined, nullptr);
  return mayGoInDepth() && m_spawned.queue().takeOut(joined) ? &joined : nullptr;
}

/// Makes `joiner`, whose join is over, the next to run. Returns false if it has to wait for its turn.
bool Worker::resumeNext(FiberCore& joiner) {
  const uint64_t now = m_counts.switches.get();
  if (!inLoop() || std::exchange(m_last_end, now) == now) return false;  // only for the first joiner of a fiber
  if (!mayGoInDepth()) return false;
  m_runnable.pushFirst(&joiner);
  return true;
}

/// Does what the loop would do between two fibers of a batch, if that is only to take the next one. So a switch from one fiber to
/// another is one jump, and not one into the loop and one out of it. The loop has to come at the end of a batch, for
/// unstarted work whose turn it is, for the injector's turn, and for all that concerns a stop or a cancelled fiber.
FiberCore* Worker::passOn(FiberCore& me) {
  const tsan::Exempt of_this_thread;
  SYLAR_DCHECK(isHere() && me.live && me.home == &m_slot);
  if (sys::inForkedChild()) {
    t_running = &me;
    ThreadFibers::stayInChild(me);
    return &me;
  }
  if (me.cancelled != 0 || me.switch_reason > SwitchReason::kParked) return nullptr;
  if (!m_runnable.comeBack()) return nullptr;  // the loop stands still, and the scheduler may be gone
  if (lookIsDue() && (!batchGoesOn() || injectorIsDue())) return nullptr;
  if (m_scheduler.isStopping()) return nullptr;
  FiberCore* const next = m_joined != nullptr ? startJoined() : nextCore(me);
  if (next == nullptr) return nullptr;
  m_spawned.share(m_scheduler.idle());
  queueAgain(me);
  if (next == m_runnable.front()) (void)m_runnable.pop();
  ++m_round;
  giveThreadTo(*next);
  return next;
}

/// Returns the core that passOn(`me`) enters, or null if that is for the loop.
inline FiberCore* Worker::nextCore(FiberCore& me) {
  const bool unstarted_next = !m_unstarted_next && m_spawned.queue().count() > 0;
  QueueNode* const front = m_runnable.front();
  if (unstarted_next || (front == nullptr ? me.switch_reason != SwitchReason::kReady : front->kind != QueueNode::Kind::kCore)) {
    return nullptr;
  }
  FiberCore& next = front == nullptr ? me : *static_cast<FiberCore*>(front);
  if (next.cancelled != 0) return nullptr;
  m_unstarted_next = false;
  return &next;
}

/// Gives the joined work a core. Returns null if that is for the loop.
FiberCore* Worker::startJoined() {
  if (tsan::strict()) return nullptr;  // what is begun here would come after all that this fiber has done
  QueueNode* const node = takeJoined();
  if (node == nullptr) return nullptr;
  Fiber& fiber = FiberControl::fiberOf(node);
  if (ThreadFibers::coreOf(fiber) != nullptr || tryStart(fiber) != ThreadFibers::Started::kYes) {
    m_runnable.pushFirst(node);
    return nullptr;
  }
  FiberCore& core = *ThreadFibers::coreOf(fiber);
  linkLive(core, false);
  return &core;
}

inline QueueNode* Worker::pick() {
  if (m_round % kInjectorInterval == 1) {
    if (QueueNode* node = m_scheduler.idle().injector().take()) return node;
  }
  if (m_joined != nullptr) {
    if (QueueNode* node = takeJoined()) return node;
  }
  m_unstarted_next = !m_unstarted_next;
  if (m_unstarted_next) {
    if (QueueNode* node = takeSpawned()) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = takeSpawned()) return node;
  if (QueueNode* node = m_scheduler.idle().injector().take()) return node;
  return takeSpent();
}

/// Takes the oldest unstarted work of this worker.
inline QueueNode* Worker::takeSpawned() {
  QueueNode* const node = m_spawned.take();
  if (node != nullptr) oldestHasRun();
  return node;
}

/// Takes a fiber that has used up its budget. All others come first, but not for longer than a batch.
inline QueueNode* Worker::takeSpent() {
  m_spent_overdue = false;
  return m_runnable.popSpent();
}

/// Looks at the clock. The next look comes when an eighth of the time that is left will have passed if the fibers go on as they
/// did, within kFibersPerLook and kInjectorInterval, and before the injector's turn. Returns false after the end of a batch as
/// well.
[[gnu::noinline]] bool Worker::batchGoesOn() {
  SYLAR_DCHECK(lookIsDue() && m_round <= kBatch);
  if (m_next_look == 0 || m_round == kBatch) return false;
  const int64_t spent_ns = std::max<int64_t>(m_clock.nowNs() - m_slot.iteration_ns, 1);
  if (spent_ns >= kBatchNs) return false;
  const int64_t fibers = (kBatchNs - spent_ns) * m_round / (8 * spent_ns);
  m_next_look = m_round + static_cast<unsigned>(std::clamp<int64_t>(fibers, kFibersPerLook, kInjectorInterval));
  m_next_look = std::min(m_next_look, (m_round / kInjectorInterval + 1) * kInjectorInterval);
  return true;
}

/// Returns true if the loop's next pick begins with the injector, and finds something there.
bool Worker::injectorIsDue() const { return m_round % kInjectorInterval == 0 && m_scheduler.idle().injector().count() > 0; }

void Worker::runBatch() {
  SYLAR_DCHECK(isHere() && inLoop());
  m_batch_over = false;
  if (m_spawned.queue().count() == 0) oldestHasRun();
  const bool spent_first = std::exchange(m_spent_overdue, m_runnable.anySpent());
  m_next_look = kFibersPerLook;
  for (m_round = 1; !m_batch_over; ++m_round) {
    QueueNode* const node = m_round == 1 && spent_first ? takeSpent() : pick();
    m_joined = nullptr;
    if (node == nullptr) break;
    m_spawned.share(m_scheduler.idle());
    runNode(node);
    if (lookIsDue() && !batchGoesOn()) break;
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) break;
    }
  }
  m_next_look = 0;
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
  m_joined = nullptr;
  m_spawned.share(m_scheduler.idle());
  runNode(stolen);
  if (m_scheduler.isStopping()) m_scheduler.watchDeadline();
  return true;
}

}  // namespace sylar::detail
