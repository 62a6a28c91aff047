// Internal. Listening sockets that another process has left to this one. A TcpServer that binds one of their addresses takes the
// socket over, with the connections that wait in its queue.
//
// Thread safety: all calls from any thread.
#pragma once

#include "sylar/address.h"
#include "sylar/api.h"

namespace sylar::inherited_listeners {

/// Keeps `fd` until somebody takes it, and returns its address. Returns null if it is no listening stream socket; then it stays the
/// caller's.
SYLAR_API Address::ptr add(int fd);
/// Returns the socket that listens on `address`, which is the caller's from here on, or -1. May throw std::bad_alloc.
int take(const Address& address);
/// Closes those that nobody has taken, and returns how many there were.
SYLAR_API size_t closeRest();

}  // namespace sylar::inherited_listeners
