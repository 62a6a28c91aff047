// Internal. The bytes of a response that are not sent yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/slot_pool.h"

namespace sylar::http::detail {

/// Text in contiguous memory: at first in a block of the thread, and if it grows beyond that in one of its own.
///
/// Thread safety: none.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  ~OutputBuffer() { clear(); }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  char* data() { return m_block; }
  size_t size() const { return m_size; }

  /// Appends all of `texts`, none of which is a part of this buffer.
  template <class... Texts>
  void append(const Texts&... texts) {
    const size_t size = (std::string_view(texts).size() + ...);
    if (m_capacity - m_size < size) grow(size);
    char* at = m_block + m_size;
    ((at = put(at, texts)), ...);
    m_size += size;
  }

  /// Removes the text, and gives the memory back.
  void clear() {
    if (m_capacity == 0) return;
    giveBack(m_block, m_capacity);
    m_block = nullptr;
    m_capacity = m_size = 0;
  }

 private:
  struct Block {
    char bytes[2048];  // a head and a small body
  };

  static void giveBack(char* block, size_t capacity) {
    capacity == sizeof(Block) ? SlotPool<Block>::give(reinterpret_cast<Block*>(block)) : delete[] block;
  }
  static char* put(char* at, std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return at + text.size();
  }
  void grow(size_t wanted) {
    if (m_capacity == 0 && wanted <= sizeof(Block)) {
      m_block = SlotPool<Block>::take()->bytes;
      m_capacity = sizeof(Block);
      return;
    }
    const size_t capacity = std::max(2 * sizeof(Block), std::max(2 * m_capacity, m_size + wanted));
    char* const block = new char[capacity];
    if (m_size > 0) std::memcpy(block, m_block, m_size);
    if (m_capacity > 0) giveBack(m_block, m_capacity);
    m_block = block;
    m_capacity = capacity;
  }

  char* m_block = nullptr;
  size_t m_capacity = 0, m_size = 0;
};

}  // namespace sylar::http::detail
