// Internal. Reads and writes of files, which poll tells nothing about. What is in the page cache is read at once, and what is not by a
// helper thread, so that a slow disk holds up the fiber and not its worker (setHookFiles). Source: preadv2(2).
//
// Where no helper thread is needed the fiber is not suspended: programs call on files under locks that nobody sees.
#pragma once

#include <sys/uio.h>

#include "sylar/base/internal.h"
#include "sylar/hook/iovec_cursor.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/wait_loop.h"

namespace sylar::detail {

/// As an offset: the file's own position, which the call moves.
inline constexpr off_t kAtPosition = -1;

/// Returns what kind of file `fd` is. On the first call for a number it asks the kernel. Only where filesSuspend(). May suspend: no.
FdKind learnFile(Entry& entry, int fd);

/// Goes on with a read behind the `done` > 0 bytes that the page cache had. Returns the total as the call itself does.
ssize_t readRest(int fd, const iovec* parts, int count, off_t offset, long done);

/// Makes the call `whole`, which reads into `parts`, at `offset` or at kAtPosition. May suspend: yes.
template <class Whole>
ssize_t readFile(const HookedFd& here, const iovec* parts, int count, off_t offset, Whole whole) {
  SYLAR_DCHECK(isFile(here.kind()) && offset >= kAtPosition);
  here.engine().chargeCall();
  if (here.kind() == FdKind::kOther || !filesSuspend()) return whole();
  const int fd = here.fd();
  const FdKind kind = learnFile(here.entry(), fd);
  if (kind == FdKind::kOther) return whole();
  if (kind == FdKind::kSlowFile) return offload(onNumbers(whole, fd), BlockingPool::Length::kOthers);
  const long done = attempt::readCached(fd, parts, count, offset);
  if (done == -EAGAIN) return offload(onNumbers(whole, fd));
  if (done > 0) return readRest(fd, parts, count, offset, done);
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

/// Makes the call `whole`, which writes to a file. May suspend: yes.
template <class Whole>
ssize_t writeFile(const HookedFd& here, Whole whole) {
  SYLAR_DCHECK(isFile(here.kind()));
  here.engine().chargeCall();
  if (here.kind() == FdKind::kOther || !filesSuspend()) return whole();
  const FdKind kind = learnFile(here.entry(), here.fd());
  if (kind != FdKind::kSyncFile && kind != FdKind::kSlowFile) return whole();
  const bool own = kind == FdKind::kSyncFile;
  const ssize_t n = offload(onNumbers(whole, here.fd()), own ? BlockingPool::Length::kOwn : BlockingPool::Length::kOthers);
  raiseIfTooLarge(n);
  return n;
}

/// The most bytes of a file that a transfer in the kernel takes at once.
inline constexpr size_t kMostAtOnce = 1 << 20;
/// Has a helper thread read the bytes of a file that such a transfer is about to take, unless they are in the page cache. Only where
/// filesSuspend(). May suspend: yes.
void bringIntoCache(int fd, off_t offset, size_t size);

}  // namespace sylar::detail
