#include "tests/faults/injector.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/real.h"

namespace sylar::faults {
namespace {

constexpr int kAdviceGuardInstall = 102;  // MADV_GUARD_INSTALL
constexpr int kNone = -1;

constinit std::atomic<int> g_kind{kNone};
constinit std::atomic<int> g_error{0};
constinit std::atomic<long> g_first{0};
constinit std::atomic<long> g_width{0};
constinit std::atomic<long> g_calls{0};
constinit std::atomic<bool> g_fired{false};
constinit std::atomic<bool> g_old_kernel{false};
constinit std::atomic<long> g_blocks{0};
constinit std::atomic<long> g_mapped{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local int t_exempt = 0;

/// Counts a call. Its errno, or 0: it goes to the kernel.
int failure(Kind kind) {
  if (g_kind.load(std::memory_order_acquire) != static_cast<int>(kind) || t_exempt > 0) return 0;
  const long call = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
  const long first = g_first.load(std::memory_order_relaxed);
  if (call < first || call >= first + g_width.load(std::memory_order_relaxed)) return 0;
  g_fired.store(true, std::memory_order_relaxed);
  return g_error.load(std::memory_order_relaxed);
}

void* allocate(size_t size) noexcept {
  if (failure(Kind::kNew) != 0) return nullptr;
  void* const memory = std::malloc(size);
  if (memory != nullptr) g_blocks.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocateAligned(size_t size, std::align_val_t alignment) noexcept {
  if (failure(Kind::kNew) != 0) return nullptr;
  const auto align = static_cast<size_t>(alignment);
  void* const memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory != nullptr) g_blocks.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* orThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) g_blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

std::string describe(const Fault& fault) {
  static constexpr std::array kNames = {"mmap",    "madvise",        "mprotect",       "epoll_create", "epoll_ctl",
                                        "eventfd", "timerfd_create", "pthread_create", "accept",       "operator new"};
  std::string text = kNames.at(static_cast<size_t>(fault.kind));
  if (fault.kind != Kind::kNew) text.append(" = ").append(::strerrorname_np(fault.error));
  if (fault.width == kAllFromThere) return text + ", all from there";
  if (fault.width > 1) text.append(", ").append(std::to_string(fault.width)).append(" in a row");
  return text;
}

void arm(const Fault& fault, long nth) {
  g_calls.store(0, std::memory_order_relaxed);
  g_first.store(nth, std::memory_order_relaxed);
  g_width.store(fault.width, std::memory_order_relaxed);
  g_error.store(fault.error != 0 ? fault.error : ENOMEM, std::memory_order_relaxed);
  g_fired.store(false, std::memory_order_relaxed);
  g_kind.store(static_cast<int>(fault.kind), std::memory_order_release);
}

bool disarm() {
  g_kind.store(kNone, std::memory_order_release);
  return g_fired.load(std::memory_order_relaxed);
}

Exempt::Exempt() { ++t_exempt; }
Exempt::~Exempt() { --t_exempt; }

void pretendOldKernel() { g_old_kernel.store(true, std::memory_order_relaxed); }
long liveBlocks() { return g_blocks.load(std::memory_order_relaxed); }
long mappedBytes() { return g_mapped.load(std::memory_order_relaxed); }

}  // namespace sylar::faults

// ---- In place of sys_memory.cc and sys_calls.cc.
// -------------------------------------------------------------------------------

namespace sylar {

using faults::failure;
using faults::Kind;

void* sys::mapMemory(size_t size, int* error) {
  *error = failure(Kind::kMap);
  if (*error != 0) return nullptr;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    *error = ENOMEM;
    return nullptr;
  }
  faults::g_mapped.fetch_add(static_cast<long>(size), std::memory_order_relaxed);
  return memory;
}

void* sys::growMemory(void* address, size_t old_size, size_t size) {
  int error = 0;  // under a sanitizer the kernel's way is not the library's: always the plain one here
  void* const memory = mapMemory(size, &error);
  if (memory == nullptr) return nullptr;
  std::memcpy(memory, address, old_size);
  unmapMemory(address, old_size);
  return memory;
}

int sys::unmapMemory(void* address, size_t size) {
  faults::g_mapped.fetch_sub(static_cast<long>(size), std::memory_order_relaxed);
  return static_cast<int>(call(SYS_munmap, address, size));
}

int sys::protectMemory(void* address, size_t size, int protection) {
  const int error = failure(Kind::kProtect);
  return error != 0 ? -error : static_cast<int>(call(SYS_mprotect, address, size, protection));
}

int sys::adviseMemory(void* address, size_t size, int advice) {
  if (advice == faults::kAdviceGuardInstall && faults::g_old_kernel.load(std::memory_order_relaxed)) return -EINVAL;
  const int error = failure(Kind::kAdvise);
  return error != 0 ? -error : static_cast<int>(call(SYS_madvise, address, size, advice));
}

int sys::eventFd() {
  const int error = failure(Kind::kEventFd);
  return error != 0 ? -error : keepOwn(call(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC));
}

int sys::epollCreate() {
  const int error = failure(Kind::kEpollCreate);
  return error != 0 ? -error : keepOwn(call(SYS_epoll_create1, EPOLL_CLOEXEC));
}

int sys::timerFd() {
  const int error = failure(Kind::kTimerFd);
  return error != 0 ? -error : keepOwn(call(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

/// A registration is taken back without memory.
int sys::epollControl(int epoll, int op, int fd, epoll_event* event) {
  const int error = op == EPOLL_CTL_DEL ? 0 : failure(Kind::kEpollControl);
  return error != 0 ? -error : static_cast<int>(call(SYS_epoll_ctl, epoll, op, fd, event));
}

int sys::createThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  const int error = failure(Kind::kThread);
  return error != 0 ? error : ::pthread_create(thread, attributes, start, argument);
}

long attempt::plainAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (const int error = failure(Kind::kAccept)) return -error;
  const int saved_errno = errno;
  const int result = real::accept4(fd, address, size, flags);
  const long answer = result == -1 ? -errno : result;
  errno = saved_errno;
  return answer;
}

}  // namespace sylar

// ---- In place of the C++ library's operators.
// ------------------------------------------------------------------------------------

using sylar::faults::allocate;
using sylar::faults::allocateAligned;
using sylar::faults::orThrow;
using sylar::faults::release;

void* operator new(size_t size) { return orThrow(allocate(size)); }
void* operator new[](size_t size) { return orThrow(allocate(size)); }
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept { return allocate(size); }
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) { return orThrow(allocateAligned(size, alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return orThrow(allocateAligned(size, alignment)); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t& /*tag*/) noexcept {
  return allocateAligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t& /*tag*/) noexcept {
  return allocateAligned(size, alignment);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { release(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { release(memory); }
void operator delete(void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept { release(memory); }
void operator delete[](void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept { release(memory); }
