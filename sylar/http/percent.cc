#include "sylar/http/percent.h"

#include "sylar/http/char_class.h"

namespace sylar::http {
namespace {

// Returns the byte of the escape at text[at] == '%', or -1.
int escapeAt(std::string_view text, size_t at) {
  if (text.size() - at < 3 || !isChar(text[at + 1], kHexDigit) || !isChar(text[at + 2], kHexDigit)) return -1;
  return static_cast<int>(hexValue(text[at + 1]) << 4 | hexValue(text[at + 2]));
}

}  // namespace

std::optional<std::string> percentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int byte = escapeAt(text, i);
    if (byte < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(byte));
    i += 2;
  }
  return decoded;
}

std::string formDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = text[i] == '%' ? escapeAt(text, i) : -1;
    if (byte >= 0) i += 2;
    decoded.push_back(byte >= 0 ? static_cast<char>(byte) : text[i] == '+' ? ' ' : text[i]);
  }
  return decoded;
}

std::string percentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (char c : text) {
    if (isChar(c, kHostChar)) {
      encoded.push_back(c);
    } else {
      const auto byte = static_cast<uint8_t>(c);
      encoded.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return encoded;
}

}  // namespace sylar::http
