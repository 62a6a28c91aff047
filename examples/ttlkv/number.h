// Integers are read as Redis reads them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ttlkv {

/// Returns the number that `text` spells in the one way in which Redis would print it: no sign but '-', no leading zero, no
/// space. Returns nothing for any other text and for numbers beyond 64 bits.
inline std::optional<int64_t> parseInteger(std::string_view text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() == first || text.size() > 20) return std::nullopt;
  if (text[first] == '0' && text != "0") return std::nullopt;
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace ttlkv
