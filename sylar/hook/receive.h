// Internal. The blocking receive from a stream socket that waits for more than the first byte: MSG_WAITALL, SO_RCVLOWAT.
#pragma once

#include "sylar/hook/wait_loop.h"

namespace sylar {

/// Whether such a receive waits for more than the first byte.
inline bool waitsForMore(FdKind kind, int flags) {
  return kind == FdKind::kMarkedStream || ((flags & MSG_WAITALL) != 0 && attempt::isStreamSocket(kind));
}

/// As the kernel's blocking recvmsg; -errno. `message` is the user's: it is the kernel that looks at it first.
long receiveMore(IoCall& call, int fd, msghdr* message, int flags);

/// The same for the other calls, whose buffers are theirs. `first`: what an attempt has already received, >= 0.
long receiveMore(IoCall& call, int fd, const iovec* parts, size_t count, int flags, size_t first = 0);

}  // namespace sylar
