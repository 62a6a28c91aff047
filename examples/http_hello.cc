// An HTTP server in twenty lines. Ctrl-C ends it in order.
//
//   http_hello [PORT] [WORKERS] [epoll]      defaults: 8080, 2; port 0: any; epoll: without io_uring (setIOEngine)
//   curl http://127.0.0.1:8080/hello
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sylar/http/http_server.h"
#include "sylar/signal_wait.h"

using namespace sylar::http;

int main(int argc, char** argv) {
  if (argc > 3) {
    if (argv[3] != std::string_view("epoll")) return std::fputs("usage: http_hello [PORT] [WORKERS] [epoll]\n", stderr), 2;
    sylar::setIOEngine(sylar::IOEngine::kEpoll);
  }
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers

  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "hello");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/hello", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setHeader("content-type", "text/plain");
    response->setBody("hello\n");
    return 0;
  });
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();
}
