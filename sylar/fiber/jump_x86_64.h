// Internal. The jump from one stack to another on x86-64. It is inlined, so that the compiler saves across it only what is
// alive.
//
// If a switch is called and comes back by a jump, as Boost.Context's does, the processor's stack of return addresses keeps an
// entry too many, and the following returns are mispredicted. Here nothing is called. The stack is not written to, so the red
// zone is safe.
//
// Not for processes with user shadow stacks or indirect branch tracking (CET), so files that inline it are compiled with
// -fcf-protection=none. Source: System V psABI x86-64, 3.2. rsp, rbp, and the control words of MXCSR and x87 are handed over
// here. All else that a function may expect to be preserved is clobbered, so that the compiler saves it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The registers of a computation that continues later, and its floating-point control words.
struct SavedRegisters {
  void* stack;
  void* frame;
  void* instruction;
  uint32_t sse_control;
  uint16_t x87_control;
};
static_assert(offsetof(SavedRegisters, stack) == 0 && offsetof(SavedRegisters, frame) == 8 &&
              offsetof(SavedRegisters, instruction) == 16);

/// Stores the caller's floating-point control words in `registers`.
inline void keepControlWords(SavedRegisters& registers) {
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(registers.sse_control), "=m"(registers.x87_control));
}

/// Makes `registers` such that the first jump to it calls `entry`, on the stack that ends at `top`, a multiple of 16. `entry`
/// must not return.
inline void makeRegisters(SavedRegisters& registers, char* top, void (*entry)()) {
  auto* const return_address = reinterpret_cast<void**>(top) - 1;  // as after a call
  *return_address = nullptr;                                       // debuggers and unwinders stop here
  registers.stack = return_address;
  registers.frame = nullptr;
  registers.instruction = reinterpret_cast<void*>(entry);
  keepControlWords(registers);
}

#ifdef __AVX512F__
#define SYLAR_AVX512_REGISTERS_                                                                                          \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", \
      "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define SYLAR_AVX512_REGISTERS_
#endif

/// MXCSR's low bits, which say what exceptions there were. The psABI does not preserve them across a call, and they nearly
/// always differ.
inline constexpr uint32_t kSseFlags = 0x3f;

/// Records in `left` where the caller is, and continues at `entered`. Returns when somebody jumps to `left`. Only for frames of
/// fixed size (no alloca, no array of variable length) without locals that are aligned to more than 16, because in such a frame
/// clang 14 uses rbx to find its locals, even if it is clobbered.
[[gnu::always_inline]] inline void jump(SavedRegisters& left, const SavedRegisters& entered) {
  keepControlWords(left);
  // The control words are nearly always the same, and expensive to load.
  if (((left.sse_control ^ entered.sse_control) & ~kSseFlags) != 0) [[unlikely]] {
    __asm__ volatile("ldmxcsr %0" : : "m"(entered.sse_control));
  }
  if (left.x87_control != entered.x87_control) [[unlikely]] {
    __asm__ volatile("fldcw %0" : : "m"(entered.x87_control));
  }
  SavedRegisters* from = &left;
  const SavedRegisters* to = &entered;
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

}  // namespace sylar::detail
