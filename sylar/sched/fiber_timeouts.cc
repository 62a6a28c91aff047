#include "sylar/sched/fiber_timeouts.h"

#include <new>

#include "sylar/check.h"

namespace sylar::detail {

bool FiberTimeouts::reserve(FiberCore& core, int64_t deadline_ns) {
  SYLAR_DCHECK(!core.timer_linked && deadline_ns != kNever);
  try {
    m_heap.insert(core.timer, deadline_ns);  // disarmed, until the fiber parks
  } catch (const std::bad_alloc&) {
    return false;
  }
  core.timer_linked = true;
  return true;
}

void FiberTimeouts::expire(int64_t now_ns, const Clock& clock, RunQueue<>& runnable) {
  const int64_t end_ns = saturatingAdd(now_ns, kMostNsPerIteration);
  for (size_t i = 1; i <= kMostPerIteration && m_heap.nextDue() <= now_ns; ++i) {
    if (i % 64 == 0 && clock.nowNs() >= end_ns) return;
    TimerList due;
    m_heap.expire(now_ns, 1, due);  // only one, for which there is room if it is put in again
    FiberCore& core = FiberCore::ofTimer(*due.pop());
    SYLAR_DCHECK(core.timer_linked && core.fiber != nullptr);
    core.timer_linked = false;
    if (core.deadline_ns == kNever) continue;  // disarmed
    if (core.deadline_ns > now_ns) {
      m_counts.relinked.add();
      set(core, core.deadline_ns);
    } else if (core.wait.claim(core.wait.epoch(), WakeReason::kTimeout)) {
      m_counts.fired.add();
      runnable.push(&core);
    }
  }
}

int64_t FiberTimeouts::next(int64_t now_ns) {
  while (TimerNode* node = m_heap.front()) {
    FiberCore& core = FiberCore::ofTimer(*node);
    SYLAR_DCHECK(core.timer_linked && core.fiber != nullptr);
    const bool pushed = core.deadline_ns != kNever && core.deadline_ns != node->deadline_ns;
    if (core.deadline_ns == kNever) {
      unlink(core);
    } else if (!pushed || node->deadline_ns > saturatingAdd(now_ns, kPushedMayWakeNs)) {
      return node->deadline_ns;
    } else {
      m_counts.relinked.add();
      m_heap.update(core.timer, core.deadline_ns);
    }
  }
  return kNever;
}

}  // namespace sylar::detail
