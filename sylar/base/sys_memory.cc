// The calls for memory. They have their own file for tests; see sys.h.
#include <cstring>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"

namespace sylar::sys {
namespace {

long mapCall(size_t size) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef SYLAR_TSAN
  // Goes through libc, so that the sanitizer forgets accesses to the address by a thread that has unmapped it since.
  const int saved = errno;
  void* const memory = ::mmap(nullptr, size, kProtection, kFlags, -1, 0);
  const long result = memory == MAP_FAILED ? -errno : reinterpret_cast<long>(memory);
  errno = saved;
  return result;
#else
  return call(SYS_mmap, nullptr, size, kProtection, kFlags, -1, 0L);
#endif
}

}  // namespace

void* mapMemory(size_t size, int* error) {
  const long result = mapCall(size);
  if (result < 0 && result > -4096) {
    *error = static_cast<int>(-result);
    return nullptr;
  }
  return reinterpret_cast<void*>(result);
}

void* growMemory(void* address, size_t old_size, size_t size) {
#ifdef SYLAR_TSAN  // TSan would report earlier accesses to the new address as races
  int error = 0;
  void* const memory = mapMemory(size, &error);
  if (memory == nullptr) return nullptr;
  std::memcpy(memory, address, old_size);
  unmapMemory(address, old_size);
  return memory;
#else
  const long result = call(SYS_mremap, address, old_size, size, MREMAP_MAYMOVE);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
#endif
}

int unmapMemory(void* address, size_t size) { return static_cast<int>(call(SYS_munmap, address, size)); }
int protectMemory(void* address, size_t size, int protection) {
  return static_cast<int>(call(SYS_mprotect, address, size, protection));
}
int adviseMemory(void* address, size_t size, int advice) { return static_cast<int>(call(SYS_madvise, address, size, advice)); }

}  // namespace sylar::sys
