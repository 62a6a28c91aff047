// Internal. Every system call that the library makes for itself goes through this file. It is the one seam for fault injection,
// and it keeps the library's own calls out of its own hooks.
//
// Calls that fail when a resource runs out (memory, descriptors, registrations, threads) are in sys_memory.cc and sys_calls.cc,
// those about a thread's sleep in sys_wait.cc. A test that defines all functions of such a file is linked with its own ones, so
// it decides which call fails, or sees the arguments. Programs pay nothing for that.
//
// Calls return a value >= 0, or -errno. They never touch `errno`, so a hook can use them without spoiling the caller's errno.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace sylar::sys {

/// Makes a bare system call, without libc's wrapper, and returns its result or -errno. It is no cancellation point.
template <class... Args>
inline long call(long number, Args... args) {
#if defined(__x86_64__)
  static_assert(sizeof...(Args) <= 6);
  const long values[6] = {(long)args...};  // NOLINT: any argument, as the kernel takes it
  register long r10 __asm__("r10") = values[3];
  register long r8 __asm__("r8") = values[4];
  register long r9 __asm__("r9") = values[5];
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(values[0]), "S"(values[1]), "d"(values[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#else
  const int saved = errno;
  const long result = ::syscall(number, args...);
  const long answer = result == -1 ? -errno : result;
  errno = saved;
  return answer;
#endif
}

namespace detail {
extern constinit std::atomic<const std::atomic<uint32_t>*> g_claim;  // 1 in the process of the workers, wiped to 0 in its forks
[[gnu::tls_model("initial-exec")]] extern constinit thread_local pid_t t_thread_id;
pid_t learnThreadId();
}  // namespace detail

/// Returns the kernel id of the calling thread, which is cached and right in a forked child too. Never inlined, because a caller
/// that suspends may go on in another thread.
pid_t threadId();
/// Returns threadId(), inlined; only for functions that cannot suspend.
inline pid_t threadIdHere() { return detail::t_thread_id != 0 ? detail::t_thread_id : detail::learnThreadId(); }

/// Returns the cached id of the calling thread, or 0 if it was not asked for yet; only for functions that cannot suspend.
inline pid_t knownThreadIdHere() { return detail::t_thread_id; }

/// Records that workers run in this process. From then on inForkedChild() is true in its forks, however they are made, because
/// the library's threads and descriptors are the parent's there. A child of a process without workers is a process like any
/// other. Throws std::bad_alloc, std::system_error if no thread can be made, or std::logic_error in such a fork.
void claimProcess();
inline bool inForkedChild() { return detail::g_claim.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == 0; }
/// Returns true from the first worker on, but not in a forked child.
bool hasWorkers();

namespace detail {
extern constinit std::atomic<bool> g_light_barriers;  // the kernel makes them whole
}  // namespace detail
/// The two ends of an asymmetric barrier. One thread stores, calls lightBarrier() and loads what another one stores before it calls
/// heavyBarrier() and loads what the first has stored. At least one of the two loads then sees the other's store. The light end
/// costs no more than a look at a flag; the heavy end is a system call, which interrupts the process's threads. membarrier(2).
inline void lightBarrier() {
  if (detail::g_light_barriers.load(std::memory_order_relaxed)) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}
/// Returns false if the kernel refuses it, because of a filter that was installed since the start. Then there was no barrier.
[[nodiscard]] bool heavyBarrier();

/// Stops the calling thread for good.
[[noreturn]] void haltThread();

/// Returns the caller's errno, through a call that no compiler merges with another. Its address depends on the thread, so code
/// that may have moved to another thread must call this again.
int& errnoRef();

/// Writes all `size` bytes, or fewer if a write fails; for reports of crashes.
void writeAll(int fd, const void* data, size_t size);

/// Blocks while `*word` == `expected`, until a wake, a signal or `deadline_ns` (CLOCK_MONOTONIC; kNever = none). futex(2).
int futexWait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns);
/// Wakes up to `count` threads that wait for `word`. futex(2).
int futexWake(const std::atomic<uint32_t>& word, int count);

/// Puts the calling thread to sleep for `ns`, which must be below a second, or until a signal. clock_nanosleep(2).
void sleepFor(int64_t ns);

/// Maps `size` bytes of anonymous private memory. Returns null and sets `*error` to the errno if that fails. mmap(2).
void* mapMemory(size_t size, int* error);
/// Enlarges memory of mapMemory(), which may move but keeps its contents. Returns null if nothing has changed. mremap(2).
void* growMemory(void* address, size_t old_size, size_t size);
int unmapMemory(void* address, size_t size);
int protectMemory(void* address, size_t size, int protection);
int adviseMemory(void* address, size_t size, int advice);

/// Sets the calling thread's alternate signal stack to `*set` and `*was` to the one before; either may be null. sigaltstack(2).
int signalStack(const stack_t* set, stack_t* was);

// Descriptors from eventFd, epollCreate and timerFd are the library's own until closeFd. The hooks protect them from programs
// that close every descriptor there is.
int closeFd(int fd);
int eventFd();  ///< non-blocking, close-on-exec
int epollCreate();
/// Makes the descriptor `made` the library's own and moves it to a number from 64 up, or as high as RLIMIT_NOFILE allows, but
/// never to 0 to 2. Returns the number, or -EMFILE; returns `made` if that is an error.
int keepOwn(long made);
bool isOwn(int fd);
/// Forgets that `fd` is the library's own, for instance because it was closed behind its back and the number has a new owner.
void disown(int fd);
/// Returns the first number >= `fd` that is the library's own, or INT_MAX. Scans one bit per number.
int nextOwn(int fd);
int epollControl(int epoll, int op, int fd, epoll_event* event);
/// Waits until `deadline_ns`, where `now_ns` is the present CLOCK_MONOTONIC time; kNever means no deadline, a past deadline no
/// wait. The resolution is nanoseconds or, if the kernel has no epoll_pwait2, milliseconds, rounded up. May return before
/// `deadline_ns` only if that is more than 24 days away.
int epollWait(int epoll, epoll_event* events, int capacity, int64_t now_ns, int64_t deadline_ns);
int epollPwait(int epoll, epoll_event* events, int capacity, int timeout_ms);            ///< -1 = no timeout. epoll_pwait(2)
int epollPwait2(int epoll, epoll_event* events, int capacity, const timespec& timeout);  ///< timeout in ns; Linux 5.11
/// Returns by how many ns the kernel may prolong the calling thread's sleeps. prctl(2), PR_SET_TIMERSLACK.
int64_t timerSlack();
void setTimerSlack(int64_t slack_ns);
/// Waits until `fd` is readable or `deadline_ns` has passed; times are those of epollWait().
int waitReadable(int fd, int64_t now_ns, int64_t deadline_ns);
/// Returns which of `events`, and of POLLERR, POLLHUP and POLLNVAL, are true of `fd` now. poll(2).
short pollNow(int fd, short events);
int timerFd();                                ///< CLOCK_MONOTONIC, non-blocking, close-on-exec
int timerFdSet(int fd, int64_t deadline_ns);  ///< absolute; kNever disarms
/// Calls pthread_create(3) and returns its result.
int createThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument);
long readFd(int fd, void* data, size_t size);
long writeFd(int fd, const void* data, size_t size);

}  // namespace sylar::sys
