// read, write and their kin. A blocking write transfers everything unless an error or a timeout stops it; what was already
// transferred is then the result, as in the kernel. Source: read(2), write(2), readv(2), recv(2), send(2).
#include <algorithm>

#include "sylar/base/sys.h"
#include "sylar/hook/real.h"
#include "sylar/hook/wait_loop.h"

namespace sylar {
namespace {

/// The part of an iovec list that is still to be sent. Read by us only after the kernel has accepted it.
class Rest {
 public:
  Rest(const iovec* parts, size_t count) : m_part(parts), m_end(parts + count) {}

  void skip(size_t bytes) {
    m_skip += bytes;
    while (m_part != m_end && m_skip >= m_part->iov_len) m_skip -= (m_part++)->iov_len;
  }
  bool empty() const { return m_part == m_end; }

  /// As many parts as fit; the number of them.
  template <size_t N>
  size_t fill(iovec (&out)[N]) const {
    size_t n = 0;
    for (const iovec* part = m_part; part != m_end && n < N; ++part, ++n) out[n] = *part;
    out[0].iov_base = static_cast<char*>(out[0].iov_base) + m_skip;
    out[0].iov_len -= m_skip;
    return n;
  }

 private:
  const iovec* m_part;
  const iovec* m_end;
  size_t m_skip = 0;
};

constexpr size_t kPartsAtOnce = 16;

bool isStreamLike(FdKind kind) { return kind == FdKind::kTcp || kind == FdKind::kStream || kind == FdKind::kPipe; }

/// Repeats `step(done)`, which transfers some of `size` bytes and gives their number or -errno, until all are through.
template <class Step>
ssize_t transferAll(size_t size, Step step) {
  size_t done = 0;
  do {
    const long n = step(done);
    if (n <= 0) return done > 0 ? static_cast<ssize_t>(done) : IoCall::result(n);
    done += static_cast<size_t>(n);
  } while (done < size);
  return static_cast<ssize_t>(done);
}

ssize_t receive(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size, IoCall& call) {
  char* const bytes = static_cast<char*>(buffer);
  const auto step = [&](size_t done) {
    const size_t short_of = (flags & (MSG_PEEK | MSG_OOB | MSG_WAITALL | MSG_ERRQUEUE | MSG_TRUNC)) == 0 ? size : 0;
    return call.run([&] { return attempt::recvfrom(fd, bytes + done, size - done, flags, from, from_size); }, short_of);
  };
  const bool all = (flags & MSG_WAITALL) != 0 && (flags & (MSG_PEEK | MSG_TRUNC)) == 0 && isStreamLike(call.kind());
  return all ? transferAll(size, step) : IoCall::result(step(0));
}

/// What is left of a vector call after the first, partial attempt. Only that may raise SIGPIPE.
template <class SendParts>
ssize_t finishVector(const iovec* parts, size_t count, size_t done, SendParts send_parts) {
  Rest rest(parts, count);
  rest.skip(done);
  while (!rest.empty()) {
    iovec some[kPartsAtOnce];
    const size_t n = rest.fill(some);
    const long sent = send_parts(some, n);
    if (sent <= 0) break;
    done += static_cast<size_t>(sent);
    rest.skip(static_cast<size_t>(sent));
  }
  return static_cast<ssize_t>(done);
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

ssize_t read(int fd, void* buffer, size_t size) {
  IoCall call(fd, Direction::kRead);
  if (!call.parks()) return real::read(fd, buffer, size);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::read(fd, buffer, size);
  const long n = call.run([&] { return attempt::read(kind, fd, buffer, size); }, size);
  if (n == -ENOTSOCK) {
    call.learnAnew();
    return read(fd, buffer, size);
  }
  return call.passesOn() ? real::read(fd, buffer, size) : IoCall::result(n);
}

ssize_t readv(int fd, const iovec* parts, int count) {
  IoCall call(fd, Direction::kRead);
  if (!call.parks()) return real::readv(fd, parts, count);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::readv(fd, parts, count);
  const long n = call.run([&] { return attempt::readv(kind, fd, parts, count); });
  return call.passesOn() ? real::readv(fd, parts, count) : IoCall::result(n);
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  IoCall call(fd, Direction::kRead);
  if (!call.parks() || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) != 0) return real::recv(fd, buffer, size, flags);
  return receive(fd, buffer, size, flags, nullptr, nullptr, call);
}

ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  IoCall call(fd, Direction::kRead);
  if (!call.parks() || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) != 0) {
    return real::recvfrom(fd, buffer, size, flags, from, from_size);
  }
  return receive(fd, buffer, size, flags, from, from_size, call);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  IoCall call(fd, Direction::kRead);
  if (!call.parks() || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) != 0) return real::recvmsg(fd, message, flags);
  const long first = call.run([&] { return attempt::recvmsg(fd, message, flags); });
  // With room for control messages the first answer stands: they belong to certain bytes.
  const bool all = (flags & MSG_WAITALL) != 0 && (flags & (MSG_PEEK | MSG_TRUNC)) == 0 && isStreamLike(call.kind());
  if (first <= 0 || !all || message->msg_control != nullptr) return IoCall::result(first);
  return finishVector(message->msg_iov, message->msg_iovlen, static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] { return attempt::recvmsg(fd, &rest, flags); });
  });
}

ssize_t write(int fd, const void* data, size_t size) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::write(fd, data, size);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::write(fd, data, size);
  const char* const bytes = static_cast<const char*>(data);
  return transferAll(isStreamLike(kind) ? size : 0, [&](size_t done) {
    const long n = call.run([&] {
      if (done == 0) return attempt::write(kind, fd, data, size);
      if (kind != FdKind::kPipe && attempt::tcpHasFailed(fd)) return 0L;
      return attempt::write(kind, fd, bytes + done, size - done, MSG_NOSIGNAL);
    });
    if (n != -ENOTSOCK) return n;
    call.learnAnew();
    const ssize_t written = write(fd, data, size);
    return written >= 0 ? written : -sys::errnoRef();
  });
}

ssize_t writev(int fd, const iovec* parts, int count) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::writev(fd, parts, count);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::writev(fd, parts, count);
  const long first = call.run([&] { return attempt::writev(kind, fd, parts, count); });
  if (first <= 0 || !isStreamLike(kind)) return IoCall::result(first);
  return finishVector(parts, static_cast<size_t>(count), static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] {
      if (kind == FdKind::kPipe) return attempt::writev(kind, fd, some, static_cast<int>(n));
      return attempt::tcpHasFailed(fd) ? 0 : attempt::sendmsg(fd, &rest, MSG_NOSIGNAL);
    });
  });
}

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks() || (flags & MSG_DONTWAIT) != 0) return real::sendto(fd, data, size, flags, to, to_size);
  const char* const bytes = static_cast<const char*>(data);
  return transferAll(isStreamLike(call.kind()) ? size : 0, [&](size_t done) {
    return call.run([&] {
      if (done > 0 && attempt::tcpHasFailed(fd)) return 0L;
      const long n = attempt::sendto(fd, bytes + done, size - done, done > 0 ? flags | MSG_NOSIGNAL : flags, to, to_size);
      if (n == -EAGAIN && to != nullptr) call.askAgainLater();
      return n;
    });
  });
}

ssize_t send(int fd, const void* data, size_t size, int flags) { return sendto(fd, data, size, flags, nullptr, 0); }

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks() || (flags & MSG_DONTWAIT) != 0) return real::sendmsg(fd, message, flags);
  const long first = call.run([&] {
    const long n = attempt::sendmsg(fd, message, flags);
    if (n == -EAGAIN && message->msg_name != nullptr) call.askAgainLater();
    return n;
  });
  if (first <= 0 || !isStreamLike(call.kind())) return IoCall::result(first);
  return finishVector(message->msg_iov, message->msg_iovlen, static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};  // what it carried besides bytes has gone out with the first of them
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] { return attempt::tcpHasFailed(fd) ? 0 : attempt::sendmsg(fd, &rest, flags | MSG_NOSIGNAL); });
  });
}

// What programs built with _FORTIFY_SOURCE call, and the underscored names of old binaries.
ssize_t __read_chk(int fd, void* buffer, size_t size, size_t buffer_size) {
  if (size > buffer_size) __chk_fail();
  return read(fd, buffer, size);
}
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags) {
  if (size > buffer_size) __chk_fail();
  return recv(fd, buffer, size, flags);
}
ssize_t __recvfrom_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags, sockaddr* from, socklen_t* from_size) {
  if (size > buffer_size) __chk_fail();
  return recvfrom(fd, buffer, size, flags, from, from_size);
}
ssize_t __read(int fd, void* buffer, size_t size) { return read(fd, buffer, size); }
ssize_t __write(int fd, const void* data, size_t size) { return write(fd, data, size); }
ssize_t __send(int fd, const void* data, size_t size, int flags) { return send(fd, data, size, flags); }

}  // extern "C"
