#include "keyspace.h"

#include <algorithm>
#include <stdexcept>

namespace ttlkv {

Keyspace::Keyspace(const WallClock& clock, ShardObserver& observer, size_t shards)
    : m_clock(clock), m_shift(64 - std::countr_zero(shards)), m_random(SipHash::ofProcess()("eviction")) {
  if (!std::has_single_bit(shards) || shards > kMaxShards) throw std::invalid_argument("the shards must be 1, 2, 4, ... or 64");
  for (size_t i = 0; i < shards; ++i) m_shards.push_back(std::make_unique<Shard>(i, observer));
}

size_t Keyspace::size() {
  size_t keys = 0;
  for (const auto& each : m_shards) {
    const sylar::ThreadMutex::Lock lock(each->mutex);
    keys += each->size();
  }
  return keys;
}

size_t Keyspace::usedBytes() const {
  size_t bytes = 0;
  for (const auto& each : m_shards) bytes += each->usedBytes();
  return bytes;
}

ShardCounts Keyspace::counts() {
  ShardCounts sum;
  for (const auto& each : m_shards) {
    const sylar::ThreadMutex::Lock lock(each->mutex);
    const ShardCounts& counts = each->counts();
    sum.hits += counts.hits;
    sum.misses += counts.misses;
    sum.expired += counts.expired;
    sum.expired_lazily += counts.expired_lazily;
    sum.evicted += counts.evicted;
    for (size_t i = 0; i < sum.lag.buckets.size(); ++i) sum.lag.buckets[i] += counts.lag.buckets[i];
    sum.lag.max_ns = std::max(sum.lag.max_ns, counts.lag.max_ns);
  }
  return sum;
}

Keyspace::Volatile Keyspace::countVolatile() {
  Volatile sum{0, 0};
  for (const auto& each : m_shards) {
    const sylar::ThreadMutex::Lock lock(each->mutex);
    sum.keys += each->heap().size();
    sum.heap_bytes += each->heap().memory();
  }
  return sum;
}

std::vector<Table> Keyspace::clear() {
  std::vector<Table> old;
  old.reserve(m_shards.size());
  const LockedKeys all(*this);
  for (const auto& each : m_shards) old.push_back(each->clear());
  return old;
}

bool Keyspace::evictDownTo(size_t max_bytes, Victims victims) {
  while (usedBytes() > max_bytes) {
    if (victims == Victims::kNone || !evictOne(victims)) return false;
  }
  return true;
}

/// Removes one key of a shard that chance selects, or of the next one that has a key to remove.
bool Keyspace::evictOne(Victims victims) {
  const uint64_t random = m_random.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed) * 0xbf58476d1ce4e5b9;
  const int64_t now_ms = nowMs();
  for (size_t i = 0; i < m_shards.size(); ++i) {
    Shard& each = *m_shards[((random >> 58) + i) % m_shards.size()];
    const sylar::ThreadMutex::Lock lock(each.mutex);
    if (each.evictOne(victims, random >> 8 & 0xffffffff, now_ms)) return true;
  }
  return false;
}

bool Keyspace::verify() {
  const LockedKeys all(*this);
  return std::all_of(m_shards.begin(), m_shards.end(), [](const auto& each) { return each->verify(); });
}

LockedKeys::LockedKeys(Keyspace& keyspace, std::span<const std::string_view> texts, size_t step) : m_keyspace(keyspace) {
  m_keys.reserve(texts.size() / step + 1);
  for (size_t i = 0; i < texts.size(); i += step) {
    m_keys.emplace_back(texts[i]);
    m_locked |= ShardSet{1} << keyspace.shardOf(m_keys.back());
  }
  lock();
}

LockedKeys::LockedKeys(Keyspace& keyspace) : m_keyspace(keyspace), m_locked(~ShardSet{0} >> (64 - keyspace.shardCount())) {
  lock();
}

void LockedKeys::lock() {
  for (ShardSet rest = m_locked; rest != 0; rest &= rest - 1) {
    m_keyspace.shard(static_cast<size_t>(std::countr_zero(rest))).mutex.lock();
  }
  m_now_ms = m_keyspace.nowMs();
}

LockedKeys::~LockedKeys() {
  for (ShardSet rest = m_locked; rest != 0; rest &= rest - 1) {
    m_keyspace.shard(static_cast<size_t>(std::countr_zero(rest))).mutex.unlock();
  }
}

}  // namespace ttlkv
