// Internal. libc's own functions, behind the names that this module interposes.
//
// They are looked up before main, or on first use without malloc, because hooks are called before constructors run. The
// sanitizer's interceptor comes first if there is one, then the next symbol. (In a program with clang's static runtime our name
// hides the interceptor, and without it TSan sees false races.)
#pragma once

#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "sylar/hook/core/names.h"

// libc has these for programs built with _FORTIFY_SOURCE, and declares them to those only.
extern "C" {
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
void __longjmp_chk(__jmp_buf_tag* place, int value) noexcept __attribute__((noreturn));  // of the type of the others
int __isoc99_vfscanf(FILE* file, const char* format, va_list to);
int __vfprintf_chk(FILE* file, int flag, const char* format, va_list from);
int __vsnprintf_chk(char* to, size_t most, int flag, size_t to_size, const char* format, va_list from);
}

namespace sylar::real {

/// Returns the address of the next definition of `name`; ends the process if there is none.
void* resolve(const char* name);

template <class Function>
class Real {
 public:
  constexpr Real(const char* name, Function* interceptor) : m_name(name), m_interceptor(interceptor) {}

  /// Stores the function to call. `next` is the next definition, or null if there is none, which matters only if it is called.
  void lookUp(void* next) {
    Function* const function = m_interceptor != nullptr ? m_interceptor : reinterpret_cast<Function*>(next);
    m_function.store(function, std::memory_order_relaxed);
  }

  template <class... Args>
  auto operator()(Args... args) {
    Function* const function = m_function.load(std::memory_order_relaxed);
    if (function == nullptr) [[unlikely]]
      return resolveAndCall(args...);
    return function(args...);
  }

 private:
  // A function of its own, so that the usual call is a jump.
  template <class... Args>
  [[gnu::noinline]] auto resolveAndCall(Args... args) {
    lookUp(m_interceptor != nullptr ? nullptr : resolve(m_name));
    return m_function.load(std::memory_order_relaxed)(args...);
  }

  const char* m_name;
  Function* m_interceptor;
  std::atomic<Function*> m_function{nullptr};
};

// clang-format off
// Those that make descriptors, install handlers or jump, of which nobody counts the calls.
#define SYLAR_UNCOUNTED_NAMES(X)                                             \
  X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2)                    \
  X(eventfd) X(timerfd_create) X(signalfd) X(inotify_init) X(inotify_init1)  \
  X(epoll_create) X(epoll_create1)                                           \
  X(sigaction) X(signal) X(sysv_signal) X(sigset) X(siginterrupt)            \
  X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk)
// At most 255, by which a fiber remembers its last call.
#define SYLAR_COUNTED_NAMES(X)                                               \
  X(sleep) X(usleep) X(nanosleep) X(clock_nanosleep) X(sched_yield)          \
  X(socket) X(socketpair) X(pipe) X(pipe2) X(accept) X(accept4) X(connect) X(shutdown) \
  X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64)                \
  X(close) X(fclose) X(freopen) X(freopen64) X(pclose) X(dup) X(dup2) X(dup3) \
  X(fork) X(_Fork) X(forkpty) X(posix_spawn) X(posix_spawnp) X(popen) X(system)                 \
  X(wait4) X(waitid)                                                         \
  X(fcntl) X(ioctl) X(getsockopt) X(setsockopt)                              \
  X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg)                \
  X(write) X(writev) X(send) X(sendto) X(sendmsg) X(sendmmsg)                \
  X(pread) X(preadv) X(pwrite) X(pwritev) X(preadv2) X(pwritev2) X(sendfile) X(splice) X(tee) X(vmsplice) \
  X(copy_file_range) X(syscall) \
  X(poll) X(ppoll) X(select) X(pselect) X(epoll_ctl) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) \
  SYLAR_NAME_CALLS(X)                                                        \
  X(pause) X(sigsuspend) X(sigwait) X(sigwaitinfo) X(sigtimedwait)            \
  X(fgets) X(fgetc) X(fread) X(getdelim) X(vfscanf) X(__isoc99_vfscanf)      \
  X(fputs) X(puts) X(fputc) X(fwrite) X(vfprintf) X(__vfprintf_chk) X(fflush) \
  X(flockfile) X(ftrylockfile) X(funlockfile)                                \
  X(pthread_mutex_lock) X(pthread_mutex_timedlock) X(pthread_mutex_clocklock) X(pthread_mutex_trylock) X(pthread_mutex_unlock) \
  X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast) \
  X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock) X(pthread_rwlock_timedrdlock) X(pthread_rwlock_timedwrlock) \
  X(pthread_rwlock_clockrdlock) X(pthread_rwlock_clockwrlock) X(pthread_rwlock_tryrdlock) X(pthread_rwlock_trywrlock) \
  X(pthread_rwlock_unlock) X(pthread_barrier_wait) X(pthread_barrier_destroy) X(pthread_once) X(pthread_spin_lock) \
  X(sem_wait) X(sem_timedwait) X(sem_clockwait) X(sem_trywait) X(sem_post) \
  X(pthread_join) X(pthread_timedjoin_np) X(pthread_clockjoin_np)            \
  X(flock) X(lockf) X(fsync) X(fdatasync) X(syncfs) X(sync) X(msync) X(sync_file_range) \
  X(stat) X(lstat) X(fstatat) X(statx)                                       \
  X(mq_timedreceive) X(mq_timedsend) X(msgrcv) X(msgsnd) X(semtimedop) X(aio_suspend) X(lio_listio)
#define SYLAR_HOOKED_NAMES(X) SYLAR_COUNTED_NAMES(X) SYLAR_UNCOUNTED_NAMES(X)
// clang-format on

// glibc's access attributes are no part of a type, and GCC warns each time.
#pragma GCC diagnostic ignored "-Wignored-attributes"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // sigset and siginterrupt, which programs call nevertheless
#define SYLAR_DECLARE_(name) extern constinit Real<decltype(::name)> name;
SYLAR_HOOKED_NAMES(SYLAR_DECLARE_)
#undef SYLAR_DECLARE_
#pragma GCC diagnostic pop

}  // namespace sylar::real
