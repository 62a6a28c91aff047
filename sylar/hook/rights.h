// Internal. Descriptors that travel in messages (SCM_RIGHTS): bookkeeping on every thread, in and out of fibers.
#pragma once

#include <sys/socket.h>

namespace sylar {

/// `message` was sent: whoever gets the descriptors in it has them, too, from here on.
void rightsSent(const msghdr& message);

/// `message` was received: the descriptors in it are new numbers here.
void rightsReceived(const msghdr& message);

/// Whether a received message ends what MSG_WAITALL waits for: it carried descriptors, or had no room for them.
bool endsWithRights(int fd, const msghdr& message);

}  // namespace sylar
