// Internal. An array that grows under somebody's lock, so growing takes about as long however large the array is: it is a mapping
// of its own, which the kernel makes longer, at another address if need be, without touching its content.
//
// It asks no allocator: fibers wait with a deadline for the locks of allocators, too, and make room for that in such an array.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && 4096 % sizeof(T) == 0);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;
  ~GrowingArray() {
    if (m_capacity > 0) sys::unmapMemory(m_items, bytes());
  }

  /// May throw std::bad_alloc, and then nothing has changed.
  void push_back(const T& item) {
    if (m_size == m_capacity) [[unlikely]]
      grow();
    m_items[m_size++] = item;
  }
  void pop_back() {
    SYLAR_DCHECK(m_size > 0);
    --m_size;
  }

  T& operator[](size_t i) {
    SYLAR_DCHECK(i < m_size);
    return m_items[i];
  }
  const T& operator[](size_t i) const {
    SYLAR_DCHECK(i < m_size);
    return m_items[i];
  }
  T& back() {
    SYLAR_DCHECK(m_size > 0);
    return m_items[m_size - 1];
  }
  T* begin() { return m_items; }
  T* end() { return m_items + m_size; }
  size_t size() const { return m_size; }
  size_t capacity() const { return m_capacity; }

 private:
  static constexpr size_t kFirstBytes = 4096;

  size_t bytes() const { return m_capacity * sizeof(T); }

  [[gnu::noinline]] void grow() {
    SYLAR_DCHECK(m_size == m_capacity);
    const size_t wanted = m_capacity == 0 ? kFirstBytes : 2 * bytes();
    int error = 0;
    void* const memory = m_capacity == 0 ? sys::mapMemory(wanted, &error) : sys::growMemory(m_items, bytes(), wanted);
    if (memory == nullptr) throw std::bad_alloc();
    m_items = static_cast<T*>(memory);
    m_capacity = wanted / sizeof(T);
  }

  T* m_items = nullptr;
  size_t m_size = 0;
  size_t m_capacity = 0;
};

}  // namespace sylar::detail
