// Internal. A call of a socket that is running.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/socket.h"

namespace sylar {

/// Until it ends, the descriptor number belongs to this socket.
class Socket::Use {
 public:
  /// The object is false, with EBADF, if the socket is closed. A call with MSG_DONTWAIT in its `flags` blocks nowhere.
  explicit Use(const Socket& socket, int flags = 0)
      : m_call((flags & MSG_DONTWAIT) != 0 || hookEngine() != nullptr ? kCall : kBlockingCall),
        m_socket(socket.enter(m_call) ? &socket : nullptr) {}
  ~Use() { end(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  explicit operator bool() const { return m_socket != nullptr; }
  int fd() const { return m_socket->getSocket(); }
  void end() {
    if (m_socket != nullptr) std::exchange(m_socket, nullptr)->leave(m_call);
  }

 private:
  const uint64_t m_call;
  const Socket* m_socket;
};

}  // namespace sylar
