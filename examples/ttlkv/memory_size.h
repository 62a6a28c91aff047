// Numbers of bytes are written as in Redis: 1024, 1k, 1kb, 5mb, 1gb.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "number.h"

namespace ttlkv {

/// Returns the bytes that `text` means, or nothing. As in Redis, 1k is 1000 and 1kb is 1024.
inline std::optional<size_t> parseMemorySize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parseInteger(text.substr(0, digits));
  if (!number) return std::nullopt;
  std::string unit(text.substr(digits));
  for (char& c : unit) c = static_cast<char>(c | 0x20);
  constexpr std::pair<std::string_view, size_t> kUnits[] = {{"", 1},
                                                            {"b", 1},
                                                            {"k", 1000},
                                                            {"kb", 1024},
                                                            {"m", 1000 * 1000},
                                                            {"mb", 1024 * 1024},
                                                            {"g", 1000 * 1000 * 1000},
                                                            {"gb", 1024 * 1024 * 1024}};
  for (const auto& [name, bytes] : kUnits) {
    size_t product = 0;
    if (unit == name && !__builtin_mul_overflow(static_cast<size_t>(*number), bytes, &product)) return product;
  }
  return std::nullopt;
}

}  // namespace ttlkv
