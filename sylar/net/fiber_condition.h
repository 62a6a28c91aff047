// Internal. A condition variable for fibers and threads that wait for a change of what a lock guards. A fiber is suspended, a
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

#include "sylar/base/os_mutex.h"
#include "sylar/clock.h"
#include "sylar/fiber/wait_word.h"

namespace sylar {

class FiberCondition {
 public:
  FiberCondition() = default;
  FiberCondition(const FiberCondition&) = delete;
  FiberCondition& operator=(const FiberCondition&) = delete;

  /// Releases `mutex`, which must always be the same, waits for a notifyAll() that comes after the call, and locks it again.
  /// Returns kReady if the caller should look again (the wakeup may be spurious), kTimeout if `deadline` has passed or there is
  /// no memory for it, and kCanceled if the fiber was cancelled. May suspend: yes.
  WakeReason wait(OsMutex& mutex, Deadline deadline) SYLAR_REQUIRES(mutex);

  /// Releases `lock`, which must be of that mutex, and then wakes all waiters. May suspend: no.
  void notifyAll(Lock<OsMutex>& lock) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

 private:
  struct Waiting;
  WakeReason park(OsMutex& mutex, Deadline deadline) SYLAR_REQUIRES(mutex);

  // Both are guarded by the mutex.
  Waiting* m_fibers = nullptr;
  uint32_t m_threads = 0;
  std::atomic<uint32_t> m_sequence{0};  // threads sleep on it; it changes only under the mutex
};

}  // namespace sylar
