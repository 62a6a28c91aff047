// Internal. A worker's run queue: woken fibers and pinned unstarted ones, and the two words that say to whom the queue belongs.
//
//   m_owner     who sets it                                        order
//   kLoop       the worker, back from a fiber: comeBack()          store, then a light barrier, then a look at m_detach
//   kFiber      the worker, before it gives its thread to one      store release
//
//   m_detach    who sets it                                        order
//   kAsked      who wants to give the worker up                    CAS, then a heavy barrier, then a look at m_owner
//   kNone       the worker that has come back, or who asked        CAS acq_rel from kAsked
//   kDetached   who asked and found the worker in a fiber; final   CAS acq_rel from kAsked
//
// If a worker comes back while a thread asks for it, one of the two sees the other, and the last two changes decide between them. A
// worker comes back after each fiber and is asked when it is stuck, so it is the asking that pays for the barrier.
//
// A fiber that has used up its budget (of calls that did not wait) comes behind all others, or ten of them would make each one
// that wakes wait for ten turns.
//
// In its loop the worker owns the queue. While a fiber has the thread, nobody touches the queue, and what the fiber makes
// runnable waits aside, in the same order, until the worker is back. So the queue belongs to the thread that has won detach().
#pragma once

#include <cstdint>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/wait_word.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class RunQueue {
 public:
  // ---- The worker's thread. --------------------------------------------------------------------------------------------------

  /// Queues `node`. In the loop or in a fiber.
  void push(QueueNode* node) {
    if (inLoop()) {
      pushBack(node);
    } else {
      m_aside.push(node);
    }
  }
  /// Queues `node` behind all others but those that have used up their budget. In the loop.
  void pushBack(QueueNode* node) {
    SYLAR_DCHECK(inLoop());
    m_touched.write();
    m_queue.push(node);
  }
  /// Queues `node` before all others. In the loop.
  void pushFirst(QueueNode* node) {
    SYLAR_DCHECK(inLoop());
    m_touched.write();
    m_queue.pushFront(node);
  }
  /// Queues a fiber that has used up its budget, behind all others. In the loop.
  void pushSpent(QueueNode* node) {
    SYLAR_DCHECK(inLoop());
    m_touched.write();
    m_spent.push(node);
  }
  /// Returns the oldest node, or null if there is none. In the loop.
  QueueNode* front() const {
    SYLAR_DCHECK(inLoop());
    return m_queue.front();
  }
  /// Removes and returns the oldest node, or null if there is none. In the loop.
  QueueNode* pop() {
    SYLAR_DCHECK(inLoop());
    m_touched.write();
    return m_queue.pop();
  }
  /// Does the same with those that have used up their budget.
  QueueNode* popSpent() {
    SYLAR_DCHECK(inLoop());
    m_touched.write();
    return m_spent.pop();
  }
  bool anySpent() const { return !m_spent.empty(); }
  bool empty() const { return m_queue.empty() && m_spent.empty(); }
  bool inLoop() const { return m_owner.load(std::memory_order_relaxed) == Owner::kLoop; }

  /// Called from the loop, before the thread runs code that is not the library's.
  void leaveLoop() {
    SYLAR_DCHECK(inLoop());
    m_owner.store(Owner::kFiber, std::memory_order_release);
  }
  /// Called after that code. Returns false if the worker was detached in between; then its thread must not come back.
  [[nodiscard]] bool comeBack() {
    m_owner.store(Owner::kLoop, std::memory_order_relaxed);
    Memory::lightBarrier();
    if (m_detach.load(std::memory_order_relaxed) != Detach::kNone && !refuseDetach()) return false;
    if (!m_aside.empty()) {
      m_touched.write();
      m_queue.append(m_aside);
    }
    return true;
  }

  // ---- Any thread, one at a time. --------------------------------------------------------------------------------------------

  /// Detaches a worker that is in a fiber. Returns false if it is in its loop, or detached already.
  [[nodiscard]] bool detach() {
    Detach now = Detach::kNone;
    if (!m_detach.compare_exchange_strong(now, Detach::kAsked, std::memory_order_acq_rel)) return false;
    const bool in_fiber = Memory::heavyBarrier() && m_owner.load(std::memory_order_acquire) == Owner::kFiber;
    now = Detach::kAsked;
    return m_detach.compare_exchange_strong(now, in_fiber ? Detach::kDetached : Detach::kNone, std::memory_order_acq_rel) &&
           in_fiber;
  }

  // ---- Any thread. -----------------------------------------------------------------------------------------------------------

  bool detached() const { return m_detach.load(std::memory_order_acquire) == Detach::kDetached; }

  /// Returns all that is left, for the thread that has detached the worker, or when the worker has ended.
  NodeList takeLeft() {
    m_touched.write();
    m_queue.append(m_spent);
    return std::exchange(m_queue, NodeList());
  }

 private:
  enum class Owner : uint8_t { kLoop, kFiber };
  enum class Detach : uint8_t { kNone, kAsked, kDetached };

  /// Returns false if it is too late for that.
  [[gnu::noinline, gnu::cold]] bool refuseDetach() {
    Detach now = Detach::kAsked;
    if (m_detach.compare_exchange_strong(now, Detach::kNone, std::memory_order_acq_rel) || now == Detach::kNone) return true;
    m_owner.store(Owner::kFiber, std::memory_order_relaxed);
    return false;
  }

  typename Memory::Touched m_touched;  // m_queue and m_spent
  NodeList m_queue;
  NodeList m_spent;
  NodeList m_aside;  // always belongs to the worker's thread
  typename Memory::template Atomic<Owner> m_owner{Owner::kLoop};
  typename Memory::template Atomic<Detach> m_detach{Detach::kNone};
};

/// Sorts what a detached worker had in its queues. Opens messages, which ends them, and collects in `unrun` what nobody will
/// run. Suspended fibers are left out, because the worker knows them otherwise.
template <class Open>
void sortLeft(NodeList left, Open open, NodeList& unrun) {
  while (QueueNode* const node = left.pop()) {
    switch (node->kind) {
      case QueueNode::Kind::kMessage: open(node); break;
      case QueueNode::Kind::kFiber: unrun.push(node); break;
      case QueueNode::Kind::kCore: break;
    }
  }
}

/// Decides the wait of a fiber that will not go on, if that is still open. A waker that comes later then loses, and takes the
/// next waiter.
template <class Core>
void closeWait(Core& core) {
  (void)core.wait.claim(core.wait.epoch(), WakeReason::kCanceled);
}

}  // namespace sylar::detail
