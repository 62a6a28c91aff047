// Internal. The locks of thread_mutex.h with the annotations that Clang checks, for the library's own short critical sections. None
// is ever held while a fiber parks.
//
// A field names the lock that it is GUARDED_BY, a function the locks that it REQUIRES.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/thread_mutex.h"

#define SYLAR_SCOPED_CAPABILITY SYLAR_ANNOTATION_(scoped_lockable)
#define SYLAR_REQUIRES(...) SYLAR_ANNOTATION_(requires_capability(__VA_ARGS__))
#define SYLAR_EXCLUDES(...) SYLAR_ANNOTATION_(locks_excluded(__VA_ARGS__))

namespace sylar::detail {

/// Wraps ThreadMutex. It is constant-initialised, has 4 bytes and is trivially destroyed.
class SYLAR_CAPABILITY("mutex") OsMutex {
 public:
  void lock() noexcept SYLAR_ACQUIRE() { m_mutex.lock(); }
  [[nodiscard]] bool tryLock() noexcept SYLAR_TRY_ACQUIRE(true) { return m_mutex.try_lock(); }
  void unlock() noexcept SYLAR_RELEASE() { m_mutex.unlock(); }
  bool heldByThisThread() const { return m_mutex.heldByThisThread(); }

 private:
  ThreadMutex m_mutex;
};

/// Holds a lock for a scope; unlock() may release it early, once.
template <class Mutex>
class SYLAR_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) SYLAR_ACQUIRE(mutex) : m_mutex(&mutex) { mutex.lock(); }
  [[gnu::always_inline]] ~Lock() SYLAR_RELEASE() {
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

}  // namespace sylar::detail
