#include "sylar/fiber/thread_pointer.h"

#ifdef SYLAR_THREAD_POINTER

#include <asm/prctl.h>
#include <signal.h>
#include <sys/auxv.h>

#include "sylar/base/sys.h"

namespace sylar::detail {
namespace {

constexpr unsigned long kUserMayWriteFsBase = 2;  // HWCAP2_FSGSBASE, from Linux 5.9

constinit bool g_by_instruction = false;
[[gnu::constructor]] void learn() { g_by_instruction = (::getauxval(AT_HWCAP2) & kUserMayWriteFsBase) != 0; }

}  // namespace

namespace {

/// The mask of the thread in whose memory it stands.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_signal_mask = 0;

uint64_t maskOf(uintptr_t pointer) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(&t_signal_mask) - threadPointer();
  return *reinterpret_cast<uint64_t*>(pointer + offset);
}

}  // namespace

[[gnu::noinline]] void keepSignalMask(uint64_t mask) { t_signal_mask = mask; }
[[gnu::noinline]] uint64_t keptSignalMask() { return t_signal_mask; }
[[gnu::noinline]] uint64_t keptSignalMaskOf(uintptr_t pointer) { return maskOf(pointer); }

/// Meanwhile the kernel delivers only what neither of the two threads blocks.
[[gnu::cold]] static void becomeWithMask(uintptr_t pointer, uint64_t mask, uint64_t before) {
  const uint64_t both = before | mask;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &both, nullptr, sizeof both);
  setThreadPointer(pointer);
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

/// Looks at both masks under the thread pointer of before.
[[gnu::noinline]] void becomeThread(uintptr_t pointer) {
  const uint64_t before = t_signal_mask;
  const uint64_t mask = maskOf(pointer);
  if (mask != before) [[unlikely]]
    return becomeWithMask(pointer, mask, before);
  setThreadPointer(pointer);
}

[[gnu::noinline]] void setThreadPointer(uintptr_t pointer) {
  if (g_by_instruction) [[likely]] {
    __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
  } else {
    sys::call(SYS_arch_prctl, ARCH_SET_FS, pointer);
  }
}

}  // namespace sylar::detail

#endif
