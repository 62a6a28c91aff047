// Internal. The part of a worker that other threads touch: its mailbox and its wake-up descriptor.
//
// Slots are reused and never freed, and their descriptors never closed. The reason is that a thread that delivers to a worker
// may look at its slot after the push, when the worker may be gone. A late notification is a spurious wake-up of the slot's next
// owner, nothing worse.
#pragma once

#include <atomic>
#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/mailbox.h"

namespace sylar::detail {

class SchedulerCore;
class Driver;
class Worker;
struct HookCounters;

struct alignas(64) WorkerSlot final : FiberHome {
  Mailbox<> mailbox;
  int wake_fd = -1;            ///< eventfd, from open() on; written by notify(), watched by the owner's driver
  WorkerSlot* next = nullptr;  ///< in the list of unused slots
  Worker* worker = nullptr;    ///< the owner while it runs; for its own thread
  int64_t iteration_ns = 0;    ///< the clock at the begin of the owner's iteration; for its own thread
  std::atomic<HookCounters*> hook_counters{nullptr};  ///< made for the first hooked call; only its own thread counts
  std::atomic<Driver*> fd_driver{nullptr};  ///< the owner's, while its fibers may wait for descriptors; for its own thread
  std::atomic<const SchedulerCore*> scheduler{nullptr};  ///< the scheduler of its owner; only to be compared

  /// Returns an unused slot, or a new one.
  static WorkerSlot& acquire();
  static void release(WorkerSlot& slot);
  /// Makes its descriptor if it has none. Only in a claimed process (sys::claimProcess), none of whose forks runs workers,
  /// because no two processes can wait for one descriptor. Throws std::system_error if there is none.
  void open();
  /// Calls `function` with each slot that there is, used or not. Any thread.
  template <class Function>
  static void forEach(Function function) {
    for (const WorkerSlot* slot = s_newest.load(std::memory_order_acquire); slot != nullptr; slot = slot->m_older)
      function(*slot);
  }
  /// Returns how many descriptors the process keeps, in slots used or not.
  static size_t opened();

  void handleRequests(Fiber::ptr fiber) override;

  /// Ends the present or next poll of the owner. Any thread.
  void notify();

  void push(QueueNode* node) {
    if (mailbox.push(node)) notify();
  }
  /// Wakes the owner. Returns true iff it slept.
  bool wake() {
    if (!mailbox.tryWake()) return false;
    notify();
    return true;
  }

 private:
  static constinit std::atomic<WorkerSlot*> s_newest;
  WorkerSlot* m_older = nullptr;  // in the list of all slots
};

}  // namespace sylar::detail
