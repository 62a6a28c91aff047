// The end of a scheduler. How its workers find out that nothing is left is in rest.h; stop(deadline) begins with a round of
// cancelling and has the last call at the deadline; a worker whose fiber does not come back soon after is detached.
#include <algorithm>
#include <new>

#include "sylar/base/check.h"
#include "sylar/base/memory.h"
#include "sylar/base/sys.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

constexpr int64_t kGraceNs = 50'000'000;    // after the last call, until a worker counts as stuck
constexpr int64_t kNextLookNs = 5'000'000;  // at one that was just between two fibers

}  // namespace

void Scheduler::stop() { end(Deadline::never(), false); }

StopResult Scheduler::stop(Deadline deadline) {
  end(deadline, true);
  return {m_leftovers.count() == 0, m_leftovers.list()};
}

void Scheduler::end(Deadline deadline, bool cancels_all) {
  Worker* const inside = Worker::current();
  SYLAR_CHECK(inside == nullptr || inside->slot().scheduler != this);
  if (done()) return;
  SYLAR_CHECK(!m_options.use_caller || isCaller());
  if (!m_started && m_rest.endUnused()) return;  // never used, or half made
  start();
  if (cancels_all) {
    m_cancels_all.store(true, std::memory_order_relaxed);
    m_stop_deadline_ns.store(deadline.ns(), std::memory_order_relaxed);
  }
  m_rest.beginStop(cancels_all);
  if (cancels_all) dropPending();
  m_rest.wakeAll();
  if (m_options.use_caller) m_workers.front()->run();
  awaitDone();
  for (size_t i = 0; i < m_threads.size(); ++i) {
    if (m_workers[m_workers.size() - m_threads.size() + i]->detached()) {
      (void)m_threads[i].release();  // its thread keeps it, too
    } else {
      m_threads[i]->join();
    }
  }
  m_threads.clear();
  dropPending();  // what came until the injector closed
  {
    Lock lock(m_stuck_mutex);
    m_leftovers.takeAll(m_stuck);
  }
  for (const auto& worker : m_workers) {
    m_leftovers.takeAll(worker->leftovers());
    if (!worker->detached()) worker->endDriver();  // now, not with this object: others may wait for what is registered there
  }
}

/// Workers look at the deadline themselves, but those that are stuck.
void Scheduler::awaitDone() {
  while (!done()) {
    const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
    const int64_t look_ns = std::max(saturatingAdd(deadline_ns, kGraceNs), steadyClock().nowNs() + kNextLookNs);
    sys::futexWait(m_rest.doneWord(), 0, look_ns);
    if (!done()) watchDeadline();
  }
}

void Scheduler::watchDeadline() {
  const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
  if (deadline_ns == kNever) return;
  const int64_t now_ns = steadyClock().nowNs();
  if (now_ns < deadline_ns) return;
  const bool patient = now_ns < saturatingAdd(deadline_ns, kGraceNs);
  m_rest.raiseCall(patient ? LastCall::kShields : LastCall::kJoins);
  if (!patient) detachStuck();
}

int64_t Scheduler::waitCap(int64_t now_ns) const {
  int64_t cap_ns = std::chrono::nanoseconds(m_options.max_wait).count();
  if (cap_ns == 0) cap_ns = kNever;
  const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
  if (deadline_ns != kNever && isStopping()) {
    const int64_t left_ns = deadline_ns - steadyClock().nowNs();
    const int64_t look_ns = left_ns > 0 ? left_ns : left_ns + kGraceNs > 0 ? left_ns + kGraceNs : kNextLookNs;
    cap_ns = std::min(cap_ns, look_ns);
  }
  return saturatingAdd(now_ns, cap_ns);
}

/// Without those that are in a fiber now, the others may come to their end. The calling thread is never left behind.
void Scheduler::detachStuck() {
  struct Stuck {
    Worker* worker;
    NodeList mail;
  };
  std::vector<Stuck> stuck;
  std::vector<NodeList> unrun;
  try {
    stuck.reserve(m_workers.size());
    unrun.reserve(2 * m_workers.size() + 1);
  } catch (const std::bad_alloc&) {
    return;  // somebody looks again soon
  }
  const auto detach = [&] {
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      if (m_workers[i].get() != Worker::current() && m_workers[i]->detach()) stuck.push_back({m_workers[i].get(), {}});
    }
    (void)m_rest.injector().admit([&] {  // nothing is put in meanwhile, nor from then on
      for (Stuck& one : stuck) one.mail = one.worker->slot().mailbox.drain();
    });
    for (const Stuck& one : stuck) unrun.push_back(one.worker->fresh().close());  // it may be about to push
    return stuck.size();
  };
  m_rest.leaveOut(detach, [&] {
    unrun.push_back(m_rest.injector().close());
    for (const auto& worker : m_workers) unrun.push_back(worker->fresh().close());
  });
  Leftovers left;
  for (const NodeList& list : unrun) giveUp(list, left);
  for (Stuck& one : stuck) {
    one.worker->leaveBehind(one.mail, left);
    one.worker->driver().retire();
  }
  Lock lock(m_stuck_mutex);
  m_stuck.takeAll(left);
}

/// What was offered, and nobody will run.
void Scheduler::giveUp(NodeList unrun, Leftovers& out) {
  while (QueueNode* node = unrun.pop()) {
    auto& fiber = *static_cast<Fiber*>(node);
    out.note(fiber);
    ThreadFibers::abandon(fiber);
  }
}

void Scheduler::ended() { sys::futexWake(m_rest.doneWord(), 1); }

}  // namespace sylar
