// Internal. The non-blocking attempt of each call, by kind of descriptor: the flags of the user's descriptor stay as they are.
//
// Results: >= 0, or -errno; -EAGAIN: it would have blocked. Pointers go to the kernel unread. None suspends.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "sylar/base/os_mutex.h"
#include "sylar/io/fd_table.h"

namespace sylar::attempt {

/// Asks the kernel what kind `fd` is of, and notes it in its entry.
FdKind learnKind(Entry& entry, int fd);

/// The kind of `fd`, learned on first need.
inline FdKind kindOf(Entry& entry, int fd) {
  const FdKind kind = entry.kind();
  return kind != FdKind::kUnknown ? kind : learnKind(entry, fd);
}

/// SO_RCVTIMEO or SO_SNDTIMEO, as the kernel has it; 0: none, or no socket. What is negative it has as 0.
int64_t timeoutNs(int fd, Direction direction);
/// A timeout in nanoseconds, held at kNever instead of overflowing; < 0: waits for nothing.
int64_t toNs(const timeval& timeout);

/// Held over a question and the call that its answer allows: between the two no other fiber takes what is there. A signal handler
/// over the thread that holds it goes ahead.
class Turn {
 public:
  explicit Turn(Entry& entry) SYLAR_NO_THREAD_SAFETY_ANALYSIS : m_lock(entry.acceptLock()), m_mine(!m_lock.heldByThisThread()) {
    if (m_mine) m_lock.lock();
  }
  ~Turn() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (m_mine) m_lock.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  OsMutex& m_lock;
  const bool m_mine;
};

inline bool isStreamSocket(FdKind kind) {
  return kind == FdKind::kTcp || kind == FdKind::kStream || kind == FdKind::kMarkedStream;
}
/// Whether a blocking write to it transfers everything, in pieces if it must.
inline bool takesPieces(FdKind kind) { return isStreamSocket(kind) || kind == FdKind::kPipe || kind == FdKind::kTerminal; }

/// Of all but terminals.
long read(Entry& entry, FdKind kind, int fd, void* buffer, size_t size);
/// They block if there is nothing.
long plainRead(int fd, void* buffer, size_t size);
long plainReadv(int fd, const iovec* parts, int count);
/// Of a terminal: the kernel's opinion of the vector, else -EOPNOTSUPP.
long readv(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
long recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size);
long recvmsg(int fd, msghdr* message, int flags);

/// `flags`: of send, on stream sockets.
long write(Entry& entry, FdKind kind, int fd, const void* data, size_t size, int flags = 0);
long writev(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
long sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size);
long sendmsg(int fd, const msghdr* message, int flags);

/// It blocks if there is none. Weak: a test may bring its own, which fails.
long plainAccept(int fd, sockaddr* address, socklen_t* size, int flags);
/// Of a blocking listener.
long accept(Entry& entry, int fd, sockaddr* address, socklen_t* size, int flags);
/// Begins or goes on with connecting a blocking socket.
long connect(int fd, const sockaddr* address, socklen_t size);

}  // namespace sylar::attempt
