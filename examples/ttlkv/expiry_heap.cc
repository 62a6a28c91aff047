#include "expiry_heap.h"

#include <algorithm>
#include <utility>

namespace ttlkv {

void ExpiryHeap::place(size_t index, Slot slot) {
  m_slots[index] = slot;
  slot.item->second.heap_index = static_cast<uint32_t>(index);
}

void ExpiryHeap::siftUp(size_t index, Slot slot) {
  while (index > 0) {
    const size_t parent = (index - 1) / kChildren;
    if (m_slots[parent].at_ms <= slot.at_ms) break;
    place(index, m_slots[parent]);
    index = parent;
  }
  place(index, slot);
}

void ExpiryHeap::siftDown(size_t index, Slot slot) {
  while (true) {
    const size_t first = index * kChildren + 1;
    if (first >= m_slots.size()) break;
    size_t least = first;
    for (size_t child = first + 1; child < std::min(first + kChildren, m_slots.size()); ++child) {
      if (m_slots[child].at_ms < m_slots[least].at_ms) least = child;
    }
    if (m_slots[least].at_ms >= slot.at_ms) break;
    place(index, m_slots[least]);
    index = least;
  }
  place(index, slot);
}

void ExpiryHeap::insert(Item& item, int64_t at_ms) {
  const Slot slot{at_ms, &item};
  m_slots.push_back(slot);
  item.second.expires_at_ms = at_ms;
  siftUp(m_slots.size() - 1, slot);
}

void ExpiryHeap::update(Item& item, int64_t at_ms) {
  const int64_t was_ms = std::exchange(item.second.expires_at_ms, at_ms);
  const Slot slot{at_ms, &item};
  at_ms < was_ms ? siftUp(item.second.heap_index, slot) : siftDown(item.second.heap_index, slot);
}

void ExpiryHeap::erase(Item& item) {
  const size_t index = item.second.heap_index;
  const int64_t was_ms = std::exchange(item.second.expires_at_ms, kNoExpiry);
  const Slot last = m_slots.back();
  m_slots.pop_back();
  if (index == m_slots.size()) return;
  last.at_ms < was_ms ? siftUp(index, last) : siftDown(index, last);
}

bool ExpiryHeap::verify() const {
  for (size_t i = 0; i < m_slots.size(); ++i) {
    const Entry& entry = m_slots[i].item->second;
    if (entry.heap_index != i || entry.expires_at_ms != m_slots[i].at_ms) return false;
    if (i > 0 && m_slots[(i - 1) / kChildren].at_ms > m_slots[i].at_ms) return false;
  }
  return true;
}

}  // namespace ttlkv
