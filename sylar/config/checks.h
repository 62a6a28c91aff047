// Ready checks for settings: what is right, as a rule that an operator can read.
//
//   Config::Lookup("server.port", 8080, "TCP port", sylar::inRange(1, 65535));
//
// Thread safety: all.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <string>
#include <utility>
#include <vector>

namespace sylar {

namespace detail {
/// a <= b, whatever their signs and sizes.
template <class A, class B>
bool notAbove(const A& a, const B& b) {
  if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_less_equal(a, b);
  } else {
    return a <= b;
  }
}
}  // namespace detail

/// Right from `lowest` to `highest`, both included.
template <class T>
auto inRange(T lowest, T highest) {
  return [lowest, highest](const auto& value) {
    return detail::notAbove(lowest, value) && detail::notAbove(value, highest)
               ? std::string()
               : fmt::format("must be from {} to {}", lowest, highest);
  };
}

/// Right if it is one of `values`.
template <class T>
auto oneOf(std::vector<T> values) {
  return [values = std::move(values)](const T& value) {
    const bool found = std::find(values.begin(), values.end(), value) != values.end();
    return found ? std::string() : fmt::format("must be one of: {}", fmt::join(values, ", "));
  };
}

/// Right if it has something in it: strings and containers.
inline auto notEmpty() {
  return [](const auto& value) { return value.empty() ? std::string("must not be empty") : std::string(); };
}

}  // namespace sylar
