// Internal. What the memory of a stream of glibc's tells without a call. Source: glibc, libio.h.
#pragma once

#include <cstdio>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::detail {

// Of FILE::_flags.
constexpr int kUnbuffered = 2, kNoReads = 4, kNoWrites = 8, kErrorSeen = 0x20, kInBackup = 0x100, kLineBuffered = 0x200,
              kIsWriting = 0x800;
constexpr int kOfDescriptor = 0x2000;

/// What a stream has read ahead. While it gives what ungetc() has pushed back, the rest is in its saved area.
class Buffered {
 public:
  explicit Buffered(const FILE* file) : m_parts{part(file->_IO_read_ptr, file->_IO_read_end), {}} {
    if ((file->_flags & kInBackup) != 0) m_parts[1] = part(file->_IO_save_base, file->_IO_save_end);
  }
  size_t size() const { return m_parts[0].size() + m_parts[1].size(); }
  bool has(char byte) const {
    return m_parts[0].find(byte) != std::string_view::npos || m_parts[1].find(byte) != std::string_view::npos;
  }

 private:
  static std::string_view part(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }
  std::string_view m_parts[2];
};

}  // namespace sylar::detail
