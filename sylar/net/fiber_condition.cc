#include "sylar/net/fiber_condition.h"

#include <cerrno>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber.h"
#include "sylar/sched/park.h"

namespace sylar {

/// A waiting fiber, in an object on that fiber's stack. It is touched only under the lock, and is out of the list once it is
/// claimed.
struct FiberCondition::Waiting {
  Waker waker;
  Waiting* next;
};

WakeReason FiberCondition::wait(OsMutex& mutex, Deadline deadline) {
  if (mayPark()) return park(mutex, deadline);
  const uint32_t sequence = m_sequence.load(std::memory_order_relaxed);
  ++m_threads;
  mutex.unlock();
  const int why = sys::futexWait(m_sequence, sequence, deadline.ns());
  mutex.lock();
  --m_threads;
  return why == -ETIMEDOUT ? WakeReason::kTimeout : WakeReason::kReady;
}

WakeReason FiberCondition::park(OsMutex& mutex, Deadline deadline) {
  if (!reserveTimeout(deadline)) {
    mutex.unlock();
    Fiber::YieldToReady();
    mutex.lock();
    return WakeReason::kTimeout;
  }
  Wait wait;
  Waiting mine{wait.waker(), m_fibers};
  m_fibers = &mine;
  mutex.unlock();
  const WakeReason reason = wait.park(deadline);
  mutex.lock();
  for (Waiting** at = &m_fibers; *at != nullptr; at = &(*at)->next) {
    if (*at != &mine) continue;
    *at = mine.next;
    break;
  }
  return reason;
}

void FiberCondition::notifyAll(Lock<OsMutex>& lock) {
  NodeList woken;
  for (; m_fibers != nullptr; m_fibers = m_fibers->next) {
    if (!m_fibers->waker.claim(WakeReason::kReady)) continue;
    const tsan::Exempt until_delivered;  // the thread that claimed a core owns its link, and the delivery hands it on
    woken.push(m_fibers->waker.core);
  }
  const bool threads = m_threads > 0;
  if (threads) m_sequence.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  const auto next = [&woken] {
    const tsan::Exempt until_delivered;
    return woken.pop();
  };
  while (QueueNode* const node = next()) Waker::deliver(*static_cast<FiberCore*>(node));
  if (threads) sys::futexWake(m_sequence, INT32_MAX);
}

}  // namespace sylar
