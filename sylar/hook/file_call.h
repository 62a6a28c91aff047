// Internal. Reads and writes of files, which poll tells nothing about. What is in the page cache is read at once, and what is not by a
// helper thread, so that a slow disk holds up the fiber and not its worker (setHookFiles). Source: preadv2(2).
#pragma once

#include <sys/uio.h>

#include "sylar/hook/wait_loop.h"

namespace sylar {

/// As an offset: the file's own position, which the call moves.
inline constexpr off_t kAtPosition = -1;

/// Reads a file as readv, or at an `offset` as preadv. May suspend: yes.
ssize_t readFile(const HookedFd& here, FdKind kind, const iovec* parts, int count, off_t offset = kAtPosition);
/// Writes a file as writev, or at an `offset` as pwritev. May suspend: yes.
ssize_t writeFile(const HookedFd& here, FdKind kind, const iovec* parts, int count, off_t offset = kAtPosition);

/// Has a helper thread read the bytes of a file that a transfer in the kernel is about to take, unless they are in the page cache.
/// May suspend: yes.
void bringIntoCache(int fd, off_t offset, size_t size);

}  // namespace sylar
