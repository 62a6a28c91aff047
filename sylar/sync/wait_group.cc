#include "sylar/sync/wait_group.h"

#include "sylar/check.h"

namespace sylar {

WaitGroup::~WaitGroup() {
  const ThreadMutex::Lock lock(m_lock);  // the last done() may still hold it
  SYLAR_CHECK(m_waiters.takeOldest() == nullptr);
}

void WaitGroup::add(size_t count) {
  const ThreadMutex::Lock lock(m_lock);
  m_count += count;
}

void WaitGroup::done(size_t count) {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  SYLAR_CHECK_GE(m_count, count);
  m_count -= count;
  if (m_count == 0) m_waiters.wakeAll(wakes);
}

bool WaitGroup::isDone() const {
  const ThreadMutex::Lock lock(m_lock);
  return m_count == 0;
}

bool WaitGroup::wait(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  detail::SyncQueue::reserve(deadline);
  m_lock.lock();
  if (m_count == 0) {
    m_lock.unlock();
    return true;
  }
  detail::SyncWaiter mine;
  return m_waiters.wait(m_lock, mine, deadline);
}

}  // namespace sylar
