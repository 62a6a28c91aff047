#include "sylar/base/sys.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/single_threaded.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "sylar/base/memory_refused.h"
#include "sylar/base/own_thread.h"
#include "sylar/base/sanitizers.h"
#include "sylar/check.h"
#include "sylar/clock.h"

#ifdef SYLAR_TSAN
#include <sanitizer/linux_syscall_hooks.h>
#endif

namespace sylar::sys {
namespace {

/// The library's own descriptors, one bit each; numbers from kOwnBits on are never known as its own. Untouched pages cost
/// nothing.
constexpr int kOwnBits = 1 << 24;
constinit std::atomic<uint64_t> g_own[kOwnBits / 64];
constinit std::atomic<int> g_own_end{0};  // only grows; all own numbers are below it

/// The lowest number that the library takes for itself; under a low RLIMIT_NOFILE it takes the highest that is free. Lower
/// numbers are left to programs that put a file behind a certain number, above all to the standard streams.
constexpr int kFirstOwn = 64;
constexpr int kFirstAfterStreams = 3;

/// Returns `fd` moved up to the library's own numbers, or -EMFILE if only those of the standard streams are free.
long raised(long fd) {
  if (fd < 0 || fd >= kFirstOwn) return fd;
  for (int least = kFirstOwn; least > fd && least >= kFirstAfterStreams; --least) {
    const long high = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least);
    if (high < 0) continue;
    closeFd(static_cast<int>(fd));
    return high;
  }
  if (fd >= kFirstAfterStreams) return fd;
  closeFd(static_cast<int>(fd));
  return -EMFILE;
}

timespec toTimespec(int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

/// True if the child of a fork forgets the cached id, since its one thread has a new one. Registered before main and not on first
/// use, which would need a lock that a signal handler could interrupt or another thread hold at a fork.
constinit std::atomic<bool> g_follows_forks{false};
[[gnu::constructor]] void followForks() {
  if (pthread_atfork(nullptr, nullptr, [] { detail::t_thread_id = 0; }) == 0)
    g_follows_forks.store(true, std::memory_order_relaxed);
}

/// Makes a thread, which ends at once. From a process's first thread on libc's __libc_single_threaded is 0, and libstdc++ waits for
/// the initialization of a static variable that is under way. Before that it takes any second caller for a recursion, and with
/// fibers that may be another fiber. (To set the variable is not enough, because by it libc knows whether it has prepared for
/// threads.)
void makeFirstThread() {
  sigset_t all;
  ::sigfillset(&all);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setsigmask_np(&attributes, &all);
  pthread_t thread;
  const auto nothing = [](void*) -> void* { return nullptr; };
  const int error = createThread(&thread, &attributes, nothing, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "sylar: no thread can be made, and fibers need one");
  ::pthread_join(thread, nullptr);
}

}  // namespace

namespace detail {

constinit const std::atomic<uint32_t> g_unclaimed{2};
constinit std::atomic<const std::atomic<uint32_t>*> g_claim{&g_unclaimed};
[[gnu::tls_model("initial-exec")]] constinit thread_local pid_t t_thread_id = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_makes_own_thread = false;

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
  if (detail::g_claim.load(std::memory_order_acquire) != &detail::g_unclaimed) return;
  if (__libc_single_threaded != 0) makeFirstThread();
  int error = 0;
  void* const memory = mapMemory(4096, &error);
  if (memory == nullptr) throw MemoryRefused("mmap of a page", error);
  error = adviseMemory(memory, 4096, MADV_WIPEONFORK);
  if (error != 0) {
    unmapMemory(memory, 4096);
    throw MemoryRefused("madvise(MADV_WIPEONFORK), which needs Linux 4.14 and no filter that refuses it", error);
  }
  // In a child of a claimed process the pointer stays set and the word stays wiped.
  const std::atomic<uint32_t>* none = &detail::g_unclaimed;
  if (!detail::g_claim.compare_exchange_strong(none, ::new (memory) std::atomic<uint32_t>(1))) unmapMemory(memory, 4096);
}

namespace detail {
constinit std::atomic<bool> g_light_barriers{false};
}  // namespace detail

namespace {

long membarrier(int command) { return call(SYS_membarrier, command, 0, 0); }

/// Registers the process while it has one thread, because later that takes the kernel milliseconds.
[[gnu::constructor]] void makeBarriersLight() {
  const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  detail::g_light_barriers.store(registered, std::memory_order_relaxed);
}

}  // namespace

bool heavyBarrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!detail::g_light_barriers.load(std::memory_order_relaxed)) return true;  // the other end is as heavy
  const long error = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  if (error != -EPERM) return error == 0;
  // The process is a fork of the one that was registered.
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void haltThread() {
  for (;;) call(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

bool hasWorkers() { return detail::g_claim.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == 1; }

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

void sleepFor(int64_t ns) {
  const timespec time{.tv_sec = 0, .tv_nsec = ns};
  call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

int futexWake(const std::atomic<uint32_t>& word, int count) {
  return static_cast<int>(call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count));
}

int signalStack(const stack_t* set, stack_t* was) { return static_cast<int>(call(SYS_sigaltstack, set, was)); }

int closeFd(int fd) {
  if (isOwn(fd)) disown(fd);
#ifdef SYLAR_TSAN
  __sanitizer_syscall_pre_impl_close(fd);  // TSan keeps a table of descriptors and does not see bare system calls
#endif
  return static_cast<int>(call(SYS_close, fd));
}

int keepOwn(long made) {
  const long fd = raised(made);
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
  if (result != -ENOSYS && result != -EPERM) return result;  // EPERM comes from a system call filter older than this call
  const int64_t wait_ms = wait_ns / 1'000'000 + (wait_ns % 1'000'000 > 0);  // rounded up, because late is better than early
  return epollPwait(epoll, events, capacity, static_cast<int>(std::min<int64_t>(wait_ms, INT_MAX)));
}

int waitReadable(int fd, int64_t now_ns, int64_t deadline_ns) {
  pollfd one{fd, POLLIN, 0};
  const timespec wait = toTimespec(std::max<int64_t>(deadline_ns - now_ns, 0));
  return static_cast<int>(call(SYS_ppoll, &one, 1, deadline_ns == kNever ? nullptr : &wait, nullptr, 0));
}

short pollNow(int fd, short events) {
  pollfd one{fd, events, 0};
  const timespec no_wait{};
  while (call(SYS_ppoll, &one, 1, &no_wait, nullptr, 0) == -EINTR) {
  }
  return one.revents;
}

int timerFdSet(int fd, int64_t deadline_ns) {
  itimerspec setting{};
  // A deadline of 0 would disarm the timer; 1 ns is as long past.
  if (deadline_ns != kNever) setting.it_value = toTimespec(std::max<int64_t>(deadline_ns, 1));
  return static_cast<int>(call(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &setting, nullptr));
}

long readFd(int fd, void* data, size_t size) { return call(SYS_read, fd, data, size); }
long writeFd(int fd, const void* data, size_t size) { return call(SYS_write, fd, data, size); }

}  // namespace sylar::sys
