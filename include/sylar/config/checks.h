// Ready-made checks for settings. Each one states its rule so that an operator can read it.
//
//   Config::Lookup("server.port", 8080, "TCP port", sylar::inRange(1, 65535));
//
// Thread safety: all functions from any thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <string>
#include <utility>
#include <vector>

namespace sylar {

namespace detail {
/// Returns true if a <= b, also for integers of different sign and size.
template <class A, class B>
bool notAbove(const A& a, const B& b) {
  if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_less_equal(a, b);
  } else {
    return a <= b;
  }
}
}  // namespace detail

/// Returns a check that accepts values from `lowest` to `highest`, both included.
template <class T>
auto inRange(T lowest, T highest) {
  return [lowest, highest](const auto& value) {
    return detail::notAbove(lowest, value) && detail::notAbove(value, highest)
               ? std::string()
               : fmt::format("must be from {} to {}", lowest, highest);
  };
}

/// Returns a check that accepts only `values`.
template <class T>
auto oneOf(std::vector<T> values) {
  return [values = std::move(values)](const T& value) {
    const bool found = std::find(values.begin(), values.end(), value) != values.end();
    return found ? std::string() : fmt::format("must be one of: {}", fmt::join(values, ", "));
  };
}

/// Returns a check that refuses an empty string or container.
inline auto notEmpty() {
  return [](const auto& value) { return value.empty() ? std::string("must not be empty") : std::string(); };
}

}  // namespace sylar
