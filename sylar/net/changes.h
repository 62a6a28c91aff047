// Internal. A condition variable for fibers and threads: who waits for a change of what a lock guards. A fiber is suspended, a
// thread blocks.
//
//   Lock lock(m_mutex);
//   while (!what_is_wanted) {
//     if (m_changes.wait(m_mutex, deadline) != WakeReason::kReady) return false;
//   }
//
//   Lock lock(m_mutex);
//   ... change it ...
//   m_changes.notifyAll(lock);
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/fiber/wait_word.h"

namespace sylar {

class Changes {
 public:
  Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  /// Waits for a notifyAll() that comes after the call, with `mutex`, always the same, released meanwhile. kReady: look again, it
  /// may be without a cause; kTimeout: `deadline`, or no memory for it; kCanceled: the fiber was. May suspend: yes.
  WakeReason wait(OsMutex& mutex, Deadline deadline) SYLAR_REQUIRES(mutex);

  /// Wakes all who wait, after it has released `lock`, which is of that mutex. Suspends: no.
  void notifyAll(Lock<OsMutex>& lock) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

 private:
  struct Waiting;
  WakeReason park(OsMutex& mutex, Deadline deadline) SYLAR_REQUIRES(mutex);

  // Both under the mutex.
  Waiting* m_fibers = nullptr;
  uint32_t m_threads = 0;
  std::atomic<uint32_t> m_turn{0};  // threads sleep on it; changes under the mutex
};

}  // namespace sylar
