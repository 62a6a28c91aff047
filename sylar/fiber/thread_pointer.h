// Internal. The thread pointer, from which compiled code reckons the addresses of thread_local variables, and libc those of its own
// record of the thread. Whoever changes it is, for all such code, another thread.
//
// Source: System V psABI x86-64, 3.4.6; Drepper, ELF Handling For Thread-Local Storage; arch_prctl(2); Intel SDM, WRFSBASE.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/sanitizers.h"

#if defined(__x86_64__) && defined(__LP64__) && !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)
#define SYLAR_THREAD_POINTER 1
#endif

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

/// Returns the calling thread's.
inline uintptr_t threadPointer() {
  uintptr_t pointer;
  __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}
/// Never inlined. Compilers keep the addresses of thread_local variables in a function, so one that calls this must not use the
/// same variable before and after it, but through other functions that are never inlined.
void setThreadPointer(uintptr_t pointer);

/// Does the same, and sets the signal mask of the thread that had been given that pointer (keepSignalMask). The kernel's mask must
/// be that of the thread that is left.
void becomeThread(uintptr_t pointer);

/// Notes the signal mask of the calling thread, which becomeThread() sets again. The kernel's is the same already.
void keepSignalMask(uint64_t mask);
/// Returns what was noted.
uint64_t keptSignalMask();
/// Returns what the thread with that pointer has noted. It must exist.
uint64_t keptSignalMaskOf(uintptr_t pointer);

#endif

}  // namespace sylar::detail
