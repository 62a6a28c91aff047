#include "sylar/hook/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "sylar/hook/ask.h"
#include "sylar/hook/terminal.h"

#ifdef SYLAR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace sylar::attempt {
namespace {

/// What TSan does for the calls that it intercepts: bytes that were read came after those that were written.
char g_order;
void readOrder([[maybe_unused]] long result) {
#ifdef SYLAR_TSAN
  if (result > 0) __tsan_acquire(&g_order);
#endif
}
void writeOrder() {
#ifdef SYLAR_TSAN
  __tsan_release(&g_order);
#endif
  (void)g_order;
}

constexpr int kNoWait = 8;  // RWF_NOWAIT

long readvNoWait(int fd, const iovec* parts, int count) {
  const long result = sys::call(SYS_preadv2, fd, parts, count, -1L, -1L, kNoWait);
  readOrder(result);
  return result;
}
long writevNoWait(int fd, const iovec* parts, int count) {
  writeOrder();
  return sys::call(SYS_pwritev2, fd, parts, count, -1L, -1L, kNoWait);
}

/// For what cannot be told not to wait: ask first.
template <class Call>
long whenReady(Entry& entry, int fd, short events, Call call) {
  const Turn turn(entry);
  return ask::isReady(fd, events) ? call() : -EAGAIN;
}

/// How much a descriptor of this kind takes at once without waiting when poll says that it takes something.
size_t roomOf(FdKind kind) {
  if (kind == FdKind::kPipe) return PIPE_BUF;
  return kind == FdKind::kTerminal ? 256 : SSIZE_MAX;  // what a pseudoterminal's buffer grows by
}

long writeWhenReady(Entry& entry, FdKind kind, int fd, const void* data, size_t size) {
  return whenReady(entry, fd, POLLOUT, [&] { return SYLAR_ATTEMPT_(write, SYS_write, fd, data, std::min(size, roomOf(kind))); });
}

FdKind askKind(int fd) {
  struct stat status;
  if (sys::call(SYS_fstat, fd, &status) != 0) return FdKind::kUnknown;
  switch (status.st_mode & S_IFMT) {
    case S_IFIFO: return FdKind::kPipe;
    case S_IFCHR: return ask::isTerminal(fd) ? FdKind::kTerminal : FdKind::kPolled;
    case S_IFREG:
    case S_IFDIR:
    case S_IFBLK: return FdKind::kOther;
    case S_IFSOCK: break;
    default: return FdKind::kPolled;  // no file: eventfd and its like
  }
  if (ask::socketOption(fd, SO_TYPE) != SOCK_STREAM) return FdKind::kMessages;
  // A stream that we did not see made may carry TLS in the kernel: no short-read rule, even if it is TCP.
  return ask::socketOption(fd, SO_RCVLOWAT) > 1 ? FdKind::kMarkedStream : FdKind::kStream;
}

}  // namespace

FdKind learnKind(Entry& entry, int fd) {
  const FdKind kind = askKind(fd);
  entry.setKind(kind);
  return kind;
}

int64_t toNs(const timeval& timeout) {
  if (timeout.tv_sec < 0) return -1;
  const int64_t seconds_ns = timeout.tv_sec > kNever / 1'000'000'000 ? kNever : timeout.tv_sec * 1'000'000'000;
  return saturatingAdd(seconds_ns, timeout.tv_usec * 1000);
}

int64_t timeoutNs(int fd, Direction direction) {
  timeval timeout{};
  socklen_t size = sizeof timeout;
  const int option = direction == Direction::kRead ? SO_RCVTIMEO : SO_SNDTIMEO;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, option, &timeout, &size) == 0 ? toNs(timeout) : 0;
}

long recvmsg(int fd, msghdr* message, int flags) {
  return SYLAR_ATTEMPT_(recvmsg, SYS_recvmsg, fd, message, flags | MSG_DONTWAIT);
}

long sendmsg(int fd, const msghdr* message, int flags) {
  return SYLAR_ATTEMPT_(sendmsg, SYS_sendmsg, fd, message, flags | MSG_DONTWAIT);
}

long plainRead(int fd, void* buffer, size_t size) { return SYLAR_ATTEMPT_(read, SYS_read, fd, buffer, size); }
long plainReadv(int fd, const iovec* parts, int count) { return SYLAR_ATTEMPT_(readv, SYS_readv, fd, parts, count); }

long readOther(Entry& entry, FdKind kind, int fd, void* buffer, size_t size) {
  if (kind == FdKind::kPolled && size == 0) return plainRead(fd, buffer, size);  // the vector calls do not ask what reads it
  const iovec part{buffer, size};
  const long result = readvNoWait(fd, &part, 1);
  if (result != -EOPNOTSUPP) return result;
  return whenReady(entry, fd, POLLIN, [&] { return plainRead(fd, buffer, size); });
}

long readv(Entry& entry, FdKind kind, int fd, const iovec* parts, int count) {
  const long result = readvNoWait(fd, parts, count);
  if (result != -EOPNOTSUPP || kind == FdKind::kTerminal) return result;
  return whenReady(entry, fd, POLLIN, [&] { return plainReadv(fd, parts, count); });
}

long writeOther(Entry& entry, FdKind kind, int fd, const void* data, size_t size) {
  // An empty message is a message: write sends it, the vector calls do not.
  if (kind == FdKind::kMessages && size == 0) return sendto(fd, data, size, 0, nullptr, 0);
  if (kind == FdKind::kPolled && size == 0) return SYLAR_ATTEMPT_(write, SYS_write, fd, data, size);
  const iovec part{const_cast<void*>(data), size};
  const long result = writevNoWait(fd, &part, 1);
  if (result != -EOPNOTSUPP) return result;
  if (kind == FdKind::kTerminal) {
    if (const long written = terminal::writevNow(fd, &part, 1); written != -EOPNOTSUPP) return written;
  }
  return writeWhenReady(entry, kind, fd, data, size);
}

long writev(Entry& entry, FdKind kind, int fd, const iovec* parts, int count) {
  const long result = writevNoWait(fd, parts, count);
  if (result != -EOPNOTSUPP) return result;
  if (kind == FdKind::kTerminal) {
    if (const long written = terminal::writevNow(fd, parts, count); written != -EOPNOTSUPP) return written;
  }
  // At once goes what fits; the caller goes on with the rest.
  const size_t room = roomOf(kind);
  size_t size = 0;
  int fitting = 0;
  while (fitting < count && parts[fitting].iov_len <= room - size) size += parts[fitting++].iov_len;
  if (size == 0 && fitting < count) {
    return writeWhenReady(entry, kind, fd, parts[fitting].iov_base, parts[fitting].iov_len);
  }
  return whenReady(entry, fd, POLLOUT, [&] { return SYLAR_ATTEMPT_(writev, SYS_writev, fd, parts, fitting); });
}

[[gnu::weak]] long plainAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  return SYLAR_ATTEMPT_(accept4, SYS_accept4, fd, address, size, flags);
}

long accept(Entry& entry, int fd, sockaddr* address, socklen_t* size, int flags) {
  // Linux keeps connections that were reset in the queue, so an accept after a positive poll does not block.
  Lock lock(entry.acceptLock());
  // What does not listen fails at once.
  if (!ask::isReady(fd, POLLIN) && ask::socketOption(fd, SO_ACCEPTCONN) == 1) return -EAGAIN;
  return plainAccept(fd, address, size, flags);
}

long connect(int fd, const sockaddr* address, socklen_t size) {
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  if (flags < 0) return flags;
  const bool blocking = (flags & O_NONBLOCK) == 0;
  if (blocking) sys::call(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
  const long result = SYLAR_ATTEMPT_(connect, SYS_connect, fd, address, size);
  if (blocking) sys::call(SYS_fcntl, fd, F_SETFL, flags);
  return result;
}

}  // namespace sylar::attempt
