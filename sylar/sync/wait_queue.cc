#include "sylar/sync/wait_queue.h"

#include <new>

#include "sylar/base/memory.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/park.h"
#include "sylar/sync/open_wait.h"
#include "sylar/sync/sync_steps.h"

namespace sylar::detail {

using Steps = SyncSteps<WaitTypes>;

// FiberControl and dump() know these two.
static_assert(static_cast<int>(SyncKind::kMutex) == 0 && static_cast<int>(SyncKind::kRWMutex) == 1);

// ---- SyncWait. ---------------------------------------------------------------------------------------------------------------

bool SyncWait::claim() { return Steps::claim(*this); }

OpenWait::OpenWait(SyncKind kind, const void* object) : m_wait(kind, object) {
  m_core = m_wait.waker().core;
  m_epoch = m_wait.waker().epoch;
}

bool OpenWait::park(Deadline deadline) {
  if (m_core == nullptr) return ThreadWait(m_state).park(withinScope(deadline));
  const WakeReason reason = m_wait.parkWithinScope(deadline);
  return reason == WakeReason::kReady || reason == WakeReason::kClosed;  // the latter of a descriptor
}

bool OpenWait::withdraw() { return m_core != nullptr ? m_wait.withdraw() : ThreadWait(m_state).withdraw(); }

// ---- SyncWakes. --------------------------------------------------------------------------------------------------------------

void SyncWakes::add(SyncWait& claimed) { Steps::add(*this, claimed); }
void SyncWakes::deliver() { Steps::deliver(*this); }

// ---- SyncQueue. --------------------------------------------------------------------------------------------------------------

void SyncQueue::reserve(Deadline deadline) {
  if (!reserveWithinScope(deadline)) throw std::bad_alloc();
}

bool SyncQueue::wait(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) { return Steps::wait(*this, lock, mine, deadline); }
void SyncQueue::enqueue(SyncWaiter& mine, SyncWait& wait) { Steps::enqueue(*this, mine, wait); }
void SyncQueue::dequeue(SyncWaiter& mine) { Steps::dequeue(*this, mine); }
bool SyncQueue::hasOther(const SyncWait& mine) const { return Steps::hasOther(*this, mine); }
bool SyncQueue::take(SyncWaiter& waiter) { return Steps::take(*this, waiter); }
SyncWaiter* SyncQueue::takeOldestOfSome() { return Steps::takeOldest(*this); }
void SyncQueue::wakeAll(SyncWakes& wakes) { Steps::wakeAll(*this, wakes); }

void SyncQueue::end(ThreadMutex& lock) {
  if (sys::inForkedChild()) return;  // those who wait, or have the lock, may be the parent's
  lock.lock();                       // the one who told the last waiter may still hold it
  SYLAR_CHECK(takeOldest() == nullptr);
  while (m_leaving > 0) {  // they are other threads, which need nothing but the lock
    lock.unlock();
    StdMemory::yield();
    lock.lock();
  }
  lock.unlock();
}

}  // namespace sylar::detail
