// The parts of an HTTP service: methods, parts of a path, parameters, forms, a gate, an access log, its own 404, and an endless
// stream of events.
//
//   http_routes [PORT]      default: 8080; 0: any
//   curl http://127.0.0.1:8080/users/ada      curl -d name=Ada http://127.0.0.1:8080/users
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "sylar/http/http_error.h"
#include "sylar/http/http_server.h"
#include "sylar/http/percent.h"
#include "sylar/log.h"
#include "sylar/signal_wait.h"

using namespace sylar::http;

namespace {

sylar::Logger::ptr g_access = SYLAR_LOG_NAME("access");

// [path]
int32_t user(const HttpRequest::ptr& request, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  const auto name = percentDecode(request->getPath().substr(sizeof "/users/" - 1));  // the path is as the client sent it
  if (!name || name->empty()) throw HttpError(HttpStatus::BAD_REQUEST, "no name");
  response->setHeader("content-type", "text/plain; charset=utf-8");
  response->setBody("user " + *name + "\n");
  return 0;
}
// [path]

// [query]
int32_t search(const HttpRequest::ptr& request, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  uint32_t limit = 10;
  if (request->hasParam("limit") && !request->checkGetParamAs("limit", limit)) {
    response->setStatus(HttpStatus::BAD_REQUEST);
    response->setBody("limit must be a number\n");
    return 0;
  }
  std::string tags;
  for (const std::string& tag : request->getParamValues("tag")) tags += " " + tag;  // ?tag=a&tag=b
  response->setBody("q=" + request->getParam("q") + " limit=" + std::to_string(limit) + " tags:" + tags + "\n");
  return 0;
}
// [query]

// [form]
int32_t addUser(const HttpRequest::ptr& request, const HttpResponse::ptr& response, const HttpSession::ptr&) {
  const std::string name = request->getParam("name");  // from the query or from a form in the body
  response->setStatus(HttpStatus::CREATED);
  response->setHeader("location", "/users/" + percentEncode(name));
  return 0;
}
// [form]

// [gate]
Servlet::ptr guarded(const FunctionServlet::callback& handler) {
  const auto servlet = std::make_shared<FunctionServlet>(handler);
  servlet->setGate([](const HttpRequest& request, HttpResponse& response) {  // runs before the body is read
    if (request.getHeader("authorization") == "Bearer secret") return true;
    response.setStatus(HttpStatus::UNAUTHORIZED);
    response.setHeader("www-authenticate", "Bearer");
    return false;
  });
  return servlet;
}
// [gate]

// [access]
/// Logs a line for each request that a servlet answers, or that the dispatch answers with 404 or 405.
class LoggingDispatch : public ServletDispatch {
 public:
  int32_t handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) override {
    const int32_t result = ServletDispatch::handle(request, response, session);
    SYLAR_LOG_INFO(g_access) << session->getRemoteAddressString() << ' ' << HttpMethodToString(request->getMethod()) << ' '
                             << request->getPath() << ' ' << static_cast<int>(response->getStatus());
    return result;
  }
};
// [access]

// [events]
/// Sends server-sent events, ten a second, until the client leaves or the server stops.
int32_t events(const HttpServer& server, const HttpResponse::ptr& response, const HttpSession::ptr& session) {
  response->setHeader("content-type", "text/event-stream");
  if (!session->beginResponse(response)) return -1;
  for (int i = 1; !server.isStop() && session->writeBody("data: " + std::to_string(i) + "\n\n"); ++i) usleep(100'000);
  return 0;
}
// [events]

// [routes]
void addRoutes(HttpServer& server) {
  const auto dispatch = std::make_shared<LoggingDispatch>();
  dispatch->addGlobServlet("/users/*", {HttpMethod::GET}, user);  // other methods are answered with 405
  dispatch->addServlet("/users", {HttpMethod::POST}, addUser);
  dispatch->addServlet("/search", {HttpMethod::GET}, search);
  dispatch->addServlet("/admin", guarded([](auto /*request*/, auto response, auto /*session*/) {
                         response->setBody("welcome\n");
                         return 0;
                       }));
  dispatch->addServlet("/events", {HttpMethod::GET},
                       [&server](auto /*request*/, auto response, auto session) { return events(server, response, session); });
  dispatch->setDefault(std::make_shared<FunctionServlet>([](auto /*request*/, auto response, auto /*session*/) {
    response->setStatus(HttpStatus::NOT_FOUND);
    response->setBody("there is nothing here\n");
    return 0;
  }));
  server.setServletDispatch(dispatch);
}
// [routes]

}  // namespace

int main(int argc, char** argv) {
  // [signals]
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  // [signals]

  // [serve]
  sylar::IOManager iom(2, false, "web");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  addRoutes(*server);
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080)))) return 1;
  if (!server->start()) return 1;
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());
  std::fflush(stdout);

  end.wait();
  server->stop();                                                  // stops accepting
  server->join(sylar::Deadline::after(std::chrono::seconds(10)));  // waits for pending answers
  // [serve]
}
