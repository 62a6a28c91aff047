// Internal. Every system call that the library makes for itself goes through this file: the one seam for fault injection,
// and the reason why our own calls can never be caught by our own hooks.
//
// What can fail for want of something (memory, descriptors, registrations, threads) stands in sys_memory.cc and sys_calls.cc,
// what a thread asks for when it sleeps in sys_wait.cc. A test that defines all functions of such a file is linked with those
// instead, and so decides which call fails, or sees what is asked for; a program pays nothing for that.
//
// Results: >= 0, or -errno. `errno` itself is never touched, so a hook can use these without spoiling the caller's errno.
// Thread safety: all. None suspends.
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

/// A bare system call: its result, or -errno. No cancellation point, no libc in between.
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
extern constinit std::atomic<const std::atomic<uint32_t>*> g_claim;  // 1 in the process of the workers; wiped in its forks
[[gnu::tls_model("initial-exec")]] extern constinit thread_local pid_t t_thread_id;
pid_t learnThreadId();
}  // namespace detail

/// Kernel id of the calling thread; cached, and right in a forked child. Never inlined into code that may change its thread.
pid_t threadId();
/// The same, for functions that cannot suspend.
inline pid_t threadIdHere() { return detail::t_thread_id != 0 ? detail::t_thread_id : detail::learnThreadId(); }

/// Says that workers run in this process. In its forks inForkedChild() is true from then on, however they are made: threads and
/// descriptors of the library are the parent's there. A child of a process without workers is a process like any other.
/// Throws std::bad_alloc; std::logic_error in such a fork.
void claimProcess();
inline bool inForkedChild() {
  const std::atomic<uint32_t>* const claim = detail::g_claim.load(std::memory_order_acquire);
  return claim != nullptr && claim->load(std::memory_order_relaxed) == 0;
}
/// True from the first worker on, not in a forked child.
bool hasWorkers();

/// The calling thread never goes on.
[[noreturn]] void haltThread();

/// The caller's errno, through a call that no compiler merges with another: its address depends on the thread, and code that
/// was moved to another thread in between must look anew.
int& errnoRef();

/// Writes all `size` bytes, as far as the descriptor takes them. For last words.
void writeAll(int fd, const void* data, size_t size);

/// Blocks while `*word` == `expected`, until a wake, a signal or `deadline_ns` (CLOCK_MONOTONIC; kNever = none). futex(2).
int futexWait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns);
/// Wakes up to `count` threads that wait for `word`. futex(2).
int futexWake(const std::atomic<uint32_t>& word, int count);

/// Anonymous private memory of `size` bytes, or null and `*error` = errno. mmap(2).
void* mapMemory(size_t size, int* error);
int unmapMemory(void* address, size_t size);
int protectMemory(void* address, size_t size, int protection);
int adviseMemory(void* address, size_t size, int advice);

/// The calling thread's alternate signal stack: sets it, and tells what it was; either may be null. sigaltstack(2).
int signalStack(const stack_t* set, stack_t* was);

// What the library makes for itself with eventFd, epollCreate and timerFd is its own until closeFd: the hooks keep it from being
// closed by a user who closes whatever there is.
int closeFd(int fd);
int eventFd();  ///< non-blocking, close-on-exec
int epollCreate();
/// From here on `fd` is the library's own; passes on what is no descriptor.
int keepOwn(long fd);
bool isOwn(int fd);
/// It was closed behind our back, and the number is somebody's.
void disown(int fd);
/// The first number >= `fd` that is the library's own, or INT_MAX. Looks at a bit per number.
int nextOwn(int fd);
int epollControl(int epoll, int op, int fd, epoll_event* event);
/// Waits until `deadline_ns` (CLOCK_MONOTONIC time `now_ns` is the present); kNever = for ever, a past deadline = no wait. In
/// nanoseconds, or, where the kernel has no epoll_pwait2, in milliseconds, rounded up; may return before `deadline_ns` only if
/// that is more than 24 days away.
int epollWait(int epoll, epoll_event* events, int capacity, int64_t now_ns, int64_t deadline_ns);
int epollPwait(int epoll, epoll_event* events, int capacity, int timeout_ms);            ///< -1 = for ever. epoll_pwait(2)
int epollPwait2(int epoll, epoll_event* events, int capacity, const timespec& timeout);  ///< the same in ns, Linux 5.11
/// By how much the kernel may let the calling thread sleep longer, in ns. prctl(2), PR_SET_TIMERSLACK.
int64_t timerSlack();
void setTimerSlack(int64_t slack_ns);
/// Waits until `fd` is readable or `deadline_ns` has come; times as for epollWait.
int waitReadable(int fd, int64_t now_ns, int64_t deadline_ns);
int timerFd();                                ///< CLOCK_MONOTONIC, non-blocking, close-on-exec
int timerFdSet(int fd, int64_t deadline_ns);  ///< absolute; kNever disarms
/// pthread_create(3).
int createThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument);
long readFd(int fd, void* data, size_t size);
long writeFd(int fd, const void* data, size_t size);

}  // namespace sylar::sys
