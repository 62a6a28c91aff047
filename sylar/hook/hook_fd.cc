// Creators, closers and flags: what keeps the table of descriptors true. On every thread, in and out of fibers.
// Source: socket(2), socketpair(2), pipe(2), close(2), fclose(3), dup(2), fcntl(2), ioctl(2), setsockopt(2).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <cstdarg>
#include <cstdio>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/hook/attempt.h"
#include "sylar/hook/real.h"
#include "sylar/io/fd_table.h"

namespace sylar {
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

// Sanitizers' runtimes make pipes by our name and close them by bare system calls: there no pipe is fully known.
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr bool kPipesArePrivate = false;
#else
constexpr bool kPipesArePrivate = true;
#endif

/// `copy` is a second number for the open file of `fd`: from here on neither can remember what is set through the other.
int duplicated(int fd, int copy) {
  if (copy < 0) return copy;
  Entry* const original = FdTable::at(fd);
  if (original != nullptr) original->share();
  FdTable::opened(copy, original != nullptr ? original->kind() : FdKind::kUnknown, false, false);
  return copy;
}

/// `real_dup` puts the open file of `fd` behind `target`: a close and an open.
template <class RealDup>
int duplicateOnto(int fd, int target, RealDup real_dup) {
  if (fd == target || real::fcntl(fd, F_GETFD) == -1) return real_dup();  // nothing happens, or EBADF
  return duplicated(fd, FdTable::close(target, real_dup));
}

int64_t timeoutNs(const void* value) { return attempt::toNs(*static_cast<const timeval*>(value)); }

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

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
  openedPair(result, fds, FdKind::kPipe, kPipesArePrivate, false);
  return result;
}

int pipe2(int fds[2], int flags) noexcept {
  const int result = real::pipe2(fds, flags);
  openedPair(result, fds, FdKind::kPipe, kPipesArePrivate, (flags & O_NONBLOCK) != 0);
  return result;
}

int close(int fd) {
  return FdTable::close(fd, [fd] { return real::close(fd); });
}
int __close(int fd) { return close(fd); }
int fclose(FILE* file) {
  const int fd = ::fileno(file);  // -1: a stream without a descriptor
  return FdTable::close(fd, [file] { return real::fclose(file); });
}

int dup(int fd) noexcept { return duplicated(fd, real::dup(fd)); }

int dup2(int fd, int target) noexcept {
  return duplicateOnto(fd, target, [=] { return real::dup2(fd, target); });
}
int __dup2(int fd, int target) noexcept { return dup2(fd, target); }

int dup3(int fd, int target, int flags) noexcept {
  return duplicateOnto(fd, target, [=] { return real::dup3(fd, target, flags); });
}

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);  // an int comes in the same register
  va_end(arguments);
  const int result = real::fcntl(fd, command, argument);
  if (result == -1) return result;
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicated(fd, result);
  if (command == F_SETFL) {
    if (Entry* entry = FdTable::find(fd)) entry->setNonblocking((reinterpret_cast<intptr_t>(argument) & O_NONBLOCK) != 0);
  }
  return result;
}
int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
int __fcntl(int fd, int command, ...) __attribute__((alias("fcntl")));

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = real::ioctl(fd, request, argument);
  if (result != -1 && request == FIONBIO) {
    if (Entry* entry = FdTable::find(fd)) entry->setNonblocking(*static_cast<const int*>(argument) != 0);
  }
  return result;
}

int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
  const int result = real::setsockopt(fd, level, option, value, size);
  Entry* const entry = result == 0 ? FdTable::find(fd) : nullptr;
  if (entry == nullptr) return result;
  if (level == SOL_SOCKET && option == SO_RCVTIMEO) entry->setTimeoutNs(Direction::kRead, timeoutNs(value));
  if (level == SOL_SOCKET && option == SO_SNDTIMEO) entry->setTimeoutNs(Direction::kWrite, timeoutNs(value));
  if (level == IPPROTO_TCP && option == TCP_ULP) entry->setKind(FdKind::kStream);  // records: short reads prove nothing
  return result;
}

}  // extern "C"
