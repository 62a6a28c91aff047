// For tests: a thread or a fiber that must be seen to get somewhere, or that is kept where it is.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <thread>

#include "sylar/base/sys.h"
#include "sylar/clock.h"

namespace sylar::test {

/// Far above anything that a working library needs on a loaded machine: who waits longer waits forever.
inline constexpr std::chrono::seconds kPatience{200};

/// Counts up; blocks the *thread* that waits, also if a fiber does, which the locks of libc would suspend. Wherever a test waits,
/// the order is forced and not hoped for.
class Gate {
 public:
  void open() {
    m_count.fetch_add(1, std::memory_order_release);
    sys::futexWake(m_count, INT_MAX);
  }

  /// Blocks until open() was called `times` times in all. False: not within kPatience.
  [[nodiscard]] bool wait(uint32_t times = 1) {
    const Deadline end = Deadline::after(kPatience);
    for (uint32_t seen = count(); seen < times; seen = count()) {
      if (sys::futexWait(m_count, seen, end.ns()) == -ETIMEDOUT) return false;
    }
    return true;
  }

  uint32_t count() const { return m_count.load(std::memory_order_acquire); }

 private:
  std::atomic<uint32_t> m_count{0};
};

/// Looks again and again until `holds`. False: not within kPatience.
template <class Condition>
[[nodiscard]] bool eventually(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace sylar::test
