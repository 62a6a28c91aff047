#include "sylar/sync/wait_group.h"

#include "sylar/check.h"

namespace sylar {

WaitGroup::~WaitGroup() { m_waiters.end(m_lock); }

void WaitGroup::add(size_t count) {
  const ThreadMutex::Lock lock(m_lock);
  m_count += count;
}

void WaitGroup::end(size_t count, detail::SyncWakes& wakes) {
  SYLAR_CHECK_GE(m_count, count);
  m_count -= count;
  if (m_count == 0) m_waiters.wakeAll(wakes);
}

void WaitGroup::done(size_t count) {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  end(count, wakes);
}

bool WaitGroup::isDone() const {
  const ThreadMutex::Lock lock(m_lock);
  return m_count == 0;
}

bool WaitGroup::wait(Deadline deadline) { return isDone() || doneAndWait(0, deadline); }

bool WaitGroup::doneAndWait(size_t count, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  detail::SyncQueue::reserve(deadline);
  detail::SyncWakes wakes;
  m_lock.lock();
  end(count, wakes);
  if (m_count == 0) {
    m_lock.unlock();
    return true;
  }
  detail::SyncWaiter mine;
  return m_waiters.wait(m_lock, mine, deadline);
}

}  // namespace sylar
