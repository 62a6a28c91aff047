// write and its kin. A blocking write transfers everything unless an error or a timeout stops it; what was already transferred
// is then the result, as in the kernel. Source: write(2), writev(2), send(2).
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/ask.h"
#include "sylar/hook/iovec_rest.h"
#include "sylar/hook/real.h"
#include "sylar/hook/rights.h"
#include "sylar/hook/wait_loop.h"

namespace sylar {
namespace {

constexpr size_t kPartsAtOnce = 16;

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

/// What is left of a vector call after the first, partial attempt. Only that may raise SIGPIPE.
template <class SendParts>
ssize_t finishVector(const iovec* parts, size_t count, size_t done, SendParts send_parts) {
  IovecRest rest(parts, count);
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

ssize_t sendMessage(IoCall& call, int fd, const msghdr* message, int flags) {
  const long first = call.run([&] {
    const long n = attempt::sendmsg(fd, message, flags);
    if (n == -EAGAIN && message->msg_name != nullptr) call.askAgainLater();
    return n;
  });
  if (first <= 0 || !attempt::takesPieces(call.kind())) return IoCall::result(first);
  return finishVector(message->msg_iov, message->msg_iovlen, static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};  // what it carried besides bytes has gone out with the first of them
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] { return ask::tcpHasFailed(fd) ? 0 : attempt::sendmsg(fd, &rest, flags | MSG_NOSIGNAL); });
  });
}

/// A function of its own, so that outside fibers nothing is set up for it.
[[gnu::noinline]] ssize_t writeInFiber(int fd, const void* data, size_t size) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::write(fd, data, size);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::write(fd, data, size);
  const char* const bytes = static_cast<const char*>(data);
  return transferAll(attempt::takesPieces(kind) ? size : 0, [&](size_t done) {
    const long n = call.run([&] {
      if (done == 0) return attempt::write(call.entry(), kind, fd, data, size);
      if (attempt::isStreamSocket(kind) && ask::tcpHasFailed(fd)) return 0L;
      return attempt::write(call.entry(), kind, fd, bytes + done, size - done, MSG_NOSIGNAL);
    });
    if (n >= 0) return n;
    if (n == -ENOTSOCK) call.learnAnew();
    if (n != -ENOTSOCK && (!call.passesOn() || done > 0)) return n;
    const ssize_t written = n == -ENOTSOCK ? writeInFiber(fd, data, size) : real::write(fd, data, size);
    return written >= 0 ? written : -sys::errnoRef();
  });
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  return onThreadStack() ? real::write(fd, data, size) : writeInFiber(fd, data, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::writev(fd, parts, count);
  const FdKind kind = call.kind();
  if (kind == FdKind::kOther) return real::writev(fd, parts, count);
  const long first = call.run([&] { return attempt::writev(call.entry(), kind, fd, parts, count); });
  if (call.passesOn()) return real::writev(fd, parts, count);
  if (first <= 0 || !attempt::takesPieces(kind)) return IoCall::result(first);
  return finishVector(parts, static_cast<size_t>(count), static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] {
      if (!attempt::isStreamSocket(kind)) return attempt::writev(call.entry(), kind, fd, some, static_cast<int>(n));
      return ask::tcpHasFailed(fd) ? 0 : attempt::sendmsg(fd, &rest, MSG_NOSIGNAL);
    });
  });
}

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  if ((flags & MSG_DONTWAIT) != 0) return real::sendto(fd, data, size, flags, to, to_size);
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::sendto(fd, data, size, flags, to, to_size);
  const char* const bytes = static_cast<const char*>(data);
  return transferAll(attempt::takesPieces(call.kind()) ? size : 0, [&](size_t done) {
    return call.run([&] {
      if (done > 0 && ask::tcpHasFailed(fd)) return 0L;
      const long n = attempt::sendto(fd, bytes + done, size - done, done > 0 ? flags | MSG_NOSIGNAL : flags, to, to_size);
      if (n == -EAGAIN && to != nullptr) call.askAgainLater();
      return n;
    });
  });
}

ssize_t send(int fd, const void* data, size_t size, int flags) { return sendto(fd, data, size, flags, nullptr, 0); }

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  IoCall call(fd, Direction::kWrite);
  const bool parks = call.parks() && (flags & MSG_DONTWAIT) == 0;
  const ssize_t n = parks ? sendMessage(call, fd, message, flags) : real::sendmsg(fd, message, flags);
  if (n >= 0 && message->msg_controllen > 0) rightsSent(*message);
  return n;
}

int eventfd_write(int fd, eventfd_t value) { return write(fd, &value, sizeof value) == sizeof value ? 0 : -1; }

// The underscored names of old binaries.
ssize_t __write(int fd, const void* data, size_t size) { return write(fd, data, size); }
ssize_t __send(int fd, const void* data, size_t size, int flags) { return send(fd, data, size, flags); }

}  // extern "C"
