// pread, pwrite and their kin, and what reads and writes of files have in common. Source: pread(2), preadv2(2).
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/file_call.h"
#include "sylar/hook/real.h"

namespace sylar::detail {
namespace {

// ---- Which files wait. -------------------------------------------------------------------------------------------------------

bool isOfNetworkOrProcess(const struct statfs& where) {
  switch (static_cast<unsigned>(where.f_type)) {
    case AFS_FS_MAGIC:
    case AFS_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case CODA_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case NCP_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case V9FS_MAGIC: return true;
    default: return false;
  }
}

/// The file systems without a disk that were asked about. Each place has the number of a device, and in the lowest bit whether it waits
/// for a network or a process. Devices whose numbers are alike share a place, and the later one replaces the earlier.
constinit std::array<std::atomic<uint64_t>, 64> g_known{};

/// Returns true if the file system of this device is one of a network or a process. It is asked once, and at once, as by an open: under a
/// lock that nobody sees the fiber must not be suspended for files in memory.
bool isOfSlowDevice(int fd, dev_t device) {
  if (::gnu_dev_major(device) != 0) return false;  // a disk
  std::atomic<uint64_t>& place = g_known[device % g_known.size()];
  const uint64_t known = place.load(std::memory_order_relaxed);
  if (known >> 1 == device) return (known & 1) != 0;
  struct statfs where;
  if (sys::call(SYS_fstatfs, fd, &where) != 0) return false;
  const bool slow = isOfNetworkOrProcess(where);
  place.store(uint64_t{device} << 1 | static_cast<uint64_t>(slow), std::memory_order_relaxed);
  return slow;
}

}  // namespace

FdKind learnFile(Entry& entry, int fd) {
  const FdKind known = entry.kind();
  if (known != FdKind::kFile) return known;
  struct stat status;
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  if (flags < 0 || sys::call(SYS_fstat, fd, &status) != 0) return FdKind::kOther;
  const bool slow = (flags & O_DIRECT) != 0 || (!S_ISBLK(status.st_mode) && isOfSlowDevice(fd, status.st_dev));
  const FdKind kind = slow ? FdKind::kSlowFile : (flags & (O_DSYNC | O_SYNC)) != 0 ? FdKind::kSyncFile : FdKind::kDiskFile;
  entry.setKind(kind);
  return kind;
}

// ---- Reads and writes. -------------------------------------------------------------------------------------------------------

namespace {

/// Has a helper thread read all that is left behind `done` bytes. Returns the total as the call does: if the number was closed
/// meanwhile it fails, because a short count would say that the file ends here.
ssize_t readByHelper(int fd, const iovec* parts, int count, off_t offset, long done) {
  const int saved_errno = sys::errnoRef();
  const auto read = [=] {
    return offset == kAtPosition ? real::readv(fd, parts, count) : real::preadv(fd, parts, count, offset);
  };
  const ssize_t more = offload(onNumbers(read, fd));
  if (more < 0 && sys::errnoRef() == EBADF) return -1;
  sys::errnoRef() = saved_errno;
  return done + std::max<ssize_t>(more, 0);
}

}  // namespace

ssize_t readRest(int fd, const iovec* parts, int count, off_t offset, long done) {
  const auto all = static_cast<size_t>(count);
  IovecCursor rest(parts, all, totalSize(parts, all));
  rest.skip(static_cast<size_t>(done));
  std::array<iovec, 16> few;
  std::unique_ptr<iovec[]> many;
  iovec* left = few.data();
  if (all > few.size() && !rest.empty()) {
    many.reset(new (std::nothrow) iovec[all]);
    if (many == nullptr) return done;
    left = many.get();
  }
  // Nobody else runs until the helper thread reads, and its one call takes all that is left: the number may be another file's afterwards.
  while (!rest.empty()) {
    const int n = static_cast<int>(rest.fill(left, all));
    const off_t at = offset == kAtPosition ? kAtPosition : offset + done;
    const long more = attempt::readCached(fd, left, n, at);
    if (more == -EAGAIN) return readByHelper(fd, left, n, at, done);
    if (more <= 0) break;
    done += more;
    rest.skip(static_cast<size_t>(more));
  }
  return done;
}

void raiseIfTooLarge(ssize_t written) {
  rlimit limit{};
  const int error = sys::errnoRef();
  if (written != -1 || error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  ::raise(SIGXFSZ);
  sys::errnoRef() = error;
}

// ---- Before a transfer in the kernel. ----------------------------------------------------------------------------------------

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

/// Reads them into nothing, in one call. What goes wrong the transfer reports.
int readAway(int fd, off_t offset, size_t size) {
  const std::unique_ptr<char[]> bytes(new (std::nothrow) char[size]);
  if (bytes != nullptr) (void)real::pread(fd, bytes.get(), size, offset);
  return 0;
}

}  // namespace

void bringIntoCache(int fd, off_t offset, size_t size) {
  SYLAR_DCHECK(filesSuspend() && size <= kMostAtOnce);
  struct stat status;
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  const bool bypasses = flags < 0 || (flags & O_DIRECT) != 0;
  if (bypasses || offset < 0 || sys::call(SYS_fstat, fd, &status) != 0) return;
  const off_t most = S_ISREG(status.st_mode) ? status.st_size : std::numeric_limits<off_t>::max();
  if (offset >= most) return;
  const off_t end = offset + std::min(most - offset, static_cast<off_t>(size));
  if (isCached(fd, offset, end)) return;
  offload(onNumbers([=] { return readAway(fd, offset, static_cast<size_t>(end - offset)); }, fd));
}

// ---- The calls. --------------------------------------------------------------------------------------------------------------

namespace {

/// Makes a call at an offset, which nothing but files has, by `on_file` where it may suspend, else by libc's `plain`.
template <class Plain, class OnFile>
[[gnu::always_inline]] inline ssize_t callAt(Hook hook, int fd, off_t offset, Plain plain, OnFile on_file) {
  if (onThreadStack()) return plain();
  const HookedFd here(fd, hook);
  return here.parks() && offset >= 0 && isFile(here.kind()) ? on_file(here) : plain();
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  const auto plain = [=] { return real::preadv(fd, parts, count, offset); };
  return callAt(Hook::preadv, fd, offset, plain,
                [=](const HookedFd& here) { return readFile(here, parts, count, offset, plain); });
}
ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  const auto plain = [=] { return real::pread(fd, buffer, size, offset); };
  return callAt(Hook::pread, fd, offset, plain,
                [=](const HookedFd& here) { return readFile(here, buffer, size, offset, plain); });
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  const auto plain = [=] { return real::pwritev(fd, parts, count, offset); };
  return callAt(Hook::pwritev, fd, offset, plain, [=](const HookedFd& here) { return writeFile(here, plain); });
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const auto plain = [=] { return real::pwrite(fd, data, size, offset); };
  return callAt(Hook::pwrite, fd, offset, plain, [=](const HookedFd& here) { return writeFile(here, plain); });
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
