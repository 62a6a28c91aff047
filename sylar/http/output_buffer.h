// Internal. The bytes of a response that are not sent yet.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/block.h"

namespace sylar::http::detail {

/// Text in contiguous memory, which is there while there is text.
///
/// Thread safety: none.
class OutputBuffer {
 public:
  char* data() { return m_block.data(); }
  size_t size() const { return m_size; }

  /// Appends all of `texts`, none of which is a part of this buffer.
  template <class... Texts>
  void append(const Texts&... texts) {
    const size_t size = m_size + (std::string_view(texts).size() + ...);
    if (size > m_block.size()) m_block.grow(size, 0, m_size);
    char* at = m_block.data() + m_size;
    ((at = put(at, texts)), ...);
    m_size = size;
  }

  /// Removes the text, and gives the memory back.
  void clear() {
    m_block.giveBack();
    m_size = 0;
  }

 private:
  static char* put(char* at, std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return at + text.size();
  }

  Block<2048> m_block;  // a head and a small body
  size_t m_size = 0;
};

}  // namespace sylar::http::detail
