// Sends back what it is sent, of any size, with 16 KiB of memory: the body is read while the answer is written.
//
//   http_echo [PORT] [WORKERS]      defaults: 8080, 2; port 0: any
//   curl --data-binary @FILE http://127.0.0.1:8080/
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "sylar/http/http_server.h"

using namespace sylar::http;

int32_t echo(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  response->setHeader("content-type", request->getHeader("content-type", "application/octet-stream"));
  if (!session->beginResponse(response)) return -1;
  char piece[16 * 1024];
  ssize_t size;
  while ((size = session->readBody(piece, sizeof piece)) > 0 && session->writeBody({piece, static_cast<size_t>(size)})) {
  }
  return 0;  // what was begun is ended, or cut if the body did not come whole
}

int main(int argc, char** argv) {
  sigset_t end;  // blocked before there are workers, so that only sigwait takes them
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "echo");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  const auto servlet = std::make_shared<FunctionServlet>(echo);
  servlet->setStreaming(true);
  servlet->setBodyLimit(std::numeric_limits<int64_t>::max());
  server->getServletDispatch()->addServlet("/", servlet);
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&end, &signal);
  server->stop();
}
