// Tests what happens to a request before its servlet has it: path, method, size of the body.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "sylar/base/log.h"
#include "sylar/http/http_server.h"
#include "sylar/http/http_shared.h"
#include "tests/http/client.h"
#include "tests/support/fibers.h"

namespace sylar::http {
namespace {

using test::Answer;
using test::Client;
using test::hello;
using test::request;
using test::sizeOfBody;
using Serving = test::Serving<>;

class ServerRoute : public testing::Test {
 private:
  sylar::test::LeakCheck m_leaks;
};

// ---- Methods. ---------------------------------------------------------------------------------------------------------------

const char* const kOrdinary = "DELETE, GET, HEAD, POST, PUT, OPTIONS, PATCH";

TEST_F(ServerRoute, OrdinaryServletGetsTheMethodsThatAreUpToItsResource) {
  Serving server;
  server.on("/echo", [](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(HttpMethodToString(request->getMethod()));
    return 0;
  });
  Client client(server.port());
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    client.say(request(method, "/echo"));
    EXPECT_EQ(client.read().body, method);
  }
  client.say(request("HEAD", "/echo"));
  EXPECT_EQ(client.read(true).headers["content-length"], "4") << "HEAD reaches it, too";
}

TEST_F(ServerRoute, OtherKnownMethodsAre405WithAllow) {
  Serving server;
  server.on("/hello", hello);
  Client client(server.port());
  for (const std::string method : {"TRACE", "PROPFIND", "LINK", "M-SEARCH"}) {
    client.say(request(method, "/hello"));
    Answer answer = client.read();
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.headers["allow"], kOrdinary);
    EXPECT_EQ(answer.body, "");
  }
  EXPECT_EQ(client.get("/hello").status, 200) << "the connection goes on";
}

TEST_F(ServerRoute, UnknownMethodsAre501) {
  Serving server;
  server.on("/hello", hello);
  for (const std::string method : {"BREW", "get", "CONNECT"}) {
    Client client(server.port());
    client.say(request(method, "/hello"));
    EXPECT_EQ(client.read().status, 501) << method;
  }
}

TEST_F(ServerRoute, OptionsAreAnsweredWithoutTheServlet) {
  Serving server;
  server.on("/hello", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) {
    ADD_FAILURE() << "OPTIONS has reached the servlet";
    return 0;
  });
  Client client(server.port());
  client.say(request("OPTIONS", "/hello"));
  Answer answer = client.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["allow"], kOrdinary);
  EXPECT_EQ(answer.headers["content-length"], "0");
}

TEST_F(ServerRoute, ServletHasTheMethodsThatItWasGiven) {
  Serving server;
  const auto dispatch = server->getServletDispatch();
  dispatch->addServlet("/read", {HttpMethod::GET}, hello);
  dispatch->addGlobServlet("/cors/*", {HttpMethod::OPTIONS, HttpMethod::POST}, hello);
  Client client(server.port());
  EXPECT_EQ(client.get("/read").status, 200);
  client.say(request("HEAD", "/read"));
  EXPECT_EQ(client.read(true).status, 200) << "HEAD goes with GET";
  Answer refused = client.post("/read", "body");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers["allow"], "GET, HEAD, OPTIONS");
  client.say(request("OPTIONS", "/cors/x"));
  EXPECT_EQ(client.read().body, "hello") << "a servlet may answer OPTIONS itself";
  client.say(request("HEAD", "/cors/x"));
  refused = client.read(true);
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers["allow"], "POST, OPTIONS") << "no GET, no HEAD";
}

TEST_F(ServerRoute, NothingIsFoundByAnyMethod) {
  Serving server;
  Client client(server.port());
  for (const std::string method : {"GET", "TRACE", "OPTIONS", "PROPFIND"}) {
    client.say(request(method, "/nothing"));
    EXPECT_EQ(client.read().status, 404) << method;
  }
}

// ---- The route comes before the body. SEC-03, SEC-34
// ---------------------------------------------------------------------------

TEST_F(ServerRoute, UnknownPathIs404WhateverItsBody) {
  Serving server;
  {
    Client client(server.port());
    client.say(request("POST", "/nothing", "Content-Length: 3000000\r\n"));
    EXPECT_EQ(client.read().status, 404) << "no byte of the body has come";
    EXPECT_EQ(client.rest(), "");
  }
  Client client(server.port());
  client.say(request("POST", "/nothing", "Expect: 100-continue\r\nContent-Length: 5\r\n"));
  EXPECT_EQ(client.read().status, 404) << "the body is not asked for";
  EXPECT_EQ(client.rest(), "");
}

TEST_F(ServerRoute, GateIsAskedBeforeTheBody) {
  Serving server;
  const auto servlet =
      std::make_shared<FunctionServlet>([](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
        response->setBody(request->getBody());
        return 0;
      });
  servlet->setGate([](const HttpRequest& request, HttpResponse& response) {
    EXPECT_EQ(request.getBody(), "");
    if (request.headers().find("authorization") == "good") return true;
    response.setStatus(HttpStatus::UNAUTHORIZED);
    response.setBody("who are you?");
    return false;
  });
  server->getServletDispatch()->addServlet("/private", servlet);
  server->getServletDispatch()->addServlet("/read", {HttpMethod::GET}, hello);
  const std::string expect = "Expect: 100-continue\r\nContent-Length: 5\r\n";
  for (const auto& [path, status] : std::map<std::string, int>{{"/private", 401}, {"/read", 405}}) {
    Client client(server.port());
    client.say(request("POST", path, expect));
    EXPECT_EQ(client.read().status, status) << "and not 100";
    EXPECT_EQ(client.rest(), "");
  }
  Client client(server.port());
  EXPECT_EQ(client.post("/private", "12345").body, "who are you?");
  client.say(request("POST", "/private", "Authorization: good\r\n" + expect));
  EXPECT_EQ(client.read().status, 100);
  client.say("12345");
  EXPECT_EQ(client.read().body, "12345");
}

// ---- All bodies together. -----------------------------------------------------------------------------------------------------

constexpr size_t kFree = BodyShare::kOwn;

TEST_F(ServerRoute, BodiesOfAllConnectionsHaveOneBudget) {
  HttpLimits limits;
  limits.max_bodies = 10'000;
  Serving server(true, limits);
  std::atomic<int> held{0};
  std::atomic<bool> open{false};
  server.on("/size", sizeOfBody);
  server.on("/hold", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
    ++held;
    while (!open) ::usleep(100);
    return sizeOfBody(request, response, session);
  });
  const auto post = [](Client& client, const std::string& path, size_t size) {
    client.say(request("POST", path, "Content-Length: " + std::to_string(size) + "\r\n") + std::string(size, 'x'));
  };
  Client one(server.port()), two(server.port()), small(server.port());
  post(one, "/hold", kFree + 6'000);
  post(two, "/hold", kFree + 3'999);
  while (held < 2) sched_yield();
  EXPECT_EQ(server->getBodyBytes(), 9'999u);
  EXPECT_EQ(small.post("/size", std::string(kFree + 1, 'x')).body, std::to_string(kFree + 1)) << "the last byte";
  while (server->getBodyBytes() != 9'999u) sched_yield();  // it is given back after the answer
  {
    Client large(server.port());
    Answer answer = large.post("/size", std::string(kFree + 2, 'x'));
    EXPECT_EQ(answer.status, 503) << "a byte more than there is";
    EXPECT_EQ(answer.headers["retry-after"], "1");
    EXPECT_EQ(answer.headers["connection"], "close");
    EXPECT_EQ(large.rest(), "");
    EXPECT_FALSE(large.wasReset());
  }
  EXPECT_EQ(small.post("/size", std::string(kFree, 'x')).body, std::to_string(kFree)) << "small bodies are served all the same";
  EXPECT_EQ(server->getRefusals(), (std::map<HttpStatus, uint64_t>{{HttpStatus::SERVICE_UNAVAILABLE, 1}}));
  open = true;
  EXPECT_EQ(one.read().body, std::to_string(kFree + 6'000));
  EXPECT_EQ(two.read().body, std::to_string(kFree + 3'999));
  while (server->getBodyBytes() != 0) sched_yield();
  EXPECT_EQ(small.post("/size", std::string(kFree + 10'000, 'x')).status, 200);
}

/// A server for which this host is a peer like others.
struct CountsLoopback : HttpServer {
  using HttpServer::HttpServer;
  bool start() override {
    setLimits({.limit_loopback = true});
    return HttpServer::start();
  }
};

/// Posts bodies up to the share of one address, which is less than all have. Returns the status of one that is a byte larger.
template <class Server>
int oneByteBeyondTheShare() {
  HttpLimits limits;
  limits.max_bodies = 10'000;
  limits.max_peer_bodies = 4'000;
  test::Serving<Server> server(true, limits);
  std::atomic<bool> held{false}, open{false};
  server.on("/size", sizeOfBody);
  server.on("/hold", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
    held = true;
    while (!open) ::usleep(100);
    return sizeOfBody(request, response, session);
  });
  const auto awaitTaken = [&](uint64_t bytes) {
    while (server->getBodyBytes() != bytes) sched_yield();
  };
  const auto post = [](Client& client, size_t size) { return client.post("/size", std::string(kFree + size, 'x')).status; };
  Client one(server.port()), two(server.port());
  one.say(request("POST", "/hold", "Content-Length: " + std::to_string(kFree + 3'000) + "\r\n") +
          std::string(kFree + 3'000, 'x'));
  while (!held) sched_yield();
  EXPECT_EQ(post(two, 1'000), 200) << "the last byte";
  awaitTaken(3'000);
  const int beyond = post(two, 1'001);
  open = true;
  EXPECT_EQ(one.read().status, 200);
  awaitTaken(0);
  EXPECT_EQ(post(one, 4'000), 200) << "what was taken was given back";
  awaitTaken(0);
  EXPECT_EQ(post(one, 4'001), beyond) << "at once";
  return beyond;
}

// SEC-63
TEST_F(ServerRoute, TheBodiesOfOneAddressHaveAShare) { EXPECT_EQ(oneByteBeyondTheShare<CountsLoopback>(), 503); }

// SEC-63: as for TcpServerLimits::max_per_peer.
TEST_F(ServerRoute, TheBodiesOfThisHostHaveNoShare) { EXPECT_EQ(oneByteBeyondTheShare<HttpServer>(), 200); }

// A chunked body takes room as it comes, and gives it back however its connection ends.
TEST_F(ServerRoute, BodyThatEndsTooEarlyGivesItsRoomBack) {
  HttpLimits limits;
  limits.max_bodies = 100'000;
  Serving server(true, limits);
  server.on("/size", sizeOfBody);
  Client client(server.port());
  client.say(request("POST", "/size", "Transfer-Encoding: chunked\r\n") + "4000\r\n" + std::string(0x4000, 'x'));
  while (server->getBodyBytes() < 0x4000 - kFree) sched_yield();
  client.sayNoMore();
  client.rest();
  while (server->getBodyBytes() != 0) sched_yield();
  EXPECT_EQ(server->getRefusals().size(), 0u) << "nobody was there to be refused";
}

// ---- Refusals. ----------------------------------------------------------------------------------------------------------------

TEST_F(ServerRoute, RefusalsAreCountedByStatusAndLoggedWithPeerAndReason) {
  struct Row {
    std::string request;
    int status;
    const char* why;
  };
  HttpLimits limits;
  limits.head_timeout = std::chrono::milliseconds(1);
  limits.max_request_line = 100;
  limits.max_header_line = 100;
  limits.max_body = 10;
  const Row rows[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400, "not exactly one host"},
      {"GET ", 408, "head too slow"},
      {request("POST", "/size", "Content-Length: 11\r\n"), 413, "body too large"},
      {request("GET", "/" + std::string(100, 'x')), 414, ""},
      {request("GET", "/", "Expect: x\r\n"), 417, "unknown expectation"},
      {request("GET", "/", "x: " + std::string(100, 'x') + "\r\n"), 431, ""},
      {request("BREW", "/"), 501, "method not known"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, ""},
  };
  std::map<HttpStatus, uint64_t> expected;
  Serving server(true, limits);
  server.on("/size", sizeOfBody);
  log::setLevel(log::Level::kDebug);
  for (const Row& row : rows) {
    Client client(server.port());
    testing::internal::CaptureStderr();
    client.say(row.request);
    EXPECT_EQ(client.read().status, row.status);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find(client.name()), std::string::npos) << log;
    EXPECT_NE(log.find(std::to_string(row.status)), std::string::npos) << log;
    EXPECT_NE(log.find(row.why), std::string::npos) << log;
    ++expected[static_cast<HttpStatus>(row.status)];
    EXPECT_EQ(server->getRefusals(), expected);
  }
  log::setLevel(log::Level::kInfo);
  EXPECT_EQ(Client(server.port()).get("/nothing").status, 404);
  EXPECT_EQ(server->getRefusals(), expected) << "what a servlet answers is its own";
}

// ---- Statuses. SEC-36 ---------------------------------------------------------------------------------------------------------

TEST_F(ServerRoute, StatusThatIsNoneBecomes500) {
  Serving server;
  int status = 0;
  server.on("/whole", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setStatus(static_cast<HttpStatus>(status));
    return 0;
  });
  server.on("/pieces", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    response->setStatus(static_cast<HttpStatus>(status));
    EXPECT_FALSE(session->beginResponse(response));
    EXPECT_EQ(errno, EPROTO);
    return 0;
  });
  for (const int one : {0, 99, 100, 102, 103, 199, 600, 1000, 65535}) {
    for (const std::string path : {"/whole", "/pieces"}) {
      status = one;
      Client client(server.port());
      testing::internal::CaptureStderr();
      EXPECT_EQ(client.get(path).status, 500) << one;
      EXPECT_EQ(client.rest(), "");
      const std::string log = testing::internal::GetCapturedStderr();
      EXPECT_NE(log.find(path), std::string::npos) << log;
      EXPECT_NE(log.find(std::to_string(one)), std::string::npos) << log;
    }
  }
  for (const int one : {200, 299, 418, 599}) {
    status = one;
    EXPECT_EQ(Client(server.port()).get("/whole").status, one);
  }
}

}  // namespace
}  // namespace sylar::http
