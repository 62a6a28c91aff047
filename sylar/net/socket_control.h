// Internal. Lets a server watch its connections, ask for their ends, receive without memory of their own, end the waits of its
// listeners, and have listeners of other processes.
#pragma once

#include <cstdint>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/hook/fd/batched_calls.h"
#include "sylar/idle_list.h"
#include "sylar/socket.h"

namespace sylar {

/// Every call of the socket that moves bytes touches `entry`, and close() removes it.
struct Socket::Watched {
  IdleList<Socket>::Entry entry;
  uint64_t moved_bytes = 0;  // the kernel's count when last asked; for the callback of the list
};

}  // namespace sylar

namespace sylar::detail {

class SYLAR_API SocketControl {
 public:
  /// Makes the socket a watched one. Call it before others have the socket. Throws std::bad_alloc.
  static void watch(Socket& socket) { socket.m_watched = std::make_unique<Socket::Watched>(); }
  /// Returns what watch() has made; call it after watch().
  static auto& watched(Socket& socket) { return *socket.m_watched; }

  static EndRequest& endRequest(Socket& socket) { return socket.m_end; }
  /// Returns the lock of the socket's addresses, which end requests use as well.
  static Spinlock& lock(Socket& socket) { return socket.m_lock; }
  /// Returns how many bytes were received that no call has read, or -1 with errno. Source: tcp(7), SIOCINQ.
  static int unread(const Socket& socket);

  /// Does what Socket::recv() does into `buffer`, as receiveIntoPool() does. May suspend: yes.
  static ssize_t receiveIntoPool(Socket& socket, PooledBuffer& buffer, int flags);
  /// Does what Socket::send() with MSG_DONTWAIT does, as sendBatched() does. May suspend: yes.
  static ssize_t sendBatched(Socket& socket, const void* data, size_t size);

  /// Returns false after endWaiting(). Then accept() of `listener` fails with EAGAIN if no connection is in the queue.
  static bool acceptWaits(const Socket& listener) { return listener.m_accept_waits; }
  static void endWaiting(Socket& listener) { listener.m_accept_waits = false; }

  /// Puts `fd`, which listens, in the place of the descriptor that `socket` has, and closes it. The file of a Unix socket stays
  /// that of others. Returns false with errno.
  static bool adopt(Socket& socket, int fd);
  /// Returns true if `listener` will remove its file.
  static bool ownsFile(const Socket& listener);
  /// Leaves the file of a Unix socket to the process that listens there from now on, or takes it.
  static void leaveFile(Socket& listener);
  static void takeFile(Socket& listener);

 private:
  static bool isPlain(const Socket& socket);
};

}  // namespace sylar::detail
