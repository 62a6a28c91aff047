// Internal. A TimerQueue over an array heap: exact, compact, and the fastest of the exact ones. A node knows its place (`slot`),
// so any node can be erased or moved in O(log n); arming late deadlines and cancelling them is close to O(1). nextDue: O(1).
//
// The keys lie in the array, beside the pointers, and the children of an entry begin at a multiple of their number. With four
// children of 16 bytes, that is one cache line to read per level. Design 000 is HeapQueue<2> with the keys left in the events;
// libev's 4-heap is HeapQueue<4>.
//
// The array grows to the largest number of nodes ever linked, and stays that large. Growing does not copy the content of a large
// one.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/timer/growing_array.h"
#include "sylar/timer/timer_node.h"
#include "sylar/timer/timer_queue.h"

namespace sylar::detail {

template <size_t Arity>
class HeapQueue {
 public:
  /// May throw std::bad_alloc.
  HeapQueue() {
    while (m_entries.size() < kRoot) m_entries.push_back({});
  }
  HeapQueue(const HeapQueue&) = delete;
  HeapQueue& operator=(const HeapQueue&) = delete;

  /// May throw std::bad_alloc, and then nothing has changed. There is room for as many nodes as were ever linked at once.
  bool insert(TimerNode& node, int64_t deadline_ns);
  void erase(TimerNode& node);
  /// Never allocates.
  bool update(TimerNode& node, int64_t deadline_ns);

  int64_t nextDue() const { return empty() ? kNever : m_entries[kRoot].deadline_ns; }
  /// Returns the node that is due first, or null. For an owner that checks whether the node is still wanted.
  TimerNode* front() const { return empty() ? nullptr : m_entries[kRoot].node; }
  bool expire(int64_t now_ns, size_t budget, TimerList& out);
  void drain(size_t budget, TimerList& out);
  /// Takes O(n log n).
  void setAll(int64_t deadline_ns);

  size_t size() const { return m_entries.size() - kRoot; }
  bool empty() const { return m_entries.size() == kRoot; }
  static constexpr int64_t granularityNs() { return 1; }
  void verify() const;

 private:
  struct Entry {
    int64_t deadline_ns;  ///< the node's, so that comparing does not touch the node
    TimerNode* node;
  };
  /// Entries before the root are not used. They put the children of `i` at Arity * (i - kRoot + 1).
  static constexpr size_t kRoot = Arity - 1;
  static constexpr size_t parentOf(size_t i) { return i / Arity - 1 + kRoot; }
  static constexpr size_t firstChildOf(size_t i) { return Arity * (i - kRoot + 1); }
  static_assert(firstChildOf(kRoot) == kRoot + 1 && parentOf(kRoot + 1) == kRoot && parentOf(kRoot + Arity) == kRoot);

  static bool before(const Entry& a, const Entry& b) {
    return a.deadline_ns != b.deadline_ns ? a.deadline_ns < b.deadline_ns : a.node->before(*b.node);
  }
  Entry stamp(TimerNode& node, int64_t deadline_ns);
  void put(size_t i, Entry entry);
  void siftUp(size_t i, Entry entry);
  void siftDown(size_t i, Entry entry);
  void removeAt(size_t i);
  bool isDue(int64_t now_ns) const { return nextDue() <= now_ns && nextDue() != kNever; }

  GrowingArray<Entry> m_entries;
  uint32_t m_armings = 0;
};

extern template class HeapQueue<2>;
extern template class HeapQueue<4>;
static_assert(TimerQueue<HeapQueue<2>> && TimerQueue<HeapQueue<4>>);

}  // namespace sylar::detail
