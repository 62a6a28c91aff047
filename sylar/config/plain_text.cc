#include "sylar/config/plain_text.h"

#include <cstddef>
#include <cstdint>

namespace sylar::detail {
namespace {

/// Returns the size of the UTF-8 character at the start of `text`, which must not be empty, or 0 if there is none. Source: RFC
/// 3629, section 4.
size_t characterSize(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : size;
}

}  // namespace

TextFlaw findTextFlaw(std::string_view text) {
  int line = 1;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '\n') ++line;
    if (0 <= c && c < 0x20 && c != '\n' && c != '\t' && c != '\r') return {line, "a control byte; leave it out"};
    const size_t size = characterSize(text);
    if (size == 0) return {line, "no UTF-8; save the file as UTF-8 text"};
    text.remove_prefix(size);
  }
  return {};
}

}  // namespace sylar::detail
