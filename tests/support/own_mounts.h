// For tests that mount something.
#pragma once

#include <sched.h>
#include <sys/mount.h>

namespace sylar::test {

/// Gives this process mounts of its own, once. Where a slow file system is mounted the hooks look up each path first, and other
/// tests count calls, or waits. On the main thread, before others that are to see the mounts.
inline void hideMounts() {
  static const bool s_hidden = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  (void)s_hidden;  // a process that may not do this may not mount anything either
}

}  // namespace sylar::test
