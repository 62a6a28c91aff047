// Internal. What a receive writes down of a message besides its bytes. Source: recvfrom(2), recvmsg(2).
#pragma once

#include <sys/socket.h>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Writes down from whom a message came, as the kernel does for recvfrom. Returns 0 or -errno.
long tellSender(const sockaddr_storage& sender, socklen_t size, sockaddr* from, socklen_t* from_size);

/// Writes down that there are no more messages, as the kernel does for recvmsg or recvmmsg with these flags. Returns 0 or -errno.
long tellEnd(msghdr* message, int flags);
long tellEnd(mmsghdr* message, int flags);

}  // namespace sylar::detail
