// pread, pwrite and their kin, and what reads and writes of files have in common. Source: pread(2), preadv2(2).
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/file_call.h"
#include "sylar/hook/iovec_cursor.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/real.h"

namespace sylar {

namespace {

constexpr size_t kPartsAtOnce = 16;

ssize_t plainRead(int fd, const iovec* parts, int count, off_t offset) {
  return offset == kAtPosition ? real::readv(fd, parts, count) : real::preadv(fd, parts, count, offset);
}
ssize_t plainWrite(int fd, const iovec* parts, int count, off_t offset) {
  return offset == kAtPosition ? real::writev(fd, parts, count) : real::pwritev(fd, parts, count, offset);
}
ssize_t readByHelper(int fd, const iovec* parts, int count, off_t offset) {
  return offloadFileCall([=] { return plainRead(fd, parts, count, offset); }, fd);
}

/// Goes on after `done` bytes, which were all that the page cache had, or all that the file has. Returns the total.
ssize_t readRest(int fd, const iovec* parts, int count, off_t offset, long done) {
  const int saved_errno = sys::errnoRef();
  const auto all = static_cast<size_t>(count);
  IovecCursor rest(parts, all, totalSize(parts, all));
  for (long more = done;;) {
    rest.skip(static_cast<size_t>(more));
    if (rest.empty()) break;
    iovec some[kPartsAtOnce];
    const int n = static_cast<int>(rest.fill(some));
    const off_t at = offset == kAtPosition ? kAtPosition : offset + done;
    more = attempt::readCached(fd, some, n, at);
    if (more == -EAGAIN) more = readByHelper(fd, some, n, at);
    if (more <= 0) break;
    done += more;
  }
  sys::errnoRef() = saved_errno;
  return done;
}

/// Counts a call on a file, which nobody is told of, and lets others run if it was one of many.
void charge(const HookedFd& here) { chargeCallThatNeverWaits(here.engine(), 1); }

}  // namespace

ssize_t readFile(const HookedFd& here, FdKind kind, const iovec* parts, int count, off_t offset) {
  SYLAR_DCHECK(isFile(kind) && offset >= kAtPosition);
  charge(here);
  if (kind == FdKind::kOther || !filesSuspend()) return plainRead(here.fd(), parts, count, offset);
  if (kind == FdKind::kFile) {
    const long done = attempt::readCached(here.fd(), parts, count, offset);
    if (done > 0) return readRest(here.fd(), parts, count, offset, done);
    if (done == -EOPNOTSUPP) {
      here.entry().setKind(FdKind::kSlowFile);
    } else if (done != -EAGAIN) {
      return IoCall::result(done);
    }
  }
  return readByHelper(here.fd(), parts, count, offset);
}

ssize_t writeFile(const HookedFd& here, FdKind kind, const iovec* parts, int count, off_t offset) {
  SYLAR_DCHECK(isFile(kind) && offset >= kAtPosition);
  charge(here);
  const int fd = here.fd();
  if (kind != FdKind::kSlowFile || !filesSuspend()) return plainWrite(fd, parts, count, offset);
  return offloadFileCall([=] { return plainWrite(fd, parts, count, offset); }, fd);
}

namespace {

/// Returns true if the page cache has these bytes, as far as a look at each of the kernel's read-aheads tells.
bool isCached(int fd, off_t offset, off_t end) {
  constexpr off_t kStep = 65'536;
  for (off_t at = offset; at < end; at = std::min(at + kStep, std::max(at + 1, end - 1))) {
    char byte;
    const iovec part{&byte, 1};
    if (attempt::readCached(fd, &part, 1, at) < 0) return false;
  }
  return true;
}

/// Reads them into nothing.
int readAway(int fd, off_t offset, off_t end) {
  constexpr size_t kPiece = 65'536;
  const std::unique_ptr<char[]> bytes(new (std::nothrow) char[kPiece]);
  while (bytes != nullptr && offset < end) {
    const ssize_t n = real::pread(fd, bytes.get(), std::min(kPiece, static_cast<size_t>(end - offset)), offset);
    if (n <= 0) break;  // the transfer reports it
    offset += n;
  }
  return 0;
}

}  // namespace

void bringIntoCache(int fd, off_t offset, size_t size) {
  struct stat status;
  if (offset < 0 || !filesSuspend() || sys::call(SYS_fstat, fd, &status) != 0) return;
  const off_t end = offset + static_cast<off_t>(std::min(size, kMaxTransfer));
  const off_t last = S_ISREG(status.st_mode) ? std::min(end, status.st_size) : end;
  if (isCached(fd, offset, last)) return;
  offloadFileCall([=] { return readAway(fd, offset, last); }, fd);
}

namespace {

template <class Plain>
[[gnu::always_inline]] inline ssize_t callAt(Hook hook, int fd, const iovec* parts, int count, off_t offset, Plain plain,
                                             decltype(readFile)* on_file) {
  if (onThreadStack()) return plain();
  const HookedFd here(fd, hook);
  if (!here.parks() || offset < 0) return plain();
  const FdKind kind = here.kind();
  return isFile(kind) ? on_file(here, kind, parts, count, offset) : plain();  // nothing else has offsets
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return callAt(
      Hook::preadv, fd, parts, count, offset, [=] { return real::preadv(fd, parts, count, offset); }, &readFile);
}
ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  const iovec part{buffer, size};
  return callAt(
      Hook::pread, fd, &part, 1, offset, [=] { return real::pread(fd, buffer, size, offset); }, &readFile);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return callAt(
      Hook::pwritev, fd, parts, count, offset, [=] { return real::pwritev(fd, parts, count, offset); }, &writeFile);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const iovec part{const_cast<void*>(data), size};
  return callAt(
      Hook::pwrite, fd, &part, 1, offset, [=] { return real::pwrite(fd, data, size, offset); }, &writeFile);
}

ssize_t preadv64(int fd, const iovec* parts, int count, off64_t offset) __attribute__((alias("preadv")));
ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) __attribute__((alias("pread")));
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) __attribute__((alias("pwritev")));
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) __attribute__((alias("pwrite")));

// Programs built with _FORTIFY_SOURCE call the first ones; old binaries call the underscored names.
ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t buffer_size) {
  if (size > buffer_size) __chk_fail();
  return pread(fd, buffer, size, offset);
}
ssize_t __pread64_chk(int fd, void* buffer, size_t size, off64_t offset, size_t buffer_size)
    __attribute__((alias("__pread_chk")));
ssize_t __pread64(int fd, void* buffer, size_t size, off64_t offset) { return pread(fd, buffer, size, offset); }
ssize_t __pwrite64(int fd, const void* data, size_t size, off64_t offset) { return pwrite(fd, data, size, offset); }

}  // extern "C"
