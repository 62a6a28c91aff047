// Sends each request body back, of any size, with 16 KiB of memory: it reads the body while it writes the answer.
//
//   http_echo [PORT] [WORKERS]      defaults: 8080, 2; port 0: any
//   curl --data-binary @FILE http://127.0.0.1:8080/
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "sylar/http/http_server.h"
#include "sylar/signal_wait.h"

using namespace sylar::http;

// [echo]
int32_t echo(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  response->setHeader("content-type", request->getHeader("content-type", "application/octet-stream"));
  if (!session->beginResponse(response)) return -1;
  char piece[16 * 1024];
  ssize_t size;
  while ((size = session->readBody(piece, sizeof piece)) > 0 && session->writeBody({piece, static_cast<size_t>(size)})) {
  }
  return 0;  // the server ends the answer, or cuts it off if the body did not arrive completely
}
// [echo]

int main(int argc, char** argv) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers

  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "echo");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  // [servlet]
  const auto servlet = std::make_shared<FunctionServlet>(echo);
  servlet->setStreaming(true);
  servlet->setBodyLimit(std::numeric_limits<int64_t>::max());
  server->getServletDispatch()->addServlet("/", servlet);
  // [servlet]
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();
}
