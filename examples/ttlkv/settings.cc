#include "settings.h"

#include <string>
#include <utility>

#include "notifications.h"
#include "policies.h"
#include "sylar/config.h"

namespace ttlkv {

namespace {

std::string checkNotifications(const std::string& text) {
  return parseNotifications(text) ? "" : "must consist of the letters of notify-keyspace-events in Redis, such as Ex";
}
std::string checkPolicy(const std::string& text) {
  return parsePolicy(text) ? "" : "must be noeviction, allkeys-lru or volatile-lru";
}

using sylar::Config;
using sylar::inRange;

const auto g_max_memory = Config::Lookup<uint64_t>("ttlkv.max_memory_bytes", 0, "bytes of keys and values; 0: no limit");
const auto g_policy = Config::Lookup<std::string>("ttlkv.max_memory_policy", "noeviction", "which keys go then", checkPolicy);
const auto g_notify = Config::Lookup<std::string>("ttlkv.notify_keyspace_events", "Ex", "as in Redis", checkNotifications);
const auto g_max_clients =
    Config::Lookup<uint64_t>("ttlkv.max_clients", 10'000, "connections at once", inRange<uint64_t>(1, 1'000'000));
const auto g_idle = Config::Lookup<uint64_t>("ttlkv.idle_timeout_ms", 0, "silence that ends a connection; 0: none",
                                             inRange<uint64_t>(0, 86'400'000));
const auto g_budget =
    Config::Lookup<uint64_t>("ttlkv.expiry_budget", 16, "keys of a shard that one pass removes", inRange<uint64_t>(1, 100'000));
const auto g_max_bulk = Config::Lookup<uint64_t>("ttlkv.max_bulk_bytes", uint64_t{512} << 20, "of one argument",
                                                 inRange<uint64_t>(1 << 20, uint64_t{1} << 31));
const auto g_max_outbox = Config::Lookup<uint64_t>("ttlkv.max_outbox_bytes", uint64_t{32} << 20, "that wait for a subscriber",
                                                   inRange<uint64_t>(1 << 10, uint64_t{1} << 40));
const auto g_shards = Config::Lookup<uint64_t>("ttlkv.shards", 64, "parts of the keyspace with a lock each",
                                               sylar::oneOf<uint64_t>({1, 2, 4, 8, 16, 32, 64}));
const auto g_snapshot = Config::Lookup<std::string>("ttlkv.snapshot", "", "file of the snapshot; empty: none");

Options::Live readLive() {
  return {static_cast<size_t>(g_max_memory->getValue()), *parsePolicy(g_policy->getValue()),
          *parseNotifications(g_notify->getValue()), static_cast<size_t>(g_max_clients->getValue())};
}

}  // namespace

Options readSettings() {
  Options options;
  options.live = readLive();
  options.shards = g_shards->getValue();
  options.expiry_budget = g_budget->getValue();
  options.idle_timeout_ms = g_idle->getValue();
  options.max_bulk_bytes = static_cast<int64_t>(g_max_bulk->getValue());
  options.max_outbox_bytes = g_max_outbox->getValue();
  options.snapshot_path = g_snapshot->getValue();
  return options;
}

void onLiveSettings(std::function<void(const Options::Live&)> listener) {
  const auto changed = [listener = std::move(listener)](const auto& /*was*/, const auto& /*is*/) { listener(readLive()); };
  g_max_memory->addListener(changed);
  g_policy->addListener(changed);
  g_notify->addListener(changed);
  g_max_clients->addListener(changed);
}

}  // namespace ttlkv
