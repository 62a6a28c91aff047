// pread, pwrite and similar calls, and what reads and writes of files have in common. Source: pread(2), preadv2(2).
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
#include "sylar/hook/core/real.h"
#include "sylar/hook/file/file_call.h"
#include "sylar/hook/file/slow_mounts.h"

namespace sylar::detail {
namespace {

// ---- Which files wait. -------------------------------------------------------------------------------------------------------

SlowKind kindOfSystem(const struct statfs& system) {
  switch (static_cast<unsigned>(system.f_type)) {
    case FUSE_SUPER_MAGIC: return SlowKind::kFuse;
    case AFS_FS_MAGIC:
    case AFS_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case CODA_SUPER_MAGIC:
    case NCP_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case V9FS_MAGIC: return SlowKind::kNetwork;
    default: return SlowKind::kNone;
  }
}

/// The file systems without a disk that were asked about. Each place has the number of a device, and in the lowest bits what it is.
/// Devices whose numbers are alike share a place, and the later one replaces the earlier.
constinit std::array<std::atomic<uint64_t>, 64> g_known{};

/// Returns whether the file system of this device is one of a network or a process. An unlisted
/// device is asked once, on this thread: the caller may hold a lock, so the fiber must not be suspended.
SlowKind kindOfDevice(int fd, dev_t device) {
  if (::gnu_dev_major(device) != 0) return SlowKind::kNone;  // a disk
  std::atomic<uint64_t>& place = g_known[device % g_known.size()];
  const uint64_t known = place.load(std::memory_order_relaxed);
  if (known >> 2 == device) return static_cast<SlowKind>(known & 3);
  SlowKind kind = anySlowMount() ? slowKindOf(device) : SlowKind::kNone;
  if (kind == SlowKind::kNone) {
    struct statfs system;
    if (sys::call(SYS_fstatfs, fd, &system) != 0) return SlowKind::kNone;
    kind = kindOfSystem(system);
  }
  place.store(uint64_t{device} << 2 | static_cast<uint64_t>(kind), std::memory_order_relaxed);
  return kind;
}

/// The type and the device of a file, as the kernel knows them without asking its server. Older kernels have to ask.
struct FileLook {
  explicit FileLook(int fd) {
    struct statx cached;
    struct stat asked;
    if (sys::call(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &cached) == 0) {
      mode = cached.stx_mode;
      device = ::gnu_dev_makedev(cached.stx_dev_major, cached.stx_dev_minor);
    } else if (sys::call(SYS_fstat, fd, &asked) == 0) {
      mode = asked.st_mode;
      device = asked.st_dev;
    }
  }

  mode_t mode = 0;  // of no file
  dev_t device = 0;
};

}  // namespace

FdKind learnFile(Entry& entry, int fd) {
  const FdKind known = entry.kind();
  if (known != FdKind::kFile) return known;
  const FileLook file(fd);
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  if (flags < 0 || file.mode == 0) return FdKind::kOther;
  const SlowKind slow = S_ISBLK(file.mode) ? SlowKind::kNone : kindOfDevice(fd, file.device);
  const FdKind kind = slow == SlowKind::kFuse                                 ? FdKind::kFuseFile
                      : slow == SlowKind::kNetwork || (flags & O_DIRECT) != 0 ? FdKind::kSlowFile
                      : (flags & (O_DSYNC | O_SYNC)) != 0                     ? FdKind::kSyncFile
                                                                              : FdKind::kDiskFile;
  entry.setKind(kind);
  return kind;
}

// ---- Reads and writes. -------------------------------------------------------------------------------------------------------

namespace {

/// The ring reads into this what it brings into the page cache. Nobody reads it.
char g_nowhere[65'536];

/// Has the ring bring `size` bytes into the page cache, as far as there are so many, by a read that the caller does not see: the
/// file may be shorter when the call itself is made, and until then that must not write to the caller's memory. Returns false if it
/// does not, and without a ring. May suspend: yes.
bool bringByRing(int fd, off_t offset, size_t size) {
  std::array<iovec, 64> parts;
  int count = 0;
  for (size_t left = std::min(size, parts.size() * sizeof g_nowhere); left > 0; ++count) {
    parts[static_cast<size_t>(count)] = {g_nowhere, std::min(left, sizeof g_nowhere)};
    left -= parts[static_cast<size_t>(count)].iov_len;
  }
  const int saved_errno = sys::errnoRef();
  const auto prepare = [&](io_uring_sqe* to) { prepareRead(to, fd, parts.data(), count, offset); };
  const bool brought = byRing(prepare, [] { return ssize_t{-1}; }) >= 0;
  sys::errnoRef() = saved_errno;
  return brought;
}

/// Reads at the position what the page cache has when the ring has brought it there. Returns -EAGAIN if it still has not.
long readBrought(const HookedFd& here, const iovec* parts, int count) {
  const int fd = here.fd();
  const off_t position = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (position < 0 || !bringByRing(fd, position, totalSize(parts, static_cast<size_t>(count)))) return -EAGAIN;
  if (!here.entry().pin(here.generation())) return -EBADF;
  const long done = attempt::readCached(fd, parts, count, kAtPosition);
  here.entry().unpin();
  return done;
}

/// Reads all that is left, which waits for the disk.
ssize_t readLeft(int fd, const iovec* parts, int count, off_t offset) {
  const auto read = [=] {
    return offset == kAtPosition ? real::readv(fd, parts, count) : real::preadv(fd, parts, count, offset);
  };
  const auto prepare = [=](io_uring_sqe* to) { prepareRead(to, fd, parts, count, offset); };
  return wholeFileCall(fd, FdKind::kDiskFile, offset, prepare, read);
}

}  // namespace

ssize_t readRest(HookedFd here, const iovec* parts, int count, off_t offset, long last) {
  const int fd = here.fd();
  const auto all = static_cast<size_t>(count);
  IovecCursor rest(parts, all, totalSize(parts, all));
  std::array<iovec, 16> few;
  std::unique_ptr<iovec[]> many;
  long done = 0;
  for (;;) {
    // Until the rest is read by one call nobody else runs, or the number is looked at: it may be another file's afterwards.
    if (last == -EAGAIN && offset == kAtPosition) last = readBrought(here, parts, count);
    if (last == -EAGAIN) {
      const int saved_errno = sys::errnoRef();
      const ssize_t left = readLeft(fd, parts, count, offset);
      if (left >= 0 || done == 0) return done + left;
      if (sys::errnoRef() == EBADF) return -1;
      sys::errnoRef() = saved_errno;
      return done;
    }
    if (last == -EBADF || (last < 0 && done == 0))
      return IoCall::result(last);  // a short count would say that the file ends here
    if (last <= 0) return done;
    done += last;
    rest.skip(static_cast<size_t>(last));
    if (rest.empty()) return done;
    iovec* left = few.data();
    if (all > few.size()) {
      if (many == nullptr) many.reset(new (std::nothrow) iovec[all]);
      if (many == nullptr) return done;
      left = many.get();
    }
    count = static_cast<int>(rest.fill(left, all));
    parts = left;
    if (offset != kAtPosition) offset += last;
    last = attempt::readCached(fd, parts, count, offset);
  }
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
  const auto bytes = static_cast<size_t>(end - offset);
  Entry* const entry = FdTable::at(fd);
  const FdKind kind = entry != nullptr ? learnFile(*entry, fd) : FdKind::kOther;
  const bool by_ring = kind == FdKind::kDiskFile || kind == FdKind::kSyncFile;
  if (!by_ring || !bringByRing(fd, offset, bytes)) offload(onNumbers([=] { return readAway(fd, offset, bytes); }, fd));
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
  return callAt(Hook::pwritev, fd, offset, plain,
                [=](const HookedFd& here) { return writeFile(here, parts, count, offset, plain); });
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const auto plain = [=] { return real::pwrite(fd, data, size, offset); };
  return callAt(Hook::pwrite, fd, offset, plain, [=](const HookedFd& here) {
    const iovec part{const_cast<void*>(data), size};
    return writeFile(here, &part, 1, offset, plain);
  });
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
