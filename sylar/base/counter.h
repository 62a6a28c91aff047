// Internal. A counter that one thread at a time increments and any thread reads, at the cost of a plain integer.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

class Counter {
 public:
  /// Must be called by one thread at a time.
  void add(uint64_t count = 1) { m_value.store(get() + count, std::memory_order_relaxed); }
  uint64_t get() const { return m_value.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> m_value{0};
};

}  // namespace sylar::detail
