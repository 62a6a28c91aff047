// Internal. The threads that all workers may borrow, and the unstarted fibers that wait for one (protocol P2).
//
//   word                      who changes it                                                    order
//   m_free, m_least           a worker: take(), put(); the maker: put(), unused(), takeUnused()  under the lock
//   m_count                   the same                                                          relaxed, under the lock; a hint
//   m_over                    a worker: putOver(); the maker: takeOver()                         under the lock
//   m_first, and of a scheduler m_waiting and m_later
//                             a worker: await(); the maker: serve(); a stop: takeAll(), releaseAll()         under the lock
//   m_count of a scheduler    a worker counts up, under the lock; who has let its fibers        seq_cst
//                             go on, or has taken them, counts down afterwards
//
// A worker that finds no thread queues the fiber and then calls the maker (MakerCalls), which looks again after each call and does
// not sleep while somebody waits. So a thread that is given back needs no call. A fiber that goes on is queued for any worker, and
// may find that another one has been faster. Then it waits again.
//
// A fiber that waits is in no queue of its scheduler's, so m_count keeps that from its end, and from being destroyed, until those
// that go on are queued again.
//
// `Types` has:
//
//   Memory           as StdMemory
//   Thread           as ThreadLists wants it
//   Scheduler        a class that is derived from AwaitedThreads<Scheduler, Memory>. Its goOn(node, tag) queues again what await()
//                    has got. Its ended(end) calls `end`, behind which a stop may destroy the object when ended() has returned.
//   roomOf(node)     the room of the thread that a fiber needs
//   refuse(node)     notes that there is none
//   inForkedChild()  true where the lock may be held for good
#pragma once

#include <algorithm>
#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/thread_lists.h"

namespace sylar::detail {

/// The part of a scheduler that ThreadLending changes.
template <class Scheduler, class Memory = StdMemory>
struct AwaitedThreads {
  /// Returns how many fibers have waited and are not queued again yet.
  size_t waitForThreads() const { return m_count.load(std::memory_order_seq_cst); }

  typename Memory::template Atomic<size_t> m_count{0};
  NodeList m_waiting;
  Scheduler* m_later = nullptr;  // the next one of those whose fibers wait
};

/// Thread safety: any thread may call everything, but serve() is the maker's.
template <class Types>
class ThreadLending {
  using Memory = typename Types::Memory;
  using Thread = typename Types::Thread;
  using Scheduler = typename Types::Scheduler;

 public:
  // ---- Threads. --------------------------------------------------------------------------------------------------------------

  /// Returns a free one with that room, or null.
  Thread* take(size_t room) {
    if (count() == 0) return nullptr;
    const Lock lock(m_lock);
    Thread* const one = m_free.take(room);
    noteCount();
    return one;
  }
  /// Gives one to all, and returns how many there are then. In a forked child nobody borrows, so it is left.
  size_t put(Thread& one) {
    if (Types::inForkedChild()) return 0;
    const Lock lock(m_lock);
    m_free.put(one);
    noteCount();
    return m_free.count();
  }
  /// Returns how many are free. It may change at any time.
  size_t count() const { return m_count.load(std::memory_order_relaxed); }
  /// Takes one whose function has ended, for the maker, which ends it.
  void putOver(Thread& one) {
    const Lock lock(m_lock);
    one.next = m_over;
    m_over = &one;
  }

  // ---- Those who wait. -------------------------------------------------------------------------------------------------------

  /// Queues `node`, for which there was no thread, until there is one. `tag` is kept meanwhile where the node keeps its queue.
  /// Returns true if nobody else waits, so that the caller has to call the maker. Needs no memory.
  [[nodiscard]] bool await(Scheduler& scheduler, SpawnNode& node, const void* tag) {
    node.queue.store(tag, std::memory_order_relaxed);
    const Lock lock(m_lock);
    m_touched.write();
    scheduler.m_count.fetch_add(1, std::memory_order_seq_cst);
    const bool alone = m_first == nullptr;
    if (scheduler.m_waiting.empty()) {
      Scheduler** last = &m_first;
      while (*last != nullptr) last = &(*last)->m_later;
      *last = &scheduler;
      scheduler.m_later = nullptr;
    }
    scheduler.m_waiting.push(&node);
    return alone;
  }
  /// Returns those that wait. For the end of a stop.
  NodeList takeAll(Scheduler& scheduler) {
    const Next all = takeOut(scheduler);
    SYLAR_DCHECK(scheduler.waitForThreads() >= all.count);
    scheduler.m_count.fetch_sub(all.count, std::memory_order_seq_cst);
    return all.nodes;
  }
  /// Lets all go on, though there are no threads for them.
  void releaseAll(Scheduler& scheduler) { letGo(takeOut(scheduler)); }

  // ---- The maker. ------------------------------------------------------------------------------------------------------------

  /// Does one thing: lets fibers go on for which there are threads, or makes one for the first that waits. If nobody waits and
  /// fewer than `spare` are free, makes one with the `usual` room. Returns false if there is nothing to do. `make(room)` returns
  /// null if there can be none; then the first goes on without one.
  template <class Make>
  bool serve(size_t usual, size_t spare, Make make) {
    Next next = look(usual, spare);
    if (next.room == 0) return letGo(next);
    Thread* const made = make(next.room);
    if (made == nullptr) return refuse(next.room);
    put(*made);
    return true;
  }
  /// Returns how many of the free ones are beyond kKept, and have been since the last call.
  size_t unused() {
    const Lock lock(m_lock);
    const size_t least = m_least;
    m_least = m_free.count();
    return least - std::min(least, kKept);
  }
  /// Takes one of those, or returns null if there is none any more.
  Thread* takeUnused() {
    if (count() <= kKept) return nullptr;
    const Lock lock(m_lock);
    Thread* const one = m_free.takeLargest();
    noteCount();
    return one;
  }
  Thread* takeOver() {
    const Lock lock(m_lock);
    Thread* const one = m_over;
    if (one != nullptr) m_over = one->next;
    return one;
  }

  static constexpr size_t kKept = 256;

 private:
  struct Next {
    size_t room = 0;                 // of the thread that is to be made, or
    Scheduler* scheduler = nullptr;  // whose `nodes` go on
    NodeList nodes;
    size_t count = 0;
  };

  void noteCount() SYLAR_REQUIRES(m_lock) {
    m_least = std::min(m_least, m_free.count());
    m_count.store(m_free.count(), std::memory_order_relaxed);
  }

  size_t firstRoom() const SYLAR_REQUIRES(m_lock) { return Types::roomOf(m_first->m_waiting.front()); }

  Next look(size_t usual, size_t spare) {
    Next next;
    const Lock lock(m_lock);
    if (m_first == nullptr) {
      next.room = m_free.count() < spare ? usual : 0;
    } else if (const size_t room = firstRoom(); !m_free.has(room)) {
      next.room = room;
    } else {
      do moveFirst(next);
      while (m_first == next.scheduler && next.count < m_free.count() && m_free.has(firstRoom()));
    }
    return next;
  }

  /// Returns false if nobody waits. Somebody else may be the first by now, or a thread have come back for whoever is.
  bool refuse(size_t room) {
    Next next;
    {
      const Lock lock(m_lock);
      if (m_first == nullptr) return false;
      if (firstRoom() == room && !m_free.has(room)) moveFirst(next);
    }
    if (next.count > 0) Types::refuse(next.nodes.front());  // without the lock, because it allocates
    letGo(next);
    return true;
  }

  void moveFirst(Next& next) SYLAR_REQUIRES(m_lock) {
    SYLAR_DCHECK(m_first != nullptr && !m_first->m_waiting.empty());
    m_touched.write();
    next.scheduler = m_first;
    next.nodes.push(m_first->m_waiting.pop());
    ++next.count;
    if (m_first->m_waiting.empty()) m_first = m_first->m_later;
  }

  Next takeOut(Scheduler& scheduler) {
    Next all;
    all.scheduler = &scheduler;
    const Lock lock(m_lock);
    m_touched.write();
    for (Scheduler** one = &m_first; *one != nullptr; one = &(*one)->m_later) {
      if (*one != &scheduler) continue;
      *one = scheduler.m_later;
      break;
    }
    for (QueueNode* node; (node = scheduler.m_waiting.pop()) != nullptr; ++all.count) all.nodes.push(node);
    return all;
  }

  /// Queues the nodes again. Returns false if there are none.
  static bool letGo(Next next) {
    if (next.count == 0) return false;
    Scheduler& scheduler = *next.scheduler;
    while (QueueNode* const node = next.nodes.pop()) {
      auto& gone = static_cast<SpawnNode&>(*node);
      scheduler.goOn(gone, gone.queue.exchange(nullptr, std::memory_order_relaxed));
    }
    scheduler.ended([&scheduler, &next] { scheduler.m_count.fetch_sub(next.count, std::memory_order_seq_cst); });
    return true;
  }

  typename Memory::Mutex m_lock;
  typename Memory::Touched m_touched;  // the queues of those who wait
  ThreadLists<Thread> m_free SYLAR_GUARDED_BY(m_lock);
  size_t m_least SYLAR_GUARDED_BY(m_lock) = 0;  // that were free since the last unused()
  Thread* m_over SYLAR_GUARDED_BY(m_lock) = nullptr;
  Scheduler* m_first SYLAR_GUARDED_BY(m_lock) = nullptr;
  typename Memory::template Atomic<size_t> m_count{0};  // of m_free; tells whether it is worth to lock
};

}  // namespace sylar::detail
