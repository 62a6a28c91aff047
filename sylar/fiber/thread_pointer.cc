#include "sylar/fiber/thread_pointer.h"

#ifdef SYLAR_THREAD_POINTER

#include <asm/prctl.h>
#include <sys/auxv.h>

#include "sylar/base/sys.h"

namespace sylar {
namespace {

constexpr unsigned long kUserMayWriteFsBase = 2;  // HWCAP2_FSGSBASE, from Linux 5.9

constinit bool g_by_instruction = false;
[[gnu::constructor]] void learn() { g_by_instruction = (::getauxval(AT_HWCAP2) & kUserMayWriteFsBase) != 0; }

}  // namespace

[[gnu::noinline]] void setThreadPointer(uintptr_t pointer) {
  if (g_by_instruction) [[likely]] {
    __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
  } else {
    sys::call(SYS_arch_prctl, ARCH_SET_FS, pointer);
  }
}

}  // namespace sylar

#endif
