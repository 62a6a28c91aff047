// These commands work on keys of any type.
#include <vector>

#include "command.h"
#include "glob.h"
#include "sylar/sync/blocking.h"

namespace ttlkv::commands {

void del(Call& call) {
  const LockedKeys places(call.keyspace(), call.args.subspan(1));
  int64_t deleted = 0;
  for (const Key& key : places.keys()) {
    Shard& shard = places.shardOf(key);
    Item* const item = shard.find(key, places.nowMs());
    if (item == nullptr) continue;
    shard.erase(*item);
    ++deleted;
  }
  reply::integer(call.out, deleted);
}

void exists(Call& call) {
  const LockedKeys places(call.keyspace(), call.args.subspan(1));
  int64_t found = 0;
  for (const Key& key : places.keys()) found += places.shardOf(key).read(key, places.nowMs()) != nullptr ? 1 : 0;
  reply::integer(call.out, found);
}

void type(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  const Item* const item = place.read();
  reply::simple(call.out, item == nullptr ? "none" : item->second.list != nullptr ? "list" : "string");
}

void keys(Call& call) {
  std::vector<std::string> found;
  Keyspace& keyspace = call.keyspace();
  const std::string_view pattern = call.args[1];
  const bool all = pattern == "*";  // which in Redis is all keys, and not a pattern: that would leave out the empty key
  for (size_t i = 0; i < keyspace.shardCount(); ++i) {  // one after the other, so that other workers go on meanwhile
    const sylar::ThreadMutex::Lock lock(keyspace.shard(i).mutex);
    const int64_t now_ms = keyspace.nowMs();
    keyspace.shard(i).forEach([&](const Item& item) {
      if (!item.second.isExpired(now_ms) && (all || globMatches(pattern, item.first))) found.push_back(item.first);
    });
  }
  reply::array(call.out, found.size());
  for (const std::string& key : found) reply::bulk(call.out, key);
}

void dbsize(Call& call) { reply::integer(call.out, static_cast<int64_t>(call.keyspace().size())); }

void flushall(Call& call) {
  const bool has_mode = call.args.size() == 2;
  if (call.args.size() > 2 ||
      (has_mode && !equalsIgnoringCase(call.args[1], "sync") && !equalsIgnoringCase(call.args[1], "async"))) {
    return reply::error(call.out, reply::kSyntaxError);
  }
  // To free a million keys takes longer than other connections should wait, so another thread does it.
  auto old = std::make_shared<std::vector<Table>>(call.keyspace().clear());
  try {
    sylar::goBlocking([old = std::move(old)]() mutable { old.reset(); });
  } catch (const std::system_error&) {
    // The helper threads are all busy, and the keys were freed here.
  }
  reply::ok(call.out);
}

}  // namespace ttlkv::commands
