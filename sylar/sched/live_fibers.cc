#include "sylar/sched/live_fibers.h"

#include "sylar/fiber/fiber_control.h"

namespace sylar {

/// Takes handles under the lock, which each begin and end of a fiber needs, and describes the fibers outside it.
void LiveFibers::list(std::vector<FiberReport>& out) {
  const auto describe = [&out](const Fiber& fiber) { out.emplace_back(fiber); };
  std::vector<Fiber::ptr> fibers;
  for (size_t count = 0;; count += count / 8) {
    fibers.reserve(count);
    Lock lock(m_lock);
    count = m_count;
    if (count > fibers.capacity()) continue;
    for (const FiberCore* core = m_first; core != nullptr; core = core->live_next) {
      fibers.push_back(core->fiber->weak_from_this().lock());
      if (fibers.back() != nullptr) continue;
      fibers.pop_back();
      describe(*core->fiber);  // it lies on a stack, which may go when the lock is released
    }
    break;
  }
  for (const Fiber::ptr& fiber : fibers) describe(*fiber);
}

}  // namespace sylar
