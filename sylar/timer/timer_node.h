// Internal. A timer as a queue sees it: 32 bytes, embedded in whatever waits (a fiber, a Timer).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/clock.h"

namespace sylar::detail {

/// Belongs to one queue or list at a time. The owner knows which one; the node itself does not say.
struct TimerNode {
  int64_t deadline_ns = kNever;  ///< when it is due, on the queue's clock
  uint32_t seq = 0;              ///< arming order, breaks ties FIFO, compared modulo 2^32; in a wheel, its own note
  uint32_t slot = 0;             ///< a queue's own note: heap index or wheel slot
  TimerNode* next = nullptr;
  TimerNode* prev = nullptr;

  /// Returns true if this is due before `other`, or due with it and armed earlier. Right while fewer than 2^31 armings lie
  /// between two equal deadlines.
  bool before(const TimerNode& other) const {
    if (deadline_ns != other.deadline_ns) return deadline_ns < other.deadline_ns;
    return static_cast<int32_t>(seq - other.seq) < 0;
  }
};
static_assert(sizeof(TimerNode) == 32);

/// FIFO of nodes that left their queue, in the order in which they are due. Does not own them.
class TimerList {
 public:
  bool empty() const { return m_head == nullptr; }

  void push(TimerNode* node) {
    SYLAR_DCHECK(node != nullptr);
    node->next = nullptr;
    (m_head == nullptr ? m_head : m_tail->next) = node;
    m_tail = node;
  }

  /// Removes and returns the oldest node, or null if there is none.
  TimerNode* pop() {
    TimerNode* node = m_head;
    if (node != nullptr) m_head = node->next;
    return node;
  }

 private:
  TimerNode* m_head = nullptr;
  TimerNode* m_tail = nullptr;
};

}  // namespace sylar::detail
