// Internal. The non-blocking attempt of each call, by kind of descriptor: the flags of the user's descriptor stay as they are.
//
// Results: >= 0, or -errno; -EAGAIN: it would have blocked. Pointers go to the kernel unread. None suspends.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <cerrno>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/hook/real.h"
#include "sylar/io/fd_table.h"

// A bare system call saves libc's cancellation point, 40 ns in a threaded process. Sanitizers need to see the buffers and the
// order that a descriptor gives, so there the call goes through their interceptor.
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

/// They block if there is nothing.
long plainRead(int fd, void* buffer, size_t size);
long plainReadv(int fd, const iovec* parts, int count);
/// Of a terminal: the kernel's opinion of the vector, else -EOPNOTSUPP.
long readv(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
inline long recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  return SYLAR_ATTEMPT_(recvfrom, SYS_recvfrom, fd, buffer, size, flags | MSG_DONTWAIT, from, from_size);
}
long readOther(Entry& entry, FdKind kind, int fd, void* buffer, size_t size);
/// Of all but terminals.
inline long read(Entry& entry, FdKind kind, int fd, void* buffer, size_t size) {
  if (isStreamSocket(kind) && size > 0) return recvfrom(fd, buffer, size, 0, nullptr, nullptr);
  return readOther(entry, kind, fd, buffer, size);
}
long recvmsg(int fd, msghdr* message, int flags);

inline long sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  return SYLAR_ATTEMPT_(sendto, SYS_sendto, fd, data, size, flags | MSG_DONTWAIT, to, to_size);
}
long writeOther(Entry& entry, FdKind kind, int fd, const void* data, size_t size);
/// `flags`: of send, on stream sockets. An empty write to one reports its errors.
inline long write(Entry& entry, FdKind kind, int fd, const void* data, size_t size, int flags = 0) {
  if (isStreamSocket(kind)) return sendto(fd, data, size, flags, nullptr, 0);
  return writeOther(entry, kind, fd, data, size);
}
long writev(Entry& entry, FdKind kind, int fd, const iovec* parts, int count);
long sendmsg(int fd, const msghdr* message, int flags);

/// It blocks if there is none. Weak: a test may bring its own, which fails.
long plainAccept(int fd, sockaddr* address, socklen_t* size, int flags);
/// Of a blocking listener.
long accept(Entry& entry, int fd, sockaddr* address, socklen_t* size, int flags);
/// Begins or goes on with connecting a blocking socket.
long connect(int fd, const sockaddr* address, socklen_t size);

}  // namespace sylar::attempt
