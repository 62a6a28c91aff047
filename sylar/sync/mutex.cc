#include "sylar/mutex.h"

#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/sync/holder.h"
#include "sylar/sync/mutex_word.h"
#include "sylar/sync/sync_steps.h"

namespace sylar {

using detail::Holder;
using Word = detail::MutexWord<detail::WaitTypes>;

Mutex::~Mutex() { m_waiters.end(m_lock); }

bool Mutex::try_lock() {
  const Holder me = Holder::me();
  const bool locked = Word(m_word, m_lock, m_waiters).tryLock(me.bits());
  if (locked) me.noteLocked(reinterpret_cast<uintptr_t>(this));
  return locked;
}

void Mutex::lock() {
  if (try_lock()) return;
  const this_fiber::CancelShield shield;
  while (!lockSlowly(Deadline::never())) continue;  // behind the deadline of a stop, until the fiber is abandoned
}

bool Mutex::lock(Deadline deadline) {
  if (try_lock()) return true;
  detail::SyncQueue::reserve(deadline);
  return lockSlowly(deadline);
}

bool Mutex::lockSlowly(Deadline deadline) {
  const Holder me = Holder::me();
  const bool locked = Word(m_word, m_lock, m_waiters).lock(me.bits(), deadline, [me] { detail::failRelock(me, "Mutex"); });
  if (locked) me.noteLocked(reinterpret_cast<uintptr_t>(this));
  return locked;
}

void Mutex::unlock() {
  const Holder me = Holder::me();
  const auto fail = [me](uintptr_t holder) { detail::failUnlock(me, Holder(holder), "Mutex"); };
  Word(m_word, m_lock, m_waiters).unlock(me.bits(), fail);
  me.noteUnlocked(reinterpret_cast<uintptr_t>(this));
}

}  // namespace sylar
