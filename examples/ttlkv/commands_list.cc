// These commands work on lists, which expire as strings do.
#include <algorithm>

#include "command.h"

namespace ttlkv::commands {

void lpush(Call& call) {
  const LockedKey place(call.keyspace(), call.args[1]);
  Item* item = place.find();
  if (item != nullptr && item->second.list == nullptr) return reply::error(call.out, reply::kWrongType);
  if (item == nullptr) item = &place.insert();
  for (const std::string_view element : call.args.subspan(2)) place.shard().pushFront(*item, element);
  reply::integer(call.out, static_cast<int64_t>(item->second.list->size()));
}

void lrange(Call& call) {
  const auto first = call.integer(2);
  if (!first) return;
  const auto last = call.integer(3);
  if (!last) return;
  const LockedKey place(call.keyspace(), call.args[1]);
  const Item* const item = place.read();
  if (item == nullptr) return reply::array(call.out, 0);
  if (item->second.list == nullptr) return reply::error(call.out, reply::kWrongType);
  const List& list = *item->second.list;
  const auto size = static_cast<int64_t>(list.size());
  const int64_t begin = std::max<int64_t>(*first < 0 ? *first + size : *first, 0);
  const int64_t end = std::min(*last < 0 ? *last + size : *last, size - 1) + 1;
  if (begin >= end) return reply::array(call.out, 0);
  reply::array(call.out, static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) reply::bulk(call.out, list[static_cast<size_t>(i)]);
}

}  // namespace ttlkv::commands
