// Internal. Whether the caller is in a signal handler of the program that has interrupted a fiber. The hooks are libc's there.
// And whether a handler has interrupted a worker's loop, to which it must not return in a forked child.
//
// The thread knows the frame of the innermost handler's trampoline, and the fiber that it has interrupted. What this fiber runs
// below that frame, on the same stack, is in the handler. That may be the fiber's stack, the alternate signal stack, or one that
// the program has made. A handler ends when it returns or throws, or when it jumps to a place above its frame (hook_jump.cc).
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar::detail {

class HandlerScope {
 public:
  /// How much of a stack that the program has made is taken for a handler's. Beyond that may be other stacks of the program's.
  static constexpr uintptr_t kReach = 64 * 1024;

  /// To be made in the frame of the trampoline, around the program's handler.
  [[gnu::always_inline]] inline HandlerScope() : HandlerScope(__builtin_frame_address(0)) {}
  ~HandlerScope();
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;

  /// Returns true in a handler. To be called in a fiber.
  [[gnu::always_inline]] static bool running() {
    const tsan::Exempt of_this_thread;
    return t_innermost.frame != 0 && isRunning();
  }
  /// Returns true if what the handler has interrupted is no handler, but the loop of a worker.
  bool interruptsLoop() const;
  /// Ends the handlers that a jump to the stack pointer `to` leaves.
  static void leaveTo(uintptr_t to);

 private:
  struct Record {
    bool contains(uintptr_t address) const { return address >= lowest && address < frame; }
    bool isLeft(uintptr_t from, uintptr_t to) const;

    uintptr_t frame = 0;               ///< 0 if there is none
    uintptr_t lowest = 0;              ///< where the handler's frames end at the latest
    const FiberCore* fiber = nullptr;  ///< that it has interrupted, or null
    HandlerScope* scope = nullptr;
  };

  explicit HandlerScope(const void* frame);
  static bool isRunning();
  static Record innermost();

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Record t_innermost;

  Record m_before;
};

/// Asks the kernel whether the caller is on the thread's alternate signal stack. Source: sigaltstack(2).
bool askOnSignalStack();
/// Returns true if the caller is a signal handler with a stack of its own (SA_ONSTACK) that has interrupted `me`, the running
/// fiber, whether a trampoline runs it or not. It must not be suspended, because the thread's next handler would use that stack
/// again. Code on any other stack is the fiber's.
[[gnu::always_inline]] inline bool onSignalStack(const FiberCore& me) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here - reinterpret_cast<uintptr_t>(me.stack.base) < me.stack.size) [[likely]]
    return false;
  return askOnSignalStack();
}
/// Does the same for the running fiber. To be called in a fiber only.
[[gnu::always_inline]] inline bool onSignalStack() { return onSignalStack(*t_running); }

}  // namespace sylar::detail
