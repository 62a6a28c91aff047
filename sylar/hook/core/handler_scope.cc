#include "sylar/hook/core/handler_scope.h"

#include <algorithm>
#include <atomic>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/hook/core/jump.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

constinit thread_local HandlerScope::Record HandlerScope::t_innermost;

[[gnu::noinline, gnu::cold]] bool askOnSignalStack() {
  stack_t present{};
  return sys::signalStack(nullptr, &present) == 0 && (present.ss_flags & SS_ONSTACK) != 0;
}

namespace {

/// Returns the lowest address that a handler's frames may have, if the outermost one is at `frame` and has interrupted `fiber`.
uintptr_t lowestBelow(uintptr_t frame, const FiberCore* fiber) {
  if (fiber == nullptr) return frame;  // where nothing asks
  if (fiber->stack.contains(reinterpret_cast<const void*>(frame))) return reinterpret_cast<uintptr_t>(fiber->stack.base);
  stack_t signals{};
  const bool has_own = sys::signalStack(nullptr, &signals) == 0 && (signals.ss_flags & SS_ONSTACK) != 0;
  return has_own ? reinterpret_cast<uintptr_t>(signals.ss_sp) : frame - std::min(frame, HandlerScope::kReach);
}

}  // namespace

HandlerScope::Record HandlerScope::innermost() {
  const tsan::Exempt of_this_thread;
  return t_innermost;
}

HandlerScope::HandlerScope(const void* frame) : m_before(innermost()) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const fiber = t_running;
  const auto here = reinterpret_cast<uintptr_t>(frame);
  t_innermost = {here, lowestBelow(here, fiber), fiber, this};
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

HandlerScope::~HandlerScope() {
  const tsan::Exempt of_this_thread;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Usually the first is this one. It is not if the program's handlers switch between stacks, as those of preemptive coroutines do.
  for (Record* record = &t_innermost; record->frame != 0; record = &record->scope->m_before) {
    if (record->scope != this) continue;
    *record = m_before;
    return;
  }
}

/// A handler may also suspend its fiber by itself, so the caller may be another fiber.
[[gnu::noinline]] bool HandlerScope::isRunning() {
  const tsan::Exempt of_this_thread;
  return t_innermost.fiber == t_running && t_innermost.contains(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

bool HandlerScope::interruptsLoop() const {
  const bool in_handler = m_before.frame != 0 && m_before.fiber == nullptr;
  return onThreadStack() && Worker::currentHere() != nullptr && !in_handler;
}

/// Returns true if a jump ends the handler. One from a stack that the program has made in the handler may go to a place on that
/// stack.
bool HandlerScope::Record::isLeft(uintptr_t from, uintptr_t to) const {
  if (to == kSomewhere) return true;
  return !contains(to) && (contains(from) || fiber->stack.contains(reinterpret_cast<const void*>(to)));
}

/// Handlers of other fibers are not concerned.
[[gnu::noinline]] void HandlerScope::leaveTo(uintptr_t to) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const fiber = t_running;
  if (fiber == nullptr) return;
  const auto from = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  while (t_innermost.frame != 0 && t_innermost.fiber == fiber && t_innermost.isLeft(from, to))
    t_innermost = t_innermost.scope->m_before;
}

}  // namespace sylar::detail
