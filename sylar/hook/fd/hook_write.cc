// write and similar calls. A blocking write transfers everything unless an error or a timeout stops it. The result is then what was
// already transferred, as in the kernel. Source: write(2), writev(2), send(2).
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <algorithm>

#include "sylar/base/fd.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/ring_transfer.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/fd/batched_calls.h"
#include "sylar/hook/fd/connect.h"
#include "sylar/hook/fd/scm_rights.h"
#include "sylar/hook/file/file_call.h"

namespace sylar::detail {
namespace {

constexpr size_t kPartsWrittenAtOnce = 16;

inline bool isAll(long done, size_t size) { return done >= 0 && static_cast<size_t>(done) == size; }

/// Finishes a call whose first part has transferred `first` >= 0 of `size` bytes, and returns the total. If the kind takes
/// pieces, repeats `step(done, left)`, which transfers up to `left` more and returns their number, until all are through or it
/// returns none.
template <class Step>
ssize_t finish(long first, FdKind kind, size_t size, Step step) {
  SYLAR_DCHECK(first >= 0);
  if (first == 0 || !attempt::takesPieces(kind)) return first;
  size = std::min(size, kMaxTransfer);
  auto done = static_cast<size_t>(first);
  while (done < size) {
    const long n = step(done, size - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

/// Has libc's call make the rest of a transfer that passes on, and returns the total. `done` is the result of the first attempt.
template <class Rest>
ssize_t passOn(long done, Rest rest) {
  const ssize_t more = rest(static_cast<size_t>(std::max(done, 0L)));
  return done <= 0 ? more : done + std::max<ssize_t>(more, 0);
}

/// Finishes a vector call after the first, partial attempt. Only that attempt may raise SIGPIPE.
template <class SendParts>
ssize_t finishVector(const iovec* parts, size_t count, size_t done, SendParts send_parts) {
  IovecCursor rest(parts, count, kMaxTransfer);
  rest.skip(done);
  while (!rest.empty()) {
    iovec some[kPartsWrittenAtOnce];
    const size_t n = rest.fill(some);
    const long sent = send_parts(some, n);
    if (sent <= 0) break;
    done += static_cast<size_t>(sent);
    rest.skip(static_cast<size_t>(sent));
  }
  return static_cast<ssize_t>(done);
}

/// Sends the rest of a message after the first attempt has given `first`.
ssize_t sendRest(IoCall& call, const msghdr* message, int flags, long first) {
  if (first <= 0 || !attempt::takesPieces(call.kind())) return IoCall::result(first);
  call.bytesMoved();
  return finishVector(message->msg_iov, message->msg_iovlen, static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};  // all that it carried besides bytes has gone out with the first of them
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run(
        [&] { return probe::tcpHasFailed(call.fd()) ? 0 : attempt::sendmsg(call.fd(), &rest, flags | MSG_NOSIGNAL); });
  });
}

ssize_t sendMessage(IoCall& call, const msghdr* message, int flags) {
  const long first = call.run([&] {
    const long n = attempt::sendmsg(call.fd(), message, flags);
    if (n == -EAGAIN && message->msg_name != nullptr) call.askAgainLater();
    return n;
  });
  return sendRest(call, message, flags, first);
}

/// Makes a send that may connect. A blocking one returns when the connection stands, and only then sends the bytes that did not
/// go with the SYN.
[[gnu::noinline]] ssize_t sendFastOpen(IoCall& call, const msghdr* message, int flags) {
  if (onSignalStack()) return real::sendmsg(call.fd(), message, flags);
  const long first = attempt::sendmsg(call.fd(), message, flags);
  flags &= ~MSG_FASTOPEN;
  call.othersRan();
  if (first == -EINPROGRESS || (first >= 0 && probe::tcpConnects(call.fd()))) {
    if (probe::isNonblocking(call.fd())) return IoCall::result(first);
    const auto* const to = static_cast<const sockaddr*>(message->msg_name);
    long error = connectOn(call, to, message->msg_namelen, connectTimeoutNs());
    if (error == -EALREADY) error = -EINPROGRESS;  // the send has begun it
    if (error == -EINPROGRESS && first > 0) return IoCall::result(first);
    if (error != 0 && error != -EISCONN) return IoCall::result(error);
    call.beginNextMessage();
  }
  if (first == -EINPROGRESS) {
    msghdr unnamed = *message;
    unnamed.msg_name = nullptr;
    unnamed.msg_namelen = 0;
    return sendMessage(call, &unnamed, flags);
  }
  return first == -EAGAIN ? sendMessage(call, message, flags) : sendRest(call, message, flags, first);
}

/// Returns true if a send may wait here. Counts one that may not.
bool maySendLater(const HookedFd& here, int flags) {
  if (!here.parks()) return false;
  if ((flags & MSG_DONTWAIT) == 0) return !onSignalStack();
  chargeCallThatNeverWaits(here.engine());
  return false;
}

/// Sends a message, whole if the socket takes pieces.
ssize_t sendOne(IoCall& call, const msghdr* message, int flags) {
  return (flags & MSG_FASTOPEN) != 0 ? sendFastOpen(call, message, flags) : sendMessage(call, message, flags);
}

ssize_t sendInFiber(const HookedFd& here, const msghdr* message, int flags) {
  IoCall call(here, Direction::kWrite);
  return sendOne(call, message, flags);
}

/// Sends the first of `messages`, and on a socket of whole messages as many as fit. Returns their number, or -errno.
long sendSome(IoCall& call, mmsghdr* messages, unsigned count, int flags) {
  SYLAR_DCHECK(count > 0);
  if (call.kind() != FdKind::kMessages) {
    const long n = attempt::keepingErrno([&] { return sendOne(call, &messages->msg_hdr, flags); });
    if (n < 0) return n;
    const auto sent = static_cast<unsigned>(n);
    return probe::copyOut(&messages->msg_len, &sent, sizeof sent) ? 1 : -EFAULT;
  }
  return call.run([&] {
    const long n = attempt::sendmmsg(call.fd(), messages, count, flags);
    if (n == -EAGAIN && messages->msg_hdr.msg_name != nullptr) call.askAgainLater();
    return n;
  });
}

/// Sends messages as the kernel's blocking sendmmsg does. It ends at an error, of which only the next call tells, and behind a
/// message that did not go out whole. Returns their number, or -errno if there is none.
long sendMessages(const HookedFd& here, mmsghdr* messages, unsigned count, int flags) {
  IoCall call(here, Direction::kWrite);
  count = std::min<unsigned>(count, UIO_MAXIOV);  // as the kernel does
  unsigned done = 0;
  const auto isWhole = [](const mmsghdr& one) { return one.msg_len == totalSize(one.msg_hdr.msg_iov, one.msg_hdr.msg_iovlen); };
  do {
    const long n = sendSome(call, messages + done, count - done, flags);
    if (n <= 0) return done > 0 ? done : n;
    done += static_cast<unsigned>(n);
    call.beginNextMessage();
  } while (done < count && isWhole(messages[done - 1]));
  return done;
}

/// Returns the ring if it makes the first attempt of a send, where the engine makes transfers. A long one is worth a call into the
/// kernel of its own. In the posix modes signals and closes end no attempt, and this one lasts a turn.
[[gnu::noinline]] Ring* ringThatTakes(const HookedFd& here, size_t size, int flags) {
  constexpr size_t kMost = 16 * 1024;
  if (size > kMost || !here.entry().isPrivate() || onSignalStack()) return nullptr;
  if (anyPosixMode() || g_any_lingers.load(std::memory_order_relaxed) || here.engine().retired()) return nullptr;
  return transferRing(here.engine(), here.entry(), Direction::kWrite, size, flags);
}
/// Returns the ring if it makes the first attempt of a send, or null if that is made at once.
[[gnu::always_inline]] inline Ring* ringOfSend(const HookedFd& here, size_t size, int flags) {
  return here.engine().transfers() ? ringThatTakes(here, size, flags) : nullptr;
}

/// Has the ring make the first attempt of a send, without waiting for room, together with what other fibers send in this turn. As
/// an attempt it is ended neither by a cancel nor by a deadline. Returns the count or -errno; -EAGAIN also if the kernel did not
/// get to it.
[[gnu::noinline]] long sendByRing(Ring& ring, const HookedFd& here, const void* data, size_t size, int flags) {
  io_uring_sqe entry{};
  io_uring_prep_send(&entry, -1, data, size, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
  RingTransfer transfer(ring, entry);
  const this_fiber::CancelShield until_the_turn_ends;
  FiberCore& me = *t_running;
  me.sent_by_ring = true;
  if (sys::inForkedChild()) return -EAGAIN;
  Wait wait(me, WaitsFor::kWrite, here.fd());
  transfer.begin(here.fd(), here.entry(), here.generation(), wait.waker());
  here.engine().refillBudget();
  const HookPark waiting(me);
  (void)wait.park();
  waiting.count();
  const long n = transfer.end();
  return n == -ECANCELED ? -EAGAIN : n;
}

/// Makes the first attempt of a send by `ring` if that is not null, else, and where the ring cannot tell how it ends, by `once`.
template <class Attempt>
[[gnu::always_inline]] inline AttemptResult attemptSend(Ring* ring, HookedFd& here, const void* data, size_t size, int flags,
                                                        Attempt once) {
  if (ring != nullptr) [[unlikely]] {
    const uint64_t edges_seen = here.entry().edges(Direction::kWrite);
    const long n = sendByRing(*ring, here, data, size, flags);
    if (n != -EAGAIN && n != -EPIPE) return here.tried(Direction::kWrite, n, edges_seen, {});
    here.othersRan();  // the next attempt may raise SIGPIPE, where the fiber is
  }
  return here.attemptFirst(Direction::kWrite, once);
}

/// Returns what libc's write gives, after an attempt or the wait for the next one has failed with -errno `n`.
[[gnu::noinline]] ssize_t writeFailed(IoCall& call, long n, const void* data, size_t size) {
  if (n == -ENOTSOCK) {
    call.forgetKind();
    return ::write(call.fd(), data, size);
  }
  return call.mustUseLibc(n) ? real::write(call.fd(), data, size) : IoCall::result(n);
}

[[gnu::noinline]] ssize_t writeOn(HookedFd here, AttemptResult first, FdKind kind, const char* bytes, size_t size) {
  SYLAR_DCHECK(!isAll(first.done, size));
  // An eventfd says that it has room, and then blocks for more than that, which must not happen with the number pinned.
  const bool may_block = kind == FdKind::kPolled && first.done == -EAGAIN;
  const UniqueFd copy(may_block ? here.useCopy() : -1);
  IoCall call(here, Direction::kWrite);
  if (!call.parks() && (first.done > 0 || first.done == -EAGAIN)) {
    return passOn(first.done, [=, fd = call.fd()](size_t done) { return real::write(fd, bytes + done, size - done); });
  }
  const auto once = [&] { return attempt::write(call.entry(), kind, call.fd(), bytes, size); };
  const auto on_copy = [&] { return attempt::write(call.entry(), kind, copy.get(), bytes, size); };
  const long n = copy.valid() ? call.waitAndRetry(first, on_copy) : call.waitAndRetry(first, once);
  if (n < 0) return writeFailed(call, n, bytes, size);
  return finish(n, kind, size, [&](size_t done, size_t left) {
    return call.run([&] {
      if (attempt::isStreamSocket(kind) && probe::tcpHasFailed(call.fd())) return 0L;
      return attempt::write(call.entry(), kind, call.fd(), bytes + done, left, MSG_NOSIGNAL);
    });
  });
}

/// Writes in a fiber. A function of its own, so that outside fibers nothing is set up for it.
[[gnu::noinline]] ssize_t writeInFiber(int fd, const void* data, size_t size) {
  HookedFd here(fd, Hook::write);
  if (!here.parks()) return real::write(fd, data, size);
  const FdKind kind = here.kind();
  if (isFile(kind)) return writeFile(here, nullptr, 0, kAtPosition, [=] { return real::write(fd, data, size); });
  const auto once = [=, &entry = here.entry()] { return attempt::write(entry, kind, fd, data, size); };
  const AttemptResult first = attemptSend(ringOfSend(here, size, 0), here, data, size, 0, once);
  return isAll(first.done, size) ? first.done : writeOn(here, first, kind, static_cast<const char*>(data), size);
}

/// Continues a send after the first attempt. If `to` is another socket whose queue is full, no event tells of room.
[[gnu::noinline]] ssize_t sendOn(HookedFd here, AttemptResult first, const char* bytes, size_t size, int flags,
                                 const sockaddr* to, socklen_t to_size) {
  IoCall call(here, Direction::kWrite);
  SYLAR_DCHECK(!isAll(first.done, size));
  if (to != nullptr) call.askAgainLater();
  if (!call.parks() && (first.done > 0 || first.done == -EAGAIN)) {
    return passOn(first.done,
                  [=, fd = call.fd()](size_t done) { return real::sendto(fd, bytes + done, size - done, flags, to, to_size); });
  }
  const auto once = [&] { return attempt::sendto(call.fd(), bytes, size, flags, to, to_size); };
  const long n = call.waitAndRetry(first, once);
  if (n < 0) return call.mustUseLibc(n) ? real::sendto(call.fd(), bytes, size, flags, to, to_size) : IoCall::result(n);
  return finish(n, call.kind(), size, [&](size_t done, size_t left) {
    return call.run([&] {
      if (probe::tcpHasFailed(call.fd())) return 0L;
      return attempt::sendto(call.fd(), bytes + done, left, flags | MSG_NOSIGNAL, to, to_size);
    });
  });
}

}  // namespace

ssize_t sendBatched(int fd, const void* data, size_t size) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  HookedFd here(fd);
  if (!here.parks()) return ::sendto(fd, data, size, kFlags, nullptr, 0);
  countCall(Hook::sendto);
  const auto once = [=] { return attempt::sendto(fd, data, size, kFlags, nullptr, 0); };
  const AttemptResult tried = attemptSend(ringOfSend(here, size, MSG_NOSIGNAL), here, data, size, kFlags, once);
  return IoCall::result(tried.done == AttemptResult::kSkipped ? -EBADF : tried.done);
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  return onThreadStack() ? real::write(fd, data, size) : writeInFiber(fd, data, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  countCall(Hook::writev);
  const HookedFd here(fd);
  IoCall call(here, Direction::kWrite);
  if (!call.parks()) return real::writev(fd, parts, count);
  const FdKind kind = call.kind();
  if (isFile(kind)) return writeFile(here, parts, count, kAtPosition, [=] { return real::writev(fd, parts, count); });
  const long first = call.run([&] { return attempt::writev(call.entry(), kind, call.fd(), parts, count); });
  if (call.mustUseLibc(first)) return real::writev(call.fd(), parts, count);
  if (first <= 0 || !attempt::takesPieces(kind)) return IoCall::result(first);
  return finishVector(parts, static_cast<size_t>(count), static_cast<size_t>(first), [&](iovec* some, size_t n) {
    msghdr rest{};
    rest.msg_iov = some;
    rest.msg_iovlen = n;
    return call.run([&] {
      if (!attempt::isStreamSocket(kind)) return attempt::writev(call.entry(), kind, call.fd(), some, static_cast<int>(n));
      return probe::tcpHasFailed(call.fd()) ? 0 : attempt::sendmsg(call.fd(), &rest, MSG_NOSIGNAL);
    });
  });
}

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  if ((flags & MSG_DONTWAIT) != 0) {
    countCall(Hook::sendto);
    chargeCallHere();
    return real::sendto(fd, data, size, flags, to, to_size);
  }
  HookedFd here(fd, Hook::sendto);
  if (!here.parks()) return real::sendto(fd, data, size, flags, to, to_size);
  if ((flags & MSG_FASTOPEN) != 0) [[unlikely]] {
    iovec part{const_cast<void*>(data), size};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(to);
    message.msg_namelen = to_size;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return sendInFiber(here, &message, flags);
  }
  const auto once = [=] { return attempt::sendto(fd, data, size, flags, to, to_size); };
  Ring* const ring = to == nullptr ? ringOfSend(here, size, flags) : nullptr;
  const AttemptResult first = attemptSend(ring, here, data, size, flags, once);
  if (isAll(first.done, size)) return first.done;
  return sendOn(here, first, static_cast<const char*>(data), size, flags, to, to_size);
}

ssize_t send(int fd, const void* data, size_t size, int flags) { return sendto(fd, data, size, flags, nullptr, 0); }

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  countCall(Hook::sendmsg);
  const HookedFd here(fd);
  const bool waits = maySendLater(here, flags);
  const ssize_t n = waits ? sendInFiber(here, message, flags) : real::sendmsg(fd, message, flags);
  if (n >= 0 && message->msg_controllen > 0) rightsSent(*message);
  return n;
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  countCall(Hook::sendmmsg);
  const HookedFd here(fd);
  const bool waits = maySendLater(here, flags) && count > 0;
  const int sent = waits ? static_cast<int>(IoCall::result(sendMessages(here, messages, count, flags)))
                         : real::sendmmsg(fd, messages, count, flags);
  for (int i = 0; i < sent; ++i) {
    if (messages[i].msg_hdr.msg_controllen > 0) rightsSent(messages[i].msg_hdr);
  }
  return sent;
}

/// Without flags it is writev at offset -1, else pwritev.
ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (flags == 0) return offset == kAtPosition ? writev(fd, parts, count) : pwritev(fd, parts, count, offset);
  countCall(Hook::pwritev2);
  chargeCallHere();
  return real::pwritev2(fd, parts, count, offset, flags);
}
ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) __attribute__((alias("pwritev2")));

int eventfd_write(int fd, eventfd_t value) { return write(fd, &value, sizeof value) == sizeof value ? 0 : -1; }

// Old binaries call the underscored names.
ssize_t __write(int fd, const void* data, size_t size) { return write(fd, data, size); }
ssize_t __send(int fd, const void* data, size_t size, int flags) { return send(fd, data, size, flags); }

}  // extern "C"
