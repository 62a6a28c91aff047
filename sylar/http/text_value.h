// Internal. Text of a header, parameter or cookie as a value.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace sylar::http {

/// Converts all of `text`; false, and `value` untouched, if it is no T or out of its range. T: std::string, an integer, bool
/// ("0", "1", "true", "false") or a floating type.
template <class T>
bool fromText(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = text;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool yes = text == "1" || text == "true";
    if (yes || text == "0" || text == "false") {
      value = yes;
      return true;
    }
    return false;
  } else {
    static_assert(std::is_arithmetic_v<T>, "a number, bool or std::string");
    T parsed{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, parsed);
    if (error != std::errc{} || stop != end) return false;
    value = parsed;
    return true;
  }
}

}  // namespace sylar::http
