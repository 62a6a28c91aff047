// Internal. A queue of unstarted work: fibers that have not started and may run anywhere. One per worker, stolen from by the
// others, and one per scheduler, the injector, for work from outside (protocol P2).
//
// Intrusive FIFO under a spinlock; the count is read without it. A sleeper declares itself asleep and then reads counts, a
// producer raises the count and then looks for sleepers: a store-load pair, hence seq_cst on the count.
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
  [[nodiscard]] Pushed push(QueueNode* node) {
    SYLAR_DCHECK(node != nullptr);
    Lock lock(m_lock);
    if (m_closed) return Pushed::kRejected;
    m_fifo.push(node);
    return m_count.fetch_add(1, std::memory_order_seq_cst) == 0 ? Pushed::kFirst : Pushed::kMore;
  }

  /// Removes and returns the oldest node, or null if there is none.
  QueueNode* take() {
    if (m_count.load(std::memory_order_seq_cst) == 0) return nullptr;
    Lock lock(m_lock);
    QueueNode* const node = m_fifo.pop();
    if (node != nullptr) m_count.fetch_sub(1, std::memory_order_seq_cst);
    return node;
  }

  /// Moves the older half, rounded up, into `*loot`, and returns how many nodes that is.
  size_t steal(NodeList* loot) {
    SYLAR_DCHECK(loot != nullptr && loot->empty());
    if (m_count.load(std::memory_order_seq_cst) == 0) return 0;
    Lock lock(m_lock);
    const size_t share = (m_count.load(std::memory_order_relaxed) + 1) / 2;
    for (size_t i = 0; i < share; ++i) loot->push(m_fifo.pop());  // which checks that the count is right
    m_count.fetch_sub(share, std::memory_order_seq_cst);
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
    return std::exchange(m_fifo, NodeList());
  }

  size_t count() const { return m_count.load(std::memory_order_seq_cst); }

 private:
  typename Memory::Spinlock m_lock;
  bool m_closed SYLAR_GUARDED_BY(m_lock) = false;
  NodeList m_fifo SYLAR_GUARDED_BY(m_lock);
  typename Memory::template Atomic<size_t> m_count{0};
};

}  // namespace sylar::detail
