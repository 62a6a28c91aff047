// sylar's shared array: a std::shared_ptr<T[]> that knows its size.
//
// Thread safety: that of std::shared_ptr, so different handles of one array may be used at the same time. May suspend: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sylar {

template <class T>
class SharedArray {
 public:
  /// Takes ownership of `array[size]`, which was made by new[].
  explicit SharedArray(uint64_t size = 0, T* array = nullptr) : m_size(size), m_array(array) {}
  /// Takes ownership of `array[size]`, which `deleter(array)` ends.
  template <class Deleter>
  SharedArray(uint64_t size, T* array, Deleter deleter) : m_size(size), m_array(array, std::move(deleter)) {}

  /// Returns the element at `index`, which must be less than size().
  T& operator[](std::ptrdiff_t index) const { return m_array[index]; }
  T* get() const { return m_array.get(); }
  uint64_t size() const { return m_size; }

  explicit operator bool() const { return m_array != nullptr; }
  bool unique() const { return m_array.use_count() == 1; }
  long use_count() const { return m_array.use_count(); }
  void swap(SharedArray& other) noexcept {
    std::swap(m_size, other.m_size);
    m_array.swap(other.m_array);
  }

 private:
  uint64_t m_size;
  std::shared_ptr<T[]> m_array;
};

}  // namespace sylar
