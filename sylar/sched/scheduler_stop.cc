// The end of a scheduler.
//
// While it stops, every sleep is published under one lock, so the last worker to fall asleep sees all of them at rest and decides
// what is next: nothing yet (something from outside will wake somebody); a round of cancelling, for fibers that only fibers
// could wake; the last call, for those that wait regardless; the end. stop(deadline) begins with the round and has the last call
// at the deadline; a worker whose fiber does not come back soon after is detached.
#include <algorithm>
#include <iterator>

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

StopResult Scheduler::stop(Deadline deadline) { return end(deadline, true); }

StopResult Scheduler::end(Deadline deadline, bool cancels_all) {
  Worker* const inside = Worker::current();
  SYLAR_CHECK(inside == nullptr || inside->slot().scheduler != this);
  if (done()) return {m_leftovers.empty(), m_leftovers};
  SYLAR_CHECK(!m_options.use_caller || m_caller == sys::threadId());
  const auto no_mail = [this] {
    return std::all_of(m_workers.begin(), m_workers.end(), [](const auto& worker) { return worker->slot().mailbox.empty(); });
  };
  if (!m_started && m_injector.closeIfEmpty(no_mail)) {  // never used, or half made
    m_done.store(1, std::memory_order_seq_cst);
    return {true, {}};
  }
  start();
  if (cancels_all) {
    m_cancels_all.store(true, std::memory_order_relaxed);
    m_stop_deadline_ns.store(deadline.ns(), std::memory_order_relaxed);
    m_cancel_round.fetch_add(1, std::memory_order_seq_cst);
  }
  m_stopping.store(true, std::memory_order_seq_cst);
  if (cancels_all) dropPending();
  wakeAll();
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
    Lock lock(m_stop_mutex);
    m_leftovers.swap(m_stuck);
  }
  for (const auto& worker : m_workers) {
    worker->takeLeftovers(m_leftovers);
    if (!worker->detached()) worker->endDriver();  // now, not with this object: others may wait for what is registered there
  }
  return {m_leftovers.empty(), m_leftovers};
}

/// Workers look at the deadline themselves, but those that are stuck.
void Scheduler::awaitDone() {
  while (!done()) {
    const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
    const int64_t look_ns = std::max(saturatingAdd(deadline_ns, kGraceNs), steadyClock().nowNs() + kNextLookNs);
    sys::futexWait(m_done, 0, look_ns);
    if (!done()) watchDeadline();
  }
}

void Scheduler::watchDeadline() {
  const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
  if (deadline_ns == kNever) return;
  const int64_t now_ns = steadyClock().nowNs();
  if (now_ns < deadline_ns) return;
  const bool patient = now_ns < saturatingAdd(deadline_ns, kGraceNs);
  raiseCall(patient ? Call::kShields : Call::kJoins);
  if (!patient) detachStuck();
}

void Scheduler::raiseCall(Call call) {
  Call now = m_last_call.load(std::memory_order_relaxed);
  while (now < call && !m_last_call.compare_exchange_weak(now, call, std::memory_order_seq_cst)) {
  }
  if (now < call) wakeAll();
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
  {
    Lock lock(m_stop_mutex);
    if (done()) return;
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      if (m_workers[i].get() != Worker::current() && m_workers[i]->detach()) stuck.push_back({m_workers[i].get(), {}});
    }
    (void)m_injector.admit([&] {  // nothing is put in meanwhile, nor from then on
      for (Stuck& one : stuck) one.mail = one.worker->slot().mailbox.drain();
    });
    m_detached += stuck.size();
    if (m_detached == m_workers.size()) {
      unrun.push_back(m_injector.close());
      for (const auto& worker : m_workers) unrun.push_back(worker->fresh().close());
      finish();
    } else if (!stuck.empty() && m_asleep + m_detached == m_workers.size()) {
      decide();
    }
  }
  std::vector<FiberInfo> left;
  for (const NodeList& list : unrun) giveUp(list, left);
  for (Stuck& one : stuck) {
    one.worker->leaveBehind(one.mail, left);
    one.worker->driver().retire();
  }
  Lock lock(m_stop_mutex);
  std::move(left.begin(), left.end(), std::back_inserter(m_stuck));
}

/// What was offered, and nobody will run.
void Scheduler::giveUp(NodeList unrun, std::vector<FiberInfo>& out) {
  while (QueueNode* node = unrun.pop()) {
    auto& fiber = *static_cast<Fiber*>(node);
    out.push_back({fiber.getId(), fiber.getName(), fiber.describe()});
    ThreadFibers::abandon(fiber);
  }
}

// ---- Detecting that nothing is left. -----------------------------------------------------------------------------------------

Scheduler::Sleeper::Sleeper(Scheduler& scheduler)
    : m_scheduler(scheduler),
      m_stopping(
          (scheduler.m_sleepers.fetch_add(1, std::memory_order_seq_cst), scheduler.m_stopping.load(std::memory_order_seq_cst))) {
  if (!m_stopping) return;
  Lock lock(m_scheduler.m_stop_mutex);
  m_decided = ++m_scheduler.m_asleep + m_scheduler.m_detached == m_scheduler.m_workers.size() && m_scheduler.decide();
}

Scheduler::Sleeper::~Sleeper() {
  if (m_stopping) {
    Lock lock(m_scheduler.m_stop_mutex);
    --m_scheduler.m_asleep;
  }
  m_scheduler.m_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

/// All workers are at rest. True: there is a next step, and everybody was woken for it.
bool Scheduler::decide() {
  size_t waiting = 0;
  size_t uncancelled = 0;
  size_t live = 0;
  for (const auto& worker : m_workers) {
    if (worker->detached()) continue;
    waiting += worker->waiting() + worker->joinsElsewhere();
    uncancelled += worker->uncancelled();
    live += worker->live();
  }
  if (waiting > 0 || !nothingLeft()) return false;
  if (uncancelled > 0) {  // held, or waiting for one another: nobody will wake them
    m_cancel_round.fetch_add(1, std::memory_order_seq_cst);
  } else if (live > 0) {  // shielded, and waiting for one another
    if (lastCall() == Call::kJoins) return false;
    raiseCall(lastCall() == Call::kNone ? Call::kShields : Call::kJoins);
  } else {
    if (!m_injector.closeIfEmpty([this] { return nothingLeft(); })) return false;
    finish();
    return true;
  }
  wakeAll();
  return true;
}

bool Scheduler::nothingLeft() {
  const auto at_rest = [](const auto& worker) {
    return worker->detached() || (worker->slot().mailbox.sleeping() && worker->fresh().count() == 0);
  };
  return m_injector.count() == 0 && (cancelsAll() || stopping()) && std::all_of(m_workers.begin(), m_workers.end(), at_rest);
}

void Scheduler::finish() {
  m_done.store(1, std::memory_order_seq_cst);
  sys::futexWake(m_done, 1);
  wakeAll();
}

}  // namespace sylar
