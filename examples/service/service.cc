// The demo service: HTTP on 8020, an echo over TCP on 8021, configured by the folder config/ beside this file.
//
//   service -c examples/service/config
//
//   GET  /              what there is
//   GET  /hello         the greeting of service.yml
//   GET  /sleep?ms=N    answers after N milliseconds
//   POST /echo          answers with the body
//   GET  /time          the time; that of a redis if service.yml names one
//
// The handlers are ordinary blocking code. Each connection is a fiber: what blocks in it (usleep, hiredis, recv) holds up nobody
// else.
#include <hiredis/hiredis.h>
#include <sys/socket.h>

#include <ctime>
#include <string>

#include "sylar/sylar.h"

using sylar::http::HttpRequest;
using sylar::http::HttpResponse;
using sylar::http::HttpSession;
using sylar::http::HttpStatus;

static auto g_logger = SYLAR_LOG_NAME("demo");
static auto g_greeting = sylar::Config::Lookup<std::string>("demo.greeting", "Hello", "what /hello says");
static auto g_redis = sylar::Config::Lookup<std::string>("demo.redis", "", "host:port of the redis that /time asks; empty: none");

static int32_t overview(const HttpRequest::ptr&, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  response->setHeader("content-type", "text/plain");
  response->setBody("GET /hello, GET /sleep?ms=N, POST /echo, GET /time\n");
  return 0;
}

static int32_t hello(const HttpRequest::ptr&, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  response->setHeader("content-type", "text/plain");
  response->setBody(g_greeting->getValue() + "\n");
  return 0;
}

// [sleep]
static int32_t snooze(const HttpRequest::ptr& request, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  uint32_t ms = 0;
  if (!request->checkGetParamAs("ms", ms) || ms > 60'000) {
    response->setStatus(HttpStatus::BAD_REQUEST);
    response->setBody("ms must be a number from 0 to 60000\n");
    return 0;
  }
  usleep(ms * 1000);
  response->setBody("slept " + std::to_string(ms) + " ms\n");
  return 0;
}
// [sleep]

static int32_t echo(const HttpRequest::ptr& request, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  response->setBody(request->getBody());
  return 0;
}

/// The seconds since 1970 of the redis at `address`, or a line that says why not.
static std::string askRedis(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "demo.redis must be host:port, as 127.0.0.1:6379";
  const timeval patience{1, 0};
  redisContext* redis =
      redisConnectWithTimeout(address.substr(0, colon).c_str(), std::atoi(address.c_str() + colon + 1), patience);
  std::string answer = redis == nullptr ? "no memory" : redis->errstr;
  if (redis != nullptr && redis->err == 0) {
    redisSetTimeout(redis, patience);
    if (auto* reply = static_cast<redisReply*>(redisCommand(redis, "TIME"))) {
      const redisReply* text = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
      answer = text->str != nullptr ? text->str : "no redis answers like this";
      freeReplyObject(reply);
    } else {
      answer = redis->errstr;
    }
  }
  if (redis != nullptr) redisFree(redis);
  return answer;
}

static int32_t tellTime(const HttpRequest::ptr&, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  const std::string redis = g_redis->getValue();
  response->setBody((redis.empty() ? std::to_string(std::time(nullptr)) : askRedis(redis)) + "\n");
  return 0;
}

/// Sends back what comes, until the client ends.
class EchoServer : public sylar::TcpServer {
 public:
  using TcpServer::TcpServer;

 protected:
  void handleClient(sylar::Socket::ptr client) override {
    char buffer[4096];
    for (int n; (n = client->recv(buffer, sizeof buffer)) > 0;) {
      if (sylar::SocketStream(client, false).writeFixSize(buffer, static_cast<size_t>(n)) <= 0) break;
    }
  }

  /// The service ends: what has come is sent back, and that was all.
  void endClient(sylar::Socket::ptr client) override { shutdown(client->getSocket(), SHUT_RD); }
};

int main(int argc, char** argv) {
  sylar::Application app;
  app.addServerType<EchoServer>("echo");
  app.onServerReady([&app] {
    for (const auto& server : app.servers<sylar::http::HttpServer>()) {
      const auto servlets = server->getServletDispatch();
      servlets->addServlet("/", overview);
      servlets->addServlet("/hello", hello);
      servlets->addServlet("/sleep", snooze);
      servlets->addServlet("/echo", echo);
      servlets->addServlet("/time", tellTime);
    }
  });
  app.onServerUp([] { SYLAR_LOG_INFO(g_logger) << "ready"; });
  return app.main(argc, argv);
}
