#include "sylar/check.h"
#include "sylar/mutex.h"

namespace sylar {

Semaphore::~Semaphore() { m_waiters.end(m_lock); }

bool Semaphore::tryWait() {
  const ThreadMutex::Lock lock(m_lock);
  if (m_count == 0) return false;
  --m_count;
  return true;
}

bool Semaphore::wait(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  if (tryWait()) return true;
  detail::SyncQueue::reserve(deadline);
  m_lock.lock();
  if (m_count > 0) {
    --m_count;
    m_lock.unlock();
    return true;
  }
  detail::SyncWaiter mine;
  return m_waiters.wait(m_lock, mine, deadline);
}

void Semaphore::notify(size_t count) {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  for (; count > 0; --count) {
    detail::SyncWaiter* const waiter = m_waiters.takeOldest();
    if (waiter == nullptr) break;
    wakes.add(*waiter);
  }
  m_count += count;
}

size_t Semaphore::getConcurrency() const {
  const ThreadMutex::Lock lock(m_lock);
  return m_count;
}

}  // namespace sylar
