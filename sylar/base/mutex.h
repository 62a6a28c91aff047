// sylar's locks, which block the thread: for short sections. In a fiber they block its worker, so none may be held over a call
// that suspends.
//
// Each has its nested guards: Mutex::Lock, RWMutex::ReadLock, RWMutex::WriteLock, and so on. Guards lock in their constructor;
// their lock() and unlock() do nothing when it is so already.
//
// Thread safety: locks all; a guard belongs to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {

/// A guard; `Take` says how it locks.
template <class M, class Take>
class ScopedGuard {
 public:
  explicit ScopedGuard(M& mutex) : m_mutex(mutex) { lock(); }
  ~ScopedGuard() { unlock(); }
  ScopedGuard(const ScopedGuard&) = delete;
  ScopedGuard& operator=(const ScopedGuard&) = delete;

  void lock() {
    if (m_locked) return;
    Take::take(m_mutex);
    m_locked = true;
  }
  void unlock() {
    if (!m_locked) return;
    m_locked = false;
    m_mutex.unlock();
  }

 private:
  M& m_mutex;
  bool m_locked = false;
};

struct TakeAlone {
  static void take(auto& mutex) { mutex.lock(); }
};
struct TakeToRead {
  static void take(auto& mutex) { mutex.rdlock(); }
};
struct TakeToWrite {
  static void take(auto& mutex) { mutex.wrlock(); }
};

template <class M>
using ScopedLockImpl = ScopedGuard<M, TakeAlone>;
template <class M>
using ReadScopedLockImpl = ScopedGuard<M, TakeToRead>;
template <class M>
using WriteScopedLockImpl = ScopedGuard<M, TakeToWrite>;

/// Not recursive. Locking twice on one thread is a programmer error, and is reported.
class ThreadMutex {
 public:
  using Lock = ScopedLockImpl<ThreadMutex>;

  void lock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_mutex.lock(); }
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_mutex.unlock(); }

 private:
  OsMutex m_mutex;
};

/// Many readers or one writer.
class ThreadRWMutex {
 public:
  using ReadLock = ReadScopedLockImpl<ThreadRWMutex>;
  using WriteLock = WriteScopedLockImpl<ThreadRWMutex>;

  void rdlock() { m_mutex.lock_shared(); }
  void wrlock() {
    m_mutex.lock();
    m_writing = true;
  }
  /// Ends what the calling thread holds, whichever it is.
  void unlock() {
    if (!m_writing) return m_mutex.unlock_shared();
    m_writing = false;
    m_mutex.unlock();
  }

 private:
  std::shared_mutex m_mutex;
  bool m_writing = false;  // changed by the writer alone, and readers exclude it
};

/// A counter that waits at 0. Signals do not end a wait. Source: futex(2).
class ThreadSemaphore {
 public:
  explicit ThreadSemaphore(uint32_t count = 0) : m_count(count) {}
  ThreadSemaphore(const ThreadSemaphore&) = delete;
  ThreadSemaphore& operator=(const ThreadSemaphore&) = delete;

  /// Takes one; blocks the thread while there is none.
  void wait() {
    uint32_t count = m_count.load(std::memory_order_relaxed);
    for (;;) {
      if (count == 0) {
        sys::futexWait(m_count, 0, kNever);
        count = m_count.load(std::memory_order_relaxed);
      } else if (m_count.compare_exchange_weak(count, count - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return;
      }
    }
  }
  /// Adds one, and wakes one waiter.
  void notify() {
    m_count.fetch_add(1, std::memory_order_release);
    sys::futexWake(m_count, 1);
  }

 private:
  std::atomic<uint32_t> m_count;
};

/// Locks nothing: for a type that can be told not to lock.
class NullMutex {
 public:
  using Lock = ScopedLockImpl<NullMutex>;
  void lock() {}
  void unlock() {}
};

class NullRWMutex {
 public:
  using ReadLock = ReadScopedLockImpl<NullRWMutex>;
  using WriteLock = WriteScopedLockImpl<NullRWMutex>;
  void rdlock() {}
  void wrlock() {}
  void unlock() {}
};

/// For sections of a few instructions; the same as Spinlock, with sylar's guard.
class CASLock {
 public:
  using Lock = ScopedLockImpl<CASLock>;

  void lock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_lock.lock(); }
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_lock.unlock(); }

 private:
  Spinlock m_lock;
};

using Mutex = ThreadMutex;
using RWMutex = ThreadRWMutex;
using Semaphore = ThreadSemaphore;

}  // namespace sylar
