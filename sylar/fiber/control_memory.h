// Internal. Free memory of fibers' control blocks, for one thread.
//
// They are made and destroyed often, many at a time, and are too large for malloc's fast lists. With 10 000 of them malloc took
// two fifths of the time of a spawn with its join. What a thread keeps is bounded, so fibers may be made on one thread and
// destroyed on another without end. A thread that never runs fibers keeps nothing.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/sanitizers.h"
#include "sylar/check.h"

namespace sylar::detail {

/// Not thread safe. Last in, first out.
class ControlMemory {
 public:
  /// The most free pieces that it keeps. A sanitizer must see each of them begin and end, so it keeps none there.
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  static constexpr size_t kKept = 0;
#else
  static constexpr size_t kKept = 16 * 1024;
#endif

  ControlMemory() = default;
  ~ControlMemory() {
    while (m_free != nullptr) ::operator delete(std::exchange(m_free, m_free->next));
  }
  ControlMemory(const ControlMemory&) = delete;
  ControlMemory& operator=(const ControlMemory&) = delete;

  /// Returns a piece of `size` bytes, which is the same at each call. Throws std::bad_alloc.
  void* take(size_t size) {
    SYLAR_DCHECK(size >= sizeof(Free));
    if (m_free == nullptr) return ::operator new(size);
    --m_count;
    return std::exchange(m_free, m_free->next);
  }
  /// Takes back a piece, which may come from another thread's object or from operator new.
  void put(void* piece) noexcept {
    SYLAR_DCHECK(piece != nullptr && m_count <= kKept);
    if (m_count == kKept) return ::operator delete(piece);
    m_free = ::new (piece) Free{m_free};
    ++m_count;
  }

 private:
  struct Free {
    Free* next;
  };
  Free* m_free = nullptr;
  size_t m_count = 0;
};

}  // namespace sylar::detail
