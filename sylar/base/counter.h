// Internal. A number that one thread raises and all may read: it costs what a plain one does.
#pragma once

#include <atomic>
#include <cstdint>

namespace sylar {

class Counter {
 public:
  /// One thread at a time.
  void add(uint64_t count = 1) { m_value.store(get() + count, std::memory_order_relaxed); }
  uint64_t get() const { return m_value.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> m_value{0};
};

}  // namespace sylar
