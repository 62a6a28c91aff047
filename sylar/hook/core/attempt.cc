#include "sylar/hook/core/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "sylar/check.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/reopened.h"

#ifdef SYLAR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace sylar::attempt {
namespace {

/// Orders the reading of bytes after their writing, as TSan does for the calls that it intercepts.
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

/// Makes a call that cannot be told not to wait, after asking whether it would.
template <class Call>
long whenReady(Entry& entry, int fd, short events, Call call) {
  const ProbeLock lock(entry);
  return probe::isReady(fd, events) ? call() : -EAGAIN;
}

/// Returns how many bytes a descriptor of this kind takes at once without waiting, if poll says that it takes something.
size_t roomOf(FdKind kind) {
  if (kind == FdKind::kPipe) return PIPE_BUF;
  return kind == FdKind::kTerminal ? 256 : SSIZE_MAX;  // 256 bytes are what a pseudoterminal's buffer grows by
}

/// Returns 0 if an eventfd takes such a write at all, else the -errno that the kernel reports before it waits for room. Asks an
/// eventfd of our own.
long refusalOfEventfd(const iovec* parts, int count) {
  const long own = sys::call(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (own < 0) return 0;
  const long written = SYLAR_ATTEMPT_(writev, SYS_writev, static_cast<int>(own), parts, count);
  sys::closeFd(static_cast<int>(own));
  return std::min(written, 0L);
}

/// Returns true if poll tells too little for a write: not how much a terminal takes, nor what fits into the last page of a FIFO.
bool writesReopened(FdKind kind, int fd) {
  if (kind == FdKind::kTerminal) return !probe::isMaster(fd);  // reopening the master makes another pseudoterminal
  if (kind != FdKind::kPipe) return false;
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  return flags >= 0 && (flags & O_DIRECT) == 0;  // only the user's open file makes packets
}

/// Writes what fits now, through the reopened file. Returns -EOPNOTSUPP if that is not possible.
long writevReopened(FdKind kind, int fd, const iovec* parts, int count) {
  if (!writesReopened(kind, fd)) return -EOPNOTSUPP;
  return onReopened(fd, O_WRONLY, [=](int own) { return SYLAR_ATTEMPT_(writev, SYS_writev, own, parts, count); });
}

/// Writes with `call`, which writes no more than fits, if poll says that there is room.
template <class Call>
long writeWhenReady(Entry& entry, FdKind kind, int fd, const iovec* parts, int count, Call call) {
  if (kind != FdKind::kPolled) return whenReady(entry, fd, POLLOUT, call);
  // A write to an eventfd may still block, so it is made without the lock, which the number's next owner may need.
  if (probe::isReady(fd, POLLOUT)) return call();
  const long error = probe::isEventfd(fd) ? refusalOfEventfd(parts, count) : 0;
  return error != 0 ? error : -EAGAIN;
}

/// Reads with `call(fd)` if poll says that there is something. A FIFO that never had a writer is at its end, which a read reports
/// and poll does not, so it is reopened and read. That read is made under the lock as well, because it takes bytes that come in
/// between, and another fiber's read would then wait for them.
template <class Call>
long readWhenReady(Entry& entry, FdKind kind, int fd, Call call) {
  SYLAR_DCHECK(kind != FdKind::kTerminal);
  const ProbeLock lock(entry);
  if (probe::isReady(fd, POLLIN)) return call(fd);
  if (kind != FdKind::kPipe) return -EAGAIN;
  const long last = onReopened(fd, O_RDONLY, call);
  return last == -EOPNOTSUPP ? -EAGAIN : last;
}

FdKind askKind(int fd) {
  struct stat status;
  if (sys::call(SYS_fstat, fd, &status) != 0) return FdKind::kUnknown;
  switch (status.st_mode & S_IFMT) {
    case S_IFIFO: return FdKind::kPipe;
    case S_IFCHR:
      if (probe::isTerminal(fd)) return FdKind::kTerminal;
      // One that nobody can wait for, such as /dev/zero, is ready at all times, and an attempt that must not wait may give less.
      return probe::isWaitable(fd) ? FdKind::kPolled : FdKind::kOther;
    case S_IFREG:
    case S_IFBLK: return FdKind::kFile;
    case S_IFDIR: return FdKind::kOther;
    case S_IFSOCK: break;
    default: return FdKind::kPolled;  // not a file: eventfd and its like
  }
  if (probe::socketOption(fd, SO_TYPE) != SOCK_STREAM) return FdKind::kMessages;
  // A stream that we did not see being made may carry TLS in the kernel, so it gets no short-read rule, even if it is TCP.
  return probe::socketOption(fd, SO_RCVLOWAT) > 1 ? FdKind::kMarkedStream : FdKind::kStream;
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

int64_t toNs(const timespec& timeout) {
  const int64_t seconds_ns = timeout.tv_sec > kNever / 1'000'000'000 ? kNever : timeout.tv_sec * 1'000'000'000;
  return saturatingAdd(seconds_ns, timeout.tv_nsec);
}

int64_t timeoutNs(int fd, Direction direction) {
  timeval timeout{};
  socklen_t size = sizeof timeout;
  const int option = direction == Direction::kRead ? SO_RCVTIMEO : SO_SNDTIMEO;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, option, &timeout, &size) == 0 ? toNs(timeout) : 0;
}

long recvmsg(int fd, msghdr* message, int flags) { return plainRecvmsg(fd, message, flags | MSG_DONTWAIT); }
long plainRecvmsg(int fd, msghdr* message, int flags) { return SYLAR_ATTEMPT_(recvmsg, SYS_recvmsg, fd, message, flags); }
long recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  return SYLAR_ATTEMPT_(recvmmsg, SYS_recvmmsg, fd, messages, count, flags, timeout);
}

long sendmsg(int fd, const msghdr* message, int flags) {
  return SYLAR_ATTEMPT_(sendmsg, SYS_sendmsg, fd, message, flags | MSG_DONTWAIT);
}

long sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return SYLAR_ATTEMPT_(sendmmsg, SYS_sendmmsg, fd, messages, count, flags | MSG_DONTWAIT);
}

long plainRead(int fd, void* buffer, size_t size) { return SYLAR_ATTEMPT_(read, SYS_read, fd, buffer, size); }
long plainReadv(int fd, const iovec* parts, int count) { return SYLAR_ATTEMPT_(readv, SYS_readv, fd, parts, count); }

[[gnu::weak]] long readCached(int fd, const iovec* parts, int count, off_t offset) {
  const long result = sys::call(SYS_preadv2, fd, parts, count, offset, 0L, kNoWait);
  readOrder(result);
  return result == -ENOSYS ? -EOPNOTSUPP : result;
}

long readOther(Entry& entry, FdKind kind, int fd, void* buffer, size_t size) {
  SYLAR_DCHECK(kind != FdKind::kTerminal && (size == 0 || !isStreamSocket(kind)));
  // An empty vector call would not reach the device.
  if (kind == FdKind::kPolled && size == 0) return plainRead(fd, buffer, size);
  const iovec part{buffer, size};
  const long result = readvNoWait(fd, &part, 1);
  if (result != -EOPNOTSUPP) return result;
  return readWhenReady(entry, kind, fd, [=](int from) { return plainRead(from, buffer, size); });
}

long readv(Entry& entry, FdKind kind, int fd, const iovec* parts, int count) {
  const long result = readvNoWait(fd, parts, count);
  if (result != -EOPNOTSUPP || kind == FdKind::kTerminal) return result;
  return readWhenReady(entry, kind, fd, [=](int from) { return plainReadv(from, parts, count); });
}

long writeOther(Entry& entry, FdKind kind, int fd, const void* data, size_t size) {
  SYLAR_DCHECK(!isStreamSocket(kind));
  // An empty message is a message, which write sends and the vector calls do not.
  if (kind == FdKind::kMessages && size == 0) return sendto(fd, data, size, 0, nullptr, 0);
  if (kind == FdKind::kPolled && size == 0) return SYLAR_ATTEMPT_(write, SYS_write, fd, data, size);
  const iovec part{const_cast<void*>(data), size};
  const long result = writevNoWait(fd, &part, 1);
  if (result != -EOPNOTSUPP) return result;
  if (const long written = writevReopened(kind, fd, &part, 1); written != -EOPNOTSUPP) return written;
  return writeWhenReady(entry, kind, fd, &part, 1,
                        [=] { return SYLAR_ATTEMPT_(write, SYS_write, fd, data, std::min(size, roomOf(kind))); });
}

long writev(Entry& entry, FdKind kind, int fd, const iovec* parts, int count) {
  const long result = writevNoWait(fd, parts, count);
  if (result != -EOPNOTSUPP) return result;
  if (const long written = writevReopened(kind, fd, parts, count); written != -EOPNOTSUPP) return written;
  // Write at once what fits; the caller goes on with the rest.
  const size_t room = roomOf(kind);
  size_t size = 0;
  int fitting = 0;
  while (fitting < count && parts[fitting].iov_len <= room - size) size += parts[fitting++].iov_len;
  SYLAR_DCHECK(size <= room);
  if (size == 0 && fitting < count) {
    const iovec& first = parts[fitting];
    return writeWhenReady(entry, kind, fd, parts, count,
                          [&] { return SYLAR_ATTEMPT_(write, SYS_write, fd, first.iov_base, room); });
  }
  return writeWhenReady(entry, kind, fd, parts, count, [&] { return SYLAR_ATTEMPT_(writev, SYS_writev, fd, parts, fitting); });
}

[[gnu::weak]] long plainAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  return SYLAR_ATTEMPT_(accept4, SYS_accept4, fd, address, size, flags);
}

long numberForAccept(const EpollEngine& engine) {
  // The kernel reserves the number before it looks at the listener. An epoll is then rejected as no socket (ENOTSOCK).
  return sys::call(SYS_accept4, engine.fd(), nullptr, nullptr, 0) == -EMFILE ? -EMFILE : -EAGAIN;
}

long accept(Entry& entry, const EpollEngine& engine, int fd, sockaddr* address, socklen_t* size, int flags) {
  // Linux keeps connections that were reset in the queue, so an accept after a positive poll does not block.
  const ProbeLock lock(entry);
  // A socket that does not listen fails at once.
  if (!probe::isReady(fd, POLLIN) && probe::socketOption(fd, SO_ACCEPTCONN) == 1) return numberForAccept(engine);
  return plainAccept(fd, address, size, flags);
}

[[gnu::weak]] long plainConnect(int fd, const sockaddr* address, socklen_t size) {
  return SYLAR_ATTEMPT_(connect, SYS_connect, fd, address, size);
}

long connect(Entry& entry, int fd, const sockaddr* address, socklen_t size) {
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return flags < 0 ? flags : plainConnect(fd, address, size);
  const bool was_nonblocking = entry.nonblocking();  // not any more: a copy of the descriptor has made it blocking
  sys::call(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
  const long result = plainConnect(fd, address, size);
  // Flags that another thread has set in between stay.
  if (was_nonblocking || !entry.nonblocking())
    sys::call(SYS_fcntl, fd, F_SETFL, sys::call(SYS_fcntl, fd, F_GETFL, 0) & ~long{O_NONBLOCK});
  return result;
}

}  // namespace sylar::attempt
