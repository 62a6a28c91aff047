// The end of a scheduler. idle.h says how its workers find out that nothing is left. stop(deadline) begins with a round of
// cancelling, and has the last phase of cancelling at the deadline. A worker whose fiber does not come back soon after that is
// detached. All that blocks the thread, so a fiber of another scheduler has a thread do it, and waits.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>

#include "sylar/base/memory.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

constexpr int64_t kGraceNs = 50'000'000;      // after the last phase of cancelling, until a worker counts as stuck
constexpr int64_t kWindUpNs = 1'000'000'000;  // for an end that has no fibers left, until exit() goes on without it
constexpr int64_t kBriefNs = 20'000;
constexpr int64_t kNextLookNs = 5'000'000;  // until the next look at one that was just between two fibers

}  // namespace

void SchedulerCore::stop() { end(Deadline::never(), false); }

StopResult SchedulerCore::stop(Deadline deadline) {
  end(deadline, true);
  if (isParents()) return {};
  return {m_abandoned.count() == 0, m_abandoned.list()};
}

void SchedulerCore::end(Deadline deadline, bool cancels_all) {
  if (isParents()) return;
  if (isLeftByExit()) return haltForExit();
  Worker* const inside = Worker::current();
  SYLAR_CHECK(inside == nullptr || inside->slot().scheduler != this);
  if (over() || m_ender.load(std::memory_order_relaxed) == sys::threadId()) return;  // what the end calls may stop it again
  SYLAR_CHECK(!m_options.use_caller || isCaller());
  uint32_t state = kNotEnding;
  const bool is_first = m_end_state.compare_exchange_strong(state, kEnding, std::memory_order_seq_cst);
  if (is_first && !m_started && (cancels_all || !anyGuard()) && m_idle.endUnused()) {  // never used, or half made
    releaseCaller();
    return setOver();
  }
  const auto finish = [=, this] { is_first ? windUp(deadline, cancels_all) : (void)awaitOver(kNever); };
  const bool suspends = !m_options.use_caller && mayPark() && Scheduler::GetThis() != nullptr;
  if (!suspends || !endInThread(finish, is_first)) finish();
}

void SchedulerCore::setOver() {
  m_end_state.store(kOver, std::memory_order_seq_cst);
  sys::futexWake(m_end_state, INT32_MAX);  // only the address is used: the scheduler may be gone
}

/// Waits for the end that another call has begun, until `end_ns`. Returns true if it is over.
bool SchedulerCore::awaitOver(int64_t end_ns) const {
  while (!over() && sys::futexWait(m_end_state, kEnding, end_ns) != -ETIMEDOUT) continue;
  return over();
}

void SchedulerCore::windUp(Deadline deadline, bool cancels_all) {
  const struct Over {
    SchedulerCore& core;
    ~Over() { core.setOver(); }
  } last{*this};
  m_ender.store(sys::threadId(), std::memory_order_relaxed);
  start();
  if (cancels_all) {
    m_cancels_all.store(true, std::memory_order_relaxed);
    m_stop_deadline_ns.store(deadline.ns(), std::memory_order_relaxed);
  }
  m_idle.beginStop(cancels_all);
  if (cancels_all) m_scheduler.dropPending();
  m_idle.wakeAll();
  if (m_options.use_caller) m_workers.front()->run();
  awaitDone();
  for (size_t i = 0; i < m_threads.size(); ++i) {
    const Worker& worker = *m_workers[m_workers.size() - m_threads.size() + i];
    if (worker.detached()) {
      (void)m_threads[i].release();  // its thread keeps it
    } else if (worker.awaitEnd()) {
      m_threads[i]->join();
    }
  }
  m_threads.clear();                                     // detaches the threads that the kernel holds
  while (waitForThreads() > 0) sys::sleepFor(kBriefNs);  // the maker of threads is about to say that there were some
  closeThreads();
  m_scheduler.dropPending();  // what came until the injector closed
  {
    Lock lock(m_stuck_mutex);
    m_abandoned.takeAll(m_stuck);
  }
  for (const auto& worker : m_workers) {
    AbandonedFibers callbacks;  // whose events came with the end: dropped as if they still waited, and not told
    drop(abandonAll(worker->spawned().close(), callbacks));
    m_abandoned.takeAll(worker->abandoned());
    if (!worker->detached()) worker->endDriver();  // now, not with this object: others may wait for what is registered there
  }
  releaseCaller();
}

/// Calls `finish` in a thread while the calling fiber waits. Returns false if there is no thread.
bool SchedulerCore::endInThread(const std::function<void()>& finish, bool is_first) {
  struct Ending {
    OsMutex mutex;
    Waker waker SYLAR_GUARDED_BY(mutex);
    bool over SYLAR_GUARDED_BY(mutex) = false;
    std::exception_ptr exception;
    ClockHold hold;  // until the fiber is awake. Here and not in this object, which may be gone then
  } ending;
  const auto run = [&] {
    try {
      finish();
    } catch (...) {
      ending.exception = std::current_exception();
    }
    Lock lock(ending.mutex);
    ending.over = true;
    const Waker waker = ending.waker;
    const bool waits = waker.core != nullptr;
    const bool wakes = waits && waker.claim(WakeReason::kReady);
    if (waits && !wakes) ending.hold = {};  // it is awake already, or abandoned
    lock.unlock();
    if (wakes) Waker::deliver(*waker.core);
  };
  const Clock& clock = waitClock();
  if (&clock != m_options.clock) ending.hold = ClockHold(clock);
  if (is_first) m_stopper = {&clock, &ending.hold};
  std::unique_ptr<Thread> thread;
  try {
    thread = std::make_unique<Thread>(run, getName() + "_end");
  } catch (const std::exception&) {
    if (is_first) m_stopper = {};
    return false;
  }
  const this_fiber::CancelShield shield;
  for (;;) {
    Wait wait(WaitsFor::kHelper);
    Lock lock(ending.mutex);
    ending.waker = wait.waker();
    const bool over = ending.over;
    lock.unlock();
    if (over) wait.withdraw();
    if (over || wait.park() == WakeReason::kReady) break;
    // The last phase of cancelling. The thread still uses this stack, so wait on until the fiber is abandoned.
  }
  thread->join();
  if (ending.exception != nullptr) std::rethrow_exception(ending.exception);
  return true;
}

bool SchedulerCore::isLeftByExit() const { return ThreadFibers::inExit() && !m_made_in_exit && !over(); }

/// Lets the workers stand still, and returns when they do, or after kGraceNs if a fiber computes for that long. The caller's own
/// worker cannot come back to its loop, so what runs on it goes on as the thread. The destructor calls this a second time. If no
/// fiber is left, the workers and the thread inside of the end are about to leave, and nothing has to stand still.
void SchedulerCore::haltForExit() {
  if (m_halts.exchange(true, std::memory_order_seq_cst)) return;
  if (done()) return (void)awaitOver(saturatingAdd(steadyClock().nowNs(), kWindUpNs));
  m_idle.beginStop(false);
  m_idle.wakeAll();
  const Worker* const here = Worker::current();
  const auto is_other = [here](const auto& worker) { return worker.get() != here && worker->threadId() != 0; };
  const auto others = static_cast<uint32_t>(std::ranges::count_if(m_workers, is_other));
  const int64_t end_ns = saturatingAdd(steadyClock().nowNs(), kGraceNs);
  for (uint32_t halted;
       (halted = m_halted.load(std::memory_order_acquire)) < others && !over() && steadyClock().nowNs() < end_ns;) {
    sys::futexWait(m_halted, halted, end_ns);
  }
  if (here == nullptr || &here->scheduler() != this) return;
  Worker::forgetThread();
  ThreadFibers::current().leaveFibers();
}

void SchedulerCore::haltHere() {
  if (Worker::current() != nullptr) m_halted.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_halted, 1);
  sys::haltThread();
}

/// Workers look at the deadline themselves, except those that are stuck.
void SchedulerCore::awaitDone() {
  while (!done()) {
    const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
    const int64_t look_ns = std::max(saturatingAdd(deadline_ns, kGraceNs), steadyClock().nowNs() + kNextLookNs);
    sys::futexWait(m_idle.doneWord(), 0, look_ns);
    if (!done()) watchDeadline();
  }
}

void SchedulerCore::watchDeadline() {
  if (halts() && !done()) haltHere();
  const int64_t deadline_ns = m_stop_deadline_ns.load(std::memory_order_relaxed);
  if (deadline_ns == kNever) return;
  const int64_t now_ns = steadyClock().nowNs();
  if (now_ns < deadline_ns) return;
  const bool patient = now_ns < saturatingAdd(deadline_ns, kGraceNs);
  if (!patient) detachStuck();
  m_idle.raisePhase(patient || m_leaving.load(std::memory_order_acquire) > 0 ? CancelPhase::kShields : CancelPhase::kJoins);
  if (waitForThreads() > 0) g_threads.releaseAll(*this);
}

int64_t SchedulerCore::waitCap(int64_t now_ns) const {
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

/// Detaches the workers that are in a fiber now, so that the others may come to their end. The calling thread is never left
/// behind.
void SchedulerCore::detachStuck() {
  struct Stuck {
    Worker* worker;
    NodeList mail;
  };
  std::vector<Stuck> stuck;
  NodeList unrun;
  const auto close = [&unrun](SpawnQueue<>& queue) {
    NodeList left = queue.close();
    unrun.append(left);
  };
  try {
    stuck.reserve(m_workers.size());
  } catch (const std::bad_alloc&) {
    return;  // somebody looks again soon
  }
  m_leaving.fetch_add(1, std::memory_order_acq_rel);  // joiners of what is left wait until they are told
  const auto detach = [&] {
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      if (m_workers[i].get() != Worker::current() && m_workers[i]->detach()) stuck.push_back({m_workers[i].get(), {}});
    }
    (void)m_idle.injector().admit([&] {  // nothing is put in now or from then on
      for (Stuck& one : stuck) one.mail = one.worker->slot().mailbox.drain();
    });
    for (const Stuck& one : stuck) close(one.worker->spawned());  // the worker may be about to push
    return stuck.size();
  };
  m_idle.exclude(detach, [&] {
    close(m_idle.injector());
    for (const auto& worker : m_workers) close(worker->spawned());
    NodeList waiting = g_threads.takeAll(*this);
    unrun.append(waiting);
  });
  AbandonedFibers left;
  for (Stuck& one : stuck) {
    SYLAR_DCHECK(!one.worker->isHere());  // the calling thread is never left behind
    one.worker->abandonFibers(one.mail, left, unrun);
    one.worker->driver().retire();
  }
  const NodeList never_begun = abandonAll(unrun, left);
  m_leaving.fetch_sub(1, std::memory_order_acq_rel);
  {
    Lock lock(m_stuck_mutex);
    m_stuck.takeAll(left);
  }
  Worker* const here = Worker::current();  // it may be detached in its turn
  const bool in_loop = here != nullptr && here->inLoop();
  in_loop ? here->runUserCode([&] { drop(never_begun); }) : drop(never_begun);
}

/// Abandons and notes what nobody will run. Returns what must be dropped. Dropping may block, so it comes when all observers are
/// told.
NodeList SchedulerCore::abandonAll(NodeList unrun, AbandonedFibers& out) {
  NodeList never_begun;
  while (QueueNode* const node = unrun.pop()) {
    auto& fiber = FiberControl::fiberOf(node);
    SYLAR_DCHECK(stateOf(fiber) == FiberState::kQueued);
    const bool has_begun = ThreadFibers::coreOf(fiber) != nullptr;
    out.note(fiber);
    ThreadFibers::abandon(fiber);
    if (!has_begun) never_begun.push(&control(fiber));
  }
  return never_begun;
}

void SchedulerCore::drop(NodeList never_begun) {
  while (QueueNode* const node = never_begun.pop()) ThreadFibers::drop(FiberControl::fiberOf(node));
}

/// On virtual time, nobody sees from here on that a fiber which waits for the end is about to wake.
void SchedulerCore::ended() {
  if (m_stopper.hold != nullptr) *m_stopper.hold = ClockHold(*m_stopper.clock);
  sys::futexWake(m_idle.doneWord(), 1);
}

}  // namespace sylar::detail
