// Internal. Whether the caller is in a signal handler of the program that has interrupted a fiber. The hooks are libc's there.
// And whether a handler has interrupted a worker's loop, to which it must not return in a forked child.
//
// The thread knows the frame of the innermost handler's trampoline. What runs in the handler is below that frame, on the same
// stack. A handler ends when it returns or throws, or when it jumps to a place above its frame (hook_jump.cc).
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"

namespace sylar::detail {

class HandlerScope {
 public:
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
    bool contains(uintptr_t address) const { return address >= stack && address < frame; }
    bool isOfFiber() const { return stack != frame; }

    uintptr_t frame = 0;  ///< 0 if there is none
    uintptr_t stack = 0;  ///< the lowest address of the fiber's stack; outside fibers, where nothing asks, the frame itself
    const HandlerScope* scope = nullptr;
  };

  explicit HandlerScope(const void* frame);
  static bool isRunning();
  static Record innermost();

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Record t_innermost;

  const Record m_before;
};

}  // namespace sylar::detail
