// An HTTP/1.1 server: a TcpServer whose connections speak HTTP, and whose requests go to servlets.
//
//   auto server = std::make_shared<HttpServer>(true);     // in a fiber of an IOManager, or with IOManagers
//   server->getServletDispatch()->addServlet("/hello", ...);
//   server->bind(address);
//   server->start();
//   ...
//   server->stop();                                       // nobody new; who is idle is sent home; what was asked is answered
//   server->join(Deadline::after(10s));                   // the rest has so long
//
// Each connection is a fiber, so handlers are ordinary blocking code. HEAD is answered as GET without the body, OPTIONS * by the
// server. A handler that throws is answered with 500 (HttpError: with its status; std::bad_alloc: 503), and the connection ends.
//
// Thread safety: as TcpServer; the setters before start(), but setServletDispatch() at any time.
#pragma once

#include <memory>
#include <unordered_map>

#include "sylar/base/os_mutex.h"
#include "sylar/http/http_session.h"
#include "sylar/http/limits.h"
#include "sylar/http/servlet.h"
#include "sylar/net/tcp_server.h"

namespace sylar::http {

class HttpServer : public TcpServer {
 public:
  using ptr = std::shared_ptr<HttpServer>;

  /// `keepalive`: a connection may serve several requests. The IOManagers are TcpServer's. Source: sylar.
  explicit HttpServer(bool keepalive = false, IOManager* worker = IOManager::GetThis(),
                      IOManager* io_worker = IOManager::GetThis(), IOManager* accept_worker = IOManager::GetThis());

  /// What answers; never null. A connection keeps the one that it began with.
  ServletDispatch::ptr getServletDispatch() const;
  void setServletDispatch(ServletDispatch::ptr dispatch);

  /// What a connection may cost. They hold instead of TcpServer's receive timeout. How many connections: TcpServer::setLimits().
  /// TcpServer::setIdleTimeout() holds beside them, and for the time of the handlers, too.
  const HttpLimits& getHttpLimits() const { return m_http_limits; }
  void setHttpLimits(const HttpLimits& limits);

 protected:
  void handleClient(Socket::ptr client) override;
  void endClient(Socket::ptr client) override;

 private:
  class Listed;

  void answer(ServletDispatch& dispatch, HttpRequest::ptr request, const HttpResponse::ptr& response,
              const HttpSession::ptr& session) const;
  void failed(const HttpRequest* request, const char* what) const;

  const bool m_keepalive;
  HttpLimits m_http_limits;
  mutable OsMutex m_mutex;
  ServletDispatch::ptr m_dispatch SYLAR_GUARDED_BY(m_mutex);
  std::unordered_map<const Socket*, HttpSession*> m_sessions SYLAR_GUARDED_BY(m_mutex);  // being served
};

}  // namespace sylar::http
