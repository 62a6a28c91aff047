// These commands read and change strings and counters.
#include <limits>

#include "command.h"
#include "expire_options.h"

namespace ttlkv::commands {

namespace {

/// Returns whether the item is no string, and replies with the error then.
bool isWrongType(Call& call, const Item* item) {
  if (item == nullptr || item->second.list == nullptr) return false;
  reply::error(call.out, reply::kWrongType);
  return true;
}

void replyString(Call& call, const Item* item) {
  item == nullptr ? reply::null(call.out) : reply::bulk(call.out, item->second.bytes);
}

/// Sets a string that expires at `at_ms`, whatever the key had before.
void assign(const LockedKey& place, Item* item, std::string_view bytes, int64_t at_ms) {
  if (item == nullptr) item = &place.insert();
  place.shard().setBytes(*item, bytes);
  place.shard().setExpiry(*item, at_ms);
}

void setExpiring(Call& call, TimeUnit unit) {
  const auto at_ms = call.engine.keyspace().nowMs();
  const auto expires_at_ms = expiryOf(call, {unit, false, call.args[2]}, at_ms);
  if (!expires_at_ms) return;
  const LockedKey place(call.keyspace(), call.args[1]);
  assign(place, place.find(), call.args[3], *expires_at_ms);
  reply::ok(call.out);
}

void add(Call& call, int64_t step) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* item = place.find();
  if (isWrongType(call, item)) return;
  const auto old = item == nullptr ? std::optional<int64_t>(0) : parseInteger(item->second.bytes);
  if (!old) return reply::error(call.out, reply::kNotAnInteger);
  int64_t sum = 0;
  if (__builtin_add_overflow(*old, step, &sum)) return reply::error(call.out, "ERR increment or decrement would overflow");
  if (item == nullptr) item = &place.insert();
  place.shard().setBytes(*item, std::to_string(sum));
  reply::integer(call.out, sum);
}

}  // namespace

void set(Call& call) {
  StringOptions options;
  if (!parseStringOptions(call, 3, StringOptions::kSet, options)) return;
  const LockedKey place(call.keyspace(), call.args[1]);
  std::optional<int64_t> at_ms = kNoExpiry;
  if (options.expiry) at_ms = expiryOf(call, *options.expiry, place.nowMs());
  if (!at_ms) return;
  Item* const item = options.get ? place.read() : place.find();
  if (options.get) {
    if (isWrongType(call, item)) return;
    replyString(call, item);
  }
  if ((options.nx && item != nullptr) || (options.xx && item == nullptr)) {
    if (!options.get) reply::null(call.out);
    return;
  }
  if (options.keep_ttl && item != nullptr) at_ms = item->second.expires_at_ms;
  assign(place, item, call.args[2], *at_ms);
  if (!options.get) reply::ok(call.out);
}

void setex(Call& call) { setExpiring(call, TimeUnit::kSeconds); }
void psetex(Call& call) { setExpiring(call, TimeUnit::kMilliseconds); }

void setnx(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* const item = place.find();
  if (item == nullptr) assign(place, item, call.args[2], kNoExpiry);
  reply::integer(call.out, item == nullptr ? 1 : 0);
}

void get(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  const Item* const item = place.read();
  if (!isWrongType(call, item)) replyString(call, item);
}

void getset(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* const item = place.read();
  if (isWrongType(call, item)) return;
  replyString(call, item);
  assign(place, item, call.args[2], kNoExpiry);
}

void getdel(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* const item = place.read();
  if (isWrongType(call, item)) return;
  replyString(call, item);
  if (item != nullptr) place.shard().erase(*item);
}

void getex(Call& call) {
  StringOptions options;
  if (!parseStringOptions(call, 2, StringOptions::kGetex, options)) return;
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* const item = place.read();
  if (isWrongType(call, item)) return;
  if (item == nullptr) return reply::null(call.out);
  std::optional<int64_t> at_ms;
  if (options.expiry && !(at_ms = expiryOf(call, *options.expiry, place.nowMs()))) return;
  replyString(call, item);
  if (options.persist) place.shard().setExpiry(*item, kNoExpiry);
  if (at_ms) *at_ms <= place.nowMs() ? place.shard().erase(*item) : place.shard().setExpiry(*item, *at_ms);
}

void mget(Call& call) {
  const LockedKeys places(call.keyspace(), call.args.subspan(1));
  reply::array(call.out, places.keys().size());
  for (const Key& key : places.keys()) {
    const Item* const item = places.shardOf(key).read(key, places.nowMs());
    replyString(call, item != nullptr && item->second.list != nullptr ? nullptr : item);
  }
}

void mset(Call& call) {
  if (call.args.size() % 2 == 0) return replyWrongArity(call.out, call.command.name);
  const LockedKeys places(call.keyspace(), call.args.subspan(1), 2);
  for (size_t i = 0; i < places.keys().size(); ++i) {
    const Key& key = places.keys()[i];
    Shard& shard = places.shardOf(key);
    Item* item = shard.find(key, places.nowMs());
    if (item == nullptr) item = &shard.insert(key, places.nowMs());
    shard.setBytes(*item, call.args[2 + 2 * i]);
    shard.setExpiry(*item, kNoExpiry);
  }
  reply::ok(call.out);
}

void append(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* item = place.find();
  if (isWrongType(call, item)) return;
  if (item == nullptr) item = &place.insert();
  const size_t size = item->second.bytes.size() + call.args[2].size();
  if (size > static_cast<size_t>(call.engine.options().max_bulk_bytes)) {
    return reply::error(call.out, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  }
  place.shard().appendBytes(*item, call.args[2]);
  reply::integer(call.out, static_cast<int64_t>(size));
}

void strlen(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  const Item* const item = place.read();
  if (isWrongType(call, item)) return;
  reply::integer(call.out, item == nullptr ? 0 : static_cast<int64_t>(item->second.bytes.size()));
}

void incr(Call& call) { add(call, 1); }
void decr(Call& call) { add(call, -1); }

void incrby(Call& call) {
  if (const auto step = call.integer(2)) add(call, *step);
}

void decrby(Call& call) {
  const auto step = call.integer(2);
  if (!step) return;
  if (*step == std::numeric_limits<int64_t>::min()) return reply::error(call.out, "ERR decrement would overflow");
  add(call, -*step);
}

}  // namespace ttlkv::commands
