// These commands set and tell the time to live of keys.
#include <limits>

#include "command.h"
#include "expire_options.h"

namespace ttlkv::commands {

namespace {

enum class Base : uint8_t { kNow, kEpoch };

// The order of the checks is that of Redis, so that a request with two mistakes gets the same error: options, number, overflow,
// missing key.
void setTimeToLive(Call& call, TimeUnit unit, Base base) {
  ExpireOptions options;
  if (!parseExpireOptions(call, 3, options)) return;
  const auto number = call.integer(2);
  if (!number) return;
  const LockedKey place(call.keyspace(), call.args[1]);
  int64_t at_ms = *number;
  if (__builtin_mul_overflow(at_ms, unit == TimeUnit::kSeconds ? 1000 : 1, &at_ms) ||
      __builtin_add_overflow(at_ms, base == Base::kNow ? place.nowMs() : 0, &at_ms)) {
    return replyInvalidExpire(call);
  }
  Item* const item = place.find();
  if (item == nullptr || !options.allow(item->second.expires_at_ms, at_ms)) return reply::integer(call.out, 0);
  at_ms <= place.nowMs() ? place.shard().erase(*item) : place.shard().setExpiry(*item, at_ms);
  reply::integer(call.out, 1);
}

/// Replies with the time until the key expires, or with the time at which it does.
void replyTimeToLive(Call& call, TimeUnit unit, Base base) {
  const LockedKey place(call.keyspace(), call.args[1]);
  const Item* const item = place.read();
  if (item == nullptr) return reply::integer(call.out, -2);
  if (!item->second.isVolatile()) return reply::integer(call.out, -1);
  const int64_t ms = item->second.expires_at_ms - (base == Base::kNow ? place.nowMs() : 0);
  reply::integer(call.out, unit == TimeUnit::kSeconds ? ms / 1000 + (ms % 1000 >= 500 ? 1 : 0) : ms);
}

}  // namespace

void expire(Call& call) { setTimeToLive(call, TimeUnit::kSeconds, Base::kNow); }
void pexpire(Call& call) { setTimeToLive(call, TimeUnit::kMilliseconds, Base::kNow); }
void expireat(Call& call) { setTimeToLive(call, TimeUnit::kSeconds, Base::kEpoch); }
void pexpireat(Call& call) { setTimeToLive(call, TimeUnit::kMilliseconds, Base::kEpoch); }

void ttl(Call& call) { replyTimeToLive(call, TimeUnit::kSeconds, Base::kNow); }
void pttl(Call& call) { replyTimeToLive(call, TimeUnit::kMilliseconds, Base::kNow); }
void expiretime(Call& call) { replyTimeToLive(call, TimeUnit::kSeconds, Base::kEpoch); }
void pexpiretime(Call& call) { replyTimeToLive(call, TimeUnit::kMilliseconds, Base::kEpoch); }

void persist(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* const item = place.find();
  const bool was_volatile = item != nullptr && item->second.isVolatile();
  if (was_volatile) place.shard().setExpiry(*item, kNoExpiry);
  reply::integer(call.out, was_volatile ? 1 : 0);
}

}  // namespace ttlkv::commands
