#include "sylar/sync/condition_variable.h"

#include <cerrno>
#include <system_error>

#include "sylar/check.h"

namespace sylar {

ConditionVariable::~ConditionVariable() { m_waiters.end(m_lock); }

void ConditionVariable::refuseLock() {
  throw std::system_error(EPERM, std::generic_category(), "sylar::ConditionVariable: the lock is not held");
}

void ConditionVariable::notify_one() {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  if (detail::SyncWaiter* const waiter = m_waiters.takeOldest()) wakes.add(*waiter);
}

void ConditionVariable::notify_all() {
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  m_waiters.wakeAll(wakes);
}

}  // namespace sylar
