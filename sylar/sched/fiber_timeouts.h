// Internal. The timeouts of a worker's fibers, in a heap with at most one node for each fiber.
//
// A node stays linked at the deadline that it was registered with. A later deadline is only noted in the fiber (lazy push), and
// the node is moved when the earlier deadline is near or past. So a fiber that waits again and again with a timeout, as those of
// connections do, pays one store for it.
//
// Thread safety: belongs to the worker's thread, except counts(). May suspend: no.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/counter.h"
#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/sched/run_queue.h"
#include "sylar/scheduler.h"
#include "sylar/timer/heap_queue.h"

namespace sylar::detail {

class FiberTimeouts {
 public:
  /// Makes room for a timeout of `core`, which has none linked, so that no wait can fail half-way. Returns false if there is no
  /// memory.
  [[nodiscard]] bool reserve(FiberCore& core, int64_t deadline_ns);

  /// Sets the deadline of the wait that `core` begins. Needs no memory if reserve() has made room.
  void arm(FiberCore& core, int64_t deadline_ns) {
    SYLAR_DCHECK(deadline_ns != kNever);
    m_counts.armed.add();
    set(core, deadline_ns);
  }

  void unlink(FiberCore& core) {
    SYLAR_DCHECK(core.timer_linked);
    m_heap.erase(core.timer);
    core.timer_linked = false;
  }

  /// Ends the waits whose deadline has come at `now_ns`, as many as one iteration of the loop may handle, and puts their fibers
  /// into `runnable`.
  void expire(int64_t now_ns, const Clock& clock, RunQueue<>& runnable);

  /// Returns the earliest true deadline, or an earlier time, or kNever. Disarmed timeouts are removed first, so that an idle
  /// worker never wakes for them. A pushed timeout is put right only shortly before its old deadline; otherwise each repeated
  /// wait would cost an update of the heap at the next sleep. The price is at most one early wake-up for each pushed timeout and
  /// length of it (more, if the worker's first hop cuts that), and none within kPushedMayWakeNs of another.
  int64_t next(int64_t now_ns);

  struct Counts {
    Counter armed, pushed, relinked, fired;
  };
  /// Returns what WorkerStats calls its timeouts. Any thread.
  const Counts& counts() const { return m_counts; }

 private:
  static constexpr size_t kMostPerIteration = 2000;
  static constexpr int64_t kMostNsPerIteration = 500'000;
  static constexpr int64_t kPushedMayWakeNs = 10'000'000;

  void set(FiberCore& core, int64_t deadline_ns) {
    core.deadline_ns = deadline_ns;
    if (!core.timer_linked) {
      m_heap.insert(core.timer, deadline_ns);
      core.timer_linked = true;
    } else if (deadline_ns < core.timer.deadline_ns) {
      m_heap.update(core.timer, deadline_ns);
    } else {
      m_counts.pushed.add(deadline_ns > core.timer.deadline_ns);
    }
  }

  HeapQueue<4> m_heap;
  Counts m_counts;
};

}  // namespace sylar::detail
