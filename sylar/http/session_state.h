// Internal. What a session knows of its connection and of the last request.
//
// A session that a server has made has its state on the stack of the connection's fiber, whose first page is resident anyway. So
// an idle connection takes no memory for it.
#pragma once

#include <memory>

#include "sylar/base/internal.h"
#include "sylar/http/http_session.h"
#include "sylar/http/http_shared.h"
#include "sylar/http/request_reader.h"
#include "sylar/http/response_writer.h"
#include "sylar/http/route_cache.h"
#include "sylar/http/socket_bytes.h"

namespace sylar::http {

/// The socket must outlive it.
struct HttpSession::State {
  State(Socket& socket, std::shared_ptr<const detail::HttpShared> of_server);

  /// Returns true if the answer to the present request ends the connection.
  bool isLast();

  const std::shared_ptr<const detail::HttpShared> shared;
  detail::SocketBytes bytes;
  detail::RequestReader reader;
  detail::ResponseWriter writer;
  HttpRequest::ptr request;      // of the last recvHead(); before the first an empty one, which may be answered
  detail::BodyShare body_share;  // for the body of `request`
  detail::RouteCache routes;
  Deadline last_by = Deadline::never();  // when pipelined requests are no reason to go on, once the end was asked for
  bool open_body = false;                // a response was begun and has not ended
  bool failed = false;                   // the handler has failed
  bool switched = false;                 // the connection belongs to another protocol
  bool over = false;                     // there is no next request
};

namespace detail {

/// A session, and its state, for as long as a server serves the connection.
class ServedSession {
 public:
  /// The session does not own `socket`.
  ServedSession(Socket::ptr socket, std::shared_ptr<const HttpShared> shared);
  /// From now on the calls of the session fail. None may be running.
  ~ServedSession() { m_session->m_state = nullptr; }
  ServedSession(const ServedSession&) = delete;
  ServedSession& operator=(const ServedSession&) = delete;

  const HttpSession::ptr& get() const { return m_session; }

 private:
  static HttpSession::ptr make(Socket::ptr socket, HttpSession::State& state);

  const HttpSession::ptr m_session;
  HttpSession::State m_state;
};

}  // namespace detail
}  // namespace sylar::http
