// Internal. The classes of bytes in HTTP/1.1, tested by one table lookup.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

enum CharClass : uint8_t {
  kTokenChar = 1,   // RFC 9110 5.6.2: methods, field names
  kTargetChar = 2,  // visible ASCII except '#': a request target has neither spaces nor a fragment
  kValueChar = 4,   // RFC 9110 5.5: visible, space, tab, and bytes >= 0x80
  kHexDigit = 8,
  kDigit = 16,
  kHostChar = 32,    // of a host name or an IPv4 address: letters, digits, "-._~"
  kCookieChar = 64,  // RFC 6265 4.1.1: of a cookie's value; visible ASCII except '"' ',' ';' '\\'
};

constexpr uint8_t classify(unsigned c) {
  const bool digit = c >= '0' && c <= '9';
  const bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const auto in = [c](std::string_view set) { return c < 128 && set.find(static_cast<char>(c)) != std::string_view::npos; };
  uint8_t bits = 0;
  if (digit || alpha || in("!#$%&'*+-.^_`|~")) bits |= kTokenChar;
  if (c > 0x20 && c < 0x7f && c != '#') bits |= kTargetChar;
  if (c == '\t' || (c >= 0x20 && c != 0x7f)) bits |= kValueChar;
  if (digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) bits |= kHexDigit;
  if (digit) bits |= kDigit;
  if (digit || alpha || in("-._~")) bits |= kHostChar;
  if (c > 0x20 && c < 0x7f && !in("\",;\\")) bits |= kCookieChar;
  return bits;
}

constexpr std::array<uint8_t, 256> makeCharClasses() {
  std::array<uint8_t, 256> table{};
  for (unsigned c = 0; c < 256; ++c) table[c] = classify(c);
  return table;
}

inline constexpr std::array<uint8_t, 256> kCharClasses = makeCharClasses();

/// Returns true if `c` is in one of the classes `mask`.
constexpr bool isChar(char c, uint8_t mask) { return (kCharClasses[static_cast<uint8_t>(c)] & mask) != 0; }

/// Returns the first position in [at, end) whose byte is not of the class `mask`, or `end` if there is none.
constexpr const char* skipChars(const char* at, const char* end, uint8_t mask) {
  const auto classes = [](char c) { return kCharClasses[static_cast<uint8_t>(c)]; };
  while (end - at >= 4 && (classes(at[0]) & classes(at[1]) & classes(at[2]) & classes(at[3]) & mask) != 0) at += 4;
  while (at != end && isChar(*at, mask)) ++at;
  return at;
}

/// Returns true if `text` is not empty and all its bytes are of the class `mask`.
constexpr bool allChars(std::string_view text, uint8_t mask) {
  const char* const end = text.data() + text.size();
  return !text.empty() && skipChars(text.data(), end, mask) == end;
}

/// Returns the value of a hexadecimal digit.
constexpr unsigned hexValue(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

constexpr char toLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// Returns `text` without the spaces and tabs around it.
constexpr std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace sylar::http::detail
