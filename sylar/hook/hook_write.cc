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

inline bool isAll(long done, size_t size) { return done >= 0 && static_cast<size_t>(done) == size; }

/// The rest of a call whose first part has transferred `first` >= 0 of `size` bytes: where it takes pieces, repeats `step(done)`,
/// which transfers some more and gives their number, until all are through or it gives none.
template <class Step>
ssize_t finish(long first, FdKind kind, size_t size, Step step) {
  if (first == 0 || !attempt::takesPieces(kind)) return first;
  auto done = static_cast<size_t>(first);
  while (done < size) {
    const long n = step(done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
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

/// What libc's write gives after an attempt, or a wait for the next one, has failed with -errno `n`.
[[gnu::noinline]] ssize_t writeFailed(IoCall& call, long n, int fd, const void* data, size_t size) {
  if (n == -ENOTSOCK) {
    call.learnAnew();
    return ::write(fd, data, size);
  }
  return call.passesOn() ? real::write(fd, data, size) : IoCall::result(n);
}

template <class Attempt>
[[gnu::noinline]] ssize_t writeOn(HookedFd here, Tried first, Attempt once, FdKind kind, const char* bytes, size_t size) {
  IoCall call(here, Direction::kWrite);
  const int fd = here.fd();
  const long n = call.goOn(first, once);
  if (n < 0) return writeFailed(call, n, fd, bytes, size);
  return finish(n, kind, size, [&](size_t done) {
    return call.run([&] {
      if (attempt::isStreamSocket(kind) && ask::tcpHasFailed(fd)) return 0L;
      return attempt::write(call.entry(), kind, fd, bytes + done, size - done, MSG_NOSIGNAL);
    });
  });
}

/// A function of its own, so that outside fibers nothing is set up for it.
[[gnu::noinline]] ssize_t writeInFiber(int fd, const void* data, size_t size) {
  HookedFd here(fd);
  if (!here.parks()) return real::write(fd, data, size);
  const FdKind kind = here.kind();
  if (kind == FdKind::kOther) return real::write(fd, data, size);
  const auto once = [=, &entry = here.entry()] { return attempt::write(entry, kind, fd, data, size); };
  const Tried first = here.tryFirst(Direction::kWrite, once);
  return isAll(first.done, size) ? first.done : writeOn(here, first, once, kind, static_cast<const char*>(data), size);
}

/// Where `to` is another's full queue, no event tells of room.
template <class Attempt>
[[gnu::noinline]] ssize_t sendOn(HookedFd here, Tried first, Attempt once, const char* bytes, size_t size, int flags,
                                 const sockaddr* to, socklen_t to_size) {
  IoCall call(here, Direction::kWrite);
  if (to != nullptr) call.askAgainLater();
  const int fd = here.fd();
  const long n = call.goOn(first, once);
  if (n < 0) return IoCall::result(n);
  return finish(n, call.kind(), size, [&](size_t done) {
    return call.run([&] {
      if (ask::tcpHasFailed(fd)) return 0L;
      return attempt::sendto(fd, bytes + done, size - done, flags | MSG_NOSIGNAL, to, to_size);
    });
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
  HookedFd here(fd);
  if (!here.parks()) return real::sendto(fd, data, size, flags, to, to_size);
  const auto once = [=] { return attempt::sendto(fd, data, size, flags, to, to_size); };
  const Tried first = here.tryFirst(Direction::kWrite, once);
  if (isAll(first.done, size)) return first.done;
  return sendOn(here, first, once, static_cast<const char*>(data), size, flags, to, to_size);
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
