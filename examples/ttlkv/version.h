// Clients look for a version of Redis. This is the one with the same replies.
#pragma once

#include <string_view>

namespace ttlkv {

inline constexpr std::string_view kRedisVersion = "7.0.15";

}  // namespace ttlkv
