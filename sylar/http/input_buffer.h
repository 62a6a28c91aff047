// Internal. The bytes of a connection that are read and not yet used: one block, kept from request to request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "sylar/base/check.h"

namespace sylar::http {

/// A queue of bytes in contiguous memory. Whoever fills it bounds it: it grows only when data() fills the block.
///
/// Thread safety: none.
class InputBuffer {
 public:
  /// What short heads fit in; a larger block is given back when the buffer has run empty.
  static constexpr size_t kUsualSize = 512;

  std::string_view data() const { return {m_block.get() + m_begin, m_end - m_begin}; }
  bool empty() const { return m_begin == m_end; }

  /// Room behind data(), at least one byte. Moves data(): its views end.
  std::span<char> room() {
    if (m_end == m_capacity) makeRoom();
    return {m_block.get() + m_end, m_capacity - m_end};
  }
  /// `count` bytes of room() are filled.
  void filled(size_t count) {
    SYLAR_DCHECK(count <= m_capacity - m_end);
    m_end += count;
  }
  /// The first `count` bytes are used. data() stays where it is until the next room().
  void consume(size_t count) {
    SYLAR_DCHECK(count <= m_end - m_begin);
    m_begin += count;
    if (m_begin == m_end) m_begin = m_end = 0;
  }
  /// Gives back a block that is empty and larger than usual.
  void shrink() {
    if (!empty() || m_capacity <= kUsualSize) return;
    m_block.reset();
    m_capacity = 0;
  }

 private:
  void makeRoom() {
    const size_t size = m_end - m_begin;
    if (m_begin > 0 && m_begin >= m_capacity / 2) {
      std::memmove(m_block.get(), m_block.get() + m_begin, size);
    } else {
      const size_t capacity = std::max(kUsualSize, 2 * m_capacity);
      std::unique_ptr<char[]> block(new char[capacity]);
      if (size > 0) std::memcpy(block.get(), m_block.get() + m_begin, size);
      m_block = std::move(block);
      m_capacity = capacity;
    }
    m_begin = 0;
    m_end = size;
  }

  std::unique_ptr<char[]> m_block;
  size_t m_capacity = 0, m_begin = 0, m_end = 0;
};

}  // namespace sylar::http
