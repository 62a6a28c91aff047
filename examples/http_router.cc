// A key/value service over HTTP: routes with names, bodies with a limit, a group that wants a token, an access log.
//
//   http_router [PORT]      default: 8080; 0: any
//   curl -X PUT -d one http://127.0.0.1:8080/keys/a      curl http://127.0.0.1:8080/keys/a      curl http://127.0.0.1:8080/keys
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sylar/http/http_server.h"
#include "sylar/http/percent.h"
#include "sylar/http/router.h"
#include "sylar/log.h"
#include "sylar/signal_wait.h"

using namespace sylar::http;

namespace {

sylar::Logger::ptr g_access = SYLAR_LOG_NAME("access");

class Store {
 public:
  void list(HttpRequest& request, HttpResponse& response) {
    const std::string prefix = request.getParam("prefix");
    std::string names;
    const std::lock_guard lock(m_mutex);
    for (auto at = m_values.lower_bound(prefix); at != m_values.end() && at->first.starts_with(prefix); ++at) {
      names += (names.empty() ? "\"" : ", \"") + percentEncode(at->first) + '"';
    }
    response.json("[" + names + "]\n");
  }

  // [handlers]
  void get(HttpRequest& request, HttpResponse& response) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_values.find(request.getPathParam("key"));
    if (found == m_values.end()) return response.text("no such key\n", HttpStatus::NOT_FOUND);
    response.text(found->second);
  }

  void put(HttpRequest& request, HttpResponse& response) {
    const std::lock_guard lock(m_mutex);
    const bool is_new = m_values.insert_or_assign(request.getPathParam("key"), request.getBody()).second;
    response.setStatus(is_new ? HttpStatus::CREATED : HttpStatus::NO_CONTENT);
  }
  // [handlers]

  void del(HttpRequest& request, HttpResponse& response) {
    const std::lock_guard lock(m_mutex);
    response.setStatus(m_values.erase(request.getPathParam("key")) > 0 ? HttpStatus::NO_CONTENT : HttpStatus::NOT_FOUND);
  }

  void clear(HttpRequest&, HttpResponse& response) {
    const std::lock_guard lock(m_mutex);
    m_values.clear();
    response.setStatus(HttpStatus::NO_CONTENT);
  }

 private:
  std::mutex m_mutex;
  std::map<std::string, std::string> m_values;
};

// [middleware]
/// Logs a line for each request that a route, 404 or 405 answers.
void logAccess(HttpRequest& request, HttpResponse& response, const Next& next) {
  next();
  SYLAR_LOG_INFO(g_access) << HttpMethodToString(request.getMethod()) << ' ' << request.getPath() << ' '
                           << static_cast<int>(response.getStatus());
}

/// Lets nobody in who does not know the token. The body of the request has not been read yet.
void wantToken(HttpRequest& request, HttpResponse& response, const Next& next) {
  if (request.getHeader("authorization") == "Bearer secret") return next();
  response.setHeader("www-authenticate", "Bearer");
  response.text("a token is needed\n", HttpStatus::UNAUTHORIZED);
}
// [middleware]

// [routes]
Router::ptr makeRoutes(Store& store) {
  const auto router = std::make_shared<Router>();
  router->use(logAccess);
  router->get("/keys", [&](auto& request, auto& response) { store.list(request, response); });
  router->get("/keys/{key}", [&](auto& request, auto& response) { store.get(request, response); });
  router->put("/keys/{key}", [&](auto& request, auto& response) { store.put(request, response); }).body(Body::upTo(64 * 1024));
  router->del("/keys/{key}", [&](auto& request, auto& response) { store.del(request, response); }).body(Body::none());

  Router& admin = router->group("/admin");
  admin.use(wantToken);
  admin.post("/clear", [&](auto& request, auto& response) { store.clear(request, response); });
  return router;
}
// [routes]

}  // namespace

int main(int argc, char** argv) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  Store store;
  sylar::IOManager iom(2, false, "web");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  server->setServletDispatch(makeRoutes(store));
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  if (!server->start()) return 1;
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();
  server->join(sylar::Deadline::after(std::chrono::seconds(10)));
}
