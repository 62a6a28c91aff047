// The policies of maxmemory have the names that they have in Redis.
#pragma once

#include <optional>
#include <string_view>

#include "shard.h"

namespace ttlkv {

inline constexpr std::string_view formatPolicy(Victims victims) {
  switch (victims) {
    case Victims::kAll: return "allkeys-lru";
    case Victims::kVolatile: return "volatile-lru";
    case Victims::kNone: break;
  }
  return "noeviction";
}

inline constexpr std::optional<Victims> parsePolicy(std::string_view name) {
  for (const Victims each : {Victims::kNone, Victims::kAll, Victims::kVolatile}) {
    if (name == formatPolicy(each)) return each;
  }
  return std::nullopt;
}

}  // namespace ttlkv
