#include "sylar/sched/live_fibers.h"

#include <utility>

#include "sylar/fiber/fiber_control.h"

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

/// Takes handles under the lock, which each begin and end of a fiber needs, and describes the fibers outside it.
void LiveFibers::list(std::vector<FiberReport>& out) {
  std::vector<std::pair<Fiber::ptr, uint64_t>> fibers;  // with their resumers
  for (size_t count = 0;; count += count / 8) {
    fibers.reserve(count);
    Lock lock(m_lock);
    count = m_count;
    if (count > fibers.capacity()) continue;
    for (const FiberCore* core = m_first; core != nullptr; core = core->live_next) {
      const uint64_t resumer = outermostResumerOf(*core);
      fibers.emplace_back(core->fiber->weak_from_this().lock(), resumer);
      if (fibers.back().first != nullptr) continue;
      fibers.pop_back();
      out.emplace_back(*core->fiber, resumer);  // it lies on a stack, which may go when the lock is released
    }
    break;
  }
  for (const auto& [fiber, resumer] : fibers) out.emplace_back(*fiber, resumer);
}

}  // namespace sylar::detail
