// Internal. The bytes of a response that are not sent yet, in one block that is kept from response to response.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// Text in contiguous memory.
///
/// Thread safety: none.
class OutputBuffer {
 public:
  char* data() { return m_block.get(); }
  size_t size() const { return m_size; }
  void clear() { m_size = 0; }

  /// Appends all of `texts`, none of which is a part of this buffer.
  template <class... Texts>
  void append(const Texts&... texts) {
    const size_t size = (std::string_view(texts).size() + ...);
    if (m_capacity - m_size < size) grow(size);
    (put(texts), ...);
  }

  /// Frees a block of more than `kept` bytes, with its contents.
  void shrink(size_t kept) {
    if (m_capacity <= kept) return;
    m_block.reset();
    m_capacity = m_size = 0;
  }

 private:
  void put(std::string_view text) {
    if (!text.empty()) std::memcpy(m_block.get() + m_size, text.data(), text.size());
    m_size += text.size();
  }
  void grow(size_t wanted) {
    const size_t capacity = std::max({size_t{256}, 2 * m_capacity, m_size + wanted});
    std::unique_ptr<char[]> block(new char[capacity]);
    if (m_size > 0) std::memcpy(block.get(), m_block.get(), m_size);
    m_block = std::move(block);
    m_capacity = capacity;
  }

  std::unique_ptr<char[]> m_block;
  size_t m_capacity = 0, m_size = 0;
};

}  // namespace sylar::http::detail
