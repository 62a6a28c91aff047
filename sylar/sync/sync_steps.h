// Internal. What SyncWait, SyncWakes and SyncQueue do. It is a template, so that the model checker can run the very same code over
// its own memory.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/waker.h"
#include "sylar/sync/open_wait.h"
#include "sylar/sync/thread_wait.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

/// `Types` has, besides those of SyncTypes:
///
///   Memory      as StdMemory
///   Waker       as sched's
///   OpenWait    a Wait of the caller
template <class Types>
struct SyncSteps {
  using Mutex = typename Types::Mutex;
  using Wait = typename Types::Wait;
  using Waiter = typename Types::Waiter;
  using Wakes = typename Types::Wakes;
  using Queue = typename Types::Queue;
  using Waker = typename Types::Waker;
  using Thread = ThreadWait<typename Types::Memory>;

  // ---- Wait. -----------------------------------------------------------------------------------------------------------------

  static bool claim(Wait& wait) {
    if (wait.m_core != nullptr) return Waker{wait.m_core, wait.m_epoch}.claim(WakeReason::kReady);
    return Thread(wait.m_state).claim();
  }

  // ---- Wakes. ----------------------------------------------------------------------------------------------------------------

  /// A thread is told at once: the system call needs no lock of the thread, which looks at nothing but its word.
  static void add(Wakes& wakes, Wait& claimed) {
    if (claimed.m_core == nullptr) return Thread(claimed.m_state).tell();
    QueueNode* const node = claimed.m_core;
    tsan::release(&claimed.m_core->wait);  // park() acquires it; from here on the waiter's memory is its owner's
    const tsan::Exempt until_delivered;    // the thread that claimed a core owns its link, and the delivery hands it on
    node->next = nullptr;
    if (wakes.m_last != nullptr) {
      static_cast<QueueNode*>(wakes.m_last)->next = node;
    } else {
      wakes.m_first = node;
    }
    wakes.m_last = node;
  }

  static void deliver(Wakes& wakes) {
    while (wakes.m_first != nullptr) {
      QueueNode* const node = static_cast<QueueNode*>(wakes.m_first);
      {
        const tsan::Exempt until_delivered;
        wakes.m_first = node->next;
      }
      Waker::deliver(*static_cast<decltype(Waker::core)>(node));
    }
    wakes.m_last = nullptr;
  }

  // ---- Queue. ----------------------------------------------------------------------------------------------------------------

  static void enqueue(Queue& queue, Waiter& mine, Wait& wait) {
    mine.m_wait = &wait;
    mine.m_linked = true;
    mine.m_settled.store(false, std::memory_order_relaxed);
    mine.m_next = nullptr;
    mine.m_prev = queue.m_last;
    (queue.m_last == nullptr ? queue.m_first : queue.m_last->m_next) = &mine;
    queue.m_last = &mine;
  }

  static void dequeue(Queue& queue, Waiter& mine) {
    if (mine.m_linked) unlink(queue, mine);
  }

  static bool hasOther(const Queue& queue, const Wait& mine) {
    const Waiter* waiter = queue.m_first;
    while (waiter != nullptr && waiter->m_wait == &mine) waiter = waiter->m_next;
    return waiter != nullptr;
  }

  static bool wait(Queue& queue, Mutex& lock, Waiter& mine, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    typename Types::OpenWait wait(queue.m_kind, &queue);
    enqueue(queue, mine, wait);
    lock.unlock();
    if (wait.park(deadline)) return true;
    if (mine.m_settled.exchange(true, std::memory_order_acq_rel)) return false;  // was taken out; the queue may be gone
    const ScopedLockImpl<Mutex> again(lock);
    mine.m_linked ? unlink(queue, mine) : void(queue.m_leaving = queue.m_leaving - 1);
    return false;
  }

  static bool take(Queue& queue, Waiter& waiter) {
    unlink(queue, waiter);
    if (claim(*waiter.m_wait)) return waiter.m_taken = true;
    // The last touch of it, if it is not about to leave. Then the queue must stay until it has.
    if (waiter.m_settled.exchange(true, std::memory_order_acq_rel)) queue.m_leaving = queue.m_leaving + 1;
    return false;
  }

  static Waiter* takeOldest(Queue& queue) {
    while (Waiter* const oldest = queue.m_first) {
      if (take(queue, *oldest)) return oldest;
    }
    return nullptr;
  }

  static void wakeAll(Queue& queue, Wakes& wakes) {
    while (Waiter* const waiter = takeOldest(queue)) add(wakes, *waiter->m_wait);
  }

 private:
  static void unlink(Queue& queue, Waiter& waiter) {
    SYLAR_DCHECK(waiter.m_linked);
    waiter.m_linked = false;
    (waiter.m_prev == nullptr ? queue.m_first : waiter.m_prev->m_next) = waiter.m_next;
    (waiter.m_next == nullptr ? queue.m_last : waiter.m_next->m_prev) = waiter.m_prev;
  }
};

/// Those of the library.
struct WaitTypes : SyncTypes {
  using Memory = StdMemory;
  using Waker = sylar::Waker;
  using OpenWait = detail::OpenWait;
};

}  // namespace sylar::detail
