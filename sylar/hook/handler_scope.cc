#include "sylar/hook/handler_scope.h"

#include <atomic>

#include "sylar/fiber/thread_fibers.h"

namespace sylar {

constinit thread_local HandlerScope::Record HandlerScope::t_innermost;

HandlerScope::HandlerScope(const void* frame) : m_before(t_innermost) {
  const FiberCore* const fiber = t_running;
  if (fiber == nullptr) return;  // the hooks are libc's anyway
  const Record mine{reinterpret_cast<uintptr_t>(frame), reinterpret_cast<uintptr_t>(fiber->stack.base), this};
  if (mine.frame - mine.stack < fiber->stack.size) t_innermost = mine;  // otherwise see onOtherStack()
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

[[gnu::noinline]] void HandlerScope::leaveTo(uintptr_t to) {
  while (t_innermost.frame != 0 && isRunning() && !t_innermost.contains(to)) t_innermost = t_innermost.scope->m_before;
}

}  // namespace sylar
