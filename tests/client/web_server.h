// For the tests of client: servers that answer.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sylar/http/http_server.h"
#include "sylar/http/router.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/tls/ssl_socket.h"
#include "tests/net/support.h"
#include "tests/support/certificate.h"

namespace sylar::test {

/// A server with workers of its own, so that it answers plain threads, too.
class WebServer {
 public:
  explicit WebServer(const http::Router::ptr& routes, const Certificate* certificate = nullptr)
      : m_server(std::make_shared<http::HttpServer>(true, &m_iom, &m_iom, &m_iom)),
        m_scheme(certificate != nullptr ? "https" : "http") {
    m_server->setServletDispatch(routes);
    if (certificate != nullptr)
      serveTls(*m_server, TlsContext::Server({.certificates = {{certificate->path(), certificate->key()}}}));
    EXPECT_TRUE(m_server->bind(loopback()));
    EXPECT_TRUE(m_server->start());
  }
  ~WebServer() {
    m_server->stop();
    m_iom.stop(Deadline::after(std::chrono::seconds(5)));
  }
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  std::string url(const std::string& path, const std::string& host = "127.0.0.1") const {
    const auto address = std::dynamic_pointer_cast<IPAddress>(m_server->getSocks().front()->getLocalAddress());
    return m_scheme + "://" + host + ":" + std::to_string(address->getPort()) + path;
  }
  uint64_t connections() const { return m_server->getCounts().accepted; }

 private:
  IOManager m_iom{SchedulerOptions{.threads = 1, .use_caller = false, .name = "web"}};
  const std::shared_ptr<http::HttpServer> m_server;
  const std::string m_scheme;
};

/// Answers with what it was sent: the method, the fields that are asked for, and the body.
inline http::Router::ptr echoing() {
  const auto routes = std::make_shared<http::Router>();
  const auto answer = [](http::HttpRequest& request, http::HttpResponse& response) {
    response.setHeader("x-method", http::HttpMethodToString(request.getMethod()));
    for (const char* const name : {"authorization", "cookie", "content-type", "host", "x-own"})
      if (const auto value = request.headers().find(name)) response.setHeader(std::string("x-got-") + name, *value);
    response.setBody(request.getBody());
  };
  routes->handle("/echo", answer);
  routes->handle("/slow", [](http::HttpRequest&, http::HttpResponse&) { ::usleep(300'000); });
  return routes;
}

}  // namespace sylar::test
