// An ExpiryHeap has the volatile keys of a shard in the order in which they expire.
//
// This is a heap of four children with an index in each entry, so that a key can be moved or removed in O(log n) without a
// search. A volatile key costs a slot of 16 bytes here, at most 32 just after the array has grown, and 12 in its entry.
//
// Thread safety: none; the lock of the shard guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "entry.h"

namespace ttlkv {

class ExpiryHeap {
 public:
  bool empty() const { return m_slots.empty(); }
  size_t size() const { return m_slots.size(); }
  /// Returns the bytes of the array.
  size_t memory() const { return m_slots.capacity() * sizeof(Slot); }
  /// Returns when the first key expires, or kNever if the heap is empty.
  int64_t earliest() const { return empty() ? kNever : m_slots[0].at_ms; }
  /// Returns the key that expires first. The heap must not be empty.
  Item& first() const { return *m_slots[0].item; }

  /// Makes an item expire at `at_ms` that did not expire so far. Throws std::bad_alloc, and then has changed nothing.
  void insert(Item& item, int64_t at_ms);
  /// Changes the expiry of an item of the heap.
  void update(Item& item, int64_t at_ms);
  /// Takes an item out of the heap, so that it never expires.
  void erase(Item& item);
  /// Forgets all items, which are about to be destroyed.
  void clear() { m_slots = {}; }

  /// Returns whether the order and all indices are right. For tests.
  bool verify() const;

 private:
  struct Slot {
    int64_t at_ms;
    Item* item;
  };
  static constexpr size_t kChildren = 4;

  void place(size_t index, Slot slot);
  void siftUp(size_t index, Slot slot);
  void siftDown(size_t index, Slot slot);

  std::vector<Slot> m_slots;
};

}  // namespace ttlkv
