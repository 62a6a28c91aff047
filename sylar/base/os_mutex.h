// Internal. Locks that block the thread: for the library's own short critical sections, never held over a park.
// They are built on futex(2) and not on pthread mutexes, because those become fiber-aware once their hooks are linked.
//
// Clang checks the annotations: a field says GUARDED_BY its lock, a function what it REQUIRES.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__clang__)
#define SYLAR_ANNOTATION_(x) __attribute__((x))
#else
#define SYLAR_ANNOTATION_(x)
#endif
#define SYLAR_CAPABILITY(name) SYLAR_ANNOTATION_(capability(name))
#define SYLAR_SCOPED_CAPABILITY SYLAR_ANNOTATION_(scoped_lockable)
#define SYLAR_GUARDED_BY(lock) SYLAR_ANNOTATION_(guarded_by(lock))
#define SYLAR_REQUIRES(...) SYLAR_ANNOTATION_(requires_capability(__VA_ARGS__))
#define SYLAR_EXCLUDES(...) SYLAR_ANNOTATION_(locks_excluded(__VA_ARGS__))
#define SYLAR_ACQUIRE(...) SYLAR_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define SYLAR_TRY_ACQUIRE(...) SYLAR_ANNOTATION_(try_acquire_capability(__VA_ARGS__))
#define SYLAR_RELEASE(...) SYLAR_ANNOTATION_(release_capability(__VA_ARGS__))
#define SYLAR_NO_THREAD_SAFETY_ANALYSIS SYLAR_ANNOTATION_(no_thread_safety_analysis)

namespace sylar {

/// A mutex that knows its owner. The word: 0 free | kernel thread id of the owner, with the top bit while others may sleep on it.
///
/// Free -> Owned by the locker's CAS; Owned -> Owned+Waiters by a contender before it sleeps; either -> Free by the owner.
/// Constant-initialised, 4 bytes, trivially destroyed: usable before constructors and after main.
/// Source: Drepper, "Futexes Are Tricky".
class SYLAR_CAPABILITY("mutex") OsMutex {
 public:
  constexpr OsMutex() = default;
  OsMutex(const OsMutex&) = delete;
  OsMutex& operator=(const OsMutex&) = delete;

  /// Blocks the thread until the lock is its own. Not recursive: locking twice on one thread is a programmer error.
  void lock() SYLAR_ACQUIRE();
  [[nodiscard]] bool tryLock() SYLAR_TRY_ACQUIRE(true);
  void unlock() SYLAR_RELEASE();
  /// True iff the calling thread owns it: for checks, and for code that may run in a signal handler over its own thread.
  bool heldByThisThread() const;

 private:
  void lockContended(uint32_t me);
  std::atomic<uint32_t> m_word{0};
};

/// For sections of a few instructions: spins, then yields the processor.
class SYLAR_CAPABILITY("mutex") Spinlock {
 public:
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

/// Holds a lock for a scope; may be released early, once.
template <class Mutex>
class SYLAR_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) SYLAR_ACQUIRE(mutex) : m_mutex(&mutex) { mutex.lock(); }
  ~Lock() SYLAR_RELEASE() {
    if (m_mutex != nullptr) m_mutex->unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void unlock() SYLAR_RELEASE() {
    m_mutex->unlock();
    m_mutex = nullptr;
  }

 private:
  Mutex* m_mutex;
};

}  // namespace sylar
