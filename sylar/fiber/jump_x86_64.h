// Internal. The jump from one stack to another on x86-64, inlined: the compiler keeps over it what is alive, no more.
//
// A call to a switch that comes back by a jump, as Boost.Context's, leaves the processor's stack of return addresses with an
// entry too many, and the returns behind it are mispredicted. Here nothing is called. The stack is not written to, so the red
// zone is safe.
//
// Not for processes with user shadow stacks (CET). Source: System V psABI x86-64, 3.2: rsp, rbp, MXCSR's and the x87 control word
// are handed over here; all else that a function may expect to be kept is clobbered, so it is the compiler's care.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sylar {

/// Where a computation goes on, and how it computes.
struct JumpPlace {
  void* stack;
  void* frame;
  void* instruction;
  uint32_t sse_control;
  uint16_t x87_control;
};
static_assert(offsetof(JumpPlace, stack) == 0 && offsetof(JumpPlace, frame) == 8 && offsetof(JumpPlace, instruction) == 16);

/// How the caller computes.
inline void keepControlWords(JumpPlace& place) {
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(place.sse_control), "=m"(place.x87_control));
}

/// Such a place that the first jump to it calls `entry`, on the stack that ends at `top`, a multiple of 16. It must not return.
inline void makeJumpPlace(JumpPlace& place, char* top, void (*entry)()) {
  auto* const return_address = reinterpret_cast<void**>(top) - 1;  // as after a call
  *return_address = nullptr;                                       // debuggers and unwinders stop here
  place.stack = return_address;
  place.frame = nullptr;
  place.instruction = reinterpret_cast<void*>(entry);
  keepControlWords(place);
}

#ifdef __AVX512F__
#define SYLAR_AVX512_REGISTERS_                                                                                          \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", \
      "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define SYLAR_AVX512_REGISTERS_
#endif

/// MXCSR's low bits say which exceptions there were: as the psABI has it, they are nobody's over a call, and nearly always
/// differ.
inline constexpr uint32_t kSseFlags = 0x3f;

/// Notes in `left` where the caller is and goes on at `entered`. Returns when somebody jumps to `left`. Only for frames of fixed
/// size (no alloca, no array of variable length) without locals that are aligned to more than 16: clang 14 keeps rbx to find its
/// way in such a frame, whatever is clobbered.
[[gnu::always_inline]] inline void jump(JumpPlace& left, const JumpPlace& entered) {
  keepControlWords(left);
  // They are nearly always the same, and dear to load.
  if (((left.sse_control ^ entered.sse_control) & ~kSseFlags) != 0) [[unlikely]] {
    __asm__ volatile("ldmxcsr %0" : : "m"(entered.sse_control));
  }
  if (left.x87_control != entered.x87_control) [[unlikely]] {
    __asm__ volatile("fldcw %0" : : "m"(entered.x87_control));
  }
  JumpPlace* from = &left;
  const JumpPlace* to = &entered;
  __asm__ volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "movq %%rax, 16(%0)\n\t"
      "movq (%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "jmpq *16(%1)\n"
      "1:"
      : "+D"(from), "+S"(to)
      :
      : "memory", "cc", "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",
        "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" SYLAR_AVX512_REGISTERS_);
}

}  // namespace sylar
