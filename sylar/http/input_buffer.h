// Internal. The bytes of a connection that were read and not yet used.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/http/block.h"

namespace sylar::http::detail {

/// A queue of bytes in contiguous memory. It grows only when data() fills it, so the code that fills it bounds it. The code that
/// empties it decides when the memory goes back.
///
/// Thread safety: none.
class InputBuffer {
 public:
  /// The size of the usual block, into which short heads fit.
  static constexpr size_t kUsualSize = 512;

  std::string_view data() const { return {m_block.data() + m_begin, m_end - m_begin}; }
  bool empty() const { return m_begin == m_end; }

  /// Returns the room after data(), at least one byte. May move data(), so its views become invalid. May throw std::bad_alloc.
  std::span<char> room() {
    if (m_end == m_block.size()) makeRoom();
    return {m_block.data() + m_end, m_block.size() - m_end};
  }
  /// Adds the first `count` bytes of room() to data().
  void filled(size_t count) {
    SYLAR_DCHECK(count <= m_block.size() - m_end);
    m_end += count;
  }
  /// Removes the first `count` bytes from data(). The bytes stay where they are until the next room() or shrink().
  void consume(size_t count) {
    SYLAR_DCHECK(count <= m_end - m_begin);
    m_begin += count;
    if (m_begin == m_end) m_begin = m_end = 0;
  }
  /// Gives the memory back if data() is empty.
  void shrink() {
    if (empty()) m_block.giveBack();
  }

 private:
  void makeRoom() {
    const size_t size = m_end - m_begin;
    if (m_begin > 0 && m_begin >= m_block.size() / 2) {
      std::memmove(m_block.data(), m_block.data() + m_begin, size);
    } else {
      m_block.grow(m_block.size() + 1, m_begin, m_end);
    }
    m_begin = 0;
    m_end = size;
  }

  Block<kUsualSize> m_block;
  size_t m_begin = 0, m_end = 0;
};

}  // namespace sylar::http::detail
