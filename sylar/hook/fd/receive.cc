#include "sylar/hook/fd/receive.h"

#include <poll.h>

#include <algorithm>
#include <climits>

#include "sylar/check.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/fd/scm_rights.h"

namespace sylar::detail {
namespace {

constexpr size_t kPartsReadAtOnce = 16;

size_t targetOf(int fd, size_t size, int flags) {
  if ((flags & MSG_PEEK) != 0 && probe::socketOption(fd, SO_DOMAIN) == AF_UNIX)
    return std::min<size_t>(size, 1);  // such a peek looks at what is there
  const int mark = (flags & MSG_WAITALL) != 0 ? INT_MAX : probe::socketOption(fd, SO_RCVLOWAT);
  return std::min(size, static_cast<size_t>(std::max(mark, 1)));
}

/// Returns true if a peek begins at the front each time, which it does unless the kernel remembers where it was (SO_PEEK_OFF).
bool peeksAnew(int fd, int flags) { return (flags & MSG_PEEK) != 0 && probe::socketOption(fd, SO_PEEK_OFF) < 0; }

/// Peeks until `target` bytes are there, again after each event of the descriptor.
long peek(IoCall& call, const msghdr& wanted, msghdr* message, int flags, size_t target) {
  long seen = 0;
  const long n = call.run([&]() -> long {
    // Asked before the peek, which then sees all that came before the end, or all bytes up to an urgent one that has come.
    const int fd = call.fd();
    const bool ended = probe::hasEnded(fd) || (probe::isReady(fd, POLLPRI) && !probe::atUrgentMark(fd));
    msghdr look = wanted;
    const long now = attempt::recvmsg(fd, &look, flags);
    if (now < 0) return now;
    *message = look;
    seen = now;
    if (seen > 0) call.bytesMoved();
    const bool all = ended || static_cast<size_t>(now) >= target || endsWithRights(fd, look);
    return all ? now : -EAGAIN;
  });
  return n < 0 && seen > 0 ? seen : n;
}

/// Receives a piece after the first, and returns 0 where the kernel would stop. There the kernel leaves the error of a TCP
/// connection for the next call. So an attempt is made only if there are bytes, which come before the error, or if there is no
/// error.
long takeMore(int fd, msghdr* piece, int flags) {
  if (probe::atUrgentMark(fd)) return 0;
  if (!probe::hasBytes(fd)) {
    if (!probe::isReady(fd, POLLIN | POLLRDHUP)) return -EAGAIN;
    if (probe::tcpHasFailed(fd) && !probe::hasBytes(fd)) return 0;
  }
  return attempt::recvmsg(fd, piece, flags);
}

/// Receives until `target` bytes are there, or until the kernel would stop. Every piece brings new control messages.
long take(IoCall& call, const msghdr& wanted, msghdr* message, int flags, size_t done, size_t target) {
  SYLAR_DCHECK(done < target || done == 0);
  IovecCursor rest(wanted.msg_iov, wanted.msg_iovlen);
  rest.skip(done);
  do {
    iovec some[kPartsReadAtOnce];
    msghdr piece = wanted;
    piece.msg_iov = some;
    piece.msg_iovlen = rest.fill(some);
    const long n =
        call.run([&] { return done > 0 ? takeMore(call.fd(), &piece, flags) : attempt::recvmsg(call.fd(), &piece, flags); });
    if (n < 0) return done > 0 ? static_cast<long>(done) : n;
    if (n == 0 && done > 0) break;
    message->msg_namelen = piece.msg_namelen;
    message->msg_controllen = piece.msg_controllen;
    message->msg_flags = piece.msg_flags;
    done += static_cast<size_t>(n);
    if (n == 0 || endsWithRights(call.fd(), piece)) break;
    rest.skip(static_cast<size_t>(n));
  } while (done < target);
  return static_cast<long>(done);
}

}  // namespace

long receiveMore(IoCall& call, msghdr* message, int flags) {
  msghdr wanted;
  const bool readable = probe::copyIn(&wanted, message, sizeof wanted);
  // The first piece, or the reason why there is none, comes from the kernel alone.
  const long first = call.run([&] { return attempt::recvmsg(call.fd(), message, flags); });
  if (first <= 0 || !readable || endsWithRights(call.fd(), *message)) return first;
  const size_t size = totalSize(wanted.msg_iov, wanted.msg_iovlen);
  const size_t target = targetOf(call.fd(), size, flags);
  if (static_cast<size_t>(first) >= target) return first;
  if (peeksAnew(call.fd(), flags)) return std::max(first, peek(call, wanted, message, flags, target));
  return take(call, wanted, message, flags, static_cast<size_t>(first), target);
}

long receiveMore(IoCall& call, const iovec* parts, size_t count, int flags, size_t first) {
  msghdr wanted{};
  wanted.msg_iov = const_cast<iovec*>(parts);
  wanted.msg_iovlen = count;
  msghdr message = wanted;
  const size_t target = targetOf(call.fd(), totalSize(parts, count), flags);
  if (first > 0 && first >= target) return static_cast<long>(first);
  if (first > 0) call.bytesMoved();
  const bool anew = peeksAnew(call.fd(), flags);
  const long n = anew ? peek(call, wanted, &message, flags, target) : take(call, wanted, &message, flags, first, target);
  return first > 0 ? std::max(n, static_cast<long>(first)) : n;
}

}  // namespace sylar::detail
