// The server's end of an HTTP connection: it reads requests and sends responses.
//
// Whole messages, as in sylar:                      In pieces, both ways:
//
//   while (auto request = session->recvRequest()) {     ssize_t n;
//     auto response = request->createResponse();        session->beginResponse(response);
//     response->setBody("hello");                       while ((n = session->readBody(buffer, sizeof buffer)) > 0 &&
//     session->sendResponse(response);                         session->writeBody({buffer, size_t(n)})) continue;
//   }                                                   session->endResponse();
//
// A handler in an HttpServer needs its session only to read or answer in pieces, or to send the answer itself.
//
// HttpLimits bound what a peer may cost. Pipelined requests are served one at a time, and each answer is sent before the next
// request is read. The others wait in the read buffer and, behind it, in the kernel.
//
// Thread safety: one call at a time. Once the handler of a request has returned, the server goes on with the connection and may
// end it at any moment. So other fibers must be through with their calls by then. A handler may keep its session, but may then only
// call end() and getSocket(). end() may be called by any thread at any time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "sylar/api.h"
#include "sylar/http/http.h"
#include "sylar/http/limits.h"
#include "sylar/socket_stream.h"

namespace sylar::http {

namespace detail {
class ServedSession;
class SessionControl;
}  // namespace detail

class SYLAR_API HttpSession final : public SocketStream {
 public:
  using ptr = std::shared_ptr<HttpSession>;

  /// Makes a session over a connected socket. If `owner` is true, the socket is closed with the session. The session has the
  /// default HttpLimits, and shares `max_bodies` with all sessions that this constructor makes. It uses the clock of the
  /// scheduler whose fiber makes it.
  explicit HttpSession(Socket::ptr sock, bool owner = true);
  /// Makes a session with its own `limits`.
  HttpSession(Socket::ptr sock, bool owner, const HttpLimits& limits);
  ~HttpSession() override;

  // ---- Requests. -----------------------------------------------------------------------------------------------------------

  /// Returns the next request with its body, or null if there will be none. A faulty request has then been answered (RFC 9112:
  /// 400, 408, 413, ...), and the peer has been sent the end of the stream. The session first releases the last request. May
  /// suspend: yes. Source: sylar.
  HttpRequest::ptr recvRequest();
  /// Returns the next request as soon as its head has arrived. The next call discards the part of its body that was not read. May
  /// suspend: yes.
  HttpRequest::ptr recvHead();

  /// Sets the maximum size of the body in bytes, in place of HttpLimits::max_body. Call it between recvHead() and the first read
  /// of the body.
  void setMaxBody(uint64_t bytes);
  /// Collects the body into the request. Returns false if it is too large, malformed or too slow, if the server has no room for
  /// it (HttpLimits::max_bodies), or if the peer has gone. The next recvHead() answers such an error if nothing else was sent. A
  /// peer that asks for `100 Continue` gets it here and in readBody(). May suspend: yes.
  bool collectBody();
  /// Reads some bytes of the body into `buffer[size]`, size > 0, and returns how many. Returns 0 at the end of the body, and -1
  /// if collectBody() would return false. May suspend: yes.
  ssize_t readBody(void* buffer, size_t size);
  /// Reads the body as readBody() does, and then returns 0, since the next request follows. After an answer of 101 it reads the
  /// bytes of the other protocol, first those that arrived together with the request. Returns a value < 0 with errno on failure:
  /// EPROTO if the body is refused, ECONNRESET if the connection is lost, and after 101 the errors of Socket::recv(). EAGAIN then
  /// means that getSocket()->getRecvTimeout() has passed, which is HttpLimits::idle_timeout unless another was set. May suspend:
  /// yes.
  int read(void* buffer, size_t size) override;

  // ---- Responses to the last request. --------------------------------------------------------------------------------------
  //
  // Each call that fails sets errno:
  //   EPIPE, ECONNRESET, ETIMEDOUT  the connection is lost, or the peer takes nothing
  //   EALREADY  the request was answered, or there is none
  //   EPROTO    no response was begun; or its status is neither 101 nor one of 200 to 599, is logged, and 500 is sent instead

  /// Sends the whole response. Returns a value > 0, or -1. The connection ends with it if the response, the request or a limit
  /// says so. May suspend: yes. Source: sylar.
  int sendResponse(HttpResponse::ptr response);

  /// Sends a head whose body follows in pieces: exactly `length` bytes, or chunked. Also returns false if the body of the request
  /// is too large. A peer that asks for `100 Continue` gets that first. May suspend: yes.
  bool beginResponse(const HttpResponse::ptr& response, std::optional<uint64_t> length = std::nullopt);
  /// Sends a piece of the body and returns when the kernel has taken it, so a slow peer holds back the writer. If the response
  /// has no body (an answer to HEAD, 204 or 304), the first piece fails with EALREADY, because the peer already has all of it. A
  /// loop that writes until writeBody() returns false therefore ends in each case. May suspend: yes.
  bool writeBody(std::string_view piece);
  /// Ends the body. Fails with EPROTO if it has fewer bytes than promised; the connection is then cut. May suspend: yes.
  bool endResponse();

  /// Returns true if a response has begun.
  bool isAnswered() const;

  // ---- The end. ------------------------------------------------------------------------------------------------------------

  /// Asks the session to end. It ends after the answer to the current request, which then says `connection: close`, unless further
  /// requests have arrived. If it waits for a request of which nothing has arrived, that may still begin within
  /// HttpLimits::new_grace or kept_grace. Later sessions of the same socket end as well, until the socket is opened again. May be
  /// called from any thread. May suspend: no.
  void end();

 private:
  friend class detail::ServedSession;
  friend class detail::SessionControl;
  struct State;

  HttpSession(Socket::ptr sock, State& of_server);
  bool answering(HttpResponse& response);
  bool refuseStatus(const HttpResponse& response);
  bool send(HttpResponse& response);
  void switchProtocol();
  bool mayGoOn();
  void finish();
  void refuse();

  const std::unique_ptr<State> m_own_state;  // null if the state is the server's
  State* m_state;                            // null when the server has ended the connection
};

}  // namespace sylar::http
