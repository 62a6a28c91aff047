// Internal. A TimerQueue over an array heap: exact, compact, and the fastest of the exact ones. A node knows its place (`slot`),
// so any node can be erased or moved in O(log n); arming late deadlines and cancelling them is close to O(1). nextDue: O(1).
//
// The keys lie in the array, beside the pointers, and the children of one entry begin at a multiple of their number: with four
// children of 16 bytes that is one cache line to read a level. Design 000 is HeapQueue<2> with the keys left in the events;
// libev's 4-heap is HeapQueue<4>.
//
// The array grows to the largest number of nodes ever linked, and stays. Thread safety: none; the owner brings the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "sylar/timer/timer_node.h"
#include "sylar/timer/timer_queue.h"

namespace sylar {

/// Memory that begins with a cache line.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <class Other>
  explicit CacheLineAllocator(const CacheLineAllocator<Other>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* items, size_t) { ::operator delete (items, std::align_val_t{64}); }
  bool operator==(const CacheLineAllocator&) const = default;
};

template <size_t Arity>
class HeapQueue {
 public:
  HeapQueue() = default;
  HeapQueue(const HeapQueue&) = delete;
  HeapQueue& operator=(const HeapQueue&) = delete;

  /// May throw std::bad_alloc, then nothing has changed. There is room for as many nodes as were ever linked at once.
  bool insert(TimerNode& node, int64_t deadline_ns);
  void erase(TimerNode& node);
  /// Never allocates.
  bool update(TimerNode& node, int64_t deadline_ns);

  int64_t nextDue() const { return empty() ? kNever : m_entries[kRoot].deadline_ns; }
  /// The node that is due first, or null: for an owner that looks whether it is still wanted.
  TimerNode* front() const { return empty() ? nullptr : m_entries[kRoot].node; }
  bool expire(int64_t now_ns, size_t budget, TimerList& out);
  void drain(TimerList& out);
  /// O(n log n).
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
  /// Entries before it are not used: they put the children of `i` to Arity * (i - kRoot + 1).
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
  void sort();
  bool isDue(int64_t now_ns) const { return nextDue() <= now_ns && nextDue() != kNever; }

  std::vector<Entry, CacheLineAllocator<Entry>> m_entries = decltype(m_entries)(kRoot);
  uint32_t m_armings = 0;
};

extern template class HeapQueue<2>;
extern template class HeapQueue<4>;
static_assert(TimerQueue<HeapQueue<2>> && TimerQueue<HeapQueue<4>>);

}  // namespace sylar
