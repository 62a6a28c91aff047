// Internal. Waiting for a connection that is being made, by connect or by a send with MSG_FASTOPEN.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {

/// Begins or continues to connect, and waits until the connection stands. Returns 0 or -errno: -ETIMEDOUT after `timeout_ns`
/// (never if that is negative), -EINPROGRESS after SO_SNDTIMEO, the answer of the last attempt if libc's call is the right one. May
/// suspend: yes.
long connectOn(IoCall& call, const sockaddr* address, socklen_t size, int64_t timeout_ns);

/// Returns the value of setConnectTimeout() in nanoseconds, negative if there is no limit.
int64_t connectTimeoutNs();

}  // namespace sylar::detail
