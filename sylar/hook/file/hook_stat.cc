// stat and similar calls: on a file system of a network or a process the ring asks, and elsewhere they are libc's. Source: stat(2),
// statx(2).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/file/slow_name.h"

namespace sylar::detail {
namespace {

struct stat toStat(const struct statx& from) {
  struct stat to {};
  const auto time = [](const statx_timestamp& one) { return timespec{one.tv_sec, one.tv_nsec}; };
  to.st_dev = ::gnu_dev_makedev(from.stx_dev_major, from.stx_dev_minor);
  to.st_ino = from.stx_ino;
  to.st_mode = from.stx_mode;
  to.st_nlink = from.stx_nlink;
  to.st_uid = from.stx_uid;
  to.st_gid = from.stx_gid;
  to.st_rdev = ::gnu_dev_makedev(from.stx_rdev_major, from.stx_rdev_minor);
  to.st_size = static_cast<off_t>(from.stx_size);
  to.st_blksize = static_cast<blksize_t>(from.stx_blksize);
  to.st_blocks = static_cast<blkcnt_t>(from.stx_blocks);
  to.st_atim = time(from.stx_atime);
  to.st_mtim = time(from.stx_mtime);
  to.st_ctim = time(from.stx_ctime);
  return to;
}

/// Returns what the look at a name has found, as libc does.
template <class Status>
int give(const SlowName& name, Status* to, const Status& found) {
  const long result = name.result() == 0 && !probe::copyOut(to, &found, sizeof found) ? -EFAULT : name.result();
  return static_cast<int>(IoCall::result(result));
}

/// Makes a call that fills a struct stat as fstatat does, and that is libc's `plain` where it does not wait for others.
template <class Plain>
[[gnu::always_inline]] inline int statName(Hook hook, int directory, const char* path, struct stat* to, int flags, Plain plain) {
  countCall(hook);
  if (!SlowName::any()) return plain();
  struct statx status {};
  const SlowName name(directory, path, flags | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &status);
  return name.answers() ? give(name, to, toStat(status)) : plain();
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int stat(const char* path, struct stat* to) noexcept {
  return statName(Hook::stat, AT_FDCWD, path, to, 0, [=] { return real::stat(path, to); });
}
int lstat(const char* path, struct stat* to) noexcept {
  return statName(Hook::lstat, AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW, [=] { return real::lstat(path, to); });
}
int fstatat(int directory, const char* path, struct stat* to, int flags) noexcept {
  return statName(Hook::fstatat, directory, path, to, flags, [=] { return real::fstatat(directory, path, to, flags); });
}
int statx(int directory, const char* path, int flags, unsigned mask, struct statx* to) noexcept {
  const auto plain = [=] { return real::statx(directory, path, flags, mask, to); };
  countCall(Hook::statx);
  if (!SlowName::any()) return plain();
  struct statx status {};  // which a fiber keeps that a stop has abandoned
  const SlowName name(directory, path, flags, mask, &status);
  return name.answers() ? give(name, to, status) : plain();
}

// The same on machines of 64 bits.
int stat64(const char* path, struct stat64* to) noexcept { return stat(path, reinterpret_cast<struct stat*>(to)); }
int lstat64(const char* path, struct stat64* to) noexcept { return lstat(path, reinterpret_cast<struct stat*>(to)); }
int fstatat64(int directory, const char* path, struct stat64* to, int flags) noexcept {
  return fstatat(directory, path, reinterpret_cast<struct stat*>(to), flags);
}
static_assert(sizeof(struct stat) == sizeof(struct stat64));

}  // extern "C"
