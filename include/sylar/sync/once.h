// Runs a function once, even if many ask for it.
//
//   sylar::Once loaded;
//   loaded.call([&] { load(); });            // others that come meanwhile wait until it has returned
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "sylar/mutex.h"

namespace sylar {

/// Runs a function once. std::call_once does the same, but suspends a fiber that has to wait only where the hooks are linked.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: Go, sync.Once; std::call_once.
class Once {
 public:
  /// Calls `function` if no call has succeeded yet, or waits for the call that is under way. An exception of `function` reaches
  /// the caller, and the next in line tries. To call it from within `function` is a programmer error. May suspend: yes. A plain
  /// thread blocks.
  template <class Function>
  void call(Function&& function) {
    if (m_done.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(m_mutex);
    callLocked(std::forward<Function>(function));
  }
  /// The same, but returns false if `deadline` passed, or the fiber was cancelled, while another call was under way. Throws
  /// std::bad_alloc if there is no memory for a deadline.
  template <class Function>
  [[nodiscard]] bool call(Function&& function, Deadline deadline) {
    if (m_done.load(std::memory_order_acquire)) return true;
    if (!m_mutex.lock(deadline)) return false;
    const std::lock_guard lock(m_mutex, std::adopt_lock);
    callLocked(std::forward<Function>(function));
    return true;
  }

 private:
  template <class Function>
  void callLocked(Function&& function) {
    if (m_done.load(std::memory_order_relaxed)) return;
    std::forward<Function>(function)();
    m_done.store(true, std::memory_order_release);
  }

  std::atomic<bool> m_done{false};
  Mutex m_mutex;
};

}  // namespace sylar
