#include "sylar/timer/heap_queue.h"

#include <algorithm>

#include "sylar/check.h"

namespace sylar::detail {

template <size_t Arity>
bool HeapQueue<Arity>::insert(TimerNode& node, int64_t deadline_ns) {
  m_entries.push_back({});  // may throw
  siftUp(m_entries.size() - 1, stamp(node, deadline_ns));
  return node.slot == kRoot;  // it goes behind its equals, so a node in front is strictly the earliest
}

template <size_t Arity>
void HeapQueue<Arity>::erase(TimerNode& node) {
  SYLAR_CHECK(node.slot >= kRoot && node.slot < m_entries.size() && m_entries[node.slot].node == &node);  // linked here
  removeAt(node.slot);
}

template <size_t Arity>
bool HeapQueue<Arity>::update(TimerNode& node, int64_t deadline_ns) {
  SYLAR_CHECK(node.slot >= kRoot && node.slot < m_entries.size() && m_entries[node.slot].node == &node);
  const bool later = deadline_ns >= node.deadline_ns;
  const Entry entry = stamp(node, deadline_ns);
  later ? siftDown(node.slot, entry) : siftUp(node.slot, entry);
  return node.slot == kRoot;
}

template <size_t Arity>
bool HeapQueue<Arity>::expire(int64_t now_ns, size_t budget, TimerList& out) {
  for (; budget > 0 && isDue(now_ns); --budget) {
    out.push(m_entries[kRoot].node);
    removeAt(kRoot);
  }
  return isDue(now_ns);
}

template <size_t Arity>
void HeapQueue<Arity>::drain(size_t budget, TimerList& out) {
  for (; budget > 0 && !empty(); --budget) {
    out.push(m_entries.back().node);
    m_entries.pop_back();
  }
}

// A sorted array is a heap.
template <size_t Arity>
void HeapQueue<Arity>::setAll(int64_t deadline_ns) {
  std::sort(m_entries.begin() + kRoot, m_entries.end(), before);
  for (size_t i = kRoot; i < m_entries.size(); ++i) put(i, stamp(*m_entries[i].node, deadline_ns));
}

template <size_t Arity>
void HeapQueue<Arity>::verify() const {
  for (size_t i = kRoot; i < m_entries.size(); ++i) {
    const Entry& entry = m_entries[i];
    SYLAR_CHECK_EQ(entry.node->slot, i);
    SYLAR_CHECK_EQ(entry.node->deadline_ns, entry.deadline_ns);
    SYLAR_CHECK(i == kRoot || before(m_entries[parentOf(i)], entry));
  }
}

template <size_t Arity>
typename HeapQueue<Arity>::Entry HeapQueue<Arity>::stamp(TimerNode& node, int64_t deadline_ns) {
  node.deadline_ns = deadline_ns;
  node.seq = ++m_armings;
  return {deadline_ns, &node};
}

template <size_t Arity>
void HeapQueue<Arity>::put(size_t i, Entry entry) {
  SYLAR_DCHECK(i >= kRoot && entry.node != nullptr);
  m_entries[i] = entry;
  entry.node->slot = static_cast<uint32_t>(i);
}

template <size_t Arity>
void HeapQueue<Arity>::siftUp(size_t i, Entry entry) {
  SYLAR_DCHECK(i >= kRoot && i < m_entries.size());
  for (; i > kRoot && before(entry, m_entries[parentOf(i)]); i = parentOf(i)) put(i, m_entries[parentOf(i)]);
  put(i, entry);
}

template <size_t Arity>
void HeapQueue<Arity>::siftDown(size_t i, Entry entry) {
  SYLAR_DCHECK(i >= kRoot && i < m_entries.size());
  for (size_t child; (child = firstChildOf(i)) < m_entries.size(); i = child) {
    const size_t end = std::min(child + Arity, m_entries.size());
    for (size_t other = child + 1; other < end; ++other) {
      if (before(m_entries[other], m_entries[child])) child = other;
    }
    if (!before(m_entries[child], entry)) break;
    put(i, m_entries[child]);
  }
  put(i, entry);
}

// The last entry fills the hole, from where it may have to go either way.
template <size_t Arity>
void HeapQueue<Arity>::removeAt(size_t i) {
  SYLAR_DCHECK(i >= kRoot && i < m_entries.size());
  const Entry last = m_entries.back();
  m_entries.pop_back();
  if (i == m_entries.size()) return;
  const bool up = i > kRoot && before(last, m_entries[parentOf(i)]);
  up ? siftUp(i, last) : siftDown(i, last);
}

template class HeapQueue<2>;
template class HeapQueue<4>;

}  // namespace sylar::detail
