// For tests: a thread or a fiber that must be seen to get somewhere, or that is kept where it is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace sylar::test {

/// Far above anything that a working library needs on a loaded machine: who waits longer waits for ever.
inline constexpr std::chrono::seconds kPatience{200};

/// Counts up; blocks the *thread* that waits. Wherever a test waits, the order is forced and not hoped for.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(m_mutex);
    ++m_count;
    m_changed.notify_all();
  }

  /// Blocks until open() was called `times` times in all. False: not within kPatience.
  [[nodiscard]] bool wait(size_t times = 1) {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, kPatience, [&] { return m_count >= times; });
  }

  size_t count() {
    const std::lock_guard lock(m_mutex);
    return m_count;
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
  size_t m_count = 0;
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
