// Internal. The bytes of a connection that were read and not yet used, in one block that is kept from request to request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/check.h"

namespace sylar::http::detail {

/// A queue of bytes in contiguous memory. It grows only when data() fills the block, so the code that fills it bounds it.
///
/// Thread safety: none.
class InputBuffer {
 public:
  /// The size of the usual block, into which short heads fit. A larger block is freed when the buffer has run empty.
  static constexpr size_t kUsualSize = 512;

  std::string_view data() const { return {m_block.get() + m_begin, m_end - m_begin}; }
  bool empty() const { return m_begin == m_end; }

  /// Returns the room after data(), at least one byte. May move data(), so its views become invalid.
  std::span<char> room() {
    if (m_end == m_capacity) makeRoom();
    return {m_block.get() + m_end, m_capacity - m_end};
  }
  /// Adds the first `count` bytes of room() to data().
  void filled(size_t count) {
    SYLAR_DCHECK(count <= m_capacity - m_end);
    m_end += count;
  }
  /// Removes the first `count` bytes from data(). The bytes stay where they are until the next room().
  void consume(size_t count) {
    SYLAR_DCHECK(count <= m_end - m_begin);
    m_begin += count;
    if (m_begin == m_end) m_begin = m_end = 0;
  }
  /// Frees a block that is empty and larger than usual.
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
      Block block(static_cast<char*>(::operator new[](capacity, std::align_val_t{kUsualSize})));
      if (size > 0) std::memcpy(block.get(), m_block.get() + m_begin, size);
      m_block = std::move(block);
      m_capacity = capacity;
    }
    m_begin = 0;
    m_end = size;
  }

  struct Free {
    void operator()(char* block) const { ::operator delete[](block, std::align_val_t{kUsualSize}); }
  };
  using Block = std::unique_ptr<char[], Free>;
  Block m_block;
  size_t m_capacity = 0, m_begin = 0, m_end = 0;
};

}  // namespace sylar::http::detail
