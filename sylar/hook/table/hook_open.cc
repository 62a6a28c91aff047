// Calls that create descriptors and enter them in the table, on every thread, in and out of fibers. In a fiber the open of a FIFO
// waits for the other side without the thread. Source: fifo(7), socket(2),
// socketpair(2), pipe(2), open(2), eventfd(2), timerfd_create(2), signalfd(2), inotify_init(2), epoll_create(2).
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <cstdarg>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber/stack_watch.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/ring_call.h"
#include "sylar/hook/file/fifo.h"
#include "sylar/hook/file/slow_name.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {
namespace {

FdKind kindOfSocket(int domain, int type, int protocol) {
  if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM) return FdKind::kMessages;
  const bool internet = domain == AF_INET || domain == AF_INET6;
  return internet && (protocol == 0 || protocol == IPPROTO_TCP) ? FdKind::kTcp : FdKind::kStream;
}

void openedPair(int result, const int* fds, FdKind kind, bool is_private, bool nonblocking) {
  if (result != 0) return;
  FdTable::opened(fds[0], kind, is_private, nonblocking);
  FdTable::opened(fds[1], kind, is_private, nonblocking);
}

// The runtimes of sanitizers make pipes by our name and close them by bare system calls, so under them nothing is known of a pipe
// until it is used.
#ifdef SYLAR_TSAN
bool knowsPipes() { return false; }
#else
bool knowsPipes() { return !stack_watch::isOn(); }
#endif

void openedPipe(int result, const int* fds, bool nonblocking) {
  const bool known = knowsPipes();
  openedPair(result, fds, known ? FdKind::kPipe : FdKind::kUnknown, known, nonblocking);
}

/// Notes a file of any kind. libc closes some files by itself (closedir), so the kernel is asked about them before each wait.
int openedFile(int fd) {
  FdTable::opened(fd, FdKind::kUnknown, false, false);
  return fd;
}

/// Opens a file by `open`, as a FIFO whose other side may have to be waited for, or by the ring if it is on a file system of a
/// network or a process.
template <class Open>
int openFile(int directory, const char* path, int flags, mode_t mode, Open open) {
  if (SlowName::any()) {
    countCall(Hook::open);
    struct statx status;
    const int how = AT_NO_AUTOMOUNT | ((flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0);
    const SlowName name(directory, path, how, STATX_TYPE, &status);
    if (name.isSlow() && name.isFifo() && mayWaitForOtherSide(flags)) return openFifo(directory, path, flags, mode);
    const auto prepare = [=](io_uring_sqe* to) {
      io_uring_prep_openat(to, directory, path, flags, mode);
      beginElsewhere(to);
    };
    if (name.isSlow()) return openedFile(byRing(prepare, open));
  }
  return waitsForOtherSide(directory, path, flags) ? openFifo(directory, path, flags, mode) : openedFile(open());
}

/// Notes an eventfd or its like, whose flags are O_NONBLOCK by other names.
int openedEvent(int fd, int flags) {
  FdTable::opened(fd, FdKind::kUnknown, true, (flags & O_NONBLOCK) != 0);
  return fd;
}
static_assert(EFD_NONBLOCK == O_NONBLOCK && TFD_NONBLOCK == O_NONBLOCK && SFD_NONBLOCK == O_NONBLOCK &&
              IN_NONBLOCK == O_NONBLOCK && SOCK_NONBLOCK == O_NONBLOCK);

bool takesMode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// Returns the mode that follows `flags` if they say that there is one, else 0.
mode_t modeOf(int flags, va_list arguments) { return takesMode(flags) ? va_arg(arguments, mode_t) : 0; }

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

#define SYLAR_OPEN_(name, directory, ...)       \
  va_list arguments;                            \
  va_start(arguments, flags);                   \
  const mode_t mode = modeOf(flags, arguments); \
  va_end(arguments);                            \
  return openFile(directory, path, flags, mode, [=] { return real::name(__VA_ARGS__, flags, mode); })
#define SYLAR_OPEN_2_(name, directory, ...)                    \
  if (takesMode(flags)) return real::name(__VA_ARGS__, flags); \
  return openFile(directory, path, flags, 0, [=] { return real::name(__VA_ARGS__, flags); })

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  const int fd = real::socket(domain, type, protocol);
  FdTable::opened(fd, kindOfSocket(domain, type, protocol), true, (type & SOCK_NONBLOCK) != 0);
  return fd;
}

int socketpair(int domain, int type, int protocol, int fds[2]) noexcept {
  const int result = real::socketpair(domain, type, protocol, fds);
  openedPair(result, fds, kindOfSocket(domain, type, protocol), true, (type & SOCK_NONBLOCK) != 0);
  return result;
}

int pipe(int fds[2]) noexcept {
  const int result = real::pipe(fds);
  openedPipe(result, fds, false);
  return result;
}
int __pipe(int fds[2]) { return pipe(fds); }

int pipe2(int fds[2], int flags) noexcept {
  const int result = real::pipe2(fds, flags);
  openedPipe(result, fds, (flags & O_NONBLOCK) != 0);
  return result;
}

int open(const char* path, int flags, ...) { SYLAR_OPEN_(open, AT_FDCWD, path); }
int open64(const char* path, int flags, ...) { SYLAR_OPEN_(open64, AT_FDCWD, path); }
int __open(const char* path, int flags, ...) { SYLAR_OPEN_(open, AT_FDCWD, path); }
int __open64(const char* path, int flags, ...) { SYLAR_OPEN_(open64, AT_FDCWD, path); }
int openat(int directory, const char* path, int flags, ...) { SYLAR_OPEN_(openat, directory, directory, path); }
int openat64(int directory, const char* path, int flags, ...) { SYLAR_OPEN_(openat64, directory, directory, path); }
int creat(const char* path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char* path, mode_t mode) { return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

// Programs built with _FORTIFY_SOURCE call these where no mode is given. libc's own end the process if a mode is needed.
int __open_2(const char* path, int flags) { SYLAR_OPEN_2_(__open_2, AT_FDCWD, path); }
int __open64_2(const char* path, int flags) { SYLAR_OPEN_2_(__open64_2, AT_FDCWD, path); }
int __openat_2(int directory, const char* path, int flags) { SYLAR_OPEN_2_(__openat_2, directory, directory, path); }
int __openat64_2(int directory, const char* path, int flags) { SYLAR_OPEN_2_(__openat64_2, directory, directory, path); }

int eventfd(unsigned int count, int flags) noexcept { return openedEvent(real::eventfd(count, flags), flags); }
int timerfd_create(clockid_t clock, int flags) noexcept { return openedEvent(real::timerfd_create(clock, flags), flags); }
int inotify_init() noexcept { return openedEvent(real::inotify_init(), 0); }
int inotify_init1(int flags) noexcept { return openedEvent(real::inotify_init1(flags), flags); }
int epoll_create(int size) noexcept { return openedEvent(real::epoll_create(size), 0); }
int epoll_create1(int flags) noexcept { return openedEvent(real::epoll_create1(flags), 0); }

int signalfd(int fd, const sigset_t* mask, int flags) noexcept {
  const int made = real::signalfd(fd, mask, flags);
  return fd == -1 ? openedEvent(made, flags) : made;  // otherwise it is `fd`, with another mask
}

}  // extern "C"
