// Internal. A worker's mailbox and its sleep flag, in one word (protocol P2).
//
//   word          meaning                     who moves it there                             order
//   kEmpty        awake, nothing in           owner: drain(); anybody: tryWake()             exchange acq_rel; CAS seq_cst
//   kSleeping     asleep or about to be       owner: trySleep(), from kEmpty                 CAS seq_cst
//   a node        inbox, newest first         anybody: push()                                CAS seq_cst
//
// Only the thread that moves the word out of kSleeping notifies, so a sleep costs at most one notification. The orders are
// seq_cst because the owner, after trySleep(), looks into queues that others fill before they look for a sleeper.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class Mailbox {
 public:
  /// Puts `node` in. Returns true if the owner slept, and then the caller must notify it. Any thread.
  [[nodiscard]] bool push(QueueNode* node) {
    SYLAR_DCHECK(reinterpret_cast<uintptr_t>(node) > kSleeping);
    uintptr_t head = m_head.load(std::memory_order_relaxed);
    do {
      node->next = head == kSleeping ? nullptr : reinterpret_cast<QueueNode*>(head);
    } while (!m_head.compare_exchange_weak(head, reinterpret_cast<uintptr_t>(node), std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
    return head == kSleeping;
  }

  /// Takes everything out, in the order in which each source put it in, and leaves the box awake. Owner only.
  NodeList drain() {
    NodeList mail;
    if (m_head.load(std::memory_order_relaxed) == kEmpty) return mail;
    const uintptr_t head = m_head.exchange(kEmpty, std::memory_order_acq_rel);
    auto* node = head == kSleeping ? nullptr : reinterpret_cast<QueueNode*>(head);
    while (node != nullptr) {
      QueueNode* const older = node->next;
      mail.pushFront(node);
      node = older;
    }
    return mail;
  }

  /// Declares the owner asleep. Returns false if there is mail. Owner only.
  [[nodiscard]] bool trySleep() {
    uintptr_t empty = kEmpty;
    return m_head.compare_exchange_strong(empty, kSleeping, std::memory_order_seq_cst, std::memory_order_relaxed);
  }

  /// Ends the owner's sleep, if nobody else has. Owner only.
  void wakeUp() { (void)tryWake(); }

  /// Ends the owner's sleep. Returns true if it slept, and then the caller must notify it. Any thread.
  [[nodiscard]] bool tryWake() {
    uintptr_t sleeping = kSleeping;
    return m_head.load(std::memory_order_seq_cst) == kSleeping &&
           m_head.compare_exchange_strong(sleeping, kEmpty, std::memory_order_seq_cst, std::memory_order_relaxed);
  }

  /// Returns true if nothing is in. Any thread.
  bool empty() const { return m_head.load(std::memory_order_seq_cst) <= kSleeping; }

  /// Returns true while the owner is declared asleep. Any thread.
  bool sleeping() const { return m_head.load(std::memory_order_seq_cst) == kSleeping; }

 private:
  static constexpr uintptr_t kEmpty = 0;
  static constexpr uintptr_t kSleeping = 1;

  typename Memory::template Atomic<uintptr_t> m_head{kEmpty};
};

}  // namespace sylar::detail
