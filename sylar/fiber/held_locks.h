// Internal. The locks that a fiber holds, for reports and against mistakes. A lock is its address, and one that is held for reading
// has the lowest bit set.
//
// Thread safety: the fiber's own thread changes it, any thread may read it, and then sees what is about right.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"

namespace sylar::detail {

class HeldLocks {
 public:
  /// So many locks are known by their addresses. Of a fiber that holds more, the others are counted only.
  static constexpr uint32_t kNamed = 3;
  static constexpr uintptr_t kToRead = 1;

  HeldLocks() = default;
  HeldLocks(const HeldLocks& other) : m_count(other.count()) {
    for (uint32_t i = 0; i < named(); ++i) m_named[i].store(other.at(i), std::memory_order_relaxed);
  }
  HeldLocks& operator=(const HeldLocks&) = delete;

  void add(uintptr_t lock) {
    SYLAR_DCHECK(lock != 0);
    const uint32_t count = m_count.load(std::memory_order_relaxed);
    if (count < kNamed) m_named[count].store(lock, std::memory_order_relaxed);
    m_count.store(count + 1, std::memory_order_relaxed);
  }

  void remove(uintptr_t lock) {
    SYLAR_DCHECK(count() > 0);
    const uint32_t last = m_count.load(std::memory_order_relaxed) - 1;
    if (last < kNamed && at(last) == lock) [[likely]]
      return m_count.store(last, std::memory_order_relaxed);
    removeFromTheMiddle(lock, last);
  }

  uint32_t count() const { return m_count.load(std::memory_order_relaxed); }
  /// Returns how many of them have an address. That is 0 if it is not known any more.
  uint32_t named() const { return count() < kNamed ? count() : kNamed; }
  uintptr_t at(uint32_t i) const {
    SYLAR_DCHECK(i < kNamed);
    return m_named[i].load(std::memory_order_relaxed);
  }
  /// Returns true if `lock` is known to be held.
  bool has(uintptr_t lock) const {
    uint32_t i = 0;
    while (i < named() && at(i) != lock) ++i;
    return i < named();
  }
  /// Returns true if `lock` may be held: it is known, or some are only counted.
  bool mayHave(uintptr_t lock) const { return has(lock) || has(0) || count() > kNamed; }

 private:
  [[gnu::noinline]] void removeFromTheMiddle(uintptr_t lock, uint32_t last) {
    uint32_t i = 0;
    while (i < named() && at(i) != lock) ++i;
    for (; i < named(); ++i) m_named[i].store(i + 1 < named() ? at(i + 1) : 0, std::memory_order_relaxed);
    m_count.store(last, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> m_count{0};
  std::atomic<uintptr_t> m_named[kNamed];  // those below the count are set
};

}  // namespace sylar::detail
