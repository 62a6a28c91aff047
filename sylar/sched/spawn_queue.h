// Internal. A queue of unstarted work: fibers that have not started and may run anywhere. One per worker, stolen from by the
// others, and one per scheduler, the injector, for work from outside (protocol P2).
//
// Intrusive FIFO under a spinlock, from which a fiber that joins another one takes that out of turn. The count is read without the
// lock. A sleeper declares itself asleep and then reads counts, a producer raises the count and then looks for sleepers: a
// store-load pair, hence seq_cst on the count.
#pragma once

#include <cstddef>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"

namespace sylar::detail {

enum class Pushed { kRejected, kFirst, kMore };

template <class Memory = StdMemory>
class SpawnQueue {
 public:
  /// Appends `node`. Returns kFirst if the queue was empty, kRejected if it is closed, else kMore.
  [[nodiscard]] Pushed push(SpawnNode* node) {
    SYLAR_DCHECK(node != nullptr && node->queue.load(std::memory_order_relaxed) == nullptr);
    Lock lock(m_lock);
    if (m_closed) return Pushed::kRejected;
    link(*node);
    return m_count.fetch_add(1, std::memory_order_seq_cst) == 0 ? Pushed::kFirst : Pushed::kMore;
  }

  /// Removes and returns the oldest node, or null if there is none.
  QueueNode* take() {
    if (m_count.load(std::memory_order_seq_cst) == 0) return nullptr;
    Lock lock(m_lock);
    SpawnNode* const node = m_first;
    if (node == nullptr) return nullptr;
    unlink(*node);
    countOut(1);
    return node;
  }

  /// Removes `node`, wherever it stands. Returns false if it is not in this queue. Whether it is may change at any time, but the
  /// node must exist.
  [[nodiscard]] bool takeOut(SpawnNode& node) {
    Lock lock(m_lock);
    if (!holds(node)) return false;
    unlink(node);
    countOut(1);
    return true;
  }

  /// Moves the older half, rounded up, into `*loot`, and returns how many nodes that is.
  size_t steal(NodeList* loot) {
    SYLAR_DCHECK(loot != nullptr && loot->empty());
    if (m_count.load(std::memory_order_seq_cst) == 0) return 0;
    Lock lock(m_lock);
    const size_t share = (m_count.load(std::memory_order_relaxed) + 1) / 2;
    for (size_t i = 0; i < share; ++i) {
      SpawnNode& oldest = *m_first;
      unlink(oldest);
      loot->push(&oldest);
    }
    countOut(share);
    return share;
  }

  /// Runs `push` unless the queue is closed. For work that goes elsewhere but must not be accepted after the end either.
  template <class Push>
  [[nodiscard]] bool admit(Push push) {
    Lock lock(m_lock);
    if (m_closed) return false;
    push();
    return true;
  }

  /// Closes the queue, which then refuses all further work, if nothing is in and `last_look` agrees. Returns true if it did.
  template <class LastLook>
  [[nodiscard]] bool closeIfEmpty(LastLook last_look) {
    Lock lock(m_lock);
    m_closed = m_count.load(std::memory_order_relaxed) == 0 && last_look();
    return m_closed;
  }

  /// Closes the queue, which then refuses all further work, and returns what is in.
  [[nodiscard]] NodeList close() {
    Lock lock(m_lock);
    m_closed = true;
    m_count.store(0, std::memory_order_seq_cst);
    NodeList all;
    while (SpawnNode* const oldest = m_first) {
      unlink(*oldest);
      all.push(oldest);
    }
    return all;
  }

  size_t count() const { return m_count.load(std::memory_order_seq_cst); }

 private:
  bool holds(const SpawnNode& node) const { return node.queue.load(std::memory_order_relaxed) == this; }

  void link(SpawnNode& node) SYLAR_REQUIRES(m_lock) {
    node.next = nullptr;
    node.previous = m_last;
    if (m_last == nullptr) {
      m_first = &node;
    } else {
      m_last->next = &node;
    }
    m_last = &node;
    node.queue.store(this, std::memory_order_relaxed);
  }

  void unlink(SpawnNode& node) SYLAR_REQUIRES(m_lock) {
    SYLAR_DCHECK(holds(node));
    auto* const next = static_cast<SpawnNode*>(node.next);
    (next == nullptr ? m_last : next->previous) = node.previous;
    if (node.previous == nullptr) {
      m_first = next;
    } else {
      node.previous->next = next;
    }
    node.queue.store(nullptr, std::memory_order_relaxed);
  }

  /// A plain store, because only the lock's owner changes the count, and who reads an old one looks in vain once.
  void countOut(size_t nodes) SYLAR_REQUIRES(m_lock) {
    m_count.store(m_count.load(std::memory_order_relaxed) - nodes, std::memory_order_release);
  }

  typename Memory::Spinlock m_lock;
  bool m_closed SYLAR_GUARDED_BY(m_lock) = false;
  SpawnNode* m_first SYLAR_GUARDED_BY(m_lock) = nullptr;
  SpawnNode* m_last SYLAR_GUARDED_BY(m_lock) = nullptr;
  typename Memory::template Atomic<size_t> m_count{0};
};

}  // namespace sylar::detail
