#include "sylar/base/sys.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <new>
#include <stdexcept>

#include "sylar/base/check.h"
#include "sylar/base/clock.h"
#include "sylar/base/sanitizers.h"

#ifdef SYLAR_TSAN
#include <sanitizer/linux_syscall_hooks.h>
#endif

namespace sylar::sys {
namespace {

/// The library's own descriptors, a bit each; higher numbers than these are never known as its own. Untouched pages cost nothing.
constexpr int kOwnBits = 1 << 24;
constinit std::atomic<uint64_t> g_own[kOwnBits / 64];
constinit std::atomic<int> g_own_end{0};  // only grows: no own number is as high

timespec toTimespec(int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

/// The child of a fork has one thread, with a new id. Registered before main and not on first use: there is no lock here then,
/// which a handler could interrupt or another thread hold at a fork.
constinit std::atomic<bool> g_follows_forks{false};
[[gnu::constructor]] void followForks() {
  if (pthread_atfork(nullptr, nullptr, [] { detail::t_thread_id = 0; }) == 0)
    g_follows_forks.store(true, std::memory_order_relaxed);
}

}  // namespace

namespace detail {

constinit std::atomic<const std::atomic<uint32_t>*> g_claim{nullptr};
constinit thread_local pid_t t_thread_id = 0;

pid_t learnThreadId() {
  const auto id = static_cast<pid_t>(call(SYS_gettid));
  if (g_follows_forks.load(std::memory_order_relaxed)) t_thread_id = id;
  return id;
}

}  // namespace detail

[[gnu::noinline]] pid_t threadId() { return threadIdHere(); }

void claimProcess() {
  if (inForkedChild()) {
    throw std::logic_error("sylar: no scheduler starts here, for the parent had begun to before it forked; fork first, or exec");
  }
  if (detail::g_claim.load(std::memory_order_acquire) != nullptr) return;
  int error = 0;
  void* const memory = mapMemory(4096, &error);
  if (memory == nullptr) throw std::bad_alloc();
  if (adviseMemory(memory, 4096, MADV_WIPEONFORK) != 0) {
    unmapMemory(memory, 4096);
    throw std::bad_alloc();
  }
  // In a child of a claimed process the pointer is set and the word wiped, and so it stays.
  const std::atomic<uint32_t>* none = nullptr;
  if (!detail::g_claim.compare_exchange_strong(none, ::new (memory) std::atomic<uint32_t>(1))) unmapMemory(memory, 4096);
}

void haltThread() {
  for (;;) call(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

bool hasWorkers() {
  const std::atomic<uint32_t>* const claim = detail::g_claim.load(std::memory_order_acquire);
  return claim != nullptr && claim->load(std::memory_order_relaxed) == 1;
}

[[gnu::noinline]] int& errnoRef() {
  __asm__ volatile("");
  return errno;
}

void writeAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const long n = writeFd(fd, at, size);
    if (n == -EINTR) continue;
    if (n <= 0) return;
    at += n;
    size -= static_cast<size_t>(n);
  }
}

int futexWait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns) {
  const timespec deadline = toTimespec(std::max<int64_t>(deadline_ns, 0));
  return static_cast<int>(call(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline_ns == kNever ? nullptr : &deadline,
                               nullptr, FUTEX_BITSET_MATCH_ANY));
}

int futexWake(const std::atomic<uint32_t>& word, int count) {
  return static_cast<int>(call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count));
}

int signalStack(const stack_t* set, stack_t* was) { return static_cast<int>(call(SYS_sigaltstack, set, was)); }

int closeFd(int fd) {
  if (isOwn(fd)) disown(fd);
#ifdef SYLAR_TSAN
  __sanitizer_syscall_pre_impl_close(fd);  // it keeps a table of descriptors, and sees no bare system call
#endif
  return static_cast<int>(call(SYS_close, fd));
}

int keepOwn(long fd) {
  if (fd < 0 || fd >= kOwnBits) return static_cast<int>(fd);
  g_own[fd / 64].fetch_or(uint64_t{1} << (fd % 64), std::memory_order_relaxed);
  int end = g_own_end.load(std::memory_order_relaxed);
  while (end <= fd && !g_own_end.compare_exchange_weak(end, static_cast<int>(fd) + 1, std::memory_order_relaxed)) continue;
  return static_cast<int>(fd);
}

bool isOwn(int fd) {
  if (fd < 0 || fd >= g_own_end.load(std::memory_order_relaxed)) return false;
  return (g_own[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
}

void disown(int fd) { g_own[fd / 64].fetch_and(~(uint64_t{1} << (fd % 64)), std::memory_order_relaxed); }

int nextOwn(int fd) {
  const int end = g_own_end.load(std::memory_order_relaxed);
  for (int at = std::max(fd, 0); at < end; at = (at / 64 + 1) * 64) {
    const uint64_t rest = g_own[at / 64].load(std::memory_order_relaxed) >> (at % 64);
    if (rest != 0) return at + std::countr_zero(rest);
  }
  return INT_MAX;
}

int epollWait(int epoll, epoll_event* events, int capacity, int64_t now_ns, int64_t deadline_ns) {
  if (deadline_ns <= now_ns) return epollPwait(epoll, events, capacity, 0);
  if (deadline_ns == kNever) return epollPwait(epoll, events, capacity, -1);
  const int64_t wait_ns = deadline_ns - now_ns;
  const int result = epollPwait2(epoll, events, capacity, toTimespec(wait_ns));
  if (result != -ENOSYS && result != -EPERM) return result;  // EPERM: a filter of system calls that is older than this one
  const int64_t wait_ms = wait_ns / 1'000'000 + (wait_ns % 1'000'000 > 0);  // up: late beats early
  return epollPwait(epoll, events, capacity, static_cast<int>(std::min<int64_t>(wait_ms, INT_MAX)));
}

int waitReadable(int fd, int64_t now_ns, int64_t deadline_ns) {
  pollfd one{fd, POLLIN, 0};
  const timespec wait = toTimespec(std::max<int64_t>(deadline_ns - now_ns, 0));
  return static_cast<int>(call(SYS_ppoll, &one, 1, deadline_ns == kNever ? nullptr : &wait, nullptr, 0));
}

int timerFdSet(int fd, int64_t deadline_ns) {
  itimerspec setting{};
  // A deadline of 0 would disarm; 1 ns is as long ago.
  if (deadline_ns != kNever) setting.it_value = toTimespec(std::max<int64_t>(deadline_ns, 1));
  return static_cast<int>(call(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &setting, nullptr));
}

long readFd(int fd, void* data, size_t size) { return call(SYS_read, fd, data, size); }
long writeFd(int fd, const void* data, size_t size) { return call(SYS_write, fd, data, size); }

}  // namespace sylar::sys
