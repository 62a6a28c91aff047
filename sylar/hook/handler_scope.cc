#include "sylar/hook/handler_scope.h"

#include <atomic>

#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/worker.h"

namespace sylar {

constinit thread_local HandlerScope::Record HandlerScope::t_innermost;

HandlerScope::HandlerScope(const void* frame) : m_before(t_innermost) {
  const FiberCore* const fiber = t_running;
  const auto here = reinterpret_cast<uintptr_t>(frame);
  const Record mine{here, fiber != nullptr ? reinterpret_cast<uintptr_t>(fiber->stack.base) : here, this};
  if (!mine.isOfFiber() || mine.frame - mine.stack < fiber->stack.size) t_innermost = mine;  // otherwise see onOtherStack()
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

HandlerScope::~HandlerScope() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_innermost = m_before;
}

/// A handler may also suspend its fiber by itself, so the caller may be another fiber.
[[gnu::noinline]] bool HandlerScope::isRunning() {
  return t_innermost.contains(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

bool HandlerScope::interruptsLoop() const {
  const bool in_handler = m_before.frame != 0 && !m_before.isOfFiber();
  return onThreadStack() && Worker::currentHere() != nullptr && !in_handler;
}

[[gnu::noinline]] void HandlerScope::leaveTo(uintptr_t to) {
  while (t_innermost.frame != 0 && isRunning() && !t_innermost.contains(to)) t_innermost = t_innermost.scope->m_before;
}

}  // namespace sylar
