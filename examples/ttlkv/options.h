// Options are the settings of the store, which settings.cc reads from YAML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "keyspace.h"

namespace ttlkv {

/// The values at the start. `live` may change while the service runs.
struct Options {
  struct Live {
    size_t max_memory_bytes = 0;  ///< of keys and values; 0 is no limit
    Victims victims = Victims::kNone;
    uint32_t notifications = 0;  ///< bits of notifications.h
    size_t max_clients = 10'000;
  } live;
  size_t shards = Keyspace::kMaxShards;
  size_t expiry_budget = 16;   ///< keys of a shard that one pass removes
  size_t idle_timeout_ms = 0;  ///< 0 is never
  int64_t max_bulk_bytes = int64_t{512} << 20;
  size_t max_outbox_bytes = size_t{32} << 20;  ///< bytes that may wait for a subscriber
  std::string snapshot_path;                   ///< "" is no snapshot
};

}  // namespace ttlkv
