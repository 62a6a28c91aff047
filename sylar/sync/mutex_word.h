// Internal. The protocol of Mutex. It is a template, so that the model checker can run the very same code.
//
//   word              who moves it there                                                 order
//   0                 unlock() without waiters                                             release
//   a holder          who finds 0: tryLock(), lock()                                       acquire CAS from 0
//   holder with bit   who finds a holder: lock(), under the lock of the queue              CAS
//   the next holder   unlock() that finds the bit, under the lock; keeps the bit if        relaxed store
//                     others are left
//
// The lock of the queue, or the wake-up, orders what the holders of a hand-over have written.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/thread_mutex.h"

namespace sylar::detail {

/// The parts of one mutex. `Types` is as for SyncSteps.
template <class Types>
class MutexWord {
 public:
  using Word = typename Types::Memory::template Atomic<uintptr_t>;
  using Lock = typename Types::Mutex;
  using Queue = typename Types::Queue;

  /// `lock` guards the queue, and the word while the queue is not empty.
  MutexWord(Word& word, Lock& lock, Queue& waiters) : m_word(word), m_lock(lock), m_waiters(waiters) {}

  /// Locks the mutex for `me` if it is free, and returns true if it did.
  [[nodiscard]] bool tryLock(uintptr_t me) {
    uintptr_t free = 0;
    return m_word.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed);
  }

  /// Locks the mutex for `me`, which may have to wait, and returns true; false if the wait ended without. `is_mine` is called, and
  /// must not return, if `me` holds it.
  template <class IsMine>
  [[nodiscard]] bool lock(uintptr_t me, Deadline deadline, IsMine is_mine) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    m_lock.lock();
    for (uintptr_t word = m_word.load(std::memory_order_relaxed);;) {
      if (holderOf(word) == me) {
        m_lock.unlock();
        is_mine();
      }
      const uintptr_t next = word == 0 ? me : word | kContended;
      if (!m_word.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      if (word != 0) break;
      m_lock.unlock();
      return true;
    }
    typename Types::Waiter mine(&me);
    return m_waiters.wait(m_lock, mine, deadline);
  }

  /// Unlocks the mutex, or hands it to the oldest waiter. `is_not_mine` is called with the holder, and must not return, if that is
  /// not `me`.
  template <class IsNotMine>
  void unlock(uintptr_t me, IsNotMine is_not_mine) {
    uintptr_t word = me;
    if (m_word.compare_exchange_strong(word, 0, std::memory_order_release, std::memory_order_relaxed)) return;
    if (holderOf(word) != me) is_not_mine(holderOf(word));
    handOver();
  }

 private:
  static constexpr uintptr_t kContended = 1;

  static uintptr_t holderOf(uintptr_t word) { return word & ~kContended; }

  void handOver() {
    typename Types::Wakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    typename Types::Waiter* const next = m_waiters.takeOldest();
    if (next == nullptr) return m_word.store(0, std::memory_order_release);
    const uintptr_t contended = m_waiters.empty() ? 0 : kContended;
    m_word.store(*static_cast<const uintptr_t*>(next->data) | contended, std::memory_order_relaxed);
    wakes.add(*next);
  }

  Word& m_word;
  Lock& m_lock;
  Queue& m_waiters;
};

}  // namespace sylar::detail
