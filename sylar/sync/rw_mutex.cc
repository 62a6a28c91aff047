#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/mutex.h"
#include "sylar/sync/holder.h"

namespace sylar {

using detail::Holder;

struct RWMutex::Request {
  bool writes;
  uintptr_t me;
};

RWMutex::~RWMutex() { m_waiters.end(m_lock); }

/// Lets `request` in, if those who are in allow it.
bool RWMutex::admit(const Request& request) {
  if (m_writer != 0 || (request.writes && m_readers > 0)) return false;
  request.writes ? void(m_writer = request.me) : void(++m_readers);
  return true;
}

/// Lets in the oldest waiters, as many as may be in together.
void RWMutex::admitWaiters(detail::SyncWakes& wakes) {
  while (detail::SyncWaiter* const oldest = m_waiters.oldest()) {
    const Request request = *static_cast<const Request*>(oldest->data);
    if (m_writer != 0 || (request.writes && m_readers > 0)) return;
    if (!m_waiters.take(*oldest)) continue;
    SYLAR_CHECK(admit(request));
    wakes.add(*oldest);
  }
}

bool RWMutex::wait(bool writes, Deadline deadline) {
  detail::SyncQueue::reserve(deadline);
  Request request{writes, Holder::me().bits()};
  m_lock.lock();
  if (m_writer == request.me) {
    m_lock.unlock();
    detail::failRelock(Holder(request.me), "RWMutex");
  }
  detail::SyncWaiter mine(&request);
  bool admitted = m_waiters.empty() && admit(request);
  admitted ? m_lock.unlock() : void(admitted = m_waiters.wait(m_lock, mine, deadline));
  if (admitted && writes) Holder(request.me).noteLocked(this);
  if (admitted) return true;
  detail::SyncWakes wakes;  // of readers that waited behind this writer only
  const ThreadMutex::Lock lock(m_lock);
  admitWaiters(wakes);
  return false;
}

void RWMutex::rdlock() {
  const this_fiber::CancelShield shield;
  while (!wait(false, Deadline::never())) continue;  // behind the deadline of a stop, until the fiber is abandoned
}

void RWMutex::wrlock() {
  const this_fiber::CancelShield shield;
  while (!wait(true, Deadline::never())) continue;
}

bool RWMutex::try_lock() {
  const Holder me = Holder::me();
  const ThreadMutex::Lock lock(m_lock);
  const bool locked = m_waiters.empty() && admit({true, me.bits()});
  if (locked) me.noteLocked(this);
  return locked;
}

bool RWMutex::try_lock_shared() {
  const ThreadMutex::Lock lock(m_lock);
  return m_waiters.empty() && admit({false, 0});
}

void RWMutex::unlock() {
  const Holder me = Holder::me();
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  if (m_readers > 0) {
    --m_readers;
  } else {
    if (m_writer != me.bits()) detail::failUnlock(me, Holder(m_writer), "RWMutex");
    me.noteUnlocked(this);
    m_writer = 0;
  }
  admitWaiters(wakes);
}

}  // namespace sylar
