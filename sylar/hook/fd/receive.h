// Internal. Blocking receives from a stream socket that wait for more than the first byte: MSG_WAITALL, SO_RCVLOWAT.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {

/// Returns true if a receive with these flags waits for more than the first byte on this kind of descriptor.
inline bool waitsForMore(FdKind kind, int flags) {
  return kind == FdKind::kMarkedStream || ((flags & MSG_WAITALL) != 0 && attempt::isStreamSocket(kind));
}

/// Receives as the kernel's blocking recvmsg does; returns -errno on failure. `message` is the user's, so the kernel looks at it
/// first.
long receiveMore(IoCall& call, msghdr* message, int flags);

/// Receives into `parts`, for the calls that have no msghdr. `first` >= 0 is what an attempt has already received.
long receiveMore(IoCall& call, const iovec* parts, size_t count, int flags, size_t first = 0);

}  // namespace sylar::detail
