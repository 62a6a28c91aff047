// These functions append the replies of RESP2 to the bytes that a connection is about to send.
//
// Source: https://redis.io/docs/reference/protocol-spec
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ttlkv::reply {

inline constexpr std::string_view kWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";

/// Appends a line that consists of a type and a number.
inline void line(std::string& out, char type, int64_t number) {
  char text[24];
  text[0] = type;
  char* const end = std::to_chars(text + 1, text + sizeof text - 2, number).ptr;
  end[0] = '\r';
  end[1] = '\n';
  out.append(text, static_cast<size_t>(end - text) + 2);
}

inline void ok(std::string& out) { out += "+OK\r\n"; }
inline void null(std::string& out) { out += "$-1\r\n"; }
inline void integer(std::string& out, int64_t number) { line(out, ':', number); }
/// Begins an array; its `size` elements must follow.
inline void array(std::string& out, size_t size) { line(out, '*', static_cast<int64_t>(size)); }

inline void simple(std::string& out, std::string_view text) {
  out += '+';
  out += text;
  out += "\r\n";
}

inline void bulk(std::string& out, std::string_view bytes) {
  line(out, '$', static_cast<int64_t>(bytes.size()));
  out += bytes;
  out += "\r\n";
}

/// Returns what Redis prints of an argument in an error: at most so many bytes, and none behind a NUL.
inline std::string printed(std::string_view argument, size_t most = std::string_view::npos) {
  return std::string(argument.substr(0, std::min(most, argument.find('\0'))));
}

/// Appends an error whose `text` begins with its code, such as "ERR". A client may have put line ends into it, which would end
/// the reply. So they become spaces, or nothing at the end.
inline void error(std::string& out, std::string_view text) {
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  out += '-';
  for (const char c : text) out += c == '\r' || c == '\n' ? ' ' : c;
  out += "\r\n";
}

}  // namespace ttlkv::reply
