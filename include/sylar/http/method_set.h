// A set of HTTP methods, in one word.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "sylar/api.h"
#include "sylar/http/http_names.h"

namespace sylar::http {

/// A set of HTTP methods. A set that contains GET also contains HEAD, which is GET without the body. Source: RFC 9110 section
/// 9.3.2.
///
/// Thread safety: that of an integer.
class SYLAR_API MethodSet {
 public:
  constexpr MethodSet(std::initializer_list<HttpMethod> methods) {
    for (const HttpMethod method : methods) add(method);
  }
  static constexpr MethodSet all() {
    MethodSet methods{};
    methods.m_bits = ~uint64_t{0};
    return methods;
  }
  /// Returns GET, HEAD, POST, PUT, PATCH and DELETE, whose meaning the resource decides.
  static constexpr MethodSet ordinary() {
    return {HttpMethod::GET, HttpMethod::POST, HttpMethod::PUT, HttpMethod::PATCH, HttpMethod::DELETE};
  }

  constexpr void add(HttpMethod method) {
    m_bits |= bit(method);
    if (method == HttpMethod::GET) m_bits |= bit(HttpMethod::HEAD);
  }
  constexpr void add(MethodSet methods) { m_bits |= methods.m_bits; }
  constexpr bool has(HttpMethod method) const { return (m_bits & bit(method)) != 0; }
  /// Returns the value of an Allow header, such as "GET, HEAD". Source: RFC 9110 section 10.2.1.
  std::string toString() const;

  friend constexpr bool operator==(MethodSet a, MethodSet b) { return a.m_bits == b.m_bits; }

 private:
  static_assert(static_cast<unsigned>(HttpMethod::INVALID_METHOD) < 64);
  static constexpr uint64_t bit(HttpMethod method) { return uint64_t{1} << static_cast<unsigned>(method); }

  uint64_t m_bits = 0;
};

}  // namespace sylar::http
