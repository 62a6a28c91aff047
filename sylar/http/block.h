// Internal. The memory of a buffer: the usual block is lent by the thread, and a larger one is the buffer's own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/http/slot_pool.h"

namespace sylar::http::detail {

/// At first no memory, then a block of `kUsual` bytes, which is a power of two, and then larger ones.
///
/// Thread safety: none. May suspend: no.
template <size_t kUsual>
class Block {
 public:
  Block() = default;
  ~Block() { giveBack(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  char* data() { return m_data; }
  const char* data() const { return m_data; }
  size_t size() const { return m_size; }

  /// Makes the block at least `wanted` > size() bytes large. The bytes [from, to) of the old one are the first of the new one. May
  /// throw std::bad_alloc, and then changes nothing.
  void grow(size_t wanted, size_t from, size_t to) {
    SYLAR_DCHECK(wanted > m_size && from <= to && to <= m_size);
    const size_t size = std::max(wanted <= kUsual ? kUsual : 2 * kUsual, std::max(2 * m_size, wanted));
    char* const data = size == kUsual ? SlotPool<Usual>::take()->bytes : static_cast<char*>(::operator new(size));
    if (from < to) std::memcpy(data, m_data + from, to - from);
    giveBack();
    m_data = data;
    m_size = size;
  }
  /// Leaves no memory.
  void giveBack() {
    if (m_size == kUsual) {
      SlotPool<Usual>::give(reinterpret_cast<Usual*>(m_data));
    } else if (m_size > 0) {
      ::operator delete(m_data);
    }
    m_data = nullptr;
    m_size = 0;
  }

 private:
  struct alignas(kUsual) Usual {  // within a page, as HookedFd::attemptOnce() likes it
    char bytes[kUsual];
  };

  char* m_data = nullptr;
  size_t m_size = 0;
};

}  // namespace sylar::http::detail
