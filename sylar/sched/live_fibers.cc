#include "sylar/sched/live_fibers.h"

#include <utility>

#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/held_locks.h"

namespace sylar::detail {
namespace {

/// Returns the id of the outermost fiber that has resumed `core`, or 0 if none has. Under the lock of the lists, outside of which
/// a fiber gets its resumer and loses it.
uint64_t outermostResumerOf(const FiberCore& core) {
  const FiberCore* outermost = &core;
  while (outermost->resumer != nullptr) outermost = outermost->resumer;
  return outermost == &core ? 0 : outermost->fiber->getId();
}

}  // namespace

/// Takes handles under the lock, which each begin and end of a fiber needs, and what lies on the fibers' stacks. Describes the
/// fibers outside it.
void LiveFibers::list(std::vector<FiberReport>& out) {
  struct Listed {
    Fiber::ptr fiber;
    uint64_t resumer;
    HeldLocks held;
    pid_t thread;
  };
  std::vector<Listed> fibers;
  for (size_t count = 0;; count += count / 8) {
    fibers.reserve(count);
    Lock lock(m_lock);
    count = m_count;
    if (count > fibers.capacity()) continue;
    for (const FiberCore* core = m_first; core != nullptr; core = core->live_next) {
      const uint64_t resumer = outermostResumerOf(*core);
      if (Fiber::ptr fiber = core->fiber->weak_from_this().lock()) {
        fibers.push_back({std::move(fiber), resumer, core->started().held, core->started().thread});
      } else {
        // The handle lies on a stack, which may go when the lock is released.
        out.emplace_back(*core->fiber, resumer, core->started().held, core->started().thread);
      }
    }
    break;
  }
  for (const Listed& one : fibers) out.emplace_back(*one.fiber, one.resumer, one.held, one.thread);
}

}  // namespace sylar::detail
