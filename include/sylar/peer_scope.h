// Ends what a fiber does for somebody who has gone.
//
//   const sylar::PeerScope scope(*session->getSocket());     // in a servlet or TcpServer::handleClient
//   answer = askTheSlowDatabase(query);                      // ends with ECANCELED if the client hangs up meanwhile
#pragma once

#include <optional>
#include <stop_token>

#include "sylar/api.h"
#include "sylar/cancel.h"
#include "sylar/socket.h"

namespace sylar {

/// While it exists, the fiber that makes it is in a CancelScope that is told to stop when the other side closes the connection, or
/// shuts down its writing, as most do who will not read an answer. So it is if the socket is closed, or its reading shut down,
/// here. Data that has come and is not read yet does not matter. A second fiber watches the connection. Throws std::bad_alloc, and
/// std::logic_error unless the caller is a fiber of an IOManager.
///
/// Thread safety: belongs to one scope of one fiber. May suspend: no. Source: the context of a request in Go's net/http.
class SYLAR_API PeerScope {
 public:
  explicit PeerScope(const Socket& socket);
  ~PeerScope();
  PeerScope(const PeerScope&) = delete;
  PeerScope& operator=(const PeerScope&) = delete;

  /// Returns true if the peer has gone.
  bool hasGone() const { return m_gone.stop_requested(); }

 private:
  std::stop_source m_gone;
  Fiber::ptr m_watcher;
  std::optional<this_fiber::CancelScope> m_scope;
};

}  // namespace sylar
