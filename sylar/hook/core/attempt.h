// Internal. The non-blocking attempt of each call, by kind of descriptor. The flags of the user's descriptor stay as they are.
//
// Results are >= 0 or -errno, and -EAGAIN if the call would have blocked. Pointers go to the kernel unread. May suspend: no.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <cerrno>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/io/fd_table.h"

// A bare system call saves libc's cancellation point, 40 ns in a threaded process. Sanitizers need to see the buffers, and the
// order that a descriptor gives, so under them the call goes through their interceptor.
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
#define SYLAR_ATTEMPT_(name, number, ...) ::sylar::attempt::keepingErrno([&] { return ::sylar::real::name(__VA_ARGS__); })
#else
#define SYLAR_ATTEMPT_(name, number, ...) ::sylar::sys::call(number, __VA_ARGS__)
#endif

namespace sylar::attempt {

template <class Call>
long keepingErrno(Call call) {
  const int saved_errno = errno;
  const long result = call();
  const long answer = result == -1 ? -errno : result;
  errno = saved_errno;
  return answer;
}

/// Asks the kernel for the kind of `fd`, and notes it in its entry.
FdKind learnKind(Entry& entry, int fd);

/// Returns the kind of `fd`, which is learned on first need.
inline FdKind kindOf(Entry& entry, int fd) {
  const FdKind kind = entry.kind();
  return kind != FdKind::kUnknown ? kind : learnKind(entry, fd);
}

/// Returns the kernel's SO_RCVTIMEO or SO_SNDTIMEO, or 0 if there is none or `fd` is no socket. The kernel reports negative ones
/// as 0.
int64_t timeoutNs(int fd, Direction direction);
/// Converts a timeout to nanoseconds, capped at kNever instead of overflowing. A negative result means that the call waits for
/// nothing.
int64_t toNs(const timeval& timeout);
int64_t toNs(const timespec& timeout);
inline timespec toTimespec(int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

/// Serialises a readiness probe and the call that follows it, so that no other fiber takes what the probe has found. A signal
/// handler that interrupts the holder proceeds without the lock.
class ProbeLock {
 public:
  explicit ProbeLock(Entry& entry) SYLAR_NO_THREAD_SAFETY_ANALYSIS : m_lock(entry.acceptLock()),
                                                                     m_mine(!m_lock.heldByThisThread()) {
    if (m_mine) m_lock.lock();
  }
  ~ProbeLock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (m_mine) m_lock.unlock();
  }
  ProbeLock(const ProbeLock&) = delete;
  ProbeLock& operator=(const ProbeLock&) = delete;

 private:
  OsMutex& m_lock;
  const bool m_mine;
};

inline bool isStreamSocket(FdKind kind) { return kind >= FdKind::kTcp && kind <= FdKind::kMarkedStream; }
/// Returns true if a blocking write to this kind transfers everything, in pieces if it must.
inline bool takesPieces(FdKind kind) { return isStreamSocket(kind) || kind == FdKind::kPipe || kind == FdKind::kTerminal; }

/// Reads, and blocks if there is nothing. So does plainReadv().
long plainRead(int fd, void* buffer, size_t size);
long plainReadv(int fd, const iovec* parts, int count);
/// Reads into a vector. For a terminal it reads nothing, and returns the kernel's verdict on the vector, or -EOPNOTSUPP.
long readv(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
inline long recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  return SYLAR_ATTEMPT_(recvfrom, SYS_recvfrom, fd, buffer, size, flags | MSG_DONTWAIT, from, from_size);
}
long readOther(Entry& entry, FdKind kind, int fd, void* buffer, size_t size);
/// Reads what the page cache has of a file, at `offset` or, if that is -1, at its position. Returns -EOPNOTSUPP if the file system
/// cannot tell. Weak, so that a test may bring its own, of a cache that is empty.
long readCached(int fd, const iovec* parts, int count, off_t offset);
/// Reads from all kinds but terminals.
inline long read(Entry& entry, FdKind kind, int fd, void* buffer, size_t size) {
  if (isStreamSocket(kind) && size > 0) return recvfrom(fd, buffer, size, 0, nullptr, nullptr);
  return readOther(entry, kind, fd, buffer, size);
}
/// Receives, and blocks if there is nothing, unless reading is shut down.
inline long plainRecvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  return SYLAR_ATTEMPT_(recvfrom, SYS_recvfrom, fd, buffer, size, flags, from, from_size);
}
long recvmsg(int fd, msghdr* message, int flags);
long plainRecvmsg(int fd, msghdr* message, int flags);
/// Receives what is there, and blocks for nothing if `flags` have MSG_DONTWAIT.
long recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);

inline long sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  return SYLAR_ATTEMPT_(sendto, SYS_sendto, fd, data, size, flags | MSG_DONTWAIT, to, to_size);
}
long writeOther(Entry& entry, FdKind kind, int fd, const void* data, size_t size);
/// Writes. `flags` are those of send, for stream sockets. An empty write to a stream socket reports its errors.
inline long write(Entry& entry, FdKind kind, int fd, const void* data, size_t size, int flags = 0) {
  if (isStreamSocket(kind)) return sendto(fd, data, size, flags, nullptr, 0);
  return writeOther(entry, kind, fd, data, size);
}
long writev(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
long sendmsg(int fd, const msghdr* message, int flags);
long sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags);

/// Accepts a connection, and blocks if there is none. Weak, so that a test may bring its own, which fails.
long plainAccept(int fd, sockaddr* address, socklen_t* size, int flags);
/// Called before an accept waits. Returns -EMFILE if there is no number left for the connection, which the kernel reports at
/// once, else -EAGAIN.
long numberForAccept(const EpollEngine& engine);
/// Accepts from a blocking listener.
long accept(Entry& entry, const EpollEngine& engine, int fd, sockaddr* address, socklen_t* size, int flags);
/// Makes the bare call. Weak, so that a test may bring its own, in which more happens.
long plainConnect(int fd, const sockaddr* address, socklen_t size);
/// Begins or continues to connect a blocking socket.
long connect(Entry& entry, int fd, const sockaddr* address, socklen_t size);

}  // namespace sylar::attempt
