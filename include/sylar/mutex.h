// Locks and semaphores for fibers and threads. A fiber that waits for one is suspended, a plain thread blocks.
//
//   sylar::Mutex mutex;
//   {
//     const sylar::Mutex::Lock lock(mutex);       // or std::lock_guard, std::unique_lock, std::scoped_lock
//     send(fd, ...);                              // a lock may be held over calls that suspend
//   }
//
// Locks are handed over in the order of arrival, so nobody waits forever. To lock twice what is not recursive, or to unlock what
// another holds, is a programmer error: the process ends with a message that names both.
//
// The locks of sylar/thread_mutex.h block the thread in any case. They are cheaper, for sections of a few instructions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/sync/wait_queue.h"
#include "sylar/thread_mutex.h"

namespace sylar {

/// Lets one fiber or thread in at a time. Meets the standard's requirements of a Lockable. A fiber that ends while it holds one, or
/// is abandoned before its scheduler stops, is a programmer error, which ends the process with a message that names both.
///
/// lock() without a deadline is no point of cancellation: a cancelled fiber waits like any other, and after the deadline of
/// Scheduler::stop(deadline) it is abandoned.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: sylar, std::mutex.
class Mutex {
 public:
  using Lock = ScopedLockImpl<Mutex>;

  Mutex() = default;
  /// Nobody may wait, nor use it any more.
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Locks the mutex, and waits while others hold it. May suspend: yes. A plain thread blocks.
  void lock();
  /// Locks the mutex if it is free, and returns true if it did. May suspend: no.
  [[nodiscard]] bool try_lock();
  /// Locks the mutex, and waits while others hold it. Returns false if `deadline` has passed, or if the fiber was cancelled.
  /// Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes. A plain thread blocks.
  [[nodiscard]] bool lock(Deadline deadline);
  /// Unlocks the mutex, or hands it to the oldest waiter. Only for its holder. May suspend: no.
  void unlock();

 private:
  bool lockSlowly(Deadline deadline);

  detail::SyncQueue m_waiters{detail::SyncKind::kMutex};  // first: reports tell its address as that of the mutex
  // The detail::Holder, or 0 if it is free. The lowest bit says that somebody may be in the queue, so that unlock() has to look.
  std::atomic<uintptr_t> m_word{0};
  ThreadMutex m_lock;  // guards the queue, and the word while the queue is not empty
};

/// Lets many readers in at a time, or one writer. Readers and writers form one queue, so neither keeps the other out forever: a
/// reader waits behind a writer that came before it. That also means that a reader must not read-lock again, because a writer
/// may stand between. Meets the standard's requirements of a SharedLockable.
///
/// A reader that locks for writing would wait for itself. That, to unlock what others hold, and to end while holding it, are
/// programmer errors, as with a Mutex. Readers are known if they are fibers, and of a fiber that holds more than three locks some
/// are only counted.
///
/// Calls without a deadline are no points of cancellation; see Mutex.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: sylar, std::shared_mutex.
class RWMutex {
 public:
  using ReadLock = ReadScopedLockImpl<RWMutex>;
  using WriteLock = WriteScopedLockImpl<RWMutex>;

  RWMutex() = default;
  /// Nobody may wait, nor use it any more.
  ~RWMutex();
  RWMutex(const RWMutex&) = delete;
  RWMutex& operator=(const RWMutex&) = delete;

  /// Locks for reading. May suspend: yes. A plain thread blocks.
  void rdlock();
  /// Locks for writing. May suspend: yes. A plain thread blocks.
  void wrlock();
  /// Locks for reading. Returns false if `deadline` has passed, or if the fiber was cancelled. Throws std::bad_alloc if there is
  /// no memory for a deadline. May suspend: yes. A plain thread blocks.
  [[nodiscard]] bool rdlock(Deadline deadline) { return wait(false, deadline); }
  /// Locks for writing. Otherwise as rdlock(deadline).
  [[nodiscard]] bool wrlock(Deadline deadline) { return wait(true, deadline); }
  /// Releases what the caller holds, for reading or writing. May suspend: no.
  void unlock();

  // The standard's names.
  void lock() { wrlock(); }
  [[nodiscard]] bool try_lock();
  void lock_shared() { rdlock(); }
  [[nodiscard]] bool try_lock_shared();
  void unlock_shared() { unlock(); }

 private:
  struct Request;
  uintptr_t noteOf(bool writes) const;
  bool admit(const Request& request);
  void admitWaiters(detail::SyncWakes& wakes);
  bool wait(bool writes, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

  detail::SyncQueue m_waiters{detail::SyncKind::kRWMutex};  // first: reports tell its address as that of the mutex
  ThreadMutex m_lock;
  size_t m_readers = 0;
  uintptr_t m_writer = 0;  // a detail::Holder
};

/// Lets so many in at a time, or counts what was made for those who take it.
///
///   sylar::Semaphore slots(10);
///   if (!slots.wait()) return;          // this fiber was cancelled
///   fetch(url);
///   slots.notify();
///
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
  detail::SyncQueue m_waiters{detail::SyncKind::kSemaphore};  // empty unless m_count is 0
};

using FiberSemaphore = Semaphore;

}  // namespace sylar
