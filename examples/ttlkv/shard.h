// A Shard is a part of the keys: a hash table, and the heap of those that expire.
//
// There are up to 64 shards, each with a lock of its own, for two reasons. Two workers rarely want the same lock. And work on a
// whole table is divided: a table that grows, or is written to a snapshot, holds up the others for the time of one shard.
//
// Thread safety: the caller holds `mutex`, except where a comment says otherwise. The mutex blocks the thread, so nothing here
// suspends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "entry.h"
#include "expiry_heap.h"
#include "sylar/thread_mutex.h"
#include "sylar/timer_stats.h"
#include "table.h"

namespace ttlkv {

/// Hears of the changes in a shard, under its lock.
class ShardObserver {
 public:
  virtual ~ShardObserver() = default;
  /// Called before an expired key is removed.
  virtual void onExpired(std::string_view key) = 0;
  /// Called when the earliest expiry of a shard has changed.
  virtual void onEarliestChanged(size_t shard) = 0;
};

/// Counts since the start.
struct ShardCounts {
  uint64_t hits = 0;             ///< commands that have read a key
  uint64_t misses = 0;           ///< commands that have found no key to read
  uint64_t expired = 0;          ///< keys removed because their time had come
  uint64_t expired_lazily = 0;   ///< of these, the keys that a command has found before the timer did
  uint64_t evicted = 0;          ///< keys removed because memory was short
  sylar::LatenessHistogram lag;  ///< how long expired keys were kept, in whole milliseconds
};

/// The keys among which an eviction chooses.
enum class Victims : uint8_t { kNone, kAll, kVolatile };

class alignas(64) Shard {
 public:
  Shard(size_t index, ShardObserver& observer) : m_index(index), m_observer(observer) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Returns the item, or null if there is none. A key that has expired is removed first.
  Item* find(const Key& key, int64_t now_ms);
  /// Returns the same to a command that reads, and counts a hit or a miss.
  Item* read(const Key& key, int64_t now_ms);
  /// Returns a new item with an empty string, for a key that find() has not found.
  Item& insert(const Key& key, int64_t now_ms);

  /// These change a value, and keep the count of the memory.
  void setBytes(Item& item, std::string_view bytes);
  void appendBytes(Item& item, std::string_view bytes);
  void pushFront(Item& item, std::string_view element);
  void pushBack(Item& item, std::string_view element);
  /// Makes the key expire at `at_ms`; kNoExpiry is never.
  void setExpiry(Item& item, int64_t at_ms);
  void erase(Item& item);

  /// Removes the expired keys, at most `budget` of them.
  void removeExpired(int64_t now_ms, size_t budget);
  /// Samples a few keys from the bucket `random` on, and removes the one that was used the longest time ago. Returns false if
  /// there is none to remove.
  bool evictOne(Victims victims, uint64_t random, int64_t now_ms);
  /// Removes all keys and returns them, because to free them takes long.
  Table clear();
  void forEach(const std::function<void(const Item&)>& visit) const;

  size_t size() const { return m_table.size(); }
  const ExpiryHeap& heap() const { return m_heap; }
  ShardCounts& counts() { return m_counts; }
  /// Returns the bytes of all keys and values. Any thread may ask without the lock.
  size_t usedBytes() const { return m_used.load(std::memory_order_relaxed); }
  /// Returns whether the heap has exactly the volatile keys, and the memory is counted right. For tests.
  bool verify() const;

  sylar::ThreadMutex mutex;

 private:
  void addUsed(size_t bytes) { m_used.store(m_used.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed); }
  void subtractUsed(size_t bytes) { addUsed(0 - bytes); }
  void expire(Item& item, int64_t now_ms);
  void remove(Table::iterator found);
  List& listOf(Item& item);
  template <class Change>
  void counted(Item& item, Change change);

  const size_t m_index;
  ShardObserver& m_observer;
  Table m_table;
  ExpiryHeap m_heap;
  ShardCounts m_counts;
  std::atomic<size_t> m_used{0};
};

}  // namespace ttlkv
