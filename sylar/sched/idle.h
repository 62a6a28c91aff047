// Internal. How the workers of a scheduler fall asleep, who wakes them, and how they find out that nothing is left (protocol P2
// and the end of a stop).
//
//   word           who writes it                                      order
//   injector       anybody offers, any worker takes                   seq_cst on its count
//   m_sleepers     a worker, around its sleep                         seq_cst; a hint for others
//   m_called       true: who has published unstarted work, then wakes;    seq_cst
//                  false: a worker, before it looks at all queues
//   m_stopping     the one who stops, once                            seq_cst
//   m_asleep       a worker, while it stops                           under the lock, with the decision
//   m_cancel_round, m_cancel_phase, m_done                               seq_cst: a sleeper declares itself, then reads them
//
// While it stops, every sleep is published under one lock, so the last worker to fall asleep sees all of them idle and decides
// what is next: nothing yet (something from outside will wake somebody); a round of cancelling, for fibers that only fibers could
// wake; the last phase of cancelling, for those that wait regardless; the end.
//
// `Host` is the scheduler. It has workers(), a range of pointers. It has nothingExpected(), called under the lock, which says
// whether it may end as far as its class is concerned. It has ended(), called once. A worker has a slot() with a mailbox and
// wake(); spawned(); and for the decision detached(), waiting(), joinsElsewhere(), uncancelled(), live().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/sched/mailbox.h"
#include "sylar/sched/spawn_queue.h"

namespace sylar::detail {

/// Says what no longer protects a cancelled fiber's wait.
enum class CancelPhase : uint8_t { kNone, kShields, kJoins };

template <class Host, class Memory = StdMemory>
class Idle {
 public:
  explicit Idle(Host& host) : m_host(host) {}

  // ---- Work and sleep. -------------------------------------------------------------------------------------------------------

  /// Returns the queue for work from outside. A caller that gets kFirst back from it calls wakeOne().
  SpawnQueue<Memory>& injector() { return m_injector; }
  const SpawnQueue<Memory>& injector() const { return m_injector; }

  size_t sleeping() const { return m_sleepers.load(std::memory_order_relaxed); }
  bool anySleeping() const { return m_sleepers.load(std::memory_order_seq_cst) > 0; }

  /// Returns true if unstarted work waits anywhere.
  bool anySpawned() const {
    if (m_injector.count() > 0) return true;
    const auto& workers = m_host.workers();
    return std::any_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->spawned().count() > 0; });
  }

  /// Wakes a sleeping worker for unstarted work that its own worker may not come to soon. Does nothing if a worker is on its way
  /// already, because that will look at all queues when it has come. To be called after the work was published.
  [[gnu::always_inline]] void call() {
    if (anySleeping() && !m_called.load(std::memory_order_seq_cst)) callSleeper();
  }

  /// Called by a worker that is awake and has nothing to run, or has just found something. Takes note of a call, then looks.
  /// Returns true if there is unstarted work.
  bool answer() {
    if (m_called.load(std::memory_order_seq_cst)) m_called.store(false, std::memory_order_seq_cst);
    return anySpawned();
  }

  /// Wakes one sleeping worker, if there is one.
  void wakeOne() {
    const auto& workers = m_host.workers();
    const size_t start = m_next_woken.fetch_add(1, std::memory_order_relaxed);
    for (size_t i = 0; i < workers.size(); ++i) {
      if (workers[(start + i) % workers.size()]->slot().wake()) return;
    }
  }

  void wakeAll() {
    for (const auto& worker : m_host.workers()) worker->slot().wake();
  }

  /// Runs `poll`, which returns when somebody has notified the worker, unless there is something to do. The worker's `behind()`
  /// returns true if the stop asks for something that the worker has not done yet.
  template <class Behind, class Poll>
  void sleep(Mailbox<Memory>& mailbox, Behind behind, Poll poll) {
    if (!mailbox.trySleep()) return;
    // Declares the worker asleep first and looks second. A thread that offers work does it the other way round, so one of the
    // two sees the other.
    m_sleepers.fetch_add(1, std::memory_order_seq_cst);
    const bool stopping = m_stopping.load(std::memory_order_seq_cst);
    const bool decided = stopping && lastAsleepDecides();
    if (!answer() && !decided && !behind() && !done()) poll();
    mailbox.wakeUp();
    if (stopping) {
      Lock lock(m_mutex);
      SYLAR_DCHECK(m_asleep > 0);
      --m_asleep;
    }
    m_sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  // ---- Stopping. -------------------------------------------------------------------------------------------------------------

  /// Makes workers that fall asleep decide from here on. If `cancel_all` is true, all fibers are cancelled first.
  void beginStop(bool cancel_all) {
    m_stopping.store(true, std::memory_order_seq_cst);  // first: a worker that finds itself behind the round then checks this
    if (cancel_all) m_cancel_round.fetch_add(1, std::memory_order_seq_cst);
  }
  bool isStopping() const { return m_stopping.load(std::memory_order_relaxed); }

  uint64_t cancelRound() const { return m_cancel_round.load(std::memory_order_seq_cst); }
  CancelPhase cancelPhase() const { return m_cancel_phase.load(std::memory_order_seq_cst); }
  void raisePhase(CancelPhase phase) {
    SYLAR_DCHECK(phase != CancelPhase::kNone);
    CancelPhase now = m_cancel_phase.load(std::memory_order_relaxed);
    while (now < phase && !m_cancel_phase.compare_exchange_weak(now, phase, std::memory_order_seq_cst)) continue;
    if (now < phase) wakeAll();
  }

  bool done() const { return m_done.load(std::memory_order_seq_cst); }
  /// Returns the word to wait for with a futex.
  const auto& doneWord() const { return m_done; }

  /// Ends before anything began, if nothing was offered. Returns true if it did.
  [[nodiscard]] bool endUnused() {
    const auto& workers = m_host.workers();
    const bool closed = m_injector.closeIfEmpty([&workers] {
      return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->slot().mailbox.empty(); });
    });
    if (closed) m_done.store(1, std::memory_order_seq_cst);
    return closed;
  }
  /// Ends where no worker will run, and returns what was offered.
  [[nodiscard]] NodeList endUnrun() {
    const NodeList unrun = m_injector.close();
    m_done.store(1, std::memory_order_seq_cst);
    return unrun;
  }

  /// Calls `end`, which ends something that nothingExpected() waits for. This object outlives all that is called here.
  template <class End>
  void pendingEnded(const End& end) {
    Lock lock(m_mutex);
    end();
    if (m_stopping.load(std::memory_order_seq_cst)) wakeOne();
  }

  /// Returns when no thread is inside a pendingEnded() that began before.
  void awaitPendingEnded() { const Lock last(m_mutex); }

  /// Leaves workers out of the account permanently. `detach`, called under the lock, returns how many. If those were the last,
  /// `take_all` gets what unstarted work there is. After the end this does nothing.
  template <class Detach, class TakeAll>
  void exclude(Detach detach, TakeAll take_all) {
    Lock lock(m_mutex);
    if (done()) return;
    const size_t count = detach();
    m_excluded += count;
    SYLAR_DCHECK(m_asleep + m_excluded <= m_host.workers().size());
    if (m_excluded == m_host.workers().size()) {
      take_all();
      finish();
    } else if (count > 0 && m_asleep + m_excluded == m_host.workers().size()) {
      decide();
    }
  }

 private:
  /// It does not matter if none sleeps after all, because each worker that is about to sleep answers before it does.
  [[gnu::noinline]] void callSleeper() {
    if (!m_called.exchange(true, std::memory_order_seq_cst)) wakeOne();
  }

  bool lastAsleepDecides() {
    Lock lock(m_mutex);
    return ++m_asleep + m_excluded == m_host.workers().size() && decide();
  }

  /// Decides the next step when all workers are idle. Returns true if there is one; then all workers were woken for it.
  bool decide() SYLAR_REQUIRES(m_mutex) {
    size_t waiting = 0;
    size_t uncancelled = 0;
    size_t live = 0;
    for (const auto& worker : m_host.workers()) {
      if (worker->detached()) continue;
      waiting += worker->waiting() + worker->joinsElsewhere();
      uncancelled += worker->uncancelled();
      live += worker->live();
    }
    if (waiting > 0 || !nothingLeft()) return false;
    if (uncancelled > 0) {  // held, or waiting for one another: nobody will wake them
      m_cancel_round.fetch_add(1, std::memory_order_seq_cst);
    } else if (live > 0) {  // shielded, and waiting for one another
      if (cancelPhase() == CancelPhase::kJoins) return false;
      raisePhase(cancelPhase() == CancelPhase::kNone ? CancelPhase::kShields : CancelPhase::kJoins);
    } else {
      if (!m_injector.closeIfEmpty([this] { return nothingLeft(); })) return false;
      finish();
      return true;
    }
    wakeAll();
    return true;
  }

  bool nothingLeft() const {
    const auto is_idle = [](const auto& worker) {
      return worker->detached() || (worker->slot().mailbox.sleeping() && worker->spawned().count() == 0);
    };
    const auto& workers = m_host.workers();
    return m_injector.count() == 0 && m_host.nothingExpected() && std::all_of(workers.begin(), workers.end(), is_idle);
  }

  void finish() SYLAR_REQUIRES(m_mutex) {
    m_done.store(1, std::memory_order_seq_cst);
    m_host.ended();
    wakeAll();
  }

  Host& m_host;

  typename Memory::Mutex m_mutex;
  size_t m_asleep SYLAR_GUARDED_BY(m_mutex) = 0;
  size_t m_excluded SYLAR_GUARDED_BY(m_mutex) = 0;
  typename Memory::template Atomic<bool> m_stopping{false};
  typename Memory::template Atomic<CancelPhase> m_cancel_phase{CancelPhase::kNone};
  typename Memory::template Atomic<uint32_t> m_done{0};
  typename Memory::template Atomic<uint64_t> m_cancel_round{0};

  alignas(64) SpawnQueue<Memory> m_injector;
  alignas(64) typename Memory::template Atomic<size_t> m_sleepers{0};
  typename Memory::template Atomic<bool> m_called{false};  // a worker is on its way to look for unstarted work
  typename Memory::template Atomic<size_t> m_next_woken{0};
};

}  // namespace sylar::detail
