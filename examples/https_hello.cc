// An HTTPS server. Ctrl-C ends it in order.
//
//   https_hello CERT KEY [PORT]      PEM files of a certificate and its key; default: 8443; port 0: any
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -out site.crt -keyout site.key
//   curl --cacert site.crt https://localhost:8443/hello
#include <cstdio>
#include <cstdlib>

#include "sylar/http/http_server.h"
#include "sylar/signal_wait.h"
#include "sylar/tls/ssl_socket.h"

using namespace sylar::http;

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: https_hello CERT KEY [PORT]\n", stderr), 2;
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers

  sylar::IOManager iom(2, false, "hello");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/hello", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->text("hello\n");
    return 0;
  });
  try {
    // [tls]
    auto context = sylar::TlsContext::Server({.certificates = {{argv[1], argv[2]}}});
    sylar::serveTls(*server, context);  // any TcpServer, before its bind()
    // [tls]
  } catch (const sylar::TlsError& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
  if (!server->bind(sylar::IPAddress::Create("0.0.0.0", static_cast<uint16_t>(argc > 3 ? std::atoi(argv[3]) : 8443)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();
}
