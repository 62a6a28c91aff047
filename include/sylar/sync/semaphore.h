// A semaphore for fibers and threads: lets so many in at the same time, or counts what was made for those who take it.
//
//   sylar::Semaphore slots(10);
//   if (!slots.wait()) return;          // this fiber was cancelled
//   fetch(url);
//   slots.notify();
//
// Waiters are served in the order of arrival.
#pragma once

#include <cstddef>

#include "sylar/sync/wait_queue.h"

namespace sylar {

/// Thread safety: all calls from any thread, in fibers and outside. Source: sylar.
class Semaphore {
 public:
  /// `count` is how many may pass before the first notify().
  explicit Semaphore(size_t count = 0) : m_count(count) {}
  /// Nobody may wait.
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Passes if nobody must be waited for, and returns true if it did. May suspend: no.
  [[nodiscard]] bool tryWait();
  /// Waits until it may pass. Returns false if `deadline` has passed, or if the fiber was cancelled; then nothing was taken.
  /// Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes. A plain thread blocks.
  bool wait(Deadline deadline = Deadline::never());
  /// Lets `count` more pass. May suspend: no.
  void notify(size_t count = 1);
  /// Returns how many may pass now without waiting. A hint.
  size_t getConcurrency() const;

 private:
  mutable ThreadMutex m_lock;
  size_t m_count;
  detail::SyncQueue m_waiters;  // empty unless m_count is 0
};

using FiberSemaphore = Semaphore;

}  // namespace sylar
