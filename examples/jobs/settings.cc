#include "settings.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "memory_store.h"
#include "postgres_store.h"
#include "redis_store.h"
#include "sylar/config.h"

namespace jobs {

namespace {

using std::chrono::milliseconds;
using sylar::Config;
using sylar::inRange;

sylar::ConfigVar<uint64_t>::ptr ms(const char* name, uint64_t value, const char* what, uint64_t least, uint64_t most) {
  return Config::Lookup<uint64_t>(name, value, what, inRange<uint64_t>(least, most));
}

constexpr uint64_t kHour = 3'600'000;

const auto g_store = Config::Lookup<std::string>("jobs.store", "memory", "where jobs are kept: memory, redis or postgres",
                                                 sylar::oneOf<std::string>({"memory", "redis", "postgres"}));
const auto g_redis_host = Config::Lookup<std::string>("jobs.redis.host", "127.0.0.1", "where redis is", sylar::notEmpty());
const auto g_redis_port = Config::Lookup<uint32_t>("jobs.redis.port", 6379, "and its port", inRange<uint32_t>(1, 65'535));
const auto g_redis_prefix = Config::Lookup<std::string>("jobs.redis.prefix", "jobs", "of all keys", sylar::notEmpty());
const auto g_postgres = Config::Lookup<std::string>("jobs.postgres", "dbname=postgres", "where PostgreSQL is, as libpq says it");
const auto g_etcd = Config::Lookup<std::vector<std::string>>("jobs.etcd.endpoints", {}, "URLs of etcd; empty: no replica leads");
const auto g_etcd_prefix = Config::Lookup<std::string>("jobs.etcd.prefix", "jobs", "of all keys", sylar::notEmpty());
const auto g_etcd_ttl = Config::Lookup<uint32_t>(
    "jobs.etcd.ttl_s", 10, "after which another replica leads in place of a silent one", inRange<uint32_t>(3, 3'600));
const auto g_url = Config::Lookup<std::string>("jobs.deliver_url", "", "jobs are POSTed to it; empty: they are logged");
const auto g_replica = Config::Lookup<std::string>("jobs.replica", "", "name of this replica; empty: host:process");
const auto g_ahead = ms("jobs.ahead_ms", 100, "jobs are claimed at most so long before they are due", 2, 60'000);
const auto g_visibility = ms("jobs.visibility_ms", 30'000, "after which the job of a silent replica goes to another", 100, kHour);
const auto g_timeout = ms("jobs.handler_timeout_ms", 10'000, "how long an attempt may take; at most the visibility", 10, kHour);
const auto g_sweep = ms("jobs.sweep_ms", 120'000, "how often the store is asked when nothing happens", 1'000, 24 * kHour);
const auto g_keep_dead = ms("jobs.keep_dead_ms", 7 * 24 * kHour, "how long a dead letter is kept", 0, 10 * 365 * 24 * kHour);
const auto g_dead_sweep = ms("jobs.dead_sweep_ms", 600'000, "how often those that are older are deleted", 100, 24 * kHour);
const auto g_max_claimed =
    Config::Lookup<uint64_t>("jobs.max_claimed", 256, "jobs that a replica claims at a time", inRange<uint64_t>(4, 100'000));
const auto g_max_attempts =
    Config::Lookup<uint32_t>("jobs.max_attempts", 10, "after which a job becomes a dead letter", inRange<uint32_t>(1, 1'000'000));
const auto g_retry_first = ms("jobs.retry_first_ms", 1'000, "before the second attempt; twice as long each time", 1, kHour);
const auto g_retry_longest = ms("jobs.retry_longest_ms", 300'000, "between two attempts at most", 1, 24 * kHour);

}  // namespace

Options readOptions() {
  Options options;
  options.ahead = milliseconds(g_ahead->getValue());
  options.visibility = milliseconds(g_visibility->getValue());
  options.handler_timeout = milliseconds(g_timeout->getValue());
  options.sweep = milliseconds(g_sweep->getValue());
  options.max_claimed = g_max_claimed->getValue();
  options.max_attempts = g_max_attempts->getValue();
  options.retry = {milliseconds(g_retry_first->getValue()), milliseconds(g_retry_longest->getValue())};
  return options;
}

DeadSweep::Options readSweepOptions() {
  return {.keep = milliseconds(g_keep_dead->getValue()),
          .period = milliseconds(g_dead_sweep->getValue()),
          .visibility = milliseconds(g_visibility->getValue())};
}

std::string deliverUrl() { return g_url->getValue(); }
std::string storeName() { return g_store->getValue(); }

std::string replicaName() {
  if (const std::string name = g_replica->getValue(); !name.empty()) return name;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

std::unique_ptr<Leadership> makeLeadership(std::function<nlohmann::json()> about) {
  const auto endpoints = g_etcd->getValue();
  if (endpoints.empty()) return nullptr;
  const std::chrono::seconds ttl(g_etcd_ttl->getValue());
  const auto each = std::chrono::duration_cast<milliseconds>(ttl) / (3 * endpoints.size());  // so that each may be asked in time
  return std::make_unique<Leadership>(Etcd(endpoints, each),
                                      Leadership::Options{.name = replicaName(), .prefix = g_etcd_prefix->getValue(), .ttl = ttl},
                                      std::move(about));
}

std::unique_ptr<Store> makeStore() {
  if (storeName() == "memory") return std::make_unique<MemoryStore>();
  if (storeName() == "postgres") return std::make_unique<PostgresStore>(PostgresTarget{g_postgres->getValue()});
  const RedisTarget redis{g_redis_host->getValue(), static_cast<int>(g_redis_port->getValue())};
  return std::make_unique<RedisStore>(redis, g_redis_prefix->getValue());
}

}  // namespace jobs
