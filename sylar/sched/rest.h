// Internal. How the workers of a scheduler fall asleep, who wakes them, and how they find out that nothing is left (protocol P2
// and the end of a stop).
//
//   word           who writes it                                      order
//   injector       anybody offers, any worker takes                   seq_cst on its count
//   m_sleepers     a worker, around its sleep                         seq_cst; a hint for others
//   m_stopping     the one who stops, once                            seq_cst
//   m_asleep       a worker, while it stops                           under the lock, with the decision
//   m_cancel_round, m_last_call, m_done                               seq_cst: a sleeper declares itself, then reads them
//
// While it stops, every sleep is published under one lock, so the last worker to fall asleep sees all of them at rest and decides
// what is next: nothing yet (something from outside will wake somebody); a round of cancelling, for fibers that only fibers could
// wake; the last call, for those that wait regardless; the end.
//
// `Host` is the scheduler: workers(), a range of pointers; nothingExpected(), whether it may end as far as its class is concerned
// (called under the lock); ended(), told once. A worker has a slot() with a mailbox and wake(); fresh(); and for the decision
// detached(), waiting(), joinsElsewhere(), uncancelled(), live().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/base/memory.h"
#include "sylar/base/os_mutex.h"
#include "sylar/sched/fresh_queue.h"
#include "sylar/sched/mailbox.h"

namespace sylar {

/// What does not keep a cancelled fiber's wait any more.
enum class LastCall : uint8_t { kNone, kShields, kJoins };

template <class Host, class Memory = StdMemory>
class Rest {
 public:
  explicit Rest(Host& host) : m_host(host) {}

  // ---- Work and sleep. -------------------------------------------------------------------------------------------------------

  /// Work from outside; who gets kFirst back calls wakeOne().
  FreshQueue<Memory>& injector() { return m_injector; }
  const FreshQueue<Memory>& injector() const { return m_injector; }

  size_t sleeping() const { return m_sleepers.load(std::memory_order_relaxed); }
  bool anySleeping() const { return m_sleepers.load(std::memory_order_seq_cst) > 0; }

  /// True if fresh work waits anywhere.
  bool anyFresh() const {
    if (m_injector.count() > 0) return true;
    const auto& workers = m_host.workers();
    return std::any_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->fresh().count() > 0; });
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

  /// Runs `poll`, which returns when somebody has notified the worker, unless there is something to do. The worker's
  /// `behind(*this)`: the stop asks for something that it has not done yet.
  template <class Behind, class Poll>
  void sleep(Mailbox<Memory>& mailbox, Behind behind, Poll poll) {
    if (!mailbox.trySleep()) return;
    // Declared asleep first, looked second: who offers work does it the other way round, so one of the two sees the other.
    m_sleepers.fetch_add(1, std::memory_order_seq_cst);
    const bool stopping = m_stopping.load(std::memory_order_seq_cst);
    const bool decided = stopping && lastAsleepDecides();
    if (!anyFresh() && !decided && !behind() && !done()) poll();
    mailbox.wakeUp();
    if (stopping) {
      Lock lock(m_mutex);
      --m_asleep;
    }
    m_sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  // ---- Stopping. -------------------------------------------------------------------------------------------------------------

  /// From here on workers that fall asleep decide. `cancel_all`: all fibers are cancelled first.
  void beginStop(bool cancel_all) {
    m_stopping.store(true, std::memory_order_seq_cst);  // first: a worker that finds itself behind the round looks what it is
    if (cancel_all) m_cancel_round.fetch_add(1, std::memory_order_seq_cst);
  }
  bool isStopping() const { return m_stopping.load(std::memory_order_relaxed); }

  uint64_t cancelRound() const { return m_cancel_round.load(std::memory_order_seq_cst); }
  LastCall lastCall() const { return m_last_call.load(std::memory_order_seq_cst); }
  void raiseCall(LastCall call) {
    LastCall now = m_last_call.load(std::memory_order_relaxed);
    while (now < call && !m_last_call.compare_exchange_weak(now, call, std::memory_order_seq_cst)) continue;
    if (now < call) wakeAll();
  }

  bool done() const { return m_done.load(std::memory_order_seq_cst); }
  /// To be waited for, with a futex.
  const auto& doneWord() const { return m_done; }

  /// Ends before anything began, if nothing was offered.
  [[nodiscard]] bool endUnused() {
    const auto& workers = m_host.workers();
    const bool closed = m_injector.closeIfEmpty([&workers] {
      return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->slot().mailbox.empty(); });
    });
    if (closed) m_done.store(1, std::memory_order_seq_cst);
    return closed;
  }
  /// Ends where no worker will run; what was offered.
  [[nodiscard]] NodeList endUnrun() {
    const NodeList unrun = m_injector.close();
    m_done.store(1, std::memory_order_seq_cst);
    return unrun;
  }

  /// Something that nothingExpected() waits for has ended; `end` makes it so. What is called by it is outlived by this object.
  template <class End>
  void pendingEnded(const End& end) {
    Lock lock(m_mutex);
    end();
    if (m_stopping.load(std::memory_order_seq_cst)) wakeOne();
  }

  /// Returns when nobody is inside a pendingEnded() that began before.
  void awaitPendingEnded() { const Lock last(m_mutex); }

  /// Leaves workers out of the account, for ever: `detach`, under the lock, returns how many, and `take_all` gets what fresh
  /// work there is if those were the last. Nothing happens after the end.
  template <class Detach, class TakeAll>
  void leaveOut(Detach detach, TakeAll take_all) {
    Lock lock(m_mutex);
    if (done()) return;
    const size_t count = detach();
    m_left_out += count;
    if (m_left_out == m_host.workers().size()) {
      take_all();
      finish();
    } else if (count > 0 && m_asleep + m_left_out == m_host.workers().size()) {
      decide();
    }
  }

 private:
  bool lastAsleepDecides() {
    Lock lock(m_mutex);
    return ++m_asleep + m_left_out == m_host.workers().size() && decide();
  }

  /// All workers are at rest. True: there is a next step, and everybody was woken for it.
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
      if (lastCall() == LastCall::kJoins) return false;
      raiseCall(lastCall() == LastCall::kNone ? LastCall::kShields : LastCall::kJoins);
    } else {
      if (!m_injector.closeIfEmpty([this] { return nothingLeft(); })) return false;
      finish();
      return true;
    }
    wakeAll();
    return true;
  }

  bool nothingLeft() const {
    const auto at_rest = [](const auto& worker) {
      return worker->detached() || (worker->slot().mailbox.sleeping() && worker->fresh().count() == 0);
    };
    const auto& workers = m_host.workers();
    return m_injector.count() == 0 && m_host.nothingExpected() && std::all_of(workers.begin(), workers.end(), at_rest);
  }

  void finish() SYLAR_REQUIRES(m_mutex) {
    m_done.store(1, std::memory_order_seq_cst);
    m_host.ended();
    wakeAll();
  }

  Host& m_host;

  typename Memory::Mutex m_mutex;
  size_t m_asleep SYLAR_GUARDED_BY(m_mutex) = 0;
  size_t m_left_out SYLAR_GUARDED_BY(m_mutex) = 0;
  typename Memory::template Atomic<bool> m_stopping{false};
  typename Memory::template Atomic<LastCall> m_last_call{LastCall::kNone};
  typename Memory::template Atomic<uint32_t> m_done{0};
  typename Memory::template Atomic<uint64_t> m_cancel_round{0};

  alignas(64) FreshQueue<Memory> m_injector;
  alignas(64) typename Memory::template Atomic<size_t> m_sleepers{0};
  typename Memory::template Atomic<size_t> m_next_woken{0};
};

}  // namespace sylar
