// An Item is a key with its value and its time to live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace ttlkv {

using List = std::deque<std::string>;

inline constexpr int64_t kNoExpiry = -1;
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  ///< later than the expiry of any key

struct Entry {
  std::string bytes;                  ///< the value, if it is a string
  std::unique_ptr<List> list;         ///< the value, if it is a list
  int64_t expires_at_ms = kNoExpiry;  ///< unix time; the key exists for the whole of this millisecond, as in Redis
  uint32_t heap_index = 0;            ///< the place in the ExpiryHeap of a key that is volatile
  uint32_t used_at_ms = 0;            ///< the low bits of the time of the last access, for the sampled LRU

  bool isVolatile() const { return expires_at_ms != kNoExpiry; }
  bool isExpired(int64_t now_ms) const { return isVolatile() && now_ms > expires_at_ms; }
};

/// A node of the table. Its address does not change, so the ExpiryHeap may point to it.
using Item = std::pair<const std::string, Entry>;

/// Returns the bytes that an std::string has allocated, with the overhead of malloc.
inline size_t allocatedBytes(const std::string& text) {
  constexpr size_t kInPlace = 15, kOverhead = 16;
  return text.capacity() > kInPlace ? text.capacity() + 1 + kOverhead : 0;
}

/// Returns the bytes of an item: the node and its bucket, a place in the heap, and the bytes of key and value.
inline size_t allocatedBytes(const Item& item) {
  constexpr size_t kNode = sizeof(Item) + 2 * sizeof(void*) + 8, kBucket = 8, kHeapSlot = 16;
  const auto& [key, entry] = item;
  size_t bytes = kNode + kBucket + allocatedBytes(key) + allocatedBytes(entry.bytes);
  if (entry.isVolatile()) bytes += kHeapSlot;
  return bytes;
}

}  // namespace ttlkv
