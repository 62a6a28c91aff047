// An HTTP/1.1 server: a TcpServer whose connections speak HTTP, and whose requests go to servlets.
//
//   auto server = std::make_shared<HttpServer>(true);     // in a fiber of an IOManager, or with IOManagers
//   server->getServletDispatch()->addServlet("/hello", ...);
//   server->bind(address);
//   server->start();
//   ...
//   server->stop();                                       // stops accepting, closes idle connections; requests that have arrived
//                                                         // are answered, HttpLimits::new_grace and kept_grace hold
//   server->join(Deadline::after(10s));                   // waits for the remaining connections
//
// Each connection has its own fiber, so handlers are ordinary blocking code. HEAD is answered as GET without the body, and the
// server itself answers OPTIONS *. If a handler throws, the server answers 500 (for an HttpError its status, for std::bad_alloc
// 503) and ends the connection. If the handler was cancelled, the server answers 503 (see servlet.h) and ends the connection.
//
// Thread safety: that of TcpServer. The setters must be called before start(), except setServletDispatch(), which may be called
// at any time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "sylar/api.h"
#include "sylar/http/http_session.h"
#include "sylar/http/limits.h"
#include "sylar/http/servlet.h"
#include "sylar/tcp_server.h"

namespace sylar::http {

class SYLAR_API HttpServer : public TcpServer {
 public:
  using ptr = std::shared_ptr<HttpServer>;

  /// If `keepalive` is true, a connection may serve several requests. The IOManagers are those of TcpServer. Source: sylar.
  explicit HttpServer(bool keepalive = false, IOManager* worker = IOManager::GetThis(),
                      IOManager* io_worker = IOManager::GetThis(), IOManager* accept_worker = IOManager::GetThis());
  ~HttpServer() override;

  bool start() override;

  /// Returns the dispatch that answers requests, which is never null. A connection keeps the dispatch with which it began.
  ServletDispatch::ptr getServletDispatch() const;
  void setServletDispatch(ServletDispatch::ptr dispatch);

  /// Returns the limits of each connection. They replace TcpServer's receive timeout. TcpServer::setIdleTimeout() applies in
  /// addition, even while a handler runs, and TcpServer::setLimits() limits the number of connections.
  const HttpLimits& getHttpLimits() const;
  void setHttpLimits(const HttpLimits& limits);

  /// Returns the number of requests that the protocol layer has refused since the server was made, by the status of the answer:
  /// 400, 408, 413, 414, 417, 431, 501, 503 (no room for a body), 505. Each is also logged at DEBUG. Answers of servlets and of
  /// the dispatch (404, 405) do not count. May be called from any thread.
  std::map<HttpStatus, uint64_t> getRefusals() const;
  /// Returns how many bytes of bodies currently count towards HttpLimits::max_bodies. May be called from any thread.
  uint64_t getBodyBytes() const;

 protected:
  void handleClient(Socket::ptr client) override;
  void endClient(Socket::ptr client) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar::http
