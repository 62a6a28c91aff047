#include "sylar/hook/receive.h"

#include <algorithm>
#include <climits>

#include "sylar/hook/ask.h"
#include "sylar/hook/iovec_rest.h"
#include "sylar/hook/rights.h"

namespace sylar {
namespace {

constexpr size_t kPartsAtOnce = 16;

size_t targetOf(int fd, size_t size, int flags) {
  if ((flags & MSG_PEEK) != 0 && ask::socketOption(fd, SO_DOMAIN) == AF_UNIX)
    return std::min<size_t>(size, 1);  // it looks at what is there
  const int mark = (flags & MSG_WAITALL) != 0 ? INT_MAX : ask::socketOption(fd, SO_RCVLOWAT);
  return std::min(size, static_cast<size_t>(std::max(mark, 1)));
}

/// A peek begins anew each time, unless the kernel remembers where it was.
bool peeksAnew(int fd, int flags) { return (flags & MSG_PEEK) != 0 && ask::socketOption(fd, SO_PEEK_OFF) < 0; }

/// Looks again and again until `target` bytes are there; each event of the descriptor is a reason to.
long peek(IoCall& call, int fd, const msghdr& wanted, msghdr* message, int flags, size_t target) {
  long seen = 0;
  const long n = call.run([&]() -> long {
    const bool ended = ask::hasEnded(fd);  // asked first: what came before the end is then seen
    msghdr look = wanted;
    const long now = attempt::recvmsg(fd, &look, flags);
    if (now < 0) return now;
    *message = look;
    seen = now;
    const bool all = ended || static_cast<size_t>(now) >= target || endsWithRights(fd, look);
    return all ? now : -EAGAIN;
  });
  return n < 0 && seen > 0 ? seen : n;
}

/// Receives until `target` bytes are there. Every piece brings its control messages anew; where the kernel would stop, we do.
long take(IoCall& call, int fd, const msghdr& wanted, msghdr* message, int flags, size_t done, size_t target) {
  IovecRest rest(wanted.msg_iov, wanted.msg_iovlen);
  rest.skip(done);
  do {
    iovec some[kPartsAtOnce];
    msghdr piece = wanted;
    piece.msg_iov = some;
    piece.msg_iovlen = rest.fill(some);
    const long n = call.run([&]() -> long {
      if (done > 0 && ask::atUrgentMark(fd)) return 0;
      return attempt::recvmsg(fd, &piece, flags);
    });
    if (n < 0) return done > 0 ? static_cast<long>(done) : n;
    if (n == 0 && done > 0) break;
    message->msg_namelen = piece.msg_namelen;
    message->msg_controllen = piece.msg_controllen;
    message->msg_flags = piece.msg_flags;
    done += static_cast<size_t>(n);
    if (n == 0 || endsWithRights(fd, piece)) break;
    rest.skip(static_cast<size_t>(n));
  } while (done < target);
  return static_cast<long>(done);
}

}  // namespace

long receiveMore(IoCall& call, int fd, msghdr* message, int flags) {
  msghdr wanted;
  const bool readable = ask::copyIn(&wanted, message, sizeof wanted);
  // The first piece, or the reason why there is none, is the kernel's alone.
  const long first = call.run([&] { return attempt::recvmsg(fd, message, flags); });
  if (first <= 0 || !readable || endsWithRights(fd, *message)) return first;
  const size_t size = totalSize(wanted.msg_iov, wanted.msg_iovlen);
  const size_t target = targetOf(fd, size, flags);
  if (static_cast<size_t>(first) >= target) return first;
  if (peeksAnew(fd, flags)) return std::max(first, peek(call, fd, wanted, message, flags, target));
  return take(call, fd, wanted, message, flags, static_cast<size_t>(first), target);
}

long receiveMore(IoCall& call, int fd, const iovec* parts, size_t count, int flags, size_t first) {
  msghdr wanted{};
  wanted.msg_iov = const_cast<iovec*>(parts);
  wanted.msg_iovlen = count;
  msghdr message = wanted;
  const size_t target = targetOf(fd, totalSize(parts, count), flags);
  if (first > 0 && first >= target) return static_cast<long>(first);
  const bool anew = peeksAnew(fd, flags);
  const long n = anew ? peek(call, fd, wanted, &message, flags, target) : take(call, fd, wanted, &message, flags, first, target);
  return first > 0 ? std::max(n, static_cast<long>(first)) : n;
}

}  // namespace sylar
