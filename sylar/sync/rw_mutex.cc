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

/// Returns what a holder notes of it.
uintptr_t RWMutex::noteOf(bool writes) const { return reinterpret_cast<uintptr_t>(this) | (writes ? 0 : HeldLocks::kToRead); }

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
  const Holder me = Holder::me();
  if (writes && me.holds(noteOf(false))) detail::failUpgrade(me, "RWMutex");
  Request request{writes, me.bits()};
  m_lock.lock();
  if (m_writer == request.me) {
    m_lock.unlock();
    detail::failRelock(me, "RWMutex");
  }
  detail::SyncWaiter mine(&request);
  bool admitted = m_waiters.empty() && admit(request);
  admitted ? m_lock.unlock() : void(admitted = m_waiters.wait(m_lock, mine, deadline));
  if (admitted) me.noteLocked(noteOf(writes));
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
  if (locked) me.noteLocked(noteOf(true));
  return locked;
}

bool RWMutex::try_lock_shared() {
  const Holder me = Holder::me();
  const ThreadMutex::Lock lock(m_lock);
  const bool locked = m_waiters.empty() && admit({false, me.bits()});
  if (locked) me.noteLocked(noteOf(false));
  return locked;
}

void RWMutex::unlock() {
  const Holder me = Holder::me();
  detail::SyncWakes wakes;
  const ThreadMutex::Lock lock(m_lock);
  const bool reads = m_readers > 0;
  if (reads) {
    if (!me.mayHold(noteOf(false))) detail::failUnlockOfReaders(me, "RWMutex");
    --m_readers;
  } else {
    if (m_writer != me.bits()) detail::failUnlock(me, Holder(m_writer), "RWMutex");
    m_writer = 0;
  }
  me.noteUnlocked(noteOf(!reads));
  admitWaiters(wakes);
}

}  // namespace sylar
