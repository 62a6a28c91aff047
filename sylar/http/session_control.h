// Internal. The calls on a session that only a server and its dispatch make, while the server serves the connection.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/http/http_session.h"
#include "sylar/http/route_cache.h"

namespace sylar::http::detail {

class SessionControl {
 public:
  /// Returns the request of the last recvHead(). Returns null while recvHead() waits for the next one, and if none came or it
  /// threw.
  static const HttpRequest* request(const HttpSession& session);
  /// Takes the routes that the connection has used last out of the session; none if the connection has ended.
  static RouteCache takeRoutes(HttpSession& session);
  static void keepRoutes(HttpSession& session, RouteCache&& routes);

  /// Is called when the handler has returned. Sends `response` unless something was sent, and ends a response that was begun. In
  /// a fiber that was cancelled it acts as fail(SERVICE_UNAVAILABLE) instead.
  static void complete(HttpSession& session, HttpResponse& response);
  /// Is called when the handler has failed. Answers `status` if there is a request to answer, and ends the connection. Cuts the
  /// connection if an answer had begun.
  static void fail(HttpSession& session, HttpStatus status);
};

}  // namespace sylar::http::detail
