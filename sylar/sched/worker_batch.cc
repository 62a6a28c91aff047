// What a turn runs: who is next, and what becomes of the one that ran.
#include <algorithm>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker.h"

namespace sylar {

/// Runs what is not the library's. The worker may be detached meanwhile: then its thread does not come back.
template <class Foreign>
inline void Worker::outside(Foreign foreign) {
  m_place.store(Place::kFiber, std::memory_order_release);
  foreign();
  Place in_fiber = Place::kFiber;
  if (!m_place.compare_exchange_strong(in_fiber, Place::kLoop, std::memory_order_acq_rel)) sys::haltThread();
}

/// Does what the fiber asked for when it gave the thread back.
inline void Worker::settle(FiberCore& core) {
  if (core.cancelled && core.patience > 0 &&
      (m_last_call != LastCall::kNone || (core.request != Request::kReady && !core.shielded))) {
    --core.patience;
  }
  switch (core.request) {
    case Request::kReady:
      core.fiber->move(Fiber::Life::kRunning, Fiber::Life::kQueued);
      m_runnable.push(&core);
      return;
    case Request::kHold: {
      const bool goes_on = mayInterrupt(core);
      core.fiber->move(Fiber::Life::kRunning, goes_on ? Fiber::Life::kQueued : Fiber::Life::kHeld);
      if (goes_on) m_runnable.push(&core);
      return;
    }
    case Request::kParked: return;
    case Request::kMove: moveAway(core); return;
    case Request::kDone:
      unlinkLive(core);
      m_thread_fibers->finish(core);
      return;
  }
}

/// Fresh work that came too late.
void Worker::refuse(Fiber& fiber) {
  leave(fiber);
  outside([&] { ThreadFibers::abandon(fiber); });
}

/// Gives fresh work a core and a stack. One that comes from another thread has them already.
bool Worker::prepareFresh(Fiber& fiber) {
  if (ThreadFibers::coreOf(fiber) != nullptr) {
    m_thread_fibers->adopt(fiber);
  } else if (m_last_call != LastCall::kNone && m_scheduler.cancelsAll()) {
    refuse(fiber);
    return false;
  } else if (!m_thread_fibers->start(fiber)) {
    outside([&] { ThreadFibers::failToStart(fiber); });
    return false;
  }
  FiberCore& core = *ThreadFibers::coreOf(fiber);
  linkLive(core);
  return true;
}

/// Inlined into its callers, with the switch: see giveTurn.
[[gnu::always_inline]] inline void Worker::runNode(QueueNode* node) {
  FiberCore* core;
  if (node->kind == QueueNode::Kind::kFiber) {
    auto& fiber = *static_cast<Fiber*>(node);
    if (!prepareFresh(fiber)) return;
    core = ThreadFibers::coreOf(fiber);
  } else {
    core = static_cast<FiberCore*>(node);
  }
  if (core->cancelled && core->patience == 0) {
    abandon(*core);
    return;
  }
  core->fiber->move(core->fiber->life(), Fiber::Life::kRunning);
  m_counts.switches.add();
  FiberCore* back;
  outside([&] { back = &m_thread_fibers->giveTurn(*core); });
  settle(*back);
}

inline QueueNode* Worker::pick() {
  if (--m_injector_in == 0) {
    m_injector_in = kInjectorInterval;
    if (QueueNode* node = m_scheduler.rest().injector().take()) return node;
  }
  m_fresh_next = !m_fresh_next;
  if (m_fresh_next) {
    if (QueueNode* node = m_fresh.take()) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = m_fresh.take()) return node;
  return m_scheduler.rest().injector().take();
}

void Worker::runBatch(int64_t now_ns) {
  m_fresh.beginTurn();
  m_turn_over = false;
  m_injector_in = 1;
  for (int round = 1; round <= kBatch && !m_turn_over; ++round) {
    QueueNode* const node = pick();
    if (node == nullptr) return;
    m_fresh.share(m_scheduler.rest());
    runNode(node);
    if (round % kFibersPerLook == 0 && m_clock.nowNs() - now_ns >= kBatchNs) return;
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) return;
    }
  }
}

/// Whether there is something to do without sleeping; runs what it has stolen for that.
bool Worker::goesOn() {
  if (!m_runnable.empty() || fresh().count() > 0) return true;
  m_fresh.cameToFetch();
  if (m_scheduler.rest().injector().count() > 0) return true;  // the next turn begins with it; taken here, the next overtakes it
  QueueNode* const stolen = m_fresh.steal(m_scheduler.workers());
  if (stolen == nullptr) return false;
  m_fresh.share(m_scheduler.rest());
  runNode(stolen);
  return true;
}

}  // namespace sylar
