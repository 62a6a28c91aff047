#include "shard.h"

#include <algorithm>

namespace ttlkv {

namespace {
constexpr int kSampledKeys = 5;  // as many as Redis samples
constexpr int kSampledBuckets = 64;

size_t elementBytes(const std::string& element) { return sizeof element + allocatedBytes(element); }

size_t listBytes(const Entry& entry) {
  if (entry.list == nullptr) return 0;
  size_t bytes = sizeof(List) + 512;  // libstdc++ allocates a deque in chunks of this size
  for (const std::string& element : *entry.list) bytes += elementBytes(element);
  return bytes;
}
}  // namespace

/// Makes a change that does not touch the elements of a list, and counts by how much the item has grown or shrunk.
template <class Change>
void Shard::counted(Item& item, Change change) {
  const size_t before = allocatedBytes(item);
  change();
  addUsed(allocatedBytes(item) - before);
}

Item* Shard::find(const Key& key, int64_t now_ms) {
  const auto found = m_table.find(key);
  if (found == m_table.end()) return nullptr;
  if (found->second.isExpired(now_ms)) {
    ++m_counts.expired_lazily;
    expire(*found, now_ms);
    return nullptr;
  }
  found->second.used_at_ms = static_cast<uint32_t>(now_ms);
  return &*found;
}

Item* Shard::read(const Key& key, int64_t now_ms) {
  Item* const item = find(key, now_ms);
  ++(item != nullptr ? m_counts.hits : m_counts.misses);
  return item;
}

Item& Shard::insert(const Key& key, int64_t now_ms) {
  Item& item = *m_table.try_emplace(std::string(key.text)).first;
  item.second.used_at_ms = static_cast<uint32_t>(now_ms);
  addUsed(allocatedBytes(item));
  return item;
}

void Shard::setBytes(Item& item, std::string_view bytes) {
  subtractUsed(listBytes(item.second));
  item.second.list.reset();
  counted(item, [&] {
    std::string& value = item.second.bytes;
    if (value.capacity() > 2 * bytes.size() + 64) std::string().swap(value);  // a short value does not keep a long one's memory
    value.assign(bytes);
  });
}

void Shard::appendBytes(Item& item, std::string_view bytes) {
  counted(item, [&] { item.second.bytes += bytes; });
}

/// Returns the list of an item, which becomes one if it has none.
List& Shard::listOf(Item& item) {
  auto& list = item.second.list;
  if (list == nullptr) {
    list = std::make_unique<List>();
    addUsed(listBytes(item.second));
  }
  return *list;
}

void Shard::pushFront(Item& item, std::string_view element) { addUsed(elementBytes(listOf(item).emplace_front(element))); }
void Shard::pushBack(Item& item, std::string_view element) { addUsed(elementBytes(listOf(item).emplace_back(element))); }

void Shard::setExpiry(Item& item, int64_t at_ms) {
  Entry& entry = item.second;
  if (entry.expires_at_ms == at_ms) return;
  const int64_t earliest = m_heap.earliest();
  counted(item, [&] {
    if (at_ms == kNoExpiry) {
      m_heap.erase(item);
    } else {
      entry.isVolatile() ? m_heap.update(item, at_ms) : m_heap.insert(item, at_ms);
    }
  });
  if (m_heap.earliest() != earliest) m_observer.onEarliestChanged(m_index);
}

void Shard::erase(Item& item) {
  const int64_t earliest = m_heap.earliest();
  remove(m_table.find(item.first));
  if (m_heap.earliest() != earliest) m_observer.onEarliestChanged(m_index);
}

void Shard::remove(Table::iterator found) {
  subtractUsed(allocatedBytes(*found) + listBytes(found->second));
  if (found->second.isVolatile()) m_heap.erase(*found);
  m_table.erase(found);
}

void Shard::expire(Item& item, int64_t now_ms) {
  ++m_counts.expired;
  m_counts.lag.add((now_ms - item.second.expires_at_ms - 1) * 1'000'000);
  m_observer.onExpired(item.first);
  erase(item);
}

void Shard::removeExpired(int64_t now_ms, size_t budget) {
  for (; budget > 0 && now_ms > m_heap.earliest(); --budget) {
    Item& item = m_heap.first();
    ++m_counts.expired;
    m_counts.lag.add((now_ms - item.second.expires_at_ms - 1) * 1'000'000);
    m_observer.onExpired(item.first);
    remove(m_table.find(item.first));  // the caller arms the timer once, and not for each key
  }
}

bool Shard::evictOne(Victims victims, uint64_t random, int64_t now_ms) {
  Item* oldest = nullptr;
  int sampled = 0;
  const size_t buckets = m_table.bucket_count();
  const auto idle = [now_ms](const Item& item) { return static_cast<uint32_t>(now_ms) - item.second.used_at_ms; };
  for (size_t i = 0; i < buckets && sampled < kSampledKeys; ++i) {
    if (oldest != nullptr && i > kSampledBuckets) break;
    const size_t bucket = (random + i) % buckets;
    for (auto it = m_table.begin(bucket); it != m_table.end(bucket); ++it) {
      if (victims == Victims::kVolatile && !it->second.isVolatile()) continue;
      ++sampled;
      if (oldest == nullptr || idle(*it) > idle(*oldest)) oldest = &*it;
    }
  }
  if (oldest == nullptr) return false;
  ++m_counts.evicted;
  erase(*oldest);
  return true;
}

Table Shard::clear() {
  const bool was_empty = m_heap.empty();
  m_heap.clear();
  m_used.store(0, std::memory_order_relaxed);
  Table old = std::move(m_table);
  m_table = Table();
  if (!was_empty) m_observer.onEarliestChanged(m_index);
  return old;
}

void Shard::forEach(const std::function<void(const Item&)>& visit) const {
  for (const Item& item : m_table) visit(item);
}

bool Shard::verify() const {
  size_t volatile_keys = 0, used = 0;
  for (const Item& item : m_table) {
    volatile_keys += item.second.isVolatile() ? 1 : 0;
    used += allocatedBytes(item) + listBytes(item.second);
  }
  return volatile_keys == m_heap.size() && m_heap.verify() && used == usedBytes();
}

}  // namespace ttlkv
