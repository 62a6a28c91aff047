// Internal. Reads and writes of files, which poll tells nothing about. What is in the page cache is read at once, and what is not
// by the worker's ring or a helper thread, so that a slow disk holds up the fiber and not its worker (setHookFiles). Source:
// preadv2(2).
//
// The ring makes the calls at an offset. For those on the position, which it does not lock, it only brings the bytes into the page
// cache. Where neither is needed the fiber is not suspended: programs call on files under locks that nobody sees.
#pragma once

#include <sys/uio.h>

#include "sylar/base/internal.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/ring_call.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {

/// As an offset: the file's own position, which the call moves.
inline constexpr off_t kAtPosition = -1;

/// Writes the operation that reads `parts` at `offset`.
inline void prepareRead(io_uring_sqe* to, int fd, const iovec* parts, int count, off_t offset) {
  io_uring_prep_readv(to, fd, parts, static_cast<unsigned>(count), static_cast<uint64_t>(offset));
}

/// Returns what kind of file `fd` is. On the first call for a number it asks the kernel. Only where filesSuspend(). May suspend:
/// no.
FdKind learnFile(Entry& entry, int fd);

/// Goes on with a read of which the page cache gave `last` > 0 bytes, or -EAGAIN. Returns what the call itself does. May suspend:
/// yes.
ssize_t readRest(HookedFd here, const iovec* parts, int count, off_t offset, long last);

/// Makes the call `whole`, which reads or writes at `offset`, by the ring, and else by a helper thread, as it does at kAtPosition.
/// FUSE files also go to a helper thread, because the ring would poll them and then read on after a short read. May suspend: yes.
template <class Prepare, class Whole>
ssize_t wholeFileCall(int fd, FdKind kind, off_t offset, Prepare prepare, Whole whole) {
  const auto by_helper = [&] {
    const bool others = kind == FdKind::kSlowFile || kind == FdKind::kFuseFile;
    return offload(onNumbers(whole, fd), others ? BlockingPool::Length::kOthers : BlockingPool::Length::kOwn);
  };
  return offset == kAtPosition || kind == FdKind::kFuseFile ? by_helper() : byRing(prepare, by_helper);
}

/// Makes the call `whole`, which reads into `parts`, at `offset` or at kAtPosition. May suspend: yes.
template <class Whole>
ssize_t readFile(const HookedFd& here, const iovec* parts, int count, off_t offset, Whole whole) {
  SYLAR_DCHECK(isFile(here.kind()) && offset >= kAtPosition);
  here.engine().chargeCall();
  if (here.kind() == FdKind::kOther || !filesSuspend()) return whole();
  const int fd = here.fd();
  const FdKind kind = learnFile(here.entry(), fd);
  if (kind == FdKind::kOther) return whole();
  if (kind == FdKind::kSlowFile || kind == FdKind::kFuseFile) {
    const auto prepare = [=](io_uring_sqe* to) {
      prepareRead(to, fd, parts, count, offset);
      beginElsewhere(to);
    };
    return wholeFileCall(fd, kind, offset, prepare, whole);
  }
  const long done = attempt::readCached(fd, parts, count, offset);
  if (done > 0 || done == -EAGAIN) return readRest(here, parts, count, offset, done);
  if (done != -EOPNOTSUPP) return IoCall::result(done);
  here.entry().setKind(FdKind::kOther);
  return whole();
}

/// The same for one buffer.
template <class Whole>
ssize_t readFile(const HookedFd& here, void* buffer, size_t size, off_t offset, Whole whole) {
  const iovec part{buffer, size};
  return size > 0 && size <= kMaxTransfer ? readFile(here, &part, 1, offset, whole) : whole();  // what the kernel checks differs
}

/// Hands back to the calling thread the SIGXFSZ that a write by a helper thread has raised there, where all signals are blocked.
void raiseIfTooLarge(ssize_t written);

/// Makes the call `whole`, which writes `parts` to a file, at `offset` or at kAtPosition. May suspend: yes.
template <class Whole>
ssize_t writeFile(const HookedFd& here, const iovec* parts, int count, off_t offset, Whole whole) {
  SYLAR_DCHECK(isFile(here.kind()));
  here.engine().chargeCall();
  if (here.kind() == FdKind::kOther || !filesSuspend()) return whole();
  const FdKind kind = learnFile(here.entry(), here.fd());
  if (kind == FdKind::kDiskFile || kind == FdKind::kOther) return whole();
  const int fd = here.fd();
  const auto prepare = [=](io_uring_sqe* to) {
    io_uring_prep_writev(to, fd, parts, static_cast<unsigned>(count), static_cast<uint64_t>(offset));
    beginElsewhere(to);
  };
  const ssize_t n = wholeFileCall(fd, kind, offset, prepare, whole);
  raiseIfTooLarge(n);
  return n;
}

/// The most bytes of a file that a transfer in the kernel takes at once.
inline constexpr size_t kMostAtOnce = 1 << 20;
/// Brings into the page cache the bytes of a file that such a transfer is about to take, unless they are there. Only where
/// filesSuspend(). May suspend: yes.
void bringIntoCache(int fd, off_t offset, size_t size);

}  // namespace sylar::detail
