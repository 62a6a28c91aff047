// Internal. An array that grows under somebody's lock, so growing takes about as long however large the array is. A large one is
// a mapping of its own, which the kernel makes longer, at another address if need be, without touching its content. The array
// begins with a cache line.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// An array of at least this size is a mapping.
  static constexpr size_t kMappedBytes = 64 * 1024;

  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;
  ~GrowingArray() { release(); }

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
  static constexpr size_t kFirst = std::max<size_t>(1, 128 / sizeof(T));
  static constexpr std::align_val_t kCacheLine{64};

  static bool isMapped(size_t bytes) { return bytes >= kMappedBytes; }

  [[gnu::noinline]] void grow() {
    SYLAR_DCHECK(m_size == m_capacity);
    const size_t old_bytes = m_capacity * sizeof(T);
    const size_t capacity = m_capacity == 0 ? kFirst : 2 * m_capacity;
    const size_t bytes = capacity * sizeof(T);
    if (isMapped(old_bytes)) {
      m_items = static_cast<T*>(growMapped(old_bytes, bytes));
    } else {
      T* const items = static_cast<T*>(isMapped(bytes) ? map(bytes) : ::operator new(bytes, kCacheLine));
      std::copy_n(m_items, m_size, items);
      release();
      m_items = items;
    }
    m_capacity = capacity;
  }

  static void* map(size_t bytes) {
    int error = 0;
    void* const memory = sys::mapMemory(bytes, &error);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void* growMapped(size_t old_bytes, size_t bytes) {
    void* const memory = sys::growMemory(m_items, old_bytes, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void release() {
    const size_t bytes = m_capacity * sizeof(T);
    if (isMapped(bytes)) {
      sys::unmapMemory(m_items, bytes);
    } else {
      ::operator delete(m_items, kCacheLine);
    }
  }

  T* m_items = nullptr;
  size_t m_size = 0;
  size_t m_capacity = 0;
};

}  // namespace sylar::detail
