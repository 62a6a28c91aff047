// Internal. Sockets whose close waits until the peer has all that was sent (SO_LINGER).
#pragma once

#include <sys/socket.h>

#include <atomic>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Set as soon as any socket is told to wait, so that programs without such sockets need not ask at each close.
extern constinit std::atomic<bool> g_any_lingers;

inline bool lingers(const linger& option) { return option.l_onoff != 0 && option.l_linger > 0; }

}  // namespace sylar::detail
