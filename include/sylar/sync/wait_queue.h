// The fibers and threads that wait for a primitive of sylar/sync, oldest first. Users need the primitives, not this.
//
// A waiting fiber is suspended, a plain thread blocks. The value or lock is handed to the oldest waiter, so nobody overtakes.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/clock.h"
#include "sylar/thread_mutex.h"

namespace sylar {
struct FiberCore;
}

namespace sylar::detail {

/// One wait. It lies on the stack of the fiber or thread that waits, which is not touched any more once it was told.
class SyncWaiter {
 public:
  /// `its_data` is for those who end the wait.
  explicit SyncWaiter(void* its_data = nullptr) : data(its_data) {}
  SyncWaiter(const SyncWaiter&) = delete;
  SyncWaiter& operator=(const SyncWaiter&) = delete;

  void* const data;

 private:
  friend class SyncQueue;
  friend class SyncWakes;

  SyncWaiter* m_next = nullptr;
  SyncWaiter* m_prev = nullptr;
  bool m_linked = false;
  FiberCore* m_core = nullptr;      // of a fiber
  uint64_t m_epoch = 0;             // of a fiber
  std::atomic<uint32_t> m_told{0};  // of a thread, which sleeps on it
};

/// The waiters that somebody has taken out and must tell. Telling comes after the lock.
class SyncWakes {
 public:
  SyncWakes() = default;
  ~SyncWakes() { deliver(); }
  SyncWakes(const SyncWakes&) = delete;
  SyncWakes& operator=(const SyncWakes&) = delete;

  /// Under the lock: `waiter`, which takeOldest() has returned, has everything that it waits for. It must not be touched
  /// afterwards.
  void add(SyncWaiter& waiter);
  /// Tells all that were added. To be called without the lock. The destructor does it as well.
  void deliver();

 private:
  void* m_first = nullptr;  // fibers, linked by their cores
  void* m_last = nullptr;
};

/// Thread safety: all but reserve() under the lock of the primitive that the queue belongs to, which is always the same.
class SyncQueue {
 public:
  SyncQueue() = default;
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  /// Makes room for a timeout, so that no wait can fail half-way. To be called before the lock is taken. Throws std::bad_alloc.
  static void reserve(Deadline deadline);

  /// Appends the calling fiber or thread, releases `lock`, and waits. Returns true if takeOldest() has returned `mine` to
  /// somebody; false if `deadline` passed or the fiber was cancelled before. `lock` is not held afterwards. May suspend: yes.
  bool wait(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

  /// Returns the oldest waiter, whose wait may be over, or null if nobody waits.
  SyncWaiter* oldest() const { return m_first; }
  /// Takes out `waiter`, which is in the queue. Returns false if its wait is over. Otherwise that wait ends in no other way, and
  /// the caller owes it SyncWakes::add().
  [[nodiscard]] bool take(SyncWaiter& waiter);
  /// Takes out the oldest waiter that still waits and returns it, or null if nobody does. The caller owes it SyncWakes::add(). A
  /// fiber that was abandoned does not wait any more, but may be in the queue until somebody looks.
  SyncWaiter* takeOldest();
  /// Takes out all who wait, and has them told.
  void wakeAll(SyncWakes& wakes);
  bool empty() const { return m_first == nullptr; }

 private:
  void append(SyncWaiter& waiter);
  void unlink(SyncWaiter& waiter);
  bool block(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

  SyncWaiter* m_first = nullptr;
  SyncWaiter* m_last = nullptr;
};

}  // namespace sylar::detail
