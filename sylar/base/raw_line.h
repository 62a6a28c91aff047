// Internal. A line of text for reports from crashes and signal handlers. It is built without allocation or locks and written in
// one call.
//
// Thread safety: a line belongs to one thread; it may be used in a signal handler.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"

namespace sylar::detail {

/// Holds up to 512 bytes and drops the rest.
class RawLine {
 public:
  RawLine& text(std::string_view text) {
    const size_t size = std::min(text.size(), sizeof m_text - m_size);
    std::memcpy(m_text + m_size, text.data(), size);
    m_size += size;
    return *this;
  }
  RawLine& number(uint64_t value, int base = 10) {
    const auto end = std::to_chars(m_text + m_size, m_text + sizeof m_text, value, base);
    if (end.ec == std::errc{}) m_size = static_cast<size_t>(end.ptr - m_text);
    return *this;
  }
  RawLine& address(const void* value) { return text("0x").number(reinterpret_cast<uintptr_t>(value), 16); }

  void writeTo(int fd) const { sys::writeAll(fd, m_text, m_size); }

 private:
  char m_text[512];
  size_t m_size = 0;
};

}  // namespace sylar::detail
