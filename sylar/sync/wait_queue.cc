#include "sylar/sync/wait_queue.h"

#include <cerrno>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/park.h"

namespace sylar::detail {

// ---- SyncWakes. --------------------------------------------------------------------------------------------------------------

/// A thread is told at once: the system call needs no lock of the thread, which looks at nothing but its word.
void SyncWakes::add(SyncWaiter& waiter) {
  if (waiter.m_core == nullptr) {
    std::atomic<uint32_t>& word = waiter.m_told;
    word.store(1, std::memory_order_release);
    sys::futexWake(word, 1);  // of memory that may be somebody else's by now, who is then woken once for nothing
    return;
  }
  QueueNode* const node = waiter.m_core;
  tsan::release(&waiter.m_core->wait);  // park() acquires it; from here on the waiter's memory is its owner's
  const tsan::Exempt until_delivered;   // the thread that claimed a core owns its link, and the delivery hands it on
  node->next = nullptr;
  if (m_last != nullptr) {
    static_cast<QueueNode*>(m_last)->next = node;
  } else {
    m_first = node;
  }
  m_last = node;
}

void SyncWakes::deliver() {
  while (m_first != nullptr) {
    QueueNode* const node = static_cast<QueueNode*>(m_first);
    {
      const tsan::Exempt until_delivered;
      m_first = node->next;
    }
    Waker::deliver(*static_cast<FiberCore*>(node));
  }
  m_last = nullptr;
}

// ---- SyncQueue. --------------------------------------------------------------------------------------------------------------

namespace {

/// The only fiber of a forked child waits like a thread, because no worker runs there.
bool parksHere() { return mayPark() && !sys::inForkedChild(); }

}  // namespace

void SyncQueue::reserve(Deadline deadline) {
  if (parksHere() && !reserveTimeout(withinScope(deadline))) throw std::bad_alloc();
}

void SyncQueue::append(SyncWaiter& waiter) {
  waiter.m_linked = true;
  waiter.m_prev = m_last;
  (m_last == nullptr ? m_first : m_last->m_next) = &waiter;
  m_last = &waiter;
}

void SyncQueue::unlink(SyncWaiter& waiter) {
  SYLAR_DCHECK(waiter.m_linked);
  waiter.m_linked = false;
  (waiter.m_prev == nullptr ? m_first : waiter.m_prev->m_next) = waiter.m_next;
  (waiter.m_next == nullptr ? m_last : waiter.m_next->m_prev) = waiter.m_prev;
}

bool SyncQueue::wait(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) {
  if (!parksHere()) return block(lock, mine, deadline);
  Wait wait;
  mine.m_core = wait.waker().core;
  mine.m_epoch = wait.waker().epoch;
  append(mine);
  lock.unlock();
  if (wait.park(withinScope(deadline)) == WakeReason::kReady) return true;
  const ThreadMutex::Lock again(lock);
  if (mine.m_linked) unlink(mine);
  return false;
}

/// The wait of a thread.
bool SyncQueue::block(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) {
  append(mine);
  lock.unlock();
  while (mine.m_told.load(std::memory_order_acquire) == 0) {
    if (sys::futexWait(mine.m_told, 0, deadline.ns()) != -ETIMEDOUT) continue;
    const ThreadMutex::Lock again(lock);
    if (!mine.m_linked) continue;  // it is about to be told
    unlink(mine);
    return false;
  }
  return true;
}

bool SyncQueue::take(SyncWaiter& waiter) {
  unlink(waiter);
  return waiter.m_core == nullptr || Waker{waiter.m_core, waiter.m_epoch}.claim(WakeReason::kReady);
}

SyncWaiter* SyncQueue::takeOldest() {
  while (SyncWaiter* const oldest = m_first) {
    if (take(*oldest)) return oldest;
  }
  return nullptr;
}

void SyncQueue::wakeAll(SyncWakes& wakes) {
  while (SyncWaiter* const waiter = takeOldest()) wakes.add(*waiter);
}

}  // namespace sylar::detail
