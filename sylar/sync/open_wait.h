// Internal. A wait of the calling fiber or thread, from its own side.
//
//   OpenWait wait(SyncKind::kEvent, this);
//   queue.enqueue(waiter, wait);              // under the queue's lock; in as many queues as wanted
//   if (wait.park(deadline)) ...              // somebody has claimed it
//
// Either park() or withdraw() must end it.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/sched/park.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

class OpenWait final : public SyncWait {
 public:
  /// `object` is where the fiber waits, for reports.
  OpenWait(SyncKind kind, const void* object);

  /// Waits until somebody has claimed and told the wait, and returns true; or until `deadline`, that of the fiber's
  /// DeadlineScope, or a cancel, and returns false. Needs SyncQueue::reserve(). May suspend: yes. A plain thread blocks.
  bool park(Deadline deadline);
  /// Ends the wait and returns true if nobody has claimed it. Otherwise waits until it is told, and returns false.
  bool withdraw();

 private:
  Wait m_wait;  // of a fiber
};

}  // namespace sylar::detail
