// Internal. The calls on a session that only a server and its dispatch make.
#pragma once

#include <memory>

#include "sylar/base/internal.h"
#include "sylar/http/http_session.h"
#include "sylar/http/http_shared.h"
#include "sylar/http/route_cache.h"

namespace sylar::http::detail {

class SessionControl {
 public:
  /// Makes a session over `socket`, which it does not own. All its memory is one block.
  static HttpSession::ptr make(Socket::ptr socket, std::shared_ptr<const HttpShared> shared);

  /// Returns the request of the last recvHead(). Returns null while recvHead() waits for the next one, and if none came or it
  /// threw.
  static const HttpRequest* request(const HttpSession& session);
  static RouteCache& routes(HttpSession& session);

  /// Is called when the handler has returned. Sends `response` unless something was sent, and ends a response that was begun. In
  /// a fiber that was cancelled it acts as fail(SERVICE_UNAVAILABLE) instead.
  static void complete(HttpSession& session, HttpResponse& response);
  /// Is called when the handler has failed. Answers `status` if there is a request to answer, and ends the connection. Cuts the
  /// connection if an answer had begun.
  static void fail(HttpSession& session, HttpStatus status);
};

}  // namespace sylar::http::detail
