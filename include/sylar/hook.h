// The hooks make plain libc calls suspend the fiber instead of blocking the thread.
//
// Linking the target sylar::hook into a program interposes them, for the program and for every shared library in it. They act
// only in a fiber on an IOManager's worker (sleeps and calls of helper threads: on any Scheduler's); everywhere else the calls are
// libc's. A hooked call gives the kernel's own result and errno: it tries without blocking, waits for the descriptor if it must,
// and tries again.
//
// Calls that suspend: sleep usleep nanosleep clock_nanosleep thrd_sleep; connect accept accept4; read readv recv recvfrom recvmsg
// recvmmsg eventfd_read; write writev send sendto sendmsg sendmmsg eventfd_write; sendfile splice tee vmsplice; poll ppoll select
// pselect epoll_wait epoll_pwait epoll_pwait2; wait waitpid waitid wait3 wait4; flock, lockf and the fcntl that wait for a lock;
// mq_receive mq_send and their timed forms; msgrcv msgsnd semop semtimedop; aio_suspend and lio_listio; pause sigsuspend sigwait
// sigwaitinfo sigtimedwait; the open of a FIFO; the locks of libc (setHookLocks); and syscall with the number of one of these. They
// suspend on sockets, pipes, FIFOs, terminals, eventfds, timerfds, signalfds and inotify, and on files if the disk has to be waited
// for (setHookFiles). A helper thread makes, whole, what looks up names (getaddrinfo, getpwnam, res_query and similar calls),
// system and pclose, and a close that lingers (SO_LINGER).
//
// A call never waits on a descriptor with O_NONBLOCK, with the flag MSG_DONTWAIT, or as a poll with timeout 0. After many calls
// in a row that did not wait, however, the next one first lets other fibers run. SO_RCVTIMEO and SO_SNDTIMEO apply. close wakes
// every waiter with EBADF, unless setHookClose() says otherwise.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sylar {

/// Returns whether hooked calls may suspend here. In a fiber this is the fiber's own setting, true at first. Elsewhere it is
/// the thread's, false at first, which has no effect because hooks act in fibers only. Thread safety: concerns the calling
/// fiber or thread only. Source: sylar.
bool is_hook_enable();
/// Changes the setting that is_hook_enable() returns.
void set_hook_enable(bool on);

/// Sets how long a hooked connect may take before it fails with ETIMEDOUT. 0 or less means as long as the kernel allows; 5 s is
/// the initial value. Thread safety: any thread; affects connects that begin afterwards. Source: sylar's tcp.connect.timeout.
void setConnectTimeout(std::chrono::milliseconds timeout);

/// What a signal handler does to the hooked calls that wait in fibers of the thread on which it ran. Source: signal(7).
enum class HookEintr : uint8_t {
  kRestart,  ///< nothing, as if each handler had SA_RESTART and each call were restarted
  /// It ends one of them, which fails with EINTR. That is the wait that has lasted longest, of those that the handler may end: with
  /// SA_RESTART it ends only calls that are never restarted (sleeps, poll and similar calls, sockets with a timeout). With one
  /// fiber on the thread this is what the kernel does.
  kPosix,
};
/// Sets what handlers do to the calls that begin to wait afterwards; kRestart is the initial value. A handler must have been
/// installed through the hooks, not by the system call. Thread safety: any thread.
void setHookEintr(HookEintr mode);
/// Returns what setHookEintr() has set. Thread safety: any thread.
HookEintr hookEintr();

/// What a close of a number does to the hooked calls that wait for it in fibers. dup2 onto the number, close_range and fclose close
/// it, too. Source: close(2).
enum class HookClose : uint8_t {
  kWake,  ///< it ends them with EBADF; poll reports POLLNVAL
  /// Nothing, as in the kernel: each call goes on with the file that was open when it began to wait, until it completes or times
  /// out. The number is free at once. Until the last of the calls has ended, the file has a number of the library's own and is not
  /// closed, so its peer sees no end. If no number is left for that, the close ends the calls as above, and a warning is logged.
  kPosix,
};
/// Sets what closes do to the calls that begin to wait afterwards; kWake is the initial value. Thread safety: any thread.
void setHookClose(HookClose mode);
/// Returns what setHookClose() has set. Thread safety: any thread.
HookClose hookClose();

/// Sets whether the locks of libc suspend the fiber that waits for them, instead of blocking the thread: pthread_mutex_t,
/// pthread_cond_t, pthread_rwlock_t, pthread_barrier_t, pthread_once, sem_t and their C11 forms, pthread_spin_lock, pthread_join,
/// the initialization of a static variable in a function, and futex(2) by syscall(), by which std::future, std::latch and
/// std::atomic::wait wait. They do so at first. Fibers and threads may wait at one lock. The owner of a mutex that a fiber has
/// locked is the fiber. Mutexes with a protocol (PTHREAD_PRIO_INHERIT), and conditions and barriers that processes share, block the
/// thread in any case. Thread safety: any thread; affects waits that begin afterwards.
void setHookLocks(bool on);
/// Returns what setHookLocks() has set. Thread safety: any thread.
bool hookLocks();

/// Sets whether calls that wait for files suspend the fiber, while an io_uring or a helper thread makes them (setIOEngine). They
/// do, at first: reads of what is not in the page cache, also by pread and sendfile; writes to files that were opened with O_SYNC
/// or O_DSYNC; both, with O_DIRECT and on a network (NFS, SMB, FUSE); fsync fdatasync syncfs sync msync sync_file_range
/// copy_file_range, and sendfile to a file; with an io_uring also open, stat and similar calls, while a file system of a network or
/// a process is mounted. Libraries (SQLite, for example) make them under locks of their own, so where setHookLocks(false) was
/// called they block the thread as well. Other calls that ask for a path, and reads by stdio, block the thread in any case. Thread
/// safety: any thread; affects calls that begin afterwards.
void setHookFiles(bool on);
/// Returns what setHookFiles() has set, true at first. Thread safety: any thread.
bool hookFiles();

}  // namespace sylar

extern "C" {

/// Does what connect(2) does, with a limit of its own in a fiber: returns -1 with ETIMEDOUT after `timeout_ms`, where ~0 means
/// as long as the kernel allows. Where hooks do not act it is libc's connect, without the limit. May suspend: yes. Source:
/// sylar.
int connect_with_timeout(int fd, const sockaddr* address, socklen_t size, uint64_t timeout_ms);

// libc's own functions, for code that must not suspend. They block the thread and bypass the library: it does not know a
// descriptor that is made, changed or closed through them (it finds out, at a cost). Usable from static constructors on. Thread
// safety: as libc's. Source: sylar.
typedef unsigned int (*sleep_fun)(unsigned int seconds);
typedef int (*usleep_fun)(useconds_t microseconds);
typedef int (*nanosleep_fun)(const timespec* duration, timespec* rest);
typedef int (*socket_fun)(int domain, int type, int protocol);
typedef int (*connect_fun)(int fd, const sockaddr* address, socklen_t size);
typedef int (*accept_fun)(int fd, sockaddr* address, socklen_t* size);
typedef ssize_t (*read_fun)(int fd, void* buffer, size_t size);
typedef ssize_t (*readv_fun)(int fd, const iovec* parts, int count);
typedef ssize_t (*recv_fun)(int fd, void* buffer, size_t size, int flags);
typedef ssize_t (*recvfrom_fun)(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size);
typedef ssize_t (*recvmsg_fun)(int fd, msghdr* message, int flags);
typedef ssize_t (*write_fun)(int fd, const void* data, size_t size);
typedef ssize_t (*writev_fun)(int fd, const iovec* parts, int count);
typedef ssize_t (*send_fun)(int fd, const void* data, size_t size, int flags);
typedef ssize_t (*sendto_fun)(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size);
typedef ssize_t (*sendmsg_fun)(int fd, const msghdr* message, int flags);
typedef int (*close_fun)(int fd);
typedef int (*fcntl_fun)(int fd, int command, ...);
typedef int (*ioctl_fun)(int fd, unsigned long request, ...);
typedef int (*getsockopt_fun)(int fd, int level, int option, void* value, socklen_t* size);
typedef int (*setsockopt_fun)(int fd, int level, int option, const void* value, socklen_t size);

extern const sleep_fun sleep_f;
extern const usleep_fun usleep_f;
extern const nanosleep_fun nanosleep_f;
extern const socket_fun socket_f;
extern const connect_fun connect_f;
extern const accept_fun accept_f;
extern const read_fun read_f;
extern const readv_fun readv_f;
extern const recv_fun recv_f;
extern const recvfrom_fun recvfrom_f;
extern const recvmsg_fun recvmsg_f;
extern const write_fun write_f;
extern const writev_fun writev_f;
extern const send_fun send_f;
extern const sendto_fun sendto_f;
extern const sendmsg_fun sendmsg_f;
extern const close_fun close_f;
extern const fcntl_fun fcntl_f;
extern const ioctl_fun ioctl_f;
extern const getsockopt_fun getsockopt_f;
extern const setsockopt_fun setsockopt_f;

}  // extern "C"
