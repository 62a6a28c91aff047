// Handlers that block without delaying others: one sleeps, one asks redis through a client library that knows nothing of fibers.
//
//   http_waiting [PORT] [REDIS-PORT]      defaults: 8080, 6379; port 0: any
//   curl http://127.0.0.1:8080/sleep      curl http://127.0.0.1:8080/redis
#include <hiredis/hiredis.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "sylar/http/http_server.h"
#include "sylar/signal_wait.h"

using namespace sylar::http;

int32_t sleeping(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
  usleep(300'000);
  response->setBody("slept\n");
  return 0;
}

int32_t asking(int port, const HttpResponse::ptr& response) {
  const std::unique_ptr<redisContext, decltype(&redisFree)> redis(redisConnect("127.0.0.1", port), &redisFree);
  const std::unique_ptr<void, decltype(&freeReplyObject)> answer(redisCommand(redis.get(), "INCR sylar:visits"),
                                                                 &freeReplyObject);
  const auto* reply = static_cast<const redisReply*>(answer.get());
  if (reply == nullptr || reply->type != REDIS_REPLY_INTEGER) {
    response->setStatus(HttpStatus::BAD_GATEWAY);
    return -1;
  }
  response->setBody(std::to_string(reply->integer) + "\n");
  return 0;
}

int main(int argc, char** argv) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers

  sylar::IOManager iom(2, false, "waiting");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  const int redis = argc > 2 ? std::atoi(argv[2]) : 6379;
  server->getServletDispatch()->addServlet("/sleep", sleeping);
  server->getServletDispatch()->addServlet(
      "/redis", [redis](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) { return asking(redis, response); });
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  server->start();
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();
}
