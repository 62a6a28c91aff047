// INFO tells the state of the server in lines, with the field names of Redis where it has the same.
#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "command.h"
#include "policies.h"
#include "sylar/fiber.h"
#include "sylar/iomanager.h"
#include "sylar/timer_stats.h"
#include "version.h"

namespace ttlkv::commands {

namespace {

using Lines = std::back_insert_iterator<std::string>;

void server(Engine& engine, Lines to) {
  const int64_t up_s = (engine.keyspace().nowMs() - engine.started_ms) / 1000;
  fmt::format_to(to,
                 "redis_version:{}\r\nredis_mode:standalone\r\nserver_name:ttlkv\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\n",
                 kRedisVersion, ::getpid(), up_s);
}

void clients(Engine& engine, Lines to) {
  fmt::format_to(to, "connected_clients:{}\r\nmaxclients:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\n",
                 engine.clients.load(), engine.live().max_clients, engine.hub().channels(), engine.hub().patterns());
}

void memory(Engine& engine, Lines to) {
  fmt::format_to(to, "used_memory:{}\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n", engine.keyspace().usedBytes(),
                 engine.live().max_memory_bytes, formatPolicy(engine.live().victims));
}

void persistence(Engine& engine, Lines to) {
  fmt::format_to(to, "rdb_bgsave_in_progress:{}\r\nrdb_last_save_time:{}\r\nrdb_last_bgsave_status:{}\r\n",
                 engine.isSaving() ? 1 : 0, engine.last_save_s.load(), engine.last_save_ok ? "ok" : "err");
}

void stats(Engine& engine, Lines to) {
  const ShardCounts counts = engine.keyspace().counts();
  fmt::format_to(to,
                 "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\n"
                 "expired_keys:{}\r\nevicted_keys:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\n"
                 "protocol_errors:{}\r\nidle_connections_closed:{}\r\n",
                 engine.connections.load(), engine.commands.load(), engine.refused_connections.load(), counts.expired,
                 counts.evicted, counts.hits, counts.misses, engine.protocol_errors.load(), engine.idle_closed.load());
}

/// The lag is the time from the expiry of a key to its removal, of those keys that have been removed.
void expiry(Engine& engine, Lines to) {
  const ShardCounts counts = engine.keyspace().counts();
  const Keyspace::Volatile volatile_keys = engine.keyspace().countVolatile();
  const auto ms = [&](double share) { return static_cast<double>(counts.lag.quantileNs(share)) / 1e6; };
  fmt::format_to(to,
                 "volatile_keys:{}\r\nexpiry_heap_bytes:{}\r\nexpiry_timers:{}\r\nexpiry_passes:{}\r\nexpired_by_timer:{}\r\n"
                 "expired_lazily:{}\r\nexpiry_lag_p50_ms:{:.3f}\r\nexpiry_lag_p99_ms:{:.3f}\r\nexpiry_lag_max_ms:{:.3f}\r\n",
                 volatile_keys.keys, volatile_keys.heap_bytes, engine.expirer().armedTimers(), engine.expirer().passes(),
                 counts.expired - counts.expired_lazily, counts.expired_lazily, ms(0.5), ms(0.99),
                 static_cast<double>(counts.lag.max_ns) / 1e6);
}

void fibers(Engine& /*engine*/, Lines to) {
  fmt::format_to(to, "fibers:{}\r\n", sylar::Fiber::TotalFibers());
  const sylar::IOManager* const iom = sylar::IOManager::GetThis();
  if (iom == nullptr) return;
  const sylar::TimerStats timers = iom->getStats();
  const sylar::WorkerStats workers = iom->getWorkerStats();
  fmt::format_to(
      to, "timers_armed:{}\r\ntimers_fired:{}\r\ntimers_lateness_p99_us:{:.1f}\r\nfiber_switches:{}\r\nworker_sleeps:{}\r\n",
      timers.resident, timers.fired, static_cast<double>(timers.lateness.quantileNs(0.99)) / 1e3, workers.switches,
      workers.sleeps);
}

void keyspace(Engine& engine, Lines to) {
  const size_t keys = engine.keyspace().size();
  if (keys > 0) fmt::format_to(to, "db0:keys={},expires={},avg_ttl=0\r\n", keys, engine.keyspace().countVolatile().keys);
}

struct Section {
  std::string_view name;
  void (*write)(Engine& engine, Lines to);
};
constexpr Section kSections[] = {{"Server", server}, {"Clients", clients}, {"Memory", memory}, {"Persistence", persistence},
                                 {"Stats", stats},   {"Expiry", expiry},   {"Fibers", fibers}, {"Keyspace", keyspace}};

bool isWanted(const Call& call, std::string_view section) {
  const std::string lower = toLower(section);
  if (call.args.size() == 1) return true;
  for (const std::string_view arg : call.args.subspan(1)) {
    const std::string wanted = toLower(arg);
    if (wanted == lower || wanted == "all" || wanted == "default" || wanted == "everything") return true;
  }
  return false;
}

}  // namespace

void info(Call& call) {
  std::string text;
  for (const Section& section : kSections) {
    if (!isWanted(call, section.name)) continue;
    if (!text.empty()) text += "\r\n";
    fmt::format_to(Lines(text), "# {}\r\n", section.name);
    section.write(call.engine, Lines(text));
  }
  reply::bulk(call.out, text);
}

}  // namespace ttlkv::commands
