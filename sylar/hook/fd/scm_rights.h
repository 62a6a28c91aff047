// Internal. Bookkeeping for descriptors that travel in messages (SCM_RIGHTS), on every thread, in and out of fibers.
#pragma once

#include <sys/socket.h>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Notes that `message` was sent. From here on its receiver shares the descriptors in it.
void rightsSent(const msghdr& message);

/// Notes that `message` was received. The descriptors in it are new numbers here.
void rightsReceived(const msghdr& message);

/// Returns true if a received message ends what MSG_WAITALL waits for, because it carried descriptors or had no room for them.
bool endsWithRights(int fd, const msghdr& message);

}  // namespace sylar::detail
