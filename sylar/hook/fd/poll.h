// Internal. poll, as a part of another call.
#pragma once

#include <poll.h>
#include <signal.h>

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/hook/core/call_wait.h"

namespace sylar::detail {

/// Does what ppoll does, with a timeout of `timeout_ns` (kNever = none), as a wait of `call`. Fails with EINTR as ppoll does, and
/// if the call is interrupted. May suspend: yes.
int pollAs(CallWait& call, pollfd* fds, nfds_t count, int64_t timeout_ns, const sigset_t* mask = nullptr);

}  // namespace sylar::detail
