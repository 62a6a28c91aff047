// Waits until something has changed that a mutex guards.
//
//   std::unique_lock lock(mutex);                               // of a sylar::Mutex
//   if (!changed.wait(lock, [&] { return !queue.empty(); }, sylar::Deadline::after(1s))) return;   // too late, or cancelled
//   take(queue.front());
#pragma once

#include <type_traits>

#include "sylar/sync/wait_queue.h"

namespace sylar {

/// `Lock` is anything with lock() and unlock() whose unlock() does not wait: std::unique_lock<sylar::Mutex>, Mutex::Lock, or a
/// Mutex itself. Waiters are woken in the order of their arrival. A waiter wakes only if it was notified, but what it waits for
/// may have been taken by another before it has the lock again, so wait with a predicate, or in a loop.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: std::condition_variable_any.
class ConditionVariable {
 public:
  ConditionVariable() = default;
  /// Nobody may wait.
  ~ConditionVariable();
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  /// Unlocks `lock`, which must be held, waits, and locks it again. Returns false if `deadline` passed or the fiber was cancelled
  /// before a notification came. Throws std::system_error with EPERM if `lock` is a guard that holds nothing, std::bad_alloc if
  /// there is no memory for a deadline, and what unlocking throws, with `lock` as it was. May suspend: yes. A plain thread blocks.
  template <class Lock>
  bool wait(Lock& lock, Deadline deadline = Deadline::never()) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if constexpr (requires { lock.owns_lock(); }) {
      if (!lock.owns_lock()) refuseLock();
    }
    detail::SyncQueue::reserve(deadline);
    detail::SyncWaiter mine;
    m_lock.lock();  // a notification that comes after the unlock finds the waiter in the queue
    try {
      lock.unlock();
    } catch (...) {
      m_lock.unlock();
      throw;
    }
    const bool notified = m_waiters.wait(m_lock, mine, deadline);
    lock.lock();
    return notified;
  }

  /// Waits until `isDone()`, which is called with `lock` held, returns true. Returns what it returned last: false if `deadline`
  /// passed or the fiber was cancelled before. Otherwise as the other wait().
  template <class Lock, class Predicate>
  requires std::is_invocable_r_v<bool, Predicate&>
  bool wait(Lock& lock, Predicate isDone, Deadline deadline = Deadline::never()) {
    while (!isDone()) {
      if (!wait(lock, deadline)) return isDone();
    }
    return true;
  }

  /// Wakes the oldest waiter, if there is one. May suspend: no.
  void notify_one();
  /// Wakes all who wait now. May suspend: no.
  void notify_all();

 private:
  [[noreturn]] static void refuseLock();

  ThreadMutex m_lock;
  detail::SyncQueue m_waiters{detail::SyncKind::kCondition};
};

}  // namespace sylar
