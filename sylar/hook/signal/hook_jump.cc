// longjmp and similar calls end the signal handlers that they leave. Source: longjmp(3), siglongjmp(3).
#include <csetjmp>
#include <cstdint>

#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/jump.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {

constinit std::atomic<void (*)(uintptr_t to)> g_before_jump{nullptr};

namespace {

/// Returns the stack pointer that a jump to `place` restores. glibc keeps it mangled.
uintptr_t stackPointerOf(const __jmp_buf_tag& place) {
#ifdef __x86_64__
  constexpr int kStackPointer = 6;
  auto pointer = static_cast<uintptr_t>(place.__jmpbuf[kStackPointer]);
  __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(pointer));
  return pointer;
#else
  (void)place;
  return kSomewhere;
#endif
}

void beforeJump(const __jmp_buf_tag& place) {
  const uintptr_t to = stackPointerOf(place);
  HandlerScope::leaveTo(to);
  Interruptible::letNoneThrough();
#ifdef SYLAR_THREAD_POINTER
  FiberThread::mine().gets_signal = false;
#endif
  if (void (*const before)(uintptr_t) = g_before_jump.load(std::memory_order_relaxed)) before(to);
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

#define SYLAR_JUMP_(name)                               \
  void name(__jmp_buf_tag* place, int value) noexcept { \
    beforeJump(*place);                                 \
    real::name(place, value);                           \
    __builtin_unreachable();                            \
  }
SYLAR_JUMP_(longjmp)
SYLAR_JUMP_(_longjmp)
SYLAR_JUMP_(siglongjmp)
SYLAR_JUMP_(__longjmp_chk)

}  // extern "C"
