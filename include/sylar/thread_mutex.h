// Locks that block the thread, for short sections. In a fiber they block its worker, so none may be held over a call that
// suspends. For that there are Mutex and RWMutex of sylar/mutex.h.
//
// Each lock has its nested guards: ThreadMutex::Lock, ThreadRWMutex::ReadLock, ThreadRWMutex::WriteLock, and so on. A guard locks
// in its constructor. Its lock() and unlock() do nothing if it is in that state already.
//
// Thread safety: a lock may be used from any thread; a guard belongs to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>

// With these annotations clang checks that a lock is taken and released, and that the data it guards is touched only under it.
#if defined(__clang__)
#define SYLAR_ANNOTATION_(x) __attribute__((x))
#else
#define SYLAR_ANNOTATION_(x)
#endif
#define SYLAR_CAPABILITY(name) SYLAR_ANNOTATION_(capability(name))
#define SYLAR_GUARDED_BY(lock) SYLAR_ANNOTATION_(guarded_by(lock))
#define SYLAR_ACQUIRE(...) SYLAR_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define SYLAR_TRY_ACQUIRE(...) SYLAR_ANNOTATION_(try_acquire_capability(__VA_ARGS__))
#define SYLAR_RELEASE(...) SYLAR_ANNOTATION_(release_capability(__VA_ARGS__))
#define SYLAR_NO_THREAD_SAFETY_ANALYSIS SYLAR_ANNOTATION_(no_thread_safety_analysis)

namespace sylar {

/// Holds a lock for a scope. `Take` says how it locks.
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
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (!m_locked) return;
    m_locked = false;
    m_mutex.unlock();
  }
  bool owns_lock() const { return m_locked; }

 private:
  M& m_mutex;
  bool m_locked = false;
};

struct TakeAlone {
  static void take(auto& mutex) SYLAR_NO_THREAD_SAFETY_ANALYSIS { mutex.lock(); }
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

/// A mutex that blocks the thread. It is not recursive: locking it twice on one thread is a programmer error, and is reported.
/// Usable before constructors run and after main.
///
/// It is built on futex(2) and not on a pthread mutex, because a pthread mutex suspends fibers where the hooks are linked.
/// The word is 0 while the mutex is free, otherwise the kernel thread id of the owner, with the top bit set while other threads
/// may sleep on it. Source: Drepper, "Futexes Are Tricky".
class ThreadMutex {
 public:
  using Lock = ScopedLockImpl<ThreadMutex>;

  constexpr ThreadMutex() = default;
  ThreadMutex(const ThreadMutex&) = delete;
  ThreadMutex& operator=(const ThreadMutex&) = delete;

  void lock();
  /// Locks the mutex if it is free, and returns true if it did. This lets std::scoped_lock take several at once, in any order.
  [[nodiscard]] bool try_lock();
  void unlock();
  /// Returns true if and only if the calling thread owns the mutex. For checks, and for code that may run in a signal handler
  /// that interrupts its own thread.
  bool heldByThisThread() const;

 private:
  void lockSlowly();
  std::atomic<uint32_t> m_word{0};
};

/// A lock for many readers or one writer.
class ThreadRWMutex {
 public:
  using ReadLock = ReadScopedLockImpl<ThreadRWMutex>;
  using WriteLock = WriteScopedLockImpl<ThreadRWMutex>;

  void rdlock() { m_mutex.lock_shared(); }
  void wrlock() {
    m_mutex.lock();
    m_writing = true;
  }
  /// Releases the lock that the calling thread holds, for reading or writing.
  void unlock() {
    if (!m_writing) return m_mutex.unlock_shared();
    m_writing = false;
    m_mutex.unlock();
  }

 private:
  std::shared_mutex m_mutex;
  bool m_writing = false;  // changed by the writer alone, and readers exclude it
};

/// A counter whose wait() blocks the thread at 0. Signals do not end a wait. Source: futex(2).
class ThreadSemaphore {
 public:
  explicit ThreadSemaphore(uint32_t count = 0) : m_count(count) {}
  ThreadSemaphore(const ThreadSemaphore&) = delete;
  ThreadSemaphore& operator=(const ThreadSemaphore&) = delete;

  /// Takes one from the count; blocks the thread while the count is 0.
  void wait();
  /// Adds one to the count, and wakes one waiter.
  void notify();

 private:
  std::atomic<uint32_t> m_count;
};

/// A mutex that locks nothing, for a type that can be told not to lock.
class NullMutex {
 public:
  using Lock = ScopedLockImpl<NullMutex>;
  void lock() {}
  void unlock() {}
};

/// A reader-writer lock that locks nothing.
class NullRWMutex {
 public:
  using ReadLock = ReadScopedLockImpl<NullRWMutex>;
  using WriteLock = WriteScopedLockImpl<NullRWMutex>;
  void rdlock() {}
  void wrlock() {}
  void unlock() {}
};

/// A lock for sections of a few instructions. A waiter spins, then sleeps and looks again; a sleep lasts 50 us at first and a
/// millisecond at most. Unlocking is a plain store, which wakes nobody. Threads of any scheduling class and priority may share
/// one, because a sleeping waiter leaves its processor to the holder.
class SYLAR_CAPABILITY("mutex") Spinlock {
 public:
  using Lock = ScopedLockImpl<Spinlock>;

  constexpr Spinlock() = default;
  Spinlock(const Spinlock&) = delete;
  Spinlock& operator=(const Spinlock&) = delete;

  void lock() SYLAR_ACQUIRE() {
    if (m_held.exchange(true, std::memory_order_acquire)) lockContended();
  }
  [[nodiscard]] bool tryLock() SYLAR_TRY_ACQUIRE(true) { return !m_held.exchange(true, std::memory_order_acquire); }
  void unlock() SYLAR_RELEASE() { m_held.store(false, std::memory_order_release); }

 private:
  void lockContended();
  std::atomic<bool> m_held{false};
};

/// A Spinlock with sylar's guard, for sections of a few instructions.
class CASLock {
 public:
  using Lock = ScopedLockImpl<CASLock>;

  void lock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_lock.lock(); }
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_lock.unlock(); }

 private:
  Spinlock m_lock;
};

}  // namespace sylar
