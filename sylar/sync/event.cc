#include "sylar/sync/event.h"

#include "sylar/check.h"

namespace sylar {

Event::~Event() { m_waiters.end(m_lock); }

void Event::set() {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  m_set = true;
  m_waiters.wakeAll(wakes);
}

void Event::reset() {
  const ThreadMutex::Lock lock(m_lock);
  m_set = false;
}

bool Event::isSet() const {
  const ThreadMutex::Lock lock(m_lock);
  return m_set;
}

bool Event::wait(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  if (isSet()) return true;
  detail::SyncQueue::reserve(deadline);
  m_lock.lock();
  if (m_set) {
    m_lock.unlock();
    return true;
  }
  detail::SyncWaiter mine;
  return m_waiters.wait(m_lock, mine, deadline);
}

}  // namespace sylar
