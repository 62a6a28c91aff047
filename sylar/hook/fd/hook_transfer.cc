// sendfile, splice, tee, vmsplice, copy_file_range: bytes that pass from one descriptor to another inside the kernel. Each waits
// until the one has bytes and the other has room, and then moves what surely fits. Source: sendfile(2), splice(2), tee(2),
// vmsplice(2), copy_file_range(2).
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/file/file_call.h"

namespace sylar::detail {
namespace {

/// Returns how many bytes a descriptor takes without waiting, if poll says that it takes something. TCP then has a third of its
/// buffer free, and AF_UNIX more. The bytes of small packets take up twice their size.
size_t roomOf(int fd, FdKind kind) {
  if (kind == FdKind::kTerminal) return 256;
  if (!attempt::isStreamSocket(kind)) return kMaxTransfer;
  const auto share = static_cast<size_t>(std::max(probe::socketOption(fd, SO_SNDBUF), 4096)) / 8;
  unsigned unsent = 0;
  socklen_t size = sizeof unsent;
  const bool limited = sys::call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size) == 0 && unsent > 0;
  return limited ? std::clamp<size_t>(unsent / 2, 1, share) : share;
}

/// A descriptor at one end of a transfer.
class End {
 public:
  End(int fd, Direction direction) : m_call(fd, direction), m_reads(direction == Direction::kRead) {
    m_call.renewTimeoutInEachRun();
  }

  int fd() const { return m_call.fd(); }
  FdKind kind() const {
    Entry* const entry = FdTable::at(fd());
    return entry != nullptr ? attempt::kindOf(*entry, fd()) : FdKind::kUnknown;
  }
  bool isPipe() const { return kind() == FdKind::kPipe; }
  /// Returns true if the caller is in a fiber, and the descriptor is not known to be non-blocking.
  bool parks() const { return m_call.parks(); }
  /// Returns true if the descriptor is open for this end's direction.
  bool isOpen() const {
    const long flags = sys::call(SYS_fcntl, fd(), F_GETFL, 0);
    return flags >= 0 && (flags & O_ACCMODE) != (m_reads ? O_WRONLY : O_RDONLY);
  }
  /// Makes the call fail with EAGAIN instead of waiting for this end.
  void waitNever() { m_never = true; }
  bool waits() const { return !m_never && parks() && !isFile(kind()) && !isRefused(); }

  /// Returns true for a file that may have to be read from the disk.
  bool waitsForDisk() const {
    Entry* const entry = FdTable::at(fd());
    return entry != nullptr && isFile(kind()) && filesSuspend() && learnFile(*entry, fd()) != FdKind::kOther;
  }
  /// Returns the offset that the user says, or the file's position, or a negative number if there is neither.
  off_t positionOr(const off_t* offset) const {
    off_t given = -1;
    if (offset == nullptr) return static_cast<off_t>(sys::call(SYS_lseek, fd(), 0, SEEK_CUR));
    return probe::copyIn(&given, offset, sizeof given) ? given : -1;
  }

  /// Returns for how many of `size` bytes a splice waits. TCP does not look at the mark (SO_RCVLOWAT) there.
  size_t mark(size_t size) const {
    if (kind() != FdKind::kMarkedStream || probe::isTcp(fd())) return 1;
    return std::min(size, static_cast<size_t>(std::max(probe::socketOption(fd(), SO_RCVLOWAT), 1)));
  }
  bool isReady() const { return probe::isReady(fd(), m_reads ? POLLIN : POLLOUT); }
  /// Returns true if a call would wait for this end although it is told not to; pipes obey.
  bool wouldBlock() const { return waits() && !isPipe() && !isReady(); }
  /// Lets others run if it is their turn, and `until_ready` waits for the end. Returns 0 or -errno.
  long await(bool until_ready) {
    if (!parks()) return 0;
    const long error = m_call.run([&] { return until_ready && waits() && !isReady() ? -EAGAIN : 0L; });
    return m_call.mustUseLibc(error) ? 0 : error;
  }
  void bytesMoved() { m_call.bytesMoved(); }
  /// Makes an attempt while the number is still the one with which the call goes on.
  template <class Move>
  long holding(Move move) {
    return parks() ? m_call.attemptHere(move) : move();
  }
  /// The call waits, perhaps for the other end, so it stays with the open file of this one, too.
  void stay() {
    if (parks()) m_call.stay();
  }
  /// Goes on with another number if this one was closed. Returns false if there is none.
  bool follow() { return parks() && m_call.follow(); }

 private:
  /// Returns true if the kernel transfers nothing from or to this end: an eventfd, timerfd, epoll or the like, which is no file of
  /// any type.
  bool isRefused() const {
    struct stat status;
    return kind() == FdKind::kPolled && sys::call(SYS_fstat, fd(), &status) == 0 && (status.st_mode & S_IFMT) == 0;
  }

  IoCall m_call;
  const bool m_reads;
  bool m_never = false;
};

/// Makes one transfer with `move`, which does not wait when both ends are ready, and never for a pipe. Returns what it gives, or
/// -errno. The kernel is asked first, unless that would block.
template <class Move>
long transfer(End& in, End& out, Move move) {
  const auto attempt = [&]() -> long { return in.wouldBlock() || out.wouldBlock() ? -EAGAIN : move(); };
  for (bool again = false;; again = true) {
    for (End* end : {&in, &out}) {
      if (const long error = end->await(again)) return error;
    }
    const long n = in.holding([&] { return out.holding(attempt); });
    if (n == -EBADF && (in.follow() || out.follow())) continue;
    for (End* end : {&in, &out}) {
      if (n > 0) end->bytesMoved();
    }
    if (n != -EAGAIN) return n;
    for (End* end : {&in, &out}) {
      if (!end->waits() && !end->isReady()) return n;
      end->stay();
    }
  }
}

/// Repeats `step(most)`, which transfers at most that many bytes, until `size` are through or it gives none. Returns the total,
/// or -errno if there is none.
template <class Step>
long inPieces(size_t size, size_t piece, Step step) {
  SYLAR_DCHECK(piece > 0);
  size_t done = 0;
  while (done < size) {
    const long n = step(std::min(size - done, piece));
    if (n <= 0) return done > 0 ? static_cast<long>(done) : n;
    SYLAR_DCHECK(static_cast<size_t>(n) <= size - done);
    done += static_cast<size_t>(n);
  }
  return static_cast<long>(done);
}

long spliceNow(const End& in, off64_t* in_offset, const End& out, off64_t* out_offset, size_t size, unsigned flags) {
  return sys::call(SYS_splice, in.fd(), in_offset, out.fd(), out_offset, size, flags | SPLICE_F_NONBLOCK);
}

/// Implements splice between ends of which one at least is a pipe.
long spliceHere(End& in, off64_t* in_offset, End& out, off64_t* out_offset, size_t size, unsigned flags) {
  // A socket of TCP that is read, and every socket that is written, waits all the same.
  if ((flags & SPLICE_F_NONBLOCK) != 0 || (out.isPipe() && !out.parks())) {
    if (out.isPipe()) out.waitNever();
    if (in.isPipe() || !probe::isTcp(in.fd())) in.waitNever();
  }
  const auto step = [&](size_t most) {
    return transfer(in, out, [&] { return spliceNow(in, in_offset, out, out_offset, most, flags); });
  };
  if (out.isPipe() || isFile(out.kind())) {
    long done = step(size);
    while (done > 0 && static_cast<size_t>(done) < in.mark(size)) {
      out.waitNever();
      const long more = step(size - static_cast<size_t>(done));
      if (more <= 0) break;
      done += more;
    }
    return done;
  }
  bool first = true;
  return inPieces(std::min(size, kMaxTransfer), roomOf(out.fd(), out.kind()), [&](size_t most) {
    // The kernel takes what is in the pipe, and does not wait for more.
    if (!std::exchange(first, false)) in.waitNever();
    return step(most);
  });
}

/// Implements sendfile. The kernel fills a pipe once, and sends everything to anything else.
long sendfileHere(End& in, End& out, off64_t* offset, size_t size) {
  const bool from_disk = in.waitsForDisk();
  const size_t room = std::min(roomOf(out.fd(), out.kind()), from_disk ? kMostAtOnce : kMaxTransfer);
  if (from_disk) {  // it may wait for a helper thread
    in.stay();
    out.stay();
  }
  const auto bring_in = [&](size_t most) {
    if (from_disk) bringIntoCache(in.fd(), in.positionOr(offset), most);
  };
  if (out.isPipe()) {
    bring_in(std::min(size, room));
    return transfer(in, out, [&] { return spliceNow(in, offset, out, nullptr, size, 0); });
  }
  in.waitNever();  // it is a file
  return inPieces(std::min(size, kMaxTransfer), room, [&](size_t most) {
    bring_in(most);
    return transfer(in, out, [&] { return sys::call(SYS_sendfile, out.fd(), in.fd(), offset, most); });
  });
}

/// Returns true if both are open as they should be, and one at least may be waited for. If not, libc's call waits for nothing,
/// or is right all the same.
bool mayWait(const End& in, const End& out) { return (in.waits() || out.waits()) && in.isOpen() && out.isOpen(); }

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

ssize_t sendfile(int out_fd, int in_fd, off_t* offset, size_t size) noexcept {
  countCall(Hook::sendfile);
  if (!maySuspendHere()) return real::sendfile(out_fd, in_fd, offset, size);
  End in(in_fd, Direction::kRead), out(out_fd, Direction::kWrite);
  if (isFile(out.kind())) return offloadFileCall([=] { return real::sendfile(out_fd, in_fd, offset, size); }, out_fd, in_fd);
  const bool from_pipe = in.isPipe();  // which it refuses
  if (from_pipe || !out.waits() || !mayWait(in, out)) return real::sendfile(out_fd, in_fd, offset, size);
  const NoCancellationPoint whole;
  return IoCall::result(sendfileHere(in, out, offset, size));
}
ssize_t sendfile64(int out_fd, int in_fd, off64_t* offset, size_t size) noexcept __attribute__((alias("sendfile")));

ssize_t splice(int in_fd, off64_t* in_offset, int out_fd, off64_t* out_offset, size_t size, unsigned flags) {
  countCall(Hook::splice);
  if (!maySuspendHere()) return real::splice(in_fd, in_offset, out_fd, out_offset, size, flags);
  End in(in_fd, Direction::kRead), out(out_fd, Direction::kWrite);
  constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
  const bool seeks = (in_offset != nullptr && !isFile(in.kind())) || (out_offset != nullptr && !isFile(out.kind()));
  const bool refused = size == 0 || (flags & ~kFlags) != 0 || seeks || (!in.isPipe() && !out.isPipe());
  if (refused || !mayWait(in, out)) return real::splice(in_fd, in_offset, out_fd, out_offset, size, flags);
  return IoCall::result(spliceHere(in, in_offset, out, out_offset, size, flags));
}

ssize_t tee(int in_fd, int out_fd, size_t size, unsigned flags) {
  countCall(Hook::tee);
  if (!maySuspendHere()) return real::tee(in_fd, out_fd, size, flags);
  End in(in_fd, Direction::kRead), out(out_fd, Direction::kWrite);
  const bool waits = (flags & SPLICE_F_NONBLOCK) == 0 && in.waits() && out.waits() && in.isPipe() && out.isPipe();
  if (!waits || size == 0) return real::tee(in_fd, out_fd, size, flags);
  const auto copy = [&] { return sys::call(SYS_tee, in.fd(), out.fd(), size, flags | SPLICE_F_NONBLOCK); };
  return IoCall::result(transfer(in, out, copy));
}

ssize_t vmsplice(int fd, const iovec* parts, size_t count, unsigned flags) {
  countCall(Hook::vmsplice);
  const long mode = maySuspendHere() ? sys::call(SYS_fcntl, fd, F_GETFL, 0) : -1;
  IoCall call(fd, mode >= 0 && (mode & O_ACCMODE) == O_RDONLY ? Direction::kRead : Direction::kWrite);
  const bool waits = mode >= 0 && call.parks() && call.kind() == FdKind::kPipe && (flags & SPLICE_F_NONBLOCK) == 0;
  if (!waits) return real::vmsplice(fd, parts, count, flags);
  const long n = call.run([&] { return sys::call(SYS_vmsplice, call.fd(), parts, count, flags | SPLICE_F_NONBLOCK); });
  return call.mustUseLibc(n) ? real::vmsplice(call.fd(), parts, count, flags) : IoCall::result(n);
}

ssize_t copy_file_range(int in, off64_t* in_offset, int out, off64_t* out_offset, size_t size, unsigned flags) {
  countCall(Hook::copy_file_range);
  return offloadFileCall([=] { return real::copy_file_range(in, in_offset, out, out_offset, size, flags); }, in, out);
}

}  // extern "C"
