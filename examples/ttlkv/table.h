// A Table is the hash table of a shard. A lookup hashes the bytes of the key once, also to find the shard, and makes no
// std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "entry.h"
#include "sip_hash.h"

namespace ttlkv {

/// A key with its hash. The highest bits select the shard, and the rest of the division by a prime selects the bucket.
struct Key {
  explicit Key(std::string_view its_text) : text(its_text), hash(SipHash::ofProcess()(its_text)) {}
  std::string_view text;
  uint64_t hash;
};

struct KeyHash {
  using is_transparent = void;
  size_t operator()(const Key& key) const { return key.hash; }
  size_t operator()(const std::string& text) const { return Key(text).hash; }
};

struct KeyEqual {
  using is_transparent = void;
  bool operator()(const Key& a, const std::string& b) const { return a.text == b; }
  bool operator()(const std::string& a, const Key& b) const { return a == b.text; }
  bool operator()(const std::string& a, const std::string& b) const { return a == b; }
};

using Table = std::unordered_map<std::string, Entry, KeyHash, KeyEqual>;

}  // namespace ttlkv
