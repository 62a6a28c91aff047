// The server of the HTTP integration tests: it answers small and large, and tells what it holds.
//
//   integration_http_server_program [PORT] [WORKERS] [FASTER]      defaults: 0 (any), 2, 1: all times a peer is given, divided by
//   it
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sylar/http/http_server.h"

using namespace sylar::http;

namespace {

/// Far more than the kernel takes for a peer that does not read.
int32_t large(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
  const std::string piece(64 * 1024, 'x');
  session->beginResponse(response, 1024 * piece.size());
  for (int i = 0; i < 1024 && session->writeBody(piece); ++i) {
  }
  return 0;
}

HttpLimits limits(int faster) {
  HttpLimits limits;
  for (auto time : {&HttpLimits::first_byte_timeout, &HttpLimits::head_timeout, &HttpLimits::idle_timeout,
                    &HttpLimits::body_grace, &HttpLimits::write_timeout, &HttpLimits::linger_timeout}) {
    limits.*time /= faster;
  }
  return limits;
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "http");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  if (argc > 3) server->setHttpLimits(limits(std::max(1, std::atoi(argv[3]))));
  const ServletDispatch::ptr dispatch = server->getServletDispatch();
  dispatch->addServlet("/hello", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody("hello\n");
    return 0;
  });
  dispatch->addServlet("/large", large);
  dispatch->addServlet("/upload", [](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(std::to_string(request->getBody().size()));
    return 0;
  });
  dispatch->addServlet("/counters", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(std::to_string(server->getCounts().open) + ' ' + std::to_string(sylar::Fiber::TotalFibers()) + ' ' +
                      std::to_string(iom.hasTimer()));
    return 0;
  });
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&end, &signal);
  server->stop();
}
