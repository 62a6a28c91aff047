// read and similar calls. Source: read(2), readv(2), recv(2).
#include <sys/eventfd.h>

#include <algorithm>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/ring_transfer.h"
#include "sylar/hook/fd/batched_calls.h"
#include "sylar/hook/fd/receive.h"
#include "sylar/hook/fd/scm_rights.h"
#include "sylar/hook/fd/terminal.h"
#include "sylar/hook/fd/told_of_message.h"
#include "sylar/hook/file/file_call.h"

namespace sylar::detail {
namespace {

/// Reads from a terminal; `plain(n)` reads at most n bytes.
template <class Plain>
long readTerminal(IoCall& call, size_t size, Plain plain) {
  terminal::Reading reading(call);
  const long n = call.run([&]() -> long {
    const attempt::ProbeLock lock(call.entry());
    const size_t now = reading.bytesNow(size);
    if (now == 0) return -EAGAIN;
    const long got = plain(std::min(size, now));
    return got == 0 && reading.wasHungUp() ? -EIO : got;
  });
  if (n != -ETIME) return n;
  return call.attemptAgain([&]() -> long {
    const attempt::ProbeLock lock(call.entry());
    const size_t last = reading.bytesAtLast();
    return last == 0 ? 0 : plain(std::min(size, last));
  });
}

/// Returns true if a call with these flags never waits on a socket of this kind.
bool neverWaits(IoCall& call, int flags) {
  if ((flags & MSG_DONTWAIT) != 0) return true;
  if ((flags & MSG_ERRQUEUE) != 0 && probe::socketOption(call.fd(), SO_DOMAIN) != AF_UNIX) return true;  // AF_UNIX ignores it
  return (flags & MSG_OOB) != 0 && attempt::isStreamSocket(call.kind());
}

/// Writes down for recvfrom, or recv, that there are no more messages. Returns 0 or -errno.
long tellNoSender(sockaddr* from, socklen_t* from_size) { return from == nullptr ? 0 : tellSender({}, 0, from, from_size); }

/// Receives with an address. It is done by recvmsg, because recvfrom does not tell that descriptors end a receive.
long receiveMoreFrom(IoCall& call, iovec part, int flags, sockaddr* from, socklen_t* from_size) {
  sockaddr_storage sender;
  msghdr message{};
  message.msg_name = &sender;
  message.msg_namelen = sizeof sender;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const long n = receiveMore(call, &message, flags);
  const long error = n >= 0 ? tellSender(sender, message.msg_namelen, from, from_size) : 0;
  return error < 0 ? error : n;
}

/// Receives with flags or from a socket with a mark (SO_RCVLOWAT).
[[gnu::noinline]] long receiveSpecially(IoCall& call, void* buffer, size_t size, int flags, sockaddr* from,
                                        socklen_t* from_size) {
  const auto once = [&] { return attempt::recvfrom(call.fd(), buffer, size, flags, from, from_size); };
  const auto plain = [&] { return attempt::plainRecvfrom(call.fd(), buffer, size, flags, from, from_size); };
  const iovec part{buffer, std::min(size, kMaxTransfer)};
  if (!waitsForMore(call.kind(), flags)) return call.receive(once, plain, [=] { return tellNoSender(from, from_size); });
  return from == nullptr ? receiveMore(call, &part, 1, flags) : receiveMoreFrom(call, part, flags, from, from_size);
}

/// Goes on with a receive after the first of its attempts, which would have blocked. The kernel makes the next one when bytes are
/// there.
template <class Attempt>
[[gnu::noinline]] long receiveByRing(Ring& ring, IoCall& call, AttemptResult first, Attempt once, void* buffer, size_t size) {
  io_uring_sqe entry{};
  io_uring_prep_recv(&entry, -1, buffer, std::min(size, kMaxTransfer), 0);
  entry.ioprio = IORING_RECVSEND_POLL_FIRST;
  RingTransfer transfer(ring, entry);
  return call.waitAndRetryByRing(transfer, first, once, {buffer, size});
}

/// Returns what libc's read gives, after an attempt or the wait for the next one has failed with -errno `n`.
[[gnu::noinline]] ssize_t readFailed(IoCall& call, long n, void* buffer, size_t size) {
  SYLAR_DCHECK(n < 0);
  if (n == -ENOTSOCK) {
    call.forgetKind();
    return ::read(call.fd(), buffer, size);
  }
  return call.mustUseLibc(n) ? real::read(call.fd(), buffer, size) : IoCall::result(n);
}

[[gnu::noinline]] ssize_t readSpecially(HookedFd here, FdKind kind, void* buffer, size_t size) {
  SYLAR_DCHECK(kind >= FdKind::kMarkedStream);
  IoCall call(here, Direction::kRead);
  if (isFile(kind))
    return readFile(here, buffer, size, kAtPosition, [=, fd = here.fd()] { return real::read(fd, buffer, size); });
  long n;
  if (kind == FdKind::kTerminal) {
    n = readTerminal(call, size, [&](size_t most) { return attempt::plainRead(call.fd(), buffer, most); });
  } else if (size > 0) {
    n = receiveSpecially(call, buffer, size, 0, nullptr, nullptr);
  } else {
    n = attempt::read(call.entry(), kind, call.fd(), buffer, size);
  }
  return n >= 0 ? n : readFailed(call, n, buffer, size);
}

/// Returns what libc's recv or recvfrom gives for the result `n` of the attempts.
ssize_t receiveEnds(const IoCall& call, long n, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  return call.mustUseLibc(n) ? real::recvfrom(call.fd(), buffer, size, flags, from, from_size) : IoCall::result(n);
}

[[gnu::noinline]] ssize_t receiveWithFlags(HookedFd here, void* buffer, size_t size, int flags, sockaddr* from,
                                           socklen_t* from_size) {
  IoCall call(here, Direction::kRead);
  if (neverWaits(call, flags)) {
    chargeCallThatNeverWaits(here.engine());
    return real::recvfrom(here.fd(), buffer, size, flags, from, from_size);
  }
  const long n = receiveSpecially(call, buffer, size, flags, from, from_size);
  return receiveEnds(call, n, buffer, size, flags, from, from_size);
}

[[gnu::noinline]] ssize_t waitAndReceive(const HookedFd& here, AttemptResult first, void* buffer, size_t size, int flags,
                                         sockaddr* from, socklen_t* from_size) {
  IoCall call(here, Direction::kRead);
  const auto once = [=, &call] { return attempt::recvfrom(call.fd(), buffer, size, flags, from, from_size); };
  const auto plain = [=, &call] { return attempt::plainRecvfrom(call.fd(), buffer, size, flags, from, from_size); };
  if (size == 0 && first.done == -EAGAIN && probe::isTcp(call.fd())) {
    // The kernel waits until something comes, looks at none of it, and has received no bytes. When its timeout passes, it has
    // received none either.
    call.setTimeoutError(0);
    const auto nothing = [&call] { return call.interrupted() ? -EAGAIN : 0L; };
    return receiveEnds(call, call.waitAndRetry(first, nothing), buffer, size, flags, from, from_size);
  }
  Ring* const ring = from == nullptr ? transferRing(here.engine(), call.entry(), Direction::kRead, size, flags) : nullptr;
  const long n = ring != nullptr ? receiveByRing(*ring, call, first, once, buffer, size)
                                 : call.waitAndReceive(first, once, plain, [=] { return tellNoSender(from, from_size); });
  return receiveEnds(call, n, buffer, size, flags, from, from_size);
}

[[gnu::always_inline]] inline ssize_t receive(HookedFd here, void* buffer, size_t size, int flags, sockaddr* from,
                                              socklen_t* from_size) {
  constexpr int kOrdinary = MSG_NOSIGNAL | MSG_CMSG_CLOEXEC;
  if ((flags & ~kOrdinary) != 0 || here.kind() == FdKind::kMarkedStream) {
    return receiveWithFlags(here, buffer, size, flags, from, from_size);
  }
  const auto once = [=, fd = here.fd()] { return attempt::recvfrom(fd, buffer, size, flags, from, from_size); };
  const AttemptResult first = here.attemptFirst(Direction::kRead, once, {buffer, size});
  return first.done >= 0 ? first.done : waitAndReceive(HookedFd(here), first, buffer, size, flags, from, from_size);
}

[[gnu::noinline]] ssize_t readOn(const HookedFd& here, AttemptResult first, FdKind kind, void* buffer, size_t size) {
  SYLAR_DCHECK(first.done < 0 && kind < FdKind::kMarkedStream);
  IoCall call(here, Direction::kRead);
  const auto once = [=, &call] { return attempt::read(call.entry(), kind, call.fd(), buffer, size); };
  const auto plain = [=, &call] { return attempt::plainRead(call.fd(), buffer, size); };
  Ring* const ring = transferRing(here.engine(), call.entry(), Direction::kRead, size, 0);
  const long n = ring != nullptr ? receiveByRing(*ring, call, first, once, buffer, size)
                                 : call.waitAndReceive(first, once, plain, [] { return 0L; }, {buffer, size});
  return n >= 0 ? n : readFailed(call, n, buffer, size);
}

/// Takes `buffer` for one call of `receive(bytes)`, which gives a count or -errno. Returns what it gives, or -ENOMEM.
template <class Receive>
long receiveInto(PooledBuffer& buffer, Receive receive) {
  char* const bytes = buffer.take();
  if (bytes == nullptr) return -ENOMEM;
  const long n = receive(bytes);
  if (n <= 0) buffer.giveBack();
  return n;
}
long attemptInto(PooledBuffer& buffer, int fd) {
  return receiveInto(buffer,
                     [fd](char* bytes) { return attempt::recvfrom(fd, bytes, PooledBuffer::kSize, 0, nullptr, nullptr); });
}
/// Makes the whole call with the buffer, by `receive(bytes)`, which is as recv(2).
template <class Receive>
ssize_t receiveEarly(PooledBuffer& buffer, Receive receive) {
  return IoCall::result(receiveInto(buffer, [&](char* bytes) -> long {
    const ssize_t n = receive(bytes);
    return n >= 0 ? n : -sys::errnoRef();
  }));
}

constexpr ReadBuffer kPooledBuffer{nullptr, PooledBuffer::kSize};  // within a page, since no byte of the buffer can fail

/// Does what receiveByRing() does, into memory that the ring lends when bytes have come.
[[gnu::noinline]] long receiveIntoPoolByRing(Ring& ring, LentMemory& memory, IoCall& call, AttemptResult first,
                                             PooledBuffer& buffer) {
  static_assert(PooledBuffer::kSize == LentMemory::kBlockSize);
  io_uring_sqe entry{};
  io_uring_prep_recv(&entry, -1, nullptr, PooledBuffer::kSize, 0);
  entry.ioprio = IORING_RECVSEND_POLL_FIRST;
  LentMemory::lendTo(entry);
  RingTransfer transfer(ring, entry);
  const auto once = [&] { return attemptInto(buffer, call.fd()); };
  const long n = call.waitAndRetryByRing(transfer, first, once, kPooledBuffer);
  const char* const lent = transfer.lent();
  if (lent == nullptr) return n;
  SYLAR_DCHECK(n > 0);
  const long copied = receiveInto(buffer, [=](char* bytes) {
    std::copy_n(lent, n, bytes);
    return n;
  });
  memory.giveBack(lent);
  return copied;
}

[[gnu::noinline]] ssize_t waitAndReceiveIntoPool(const HookedFd& here, AttemptResult first, PooledBuffer& buffer) {
  IoCall call(here, Direction::kRead);
  Ring* const ring = transferRing(here.engine(), call.entry(), Direction::kRead, PooledBuffer::kSize, 0);
  const auto once = [&] { return attemptInto(buffer, call.fd()); };
  LentMemory* const memory = ring != nullptr ? ring->memory() : nullptr;
  const long n = memory != nullptr ? receiveIntoPoolByRing(*ring, *memory, call, first, buffer)
                                   : call.waitAndRetry(first, once, kPooledBuffer);
  if (!call.mustUseLibc(n)) return IoCall::result(n);
  return receiveEarly(buffer, [&](char* bytes) { return real::recv(call.fd(), bytes, PooledBuffer::kSize, 0); });
}

/// Receives messages as the kernel's blocking recvmmsg does, which looks at the time only behind a message. Returns their number,
/// or -errno if there is none.
long receiveMessages(IoCall& call, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  unsigned done = 0;
  Deadline end = Deadline::never();
  timespec own;
  timespec* left = timeout;  // unread until the kernel has accepted it
  const auto take = [&](int how) {
    if (left == &own) own = attempt::toTimespec(std::max<int64_t>(end.ns() - waitClock().nowNs(), 0));
    const long n = attempt::recvmmsg(call.fd(), messages + done, count - done, flags | how, left);
    if (n > 0 && left == &own && !probe::copyOut(timeout, &own, sizeof own)) return static_cast<long>(-EFAULT);
    if (n == -EAGAIN && timeout != nullptr && left == timeout) {
      end = Deadline::after(std::chrono::nanoseconds(attempt::toNs(*timeout)), waitClock());
      left = &own;
    }
    return n;
  };
  const auto wantsMore = [&] {
    if (done == count || (flags & MSG_WAITFORONE) != 0) return false;
    if ((messages[done - 1].msg_hdr.msg_flags & MSG_OOB) != 0) return false;
    return timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec != 0;
  };
  do {
    // Behind a message an error is left for the next call.
    const auto once = [&] { return done > 0 && probe::hasError(call.fd()) ? 0 : take(MSG_DONTWAIT); };
    const auto plain = [&] { return take(0); };
    const auto no_message = [&] {
      const long error = tellEnd(&messages[done], flags);
      return error == 0 ? 1 : error;  // counts as one
    };
    const long n = call.receive(once, plain, no_message);
    if (n <= 0) return done > 0 ? done : n;
    SYLAR_DCHECK(static_cast<unsigned>(n) <= count - done);
    done += static_cast<unsigned>(n);
    call.beginNextMessage();
  } while (wantsMore());
  return done;
}

/// Returns true for a vector of readv that has room, as far as it can be read.
bool wantsBytes(const iovec* parts, int count) {
  if (count > UIO_MAXIOV) return false;
  iovec part{};
  for (int i = 0; i < count && part.iov_len == 0; ++i) {
    if (!probe::copyIn(&part, parts + i, sizeof part)) return false;
  }
  return part.iov_len > 0;
}

/// Reads in a fiber. A function of its own, so that outside fibers nothing is set up for it.
[[gnu::noinline]] ssize_t readInFiber(int fd, void* buffer, size_t size) {
  HookedFd here(fd, Hook::read);
  if (!here.parks()) return real::read(fd, buffer, size);
  const FdKind kind = here.kind();
  if (kind >= FdKind::kMarkedStream) return readSpecially(here, kind, buffer, size);
  const auto once = [=, &entry = here.entry()] { return attempt::read(entry, kind, fd, buffer, size); };
  const AttemptResult first = here.attemptFirst(Direction::kRead, once, {buffer, size});
  return first.done >= 0 ? first.done : readOn(HookedFd(here), first, kind, buffer, size);
}

}  // namespace

ssize_t receiveIntoPool(int fd, PooledBuffer& buffer, int flags) {
  HookedFd here(fd, Hook::recv);
  if (!here.parks()) return receiveEarly(buffer, [&](char* bytes) { return real::recv(fd, bytes, PooledBuffer::kSize, flags); });
  if (const FdKind kind = here.kind(); flags != 0 || (kind != FdKind::kTcp && kind != FdKind::kStream)) {
    return receiveEarly(buffer, [&](char* bytes) { return receive(here, bytes, PooledBuffer::kSize, flags, nullptr, nullptr); });
  }
  const AttemptResult first = here.attemptFirst(
      Direction::kRead, [&] { return attemptInto(buffer, fd); }, kPooledBuffer);
  return first.done >= 0 ? first.done : waitAndReceiveIntoPool(HookedFd(here), first, buffer);
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

ssize_t read(int fd, void* buffer, size_t size) {
  return onThreadStack() ? real::read(fd, buffer, size) : readInFiber(fd, buffer, size);
}

ssize_t readv(int fd, const iovec* parts, int count) {
  countCall(Hook::readv);
  const HookedFd here(fd);
  IoCall call(here, Direction::kRead);
  if (!call.parks()) return real::readv(fd, parts, count);
  const FdKind kind = call.kind();
  if (isFile(kind)) return readFile(here, parts, count, kAtPosition, [=] { return real::readv(fd, parts, count); });
  const auto once = [&] { return attempt::readv(call.entry(), kind, call.fd(), parts, count); };
  const auto plain = [&] { return attempt::plainReadv(call.fd(), parts, count); };
  long n;
  if (kind == FdKind::kMarkedStream && wantsBytes(parts, count)) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    n = receiveMore(call, &message, 0);
    if (n == -ENOTSOCK) {
      call.forgetKind();
      return ::readv(call.fd(), parts, count);
    }
  } else {
    n = kind == FdKind::kTerminal ? once()
                                  : call.receive(once, plain, [] { return 0L; });  // for a terminal it only checks the vector
  }
  if (n == -EOPNOTSUPP) n = readTerminal(call, SIZE_MAX, [&](size_t) { return plain(); });
  return call.mustUseLibc(n) ? real::readv(call.fd(), parts, count) : IoCall::result(n);
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  const HookedFd here(fd, Hook::recv);
  return here.parks() ? receive(here, buffer, size, flags, nullptr, nullptr) : real::recv(fd, buffer, size, flags);
}

ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  const HookedFd here(fd, Hook::recvfrom);
  return here.parks() ? receive(here, buffer, size, flags, from, from_size)
                      : real::recvfrom(fd, buffer, size, flags, from, from_size);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  countCall(Hook::recvmsg);
  IoCall call(fd, Direction::kRead);
  ssize_t n;
  const bool never_waits = call.parks() && neverWaits(call, flags);
  if (never_waits) chargeCallThatNeverWaits(call.engine());
  if (!call.parks() || never_waits) {
    n = real::recvmsg(fd, message, flags);
  } else if (waitsForMore(call.kind(), flags)) {
    n = IoCall::result(receiveMore(call, message, flags));
  } else {
    n = IoCall::result(call.receive([&] { return attempt::recvmsg(call.fd(), message, flags); },
                                    [&] { return attempt::plainRecvmsg(call.fd(), message, flags); },
                                    [=] { return tellEnd(message, flags); }));
  }
  if (n >= 0) rightsReceived(*message);
  return n;
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  countCall(Hook::recvmmsg);
  IoCall call(fd, Direction::kRead);
  const bool waits = call.parks() && !neverWaits(call, flags);
  if (call.parks() && !waits) chargeCallThatNeverWaits(call.engine());
  const int received = waits ? static_cast<int>(IoCall::result(receiveMessages(call, messages, count, flags, timeout)))
                             : real::recvmmsg(fd, messages, count, flags, timeout);
  for (int i = 0; i < received; ++i) rightsReceived(messages[i].msg_hdr);
  return received;
}

/// Without flags it is readv at offset -1, else preadv.
ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (flags == 0) return offset == kAtPosition ? readv(fd, parts, count) : preadv(fd, parts, count, offset);
  countCall(Hook::preadv2);
  chargeCallHere();
  return real::preadv2(fd, parts, count, offset, flags);
}
ssize_t preadv64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) __attribute__((alias("preadv2")));

int eventfd_read(int fd, eventfd_t* value) { return read(fd, value, sizeof *value) == sizeof *value ? 0 : -1; }

// Programs built with _FORTIFY_SOURCE call the first ones; old binaries call the underscored names.
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

}  // extern "C"
