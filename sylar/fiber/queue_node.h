// Internal. An entry of a worker's queues: its intrusive links, and the kind of object that it links.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"

namespace sylar::detail {

struct QueueNode {
  enum class Kind : uint8_t {
    kCore,     ///< a FiberCore: a suspended fiber to resume
    kFiber,    ///< a Fiber: unstarted work, to be given a core and a stack
    kMessage,  ///< a FiberRequest: a worker must look at what a fiber was asked
  };

  explicit QueueNode(Kind what) : kind(what) {}

  QueueNode* next = nullptr;
  const Kind kind;
};

/// An entry of a queue of unstarted work, which may be taken out of turn.
struct SpawnNode : QueueNode {
  explicit SpawnNode(Kind what = Kind::kFiber) : QueueNode(what) {}

  SpawnNode* previous = nullptr;
  std::atomic<const void*> queue{nullptr};  ///< the spawn queue that it is in; changes under that queue's lock
};

/// FIFO of nodes; does not own them. Not thread safe.
class NodeList {
 public:
  bool empty() const { return m_head == nullptr; }

  void push(QueueNode* node) {
    SYLAR_DCHECK(node != nullptr);
    node->next = nullptr;
    (m_head == nullptr ? m_head : m_tail->next) = node;
    m_tail = node;
  }

  void pushFront(QueueNode* node) {
    SYLAR_DCHECK(node != nullptr);
    node->next = m_head;
    if (m_head == nullptr) m_tail = node;
    m_head = node;
  }

  /// Moves all of `later` to the end of this list.
  void append(NodeList& later) {
    if (later.empty()) return;
    (m_head == nullptr ? m_head : m_tail->next) = later.m_head;
    m_tail = later.m_tail;
    later.m_head = nullptr;
  }

  /// Returns the oldest node, or null if there is none.
  QueueNode* front() const { return m_head; }

  /// Removes and returns the oldest node, or null if there is none.
  QueueNode* pop() {
    QueueNode* node = m_head;
    if (node != nullptr) m_head = node->next;
    return node;
  }

 private:
  QueueNode* m_head = nullptr;
  QueueNode* m_tail = nullptr;
};

}  // namespace sylar::detail
