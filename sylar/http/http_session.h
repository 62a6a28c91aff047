// One HTTP connection, the server's end.
//
// Whole messages, as in sylar:                      In pieces, both ways:
//
//   while (auto request = session->recvRequest()) {     ssize_t n;
//     auto response = request->createResponse();        session->beginResponse(response);
//     response->setBody("hello");                       while ((n = session->readBody(buffer, sizeof buffer)) > 0 &&
//     session->sendResponse(response);                         session->writeBody({buffer, size_t(n)})) continue;
//   }                                                   session->endResponse();
//
// A handler in an HttpServer gets its session to do the latter, or to answer itself; otherwise it needs none.
//
// What a peer may cost is bounded by HttpLimits. Requests that came together wait in the read buffer, and behind it in the
// kernel: one is at work at a time, and each answer goes out before the next request is looked at.
//
// Thread safety: for the fiber of the connection; end() from any thread, while the session is open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "sylar/http/limits.h"
#include "sylar/http/message.h"
#include "sylar/http/request_reader.h"
#include "sylar/http/response_writer.h"
#include "sylar/http/servlet.h"
#include "sylar/http/socket_bytes.h"
#include "sylar/net/socket_stream.h"

namespace sylar::http {

class HttpSession final : public SocketStream {
 public:
  using ptr = std::shared_ptr<HttpSession>;

  /// Over a connected socket, which is closed with the session if it is the `owner`. `limits` outlive it; `defaultLimits()`
  /// always do. Its time is that of the scheduler whose fiber makes it.
  explicit HttpSession(Socket::ptr sock, bool owner = true, const HttpLimits& limits = defaultLimits());
  ~HttpSession() override;

  static const HttpLimits& defaultLimits();

  // ---- Requests. -----------------------------------------------------------------------------------------------------------

  /// The next request with its body. Null: there will be none; what was wrong has been answered (RFC 9112: 400, 408, 413, ...),
  /// and the peer has been told the end. The session lets the last request go; who keeps it has it for himself. May suspend: yes.
  /// Source: sylar.
  HttpRequest::ptr recvRequest();
  /// The same as soon as the head has come. What is not read of its body is passed over by the next call.
  HttpRequest::ptr recvHead();

  /// How large the body may be, in bytes; between recvHead() and the first read of the body. The limits' until then.
  void setMaxBody(uint64_t bytes) { m_reader.setMaxBody(bytes); }
  /// Collects the body into the request. False: it is too large, malformed, too slow, or the peer has gone; recvHead() answers
  /// that, if nothing else has. A peer that asks for `100 Continue` gets it here and in readBody(). May suspend: yes.
  bool collectBody();
  /// Some bytes of the body into `buffer[size]`, size > 0: > 0 that many, 0 the end, -1 as collectBody(). May suspend: yes.
  ssize_t readBody(void* buffer, size_t size) { return m_reader.readBodySome(static_cast<char*>(buffer), size); }

  // ---- Responses to the last request. Each false, with errno, once the connection is lost: EPIPE, ECONNRESET, ETIMEDOUT (the
  // peer takes nothing); or for nothing: EALREADY (it was answered, or it is over: recvHead() waits for the next one, or there is
  // none), EPROTO (no response was begun, or its status is not final). ---------------------------------------------------------

  /// Sends the whole response; > 0, or -1. The connection ends with it if it says so, or the request did, or it is time. May
  /// suspend: yes. Source: sylar.
  int sendResponse(HttpResponse::ptr response);

  /// Sends a head whose body follows in pieces: exactly `length` bytes, or chunked. False also if the body of the request is too
  /// large. A peer that asks for `100 Continue` gets that before. May suspend: yes.
  bool beginResponse(const HttpResponse::ptr& response, std::optional<uint64_t> length = std::nullopt);
  /// A piece of the body; returns when the kernel has taken it, so a slow peer holds back the writer. May suspend: yes.
  bool writeBody(std::string_view piece) { return m_writer.writePiece(piece); }
  /// Ends the body. Also false with EPROTO: fewer bytes than promised; the connection is cut. May suspend: yes.
  bool endResponse();

  /// Has a response begun?
  bool isAnswered() const { return m_writer.isStarted(); }

  // ---- The end. ------------------------------------------------------------------------------------------------------------

  /// Asks for the end: at once if the session waits for a request of which nothing has come, else after the answer to this one,
  /// which says `connection: close`. Any thread; suspends: no.
  void end() { m_bytes.end(); }

  /// For servers: the request of the last recvHead(). Null while it waits for the next one, and if none came or it threw.
  const HttpRequest* request() const { return m_request.get(); }
  /// For servers: what the handler has left to do. Sends `response` unless something was sent, and ends what was begun.
  void complete(const HttpResponse::ptr& response);
  /// For servers: the handler failed. Answers `status`, if there is a request to answer, and ends the connection; cuts it if an
  /// answer had begun.
  void fail(HttpStatus status);

  /// For ServletDispatch.
  RouteCache& routes() { return m_routes; }

 private:
  HttpSession(Socket::ptr sock, bool owner, const HttpLimits& limits, const Clock& clock);
  bool answering(HttpResponse& response);
  bool send(HttpResponse& response);
  bool mayGoOn();
  void finish();

  const HttpLimits& m_limits;
  SocketBytes m_bytes;
  RequestReader m_reader;
  ResponseWriter m_writer;
  HttpRequest::ptr m_request;  // as request(); before the first an empty one, which may be answered
  RouteCache m_routes;
  bool m_open_body = false;  // of a response that was begun
  bool m_failed = false;     // the handler
  bool m_over = false;       // there is no next request
};

}  // namespace sylar::http
