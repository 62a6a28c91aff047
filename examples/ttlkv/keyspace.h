// A Keyspace has all keys, divided into shards.
//
//   const LockedKey place(keyspace, key);                     // locks the shard of one key
//   if (Item* item = place.read()) ... item->second.bytes
//
// A command on several keys locks their shards in the order of their numbers, so that two such commands cannot wait for each
// other. It is atomic, as all commands of Redis are.
//
// The alternative is that each worker owns a part of the keys and the others send it their commands. With two workers every
// second command would then cross threads and wake one, which costs more than a lock that is nearly always free.
//
// Thread safety: all calls from any thread, in fibers and outside. May suspend: no.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "shard.h"
#include "wall_clock.h"

namespace ttlkv {

/// The shards that a command locks, as bits.
using ShardSet = uint64_t;

class Keyspace {
 public:
  static constexpr size_t kMaxShards = 64;

  /// `shards` is a power of two, at most kMaxShards. Both references must outlive the keyspace.
  Keyspace(const WallClock& clock, ShardObserver& observer, size_t shards = kMaxShards);

  int64_t nowMs() const { return m_clock.nowMs(); }
  size_t shardCount() const { return m_shards.size(); }
  Shard& shard(size_t index) { return *m_shards[index]; }
  size_t shardOf(const Key& key) const { return m_shards.size() == 1 ? 0 : key.hash >> m_shift; }

  /// Returns the number of keys, including those that have expired and were not removed yet.
  size_t size();
  /// Returns the bytes of all keys and values. Takes no lock.
  size_t usedBytes() const;
  /// Returns the sum of the counts of all shards.
  ShardCounts counts();
  /// Returns the number of volatile keys, and the bytes of the heaps that keep them in order.
  struct Volatile {
    size_t keys, heap_bytes;
  };
  Volatile countVolatile();

  /// Removes all keys at once, and returns them to be freed without a lock.
  std::vector<Table> clear();
  /// Removes keys until at most `max_bytes` are used. Returns false if that cannot be done.
  bool evictDownTo(size_t max_bytes, Victims victims);
  /// Returns whether all shards are consistent. For tests.
  bool verify();

 private:
  bool evictOne(Victims victims);

  const WallClock& m_clock;
  std::vector<std::unique_ptr<Shard>> m_shards;
  const int m_shift;
  std::atomic<uint64_t> m_random;
};

/// Holds the lock of the shard of one key.
class LockedKey {
 public:
  LockedKey(Keyspace& keyspace, std::string_view text)
      : m_key(text), m_shard(keyspace.shard(keyspace.shardOf(m_key))), m_lock(m_shard.mutex), m_now_ms(keyspace.nowMs()) {}

  Item* find() const { return m_shard.find(m_key, m_now_ms); }
  Item* read() const { return m_shard.read(m_key, m_now_ms); }
  Item& insert() const { return m_shard.insert(m_key, m_now_ms); }
  Shard& shard() const { return m_shard; }
  int64_t nowMs() const { return m_now_ms; }

 private:
  const Key m_key;
  Shard& m_shard;
  const sylar::ThreadMutex::Lock m_lock;
  const int64_t m_now_ms;
};

/// Holds the locks of the shards of several keys, or of all.
class LockedKeys {
 public:
  LockedKeys(Keyspace& keyspace, std::span<const std::string_view> texts, size_t step = 1);
  explicit LockedKeys(Keyspace& keyspace);
  ~LockedKeys();
  LockedKeys(const LockedKeys&) = delete;
  LockedKeys& operator=(const LockedKeys&) = delete;

  const std::vector<Key>& keys() const { return m_keys; }
  Shard& shardOf(const Key& key) const { return m_keyspace.shard(m_keyspace.shardOf(key)); }
  int64_t nowMs() const { return m_now_ms; }

 private:
  void lock();

  Keyspace& m_keyspace;
  std::vector<Key> m_keys;
  ShardSet m_locked = 0;
  int64_t m_now_ms = 0;
};

}  // namespace ttlkv
