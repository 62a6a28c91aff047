#include "sylar/mutex.h"

#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/sync/holder.h"

namespace sylar {

using detail::Holder;

Mutex::~Mutex() {
  const ThreadMutex::Lock lock(m_lock);  // the unlock() that told the last waiter may still hold it
  SYLAR_CHECK(m_waiters.takeOldest() == nullptr);
}

bool Mutex::try_lock() {
  uintptr_t free = 0;
  return m_word.compare_exchange_strong(free, Holder::me().bits(), std::memory_order_acquire, std::memory_order_relaxed);
}

void Mutex::lock() {
  const uintptr_t me = Holder::me().bits();
  uintptr_t free = 0;
  if (m_word.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
  const this_fiber::CancelShield shield;
  while (!lockSlowly(me, Deadline::never())) continue;  // behind the deadline of a stop, until the fiber is abandoned
}

bool Mutex::lock(Deadline deadline) {
  if (try_lock()) return true;
  detail::SyncQueue::reserve(deadline);
  return lockSlowly(Holder::me().bits(), deadline);
}

bool Mutex::lockSlowly(uintptr_t me, Deadline deadline) {
  m_lock.lock();
  for (uintptr_t word = m_word.load(std::memory_order_relaxed);;) {
    if ((word & ~kContended) == me) {
      m_lock.unlock();
      detail::failRelock(Holder(me), "Mutex");
    }
    const uintptr_t next = word == 0 ? me : word | kContended;
    if (!m_word.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    if (word != 0) break;
    m_lock.unlock();
    return true;
  }
  detail::SyncWaiter mine(&me);
  return m_waiters.wait(m_lock, mine, deadline);
}

void Mutex::unlock() {
  const Holder me = Holder::me();
  uintptr_t word = me.bits();
  if (m_word.compare_exchange_strong(word, 0, std::memory_order_release, std::memory_order_relaxed)) return;
  const Holder holder(word & ~kContended);
  if (holder != me) detail::failUnlock(me, holder, "Mutex");
  handOver();
}

void Mutex::handOver() {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  detail::SyncWaiter* const next = m_waiters.takeOldest();
  if (next == nullptr) return m_word.store(0, std::memory_order_release);
  const uintptr_t contended = m_waiters.empty() ? 0 : kContended;
  m_word.store(*static_cast<const uintptr_t*>(next->data) | contended, std::memory_order_relaxed);
  wakes.add(*next);
}

}  // namespace sylar
