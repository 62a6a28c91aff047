#include "sylar/hook/handler_scope.h"

#include <atomic>

#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/jump.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

constinit thread_local HandlerScope::Record HandlerScope::t_innermost;

HandlerScope::Record HandlerScope::innermost() {
  const tsan::Exempt of_this_thread;
  return t_innermost;
}

HandlerScope::HandlerScope(const void* frame) : m_before(innermost()) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const fiber = t_running;
  const auto here = reinterpret_cast<uintptr_t>(frame);
  const Record mine{here, fiber != nullptr ? reinterpret_cast<uintptr_t>(fiber->stack.base) : here, this};
  if (!mine.isOfFiber() || mine.frame - mine.stack < fiber->stack.size) t_innermost = mine;  // otherwise see onOtherStack()
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

HandlerScope::~HandlerScope() {
  const tsan::Exempt of_this_thread;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_innermost = m_before;
}

/// A handler may also suspend its fiber by itself, so the caller may be another fiber.
[[gnu::noinline]] bool HandlerScope::isRunning() {
  const tsan::Exempt of_this_thread;
  return t_innermost.contains(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

bool HandlerScope::interruptsLoop() const {
  const bool in_handler = m_before.frame != 0 && !m_before.isOfFiber();
  return onThreadStack() && Worker::currentHere() != nullptr && !in_handler;
}

/// The jump may come from a handler with a stack of its own, and go to a place on that stack, which leaves none of the records. Those
/// of other fibers are not concerned.
[[gnu::noinline]] void HandlerScope::leaveTo(uintptr_t to) {
  const tsan::Exempt of_this_thread;
  const FiberCore* const fiber = t_running;
  if (fiber == nullptr) return;
  const auto stack = reinterpret_cast<uintptr_t>(fiber->stack.base);
  if (to != kSomewhere && to - stack >= fiber->stack.size) return;
  while (t_innermost.frame != 0 && t_innermost.stack == stack && t_innermost.frame <= to)
    t_innermost = t_innermost.scope->m_before;
}

}  // namespace sylar::detail
