// Internal. The non-blocking attempt of each call, by kind of descriptor: the flags of the user's descriptor stay as they are.
//
// Results: >= 0, or -errno; -EAGAIN: it would have blocked. Pointers go to the kernel unread. None suspends.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "sylar/io/fd_table.h"

namespace sylar::attempt {

/// Asks the kernel what kind `fd` is of, and notes it in its entry.
FdKind learnKind(Entry& entry, int fd);

/// The kind of `fd`, learned on first need.
inline FdKind kindOf(Entry& entry, int fd) {
  const FdKind kind = entry.kind();
  return kind != FdKind::kUnknown ? kind : learnKind(entry, fd);
}

/// SO_RCVTIMEO or SO_SNDTIMEO, as the kernel has it; 0: none, or no socket.
int64_t timeoutNs(int fd, Direction direction);
/// A timeout in nanoseconds, held at kNever instead of overflowing.
int64_t toNs(const timeval& timeout);

long read(FdKind kind, int fd, void* buffer, size_t size);
long readv(FdKind kind, int fd, const iovec* parts, int count);
long recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size);
long recvmsg(int fd, msghdr* message, int flags);

/// `flags`: of send, on stream sockets.
long write(FdKind kind, int fd, const void* data, size_t size, int flags = 0);
long writev(FdKind kind, int fd, const iovec* parts, int count);
long sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size);
long sendmsg(int fd, const msghdr* message, int flags);
/// Whether `fd` is a TCP connection that is over: its error belongs to the next call, not to the rest of a long write. Leaves it
/// where it is.
bool tcpHasFailed(int fd);

/// Of a blocking listener.
long accept(Entry& entry, int fd, sockaddr* address, socklen_t* size, int flags);
/// Begins or goes on with connecting a blocking socket.
long connect(int fd, const sockaddr* address, socklen_t size);

}  // namespace sylar::attempt
