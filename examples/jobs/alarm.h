// An Alarm wakes one fiber at a time that others may move nearer: the front of a timer queue across replicas.
#pragma once

#include <algorithm>
#include <mutex>

#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/mutex.h"
#include "sylar/sync/condition_variable.h"

namespace jobs {

/// Times are those of `clock`, by which the fiber that waits must run. Thread safety: all calls from any thread.
class Alarm {
 public:
  explicit Alarm(const sylar::Clock& clock) : m_clock(clock) {}

  /// Forgets the time. What is set from now on counts, so clear it before you look at what it is set by.
  void clear() {
    const std::lock_guard guard(m_lock);
    m_at = sylar::kNever;
  }
  /// It rings at `at_ns`, or earlier if it was to ring earlier.
  void set(int64_t at_ns) {
    const std::lock_guard guard(m_lock);
    if (at_ns >= m_at) return;
    m_at = at_ns;
    m_changed.notify_all();
  }
  void ring() { set(0); }

  /// Waits until it rings. Returns false if the fiber was cancelled. May suspend: yes.
  bool wait() {
    std::unique_lock lock(m_lock);
    while (m_at > m_clock.nowNs()) {
      if (!m_changed.wait(lock, sylar::Deadline::at(m_at)) && sylar::this_fiber::cancelled()) return false;
    }
    return true;
  }

 private:
  const sylar::Clock& m_clock;
  sylar::Mutex m_lock;
  sylar::ConditionVariable m_changed;
  int64_t m_at = sylar::kNever;
};

}  // namespace jobs
