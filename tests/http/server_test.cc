// The server as a client sees it: framing, limits, failures of handlers, the end of connections.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/http/http_error.h"
#include "sylar/http/http_server.h"
#include "sylar/http/session_control.h"
#include "sylar/http/socket_bytes.h"
#include "tests/http/client.h"
#include "tests/support/busy.h"
#include "tests/support/fibers.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;
using sylar::test::LeakCheck;
using test::Answer;
using test::Client;
using test::hello;
using test::request;
using test::sizeOfBody;
using Serving = test::Serving<>;

class Server : public testing::Test {
 private:
  LeakCheck m_leaks;
};

/// More than a client's kernel takes before the client reads.
constexpr size_t kLargeAnswer = 2 << 20;

// ---- Connections. -----------------------------------------------------------------------------------------------------------

TEST_F(Server, OneConnectionServesManyRequests) {
  Serving server;
  server.on("/hello", hello);
  Client client(server.port());
  for (int i = 0; i < 100; ++i) {
    const Answer answer = client.get("/hello");
    ASSERT_EQ(answer.status, 200);
    ASSERT_EQ(answer.body, "hello");
    ASSERT_EQ(answer.headers.count("connection"), 0u);
  }
  EXPECT_EQ(server->getCounts().accepted, 1u);
}

TEST_F(Server, WithoutKeepAliveAConnectionServesOne) {
  Serving server(false);
  server.on("/hello", hello);
  Client client(server.port());
  Answer answer = client.get("/hello");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

TEST_F(Server, ClientEndsItWithConnectionClose) {
  Serving server;
  server.on("/hello", hello);
  Client client(server.port());
  client.say(request("GET", "/hello", "Connection: close\r\n"));
  EXPECT_EQ(client.read().headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
}

// SEC-08. Bytes behind the last request are not served, and do not turn the end into a reset.
TEST_F(Server, ConnectionEndsAfterItsLastRequest) {
  HttpLimits limits;
  limits.max_requests = 3;
  Serving server(true, limits);
  server.on("/hello", hello);
  Client client(server.port());
  std::string many;
  for (int i = 0; i < 10; ++i) many += request("GET", "/hello");
  client.say(many);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(client.read().headers.count("connection"), i == 3 ? 1u : 0u);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// SEC-08: who has sent many requests at once does not keep the only worker from others that are ready.
TEST_F(Server, ManyRequestsAtOnceLetOthersHaveTheirTurn) {
  constexpr int kMany = 200;
  Serving server(true, {}, 1);
  std::atomic<bool> entered{false}, open{false};
  server.on("/hold", [&](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) {
    entered = true;
    sylar::test::busyUntil([&] { return open.load(); });
    return 0;
  });
  std::string order;
  server->getServletDispatch()->addGlobServlet("/?", [&](HttpRequest::ptr request, HttpResponse::ptr, HttpSession::ptr) {
    order += request->getPath().back();
    return 0;
  });
  Client one(server.port()), two(server.port()), holder(server.port());
  EXPECT_EQ(one.get("/x").status, 200);
  EXPECT_EQ(two.get("/x").status, 200);
  holder.say(request("GET", "/hold"));
  while (!entered) sched_yield();
  std::string ones, twos;
  for (int i = 0; i < kMany; ++i) {
    ones += request("GET", "/1");
    twos += request("GET", "/2");
  }
  EXPECT_TRUE(one.say(ones));
  EXPECT_TRUE(two.say(twos));
  open = true;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(one.read().status, 200);
    ASSERT_EQ(two.read().status, 200);
  }
  EXPECT_LT(order.find('1'), order.rfind('2'));
  EXPECT_LT(order.find('2'), order.rfind('1'));
}

// However the fibers of a worker take turns, each connection is answered what it has asked.
TEST_F(Server, EveryConnectionGetsItsOwnAnswers) {
  constexpr size_t kClients = 400;
  Serving server(true, {}, 1);
  std::atomic<bool> entered{false}, open{false};
  server.on("/hold", [&](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) {
    entered = true;
    sylar::test::busyUntil([&] { return open.load(); });
    return 0;
  });
  server.on("/sleep", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) { return usleep(1000); });
  server->getServletDispatch()->addGlobServlet("/?*", [](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(request->getPath());
    return 0;
  });
  Client holder(server.port());
  holder.say(request("GET", "/hold"));
  while (!entered) sched_yield();
  // All is there at once, and no call on a socket has to wait: so a worker lets others run after some of the calls, which are now
  // a read and now a write.
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    const std::string own = request("GET", fmt::format("/{}", i));
    clients[i]->say((i % 3 == 0 ? own + own : own) + request("GET", "/sleep"));
  }
  open = true;
  for (size_t i = 0; i < kClients; ++i) EXPECT_EQ(clients[i]->read().body, fmt::format("/{}", i));
}

// SEC-08
TEST(HttpLimits, ConnectionServesTenThousandRequestsByDefault) { EXPECT_EQ(HttpLimits{}.max_requests, 10'000u); }

TEST_F(Server, HeadHasTheHeadersOfGetAndNoBody) {
  Serving server;
  server.on("/hello", hello);
  Client client(server.port());
  client.say(request("HEAD", "/hello") + request("GET", "/hello"));
  EXPECT_EQ(client.read(true).headers["content-length"], "5");
  EXPECT_EQ(client.read().body, "hello");
}

TEST_F(Server, OptionsOfTheServerNeedNoServlet) {
  Serving server;
  Client client(server.port());
  client.say(request("OPTIONS", "*"));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(client.get("/*").status, 404);
}

// CD-N4
TEST_F(Server, EmptyAnswerIsFramed) {
  Serving server;
  server.on("/empty", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) { return 0; });
  Client client(server.port());
  EXPECT_EQ(client.get("/empty").headers["content-length"], "0");
  EXPECT_EQ(client.get("/empty").status, 200);
}

// The request and the response are used again, unless the handler has kept them.
TEST_F(Server, WhatAHandlerKeepsIsItsOwn) {
  Serving server(true, {}, 1);
  std::vector<HttpRequest::ptr> kept;
  server.on("/keep", [&](HttpRequest::ptr request, HttpResponse::ptr, HttpSession::ptr) {
    kept.push_back(request);
    return 0;
  });
  Client client(server.port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/keep?" + std::to_string(i)).status, 200);
  ASSERT_EQ(kept.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(kept[static_cast<size_t>(i)]->getQuery(), std::to_string(i));
}

// They are used again for other connections: nothing of one is left for the next.
TEST_F(Server, NothingOfARequestOrResponseIsLeftForAnotherConnection) {
  Serving server(true, {}, 1);
  const auto dispatch = server->getServletDispatch();
  const HttpRequest* first = nullptr;
  dispatch->addServlet("/all", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    first = request.get();
    EXPECT_EQ(request->getParam("a"), "1");
    EXPECT_EQ(request->getParam("b"), "2");
    EXPECT_EQ(request->getCookie("c"), "3");
    EXPECT_EQ(request->getHeaders().count("x-secret"), 1u);
    EXPECT_EQ(request->trailers().size(), 1u);
    request->setFragment("f");
    response->setStatus(HttpStatus::ACCEPTED);
    response->setReason("Mine");
    response->setHeader("x-secret", "mine");
    response->setBody("mine");
    return 0;
  });
  bool again = false;
  std::string seen;
  dispatch->addServlet("/none", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    again = request.get() == first;
    seen = request->toString() + request->getFragment() + response->toString();
    EXPECT_EQ(request->getParams().size() + request->getCookies().size() + request->trailers().size(), 0u);
    EXPECT_EQ(request->getHeaders().size(), 1u);
    return 0;
  });
  Client one(server.port()), two(server.port());
  one.say(request("POST", "/all?a=1",
                  "X-Secret: mine\r\nCookie: c=3\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                  "Transfer-Encoding: chunked\r\n") +
          "3\r\nb=2\r\n0\r\nX-Trailer: mine\r\n\r\n");
  EXPECT_EQ(one.read().status, 202);
  const Answer answer = two.get("/none");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.headers.count("x-secret"), 0u);
  EXPECT_TRUE(again);
  EXPECT_EQ(seen,
            "GET /none HTTP/1.1\r\nconnection: keep-alive\r\nHost: a\r\n\r\n"
            "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n");
}

// A request or response that the handler has not kept is gone, and a weak reference never leads to another client's.
TEST_F(Server, WeakReferenceToARequestExpires) {
  Serving server(true, {}, 1);
  std::weak_ptr<HttpRequest> request;
  std::weak_ptr<HttpResponse> response;
  server.on("/first", [&](HttpRequest::ptr rq, HttpResponse::ptr rs, HttpSession::ptr) {
    request = rq;
    response = rs;
    return 0;
  });
  server.on("/next", [&](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) {
    EXPECT_EQ(request.lock(), nullptr);
    EXPECT_EQ(response.lock(), nullptr);
    return 0;
  });
  Client one(server.port()), two(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one.get("/first").status, 200);
    EXPECT_EQ(one.get("/next").status, 200);
    EXPECT_EQ(two.get("/next").status, 200);
  }
}

// A large body is given back when it has been sent, not when the next request comes.
TEST_F(Server, IdleConnectionKeepsNoLargeAnswer) {
  Serving server(true, {}, 1);  // what it runs comes one after the other
  std::weak_ptr<HttpResponse> last;
  const HttpResponse* address = nullptr;
  server.on("/large", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    last = response;
    address = response.get();
    response->setBody(std::string(kLargeAnswer, 'x'));
    return 0;
  });
  Client client(server.port());
  EXPECT_EQ(client.get("/large").body.size(), kLargeAnswer);
  const auto onWorker = [&](auto get) {
    std::promise<size_t> result;
    server.iom().schedule([&] { result.set_value(get()); });
    return result.get_future().get();
  };
  while (!onWorker([&] { return last.expired(); })) sched_yield();  // the answer is here before its connection has gone on
  // It is the thread's now, for the next request, and stays where it was while there is a weak reference.
  EXPECT_LT(onWorker([&] { return address->getBody().capacity(); }), kLargeAnswer);
}

// A fiber that outlives its handler finds that there is nothing to answer.
TEST_F(Server, LateAnswerAnswersNothing) {
  Serving server(true, {}, 1);  // what it runs comes one after the other
  std::weak_ptr<HttpRequest> last;
  HttpSession::ptr session;
  server.on("/hello", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr of) {
    last = request;
    session = of;
    return hello(request, response, of);
  });
  Client client(server.port());
  const auto onWorker = [&](auto get) {
    std::promise<int> result;
    server.iom().schedule([&] { result.set_value(get()); });
    return result.get_future().get();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.get("/hello").body, "hello");
    while (!onWorker([&] { return last.expired(); })) sched_yield();  // it waits for the next request
    EXPECT_EQ(onWorker([&] { return SessionControl::request(*session) == nullptr; }), 1);
    EXPECT_EQ(onWorker([&] { return session->sendResponse(std::make_shared<HttpResponse>()) > 0 ? 0 : errno; }), EALREADY);
    EXPECT_EQ(onWorker([&] { return session->beginResponse(std::make_shared<HttpResponse>()) ? 0 : errno; }), EALREADY);
    EXPECT_EQ(onWorker([&] { return session->collectBody(); }), 0);
  }
  EXPECT_EQ(client.get("/hello").body, "hello");
  onWorker([&] {
    session = nullptr;
    return 0;
  });
}

// An exception may end the wait for a request. The next session of the socket must not be taken for one that waits.
TEST_F(Server, TheWaitForARequestEndsWithItsBytes) {
  const Socket::ptr socket = Socket::CreateTCPSocket();
  const HttpLimits limits;
  {
    detail::SocketBytes bytes(*socket, limits);
    sylar::detail::SocketControl::endRequest(*socket).idle = true;
  }
  EXPECT_FALSE(sylar::detail::SocketControl::endRequest(*socket).idle);
}

// The calls of a session that was kept fail when its connection has ended. They must not ask the state of the connection, which has
// ended and says that there was an answer.
TEST_F(Server, KeptSessionFailsWhenItsConnectionHasEnded) {
  Serving server(true, {}, 1);
  HttpSession::ptr session;
  server.on("/keep", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr of) {
    session = of;
    return hello(request, response, of);
  });
  const auto onWorker = [&](auto get) {
    std::promise<long> result;
    server.iom().schedule([&] { result.set_value(get()); });
    return result.get_future().get();
  };
  {
    Client client(server.port());
    client.say(request("GET", "/keep", "connection: close\r\n"));
    EXPECT_EQ(client.read().body, "hello");
  }
  while (onWorker([&] { return session.use_count(); }) > 1) sched_yield();
  onWorker([&] {
    char byte;
    const auto response = std::make_shared<HttpResponse>();
    EXPECT_EQ(session->recvHead(), nullptr);
    EXPECT_EQ(session->recvRequest(), nullptr);
    session->setMaxBody(1);
    EXPECT_FALSE(session->collectBody());
    EXPECT_EQ(session->readBody(&byte, 1), -1);
    EXPECT_EQ(session->read(&byte, 1), -1);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(session->sendResponse(response), -1);
    EXPECT_EQ(errno, EALREADY);
    EXPECT_FALSE(session->beginResponse(response));
    EXPECT_EQ(errno, EALREADY);
    EXPECT_FALSE(session->writeBody("x"));
    EXPECT_EQ(errno, EPROTO);
    EXPECT_FALSE(session->endResponse());
    EXPECT_EQ(errno, EPROTO);
    EXPECT_FALSE(session->isAnswered());
    EXPECT_FALSE(session->isConnected());
    return 0;
  });
  session->end();  // which any thread may call
  onWorker([&] {
    session = nullptr;
    return 0;
  });
}

// The handler that receives the next request itself may find none, and fail.
TEST_F(Server, FailureWithoutARequestEndsTheConnectionOnly) {
  Serving server;
  server.on("/last", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) -> int32_t {
    EXPECT_GT(session->sendResponse(response), 0);
    EXPECT_EQ(session->recvRequest(), nullptr);
    EXPECT_EQ(SessionControl::request(*session), nullptr);
    throw std::runtime_error("no request");
  });
  server.on("/hello", hello);
  Client client(server.port());
  client.say(request("GET", "/last"));
  EXPECT_EQ(client.read().status, 200);
  client.sayNoMore();
  EXPECT_EQ(client.rest(), "");
  EXPECT_EQ(Client(server.port()).get("/hello").status, 200);
}

TEST_F(Server, ResponseIsNewForEachRequest) {
  Serving server;
  server.on("/first", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setStatus(HttpStatus::CREATED);
    response->setHeader("x-mine", "1");
    response->setBody("body");
    return 0;
  });
  server.on("/second", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) { return 0; });
  Client client(server.port());
  EXPECT_EQ(client.get("/first").status, 201);
  const Answer second = client.get("/second");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(second.headers.count("x-mine"), 0u);
}

// ---- Bodies. ----------------------------------------------------------------------------------------------------------------

// SEC-03, CD-N3: at the limit, and one beyond; the route's own limit.
TEST_F(Server, BodyLimitHoldsToTheByteAndARouteMayHaveItsOwn) {
  HttpLimits limits;
  limits.max_body = 1000;
  Serving server(true, limits);
  server.on("/upload", sizeOfBody);
  const auto large = std::make_shared<FunctionServlet>(sizeOfBody);
  large->setBodyLimit(2000);
  server->getServletDispatch()->addServlet("/large", large);
  const auto small = std::make_shared<FunctionServlet>(sizeOfBody);
  small->setBodyLimit(0);
  server->getServletDispatch()->addServlet("/none", small);

  Client good(server.port());
  EXPECT_EQ(good.post("/upload", std::string(1000, 'x')).body, "1000");
  EXPECT_EQ(good.post("/large", std::string(2000, 'x')).body, "2000");
  EXPECT_EQ(good.post("/none", "").body, "0");
  for (const auto& [path, size] : std::map<std::string, size_t>{{"/upload", 1001}, {"/large", 2001}, {"/none", 1}}) {
    Client bad(server.port());
    Answer answer = bad.post(path, std::string(size, 'x'));
    EXPECT_EQ(answer.status, 413) << path;
    EXPECT_EQ(answer.headers["connection"], "close");
    EXPECT_EQ(bad.rest(), "");
    EXPECT_FALSE(bad.wasReset());
  }
}

TEST_F(Server, ServletThatStreamsReadsTheBodyItself) {
  Serving server;
  server.onStream("/sum", [](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
    EXPECT_EQ(request->getBody(), "");
    uint64_t sum = 0;
    uint8_t piece[7];
    ssize_t size;
    while ((size = session->readBody(piece, sizeof piece)) > 0) {
      for (ssize_t i = 0; i < size; ++i) sum += piece[i];
    }
    EXPECT_EQ(size, 0);
    response->setBody(std::to_string(sum));
    return 0;
  });
  Client client(server.port());
  EXPECT_EQ(client.post("/sum", std::string(1000, '\2')).body, "2000");
  client.say(request("POST", "/sum", "Transfer-Encoding: chunked\r\n") + "2\r\n\1\1\r\n1\r\n\5\r\n0\r\n\r\n");
  EXPECT_EQ(client.read().body, "7");
}

int32_t echo(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
  if (!session->beginResponse(response)) return -1;
  char piece[100];
  for (ssize_t size; (size = session->readBody(piece, sizeof piece)) > 0;) session->writeBody({piece, static_cast<size_t>(size)});
  return 0;
}

TEST_F(Server, AnswerMayBeginBeforeTheRequestHasEnded) {
  Serving server;
  server.onStream("/echo", echo);
  Client client(server.port());
  client.say(request("POST", "/echo", "Content-Length: 6\r\n") + "abc");
  EXPECT_TRUE(client.say("def"));
  EXPECT_EQ(client.read().body, "abcdef");
  EXPECT_EQ(client.post("/echo", std::string(5000, 'x')).body, std::string(5000, 'x'));
}

// An answer that has begun cannot become an error: it is cut, so that nobody takes it for the whole.
TEST_F(Server, AnswerThatHasBegunIsCutWhenTheRequestIsBroken) {
  Serving server;
  server.onStream("/echo", echo);
  Client client(server.port());
  client.say(request("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\nno chunk\r\n");
  const std::string said = client.rest();
  EXPECT_EQ(said.find("0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(client.hasEnded());
}

// SEC-36
TEST_F(Server, AnswerThatIsShorterThanPromisedIsCut) {
  Serving server;
  server.on("/short", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    session->beginResponse(response, 10);
    session->writeBody("12345");
    EXPECT_FALSE(session->endResponse());
    return 0;
  });
  Client client(server.port());
  client.say(request("GET", "/short") + request("GET", "/short"));
  const std::string said = client.rest();
  EXPECT_EQ(said.find("HTTP/1.1 ", 1), std::string::npos) << "the second request is not served";
  EXPECT_TRUE(client.hasEnded());
}

TEST_F(Server, HandlerAnswersOnce) {
  Serving server;
  server.on("/twice", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    response->setBody("one");
    EXPECT_GT(session->sendResponse(response), 0);
    response->setBody("two");
    EXPECT_EQ(session->sendResponse(response), -1);
    EXPECT_EQ(errno, EALREADY);
    EXPECT_FALSE(session->beginResponse(response));
    return 0;
  });
  Client client(server.port());
  EXPECT_EQ(client.get("/twice").body, "one");
  EXPECT_EQ(client.get("/twice").body, "one");
}

// An answer that has begun is cut when its handler fails, also if the handler has tried to begin another.
TEST_F(Server, SecondBeginDoesNotHideThatTheFirstIsOpen) {
  Serving server;
  server.on("/twice", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) -> int32_t {
    EXPECT_TRUE(session->beginResponse(response));
    session->writeBody("half of it");
    EXPECT_FALSE(session->beginResponse(response));
    EXPECT_EQ(errno, EALREADY);
    throw std::runtime_error("a test");
  });
  Client client(server.port());
  client.say(request("GET", "/twice"));
  client.rest();
  EXPECT_TRUE(client.wasReset());
}

TEST_F(Server, PieceOrEndOfNothingSpoilsNothing) {
  Serving server;
  server.on("/out-of-turn", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr session) -> int32_t {
    EXPECT_FALSE(session->writeBody("a piece"));
    EXPECT_EQ(errno, EPROTO);
    EXPECT_FALSE(session->endResponse());
    EXPECT_EQ(errno, EPROTO);
    throw std::runtime_error("a test");
  });
  Client client(server.port());
  EXPECT_EQ(client.get("/out-of-turn").status, 500);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// SEC-36
TEST_F(Server, StatusThatIsNotFinalBecomes500) {
  Serving server;
  server.on("/early", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setStatus(HttpStatus::EARLY_HINTS);
    return 0;
  });
  Client client(server.port());
  EXPECT_EQ(client.get("/early").status, 500);
  EXPECT_EQ(client.rest(), "");
}

// SEC-35: what follows is another protocol's, and no request.
TEST_F(Server, NothingIsServedBehindSwitchingProtocols) {
  Serving server;
  server.on("/hello", hello);
  server.on("/switch", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setStatus(HttpStatus::SWITCHING_PROTOCOLS);
    return 0;
  });
  Client client(server.port());
  client.say(request("GET", "/switch") + request("GET", "/hello"));
  EXPECT_EQ(client.read().status, 101);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// SEC-33: what the handler leaves of a body is no request.
TEST_F(Server, UnreadBodyIsPassedOver) {
  Serving server;
  server.onStream("/ignore", hello);
  Client client(server.port());
  client.say(request("POST", "/ignore", "Content-Length: 38\r\n") +
             request("GET", "/no").append(38 - request("GET", "/no").size(), 'x') + request("GET", "/nothing"));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(client.read().status, 404);
}

// SEC-03: a body that is too large to be passed over ends the connection.
TEST_F(Server, LargeUnreadBodyEndsTheConnectionAfterTheAnswer) {
  Serving server;
  server.onStream("/ignore", hello);
  Client client(server.port());
  client.say(request("POST", "/ignore", "Content-Length: 1000000\r\n") + std::string(1000, 'x'));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// SEC-03: it may still be on its way when the connection ends; the answer is taken all the same.
TEST_F(Server, AnswerArrivesThoughItsUnreadBodyIsOnTheWay) {
  Serving server;
  server.onStream("/early", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(std::string(kLargeAnswer, 'x'));
    return 0;
  });
  Client client(server.port());
  client.say(request("POST", "/early", "Content-Length: 1000000\r\n") + std::string(20000, 'x'));
  EXPECT_EQ(client.read().body.size(), kLargeAnswer);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// ---- Expect. SEC-34 -----------------------------------------------------------------------------------------------------------

const char* const kExpect = "Expect: 100-continue\r\nContent-Length: 5\r\n";

TEST_F(Server, ContinueIsSentWhenTheBodyIsWanted) {
  Serving server;
  server.on("/upload", sizeOfBody);
  server.onStream("/echo", echo);
  Client client(server.port());
  for (const std::string path : {"/upload", "/echo"}) {
    client.say(request("POST", path, kExpect));
    EXPECT_EQ(client.read().status, 100);
    client.say("12345");
    const Answer answer = client.read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, path == "/echo" ? "12345" : "5");
  }
}

TEST_F(Server, RefusalComesInsteadOfContinueAndEndsTheConnection) {
  HttpLimits limits;
  limits.max_body = 4;
  Serving server(true, limits);
  server.on("/upload", sizeOfBody);
  server.onStream("/echo", echo);
  server.onStream("/ignore", hello);
  for (const auto& [path, status] : std::map<std::string, int>{{"/upload", 413}, {"/echo", 413}, {"/ignore", 200}}) {
    Client client(server.port());
    client.say(request("POST", path, kExpect));
    EXPECT_EQ(client.read().status, status) << path;
    EXPECT_EQ(client.rest(), "") << path;
  }
  Client client(server.port());
  client.say(request("POST", "/upload", "Expect: more\r\nContent-Length: 1\r\n") + "x");
  EXPECT_EQ(client.read().status, 417);
  EXPECT_EQ(client.rest(), "");
}

// ---- Handlers that fail.
// --------------------------------------------------------------------------------------------------------

template <class Exception>
FunctionServlet::callback throwing(Exception exception) {
  return [exception](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) -> int32_t {
    response->setBody("half of it");
    throw exception;
  };
}

TEST_F(Server, ExceptionIsAnsweredAndEndsTheConnectionOnly) {
  Serving server;
  server.on("/hello", hello);
  server.on("/500", throwing(std::runtime_error("a test")));
  server->getServletDispatch()->addGlobServlet("/7*", throwing(7));
  server.on("/503", throwing(std::bad_alloc()));
  server.on("/416", throwing(HttpError(HttpStatus::RANGE_NOT_SATISFIABLE, "a test")));
  for (const auto& [path, status] : std::map<std::string, int>{{"/500", 500}, {"/7", 500}, {"/503", 503}, {"/416", 416}}) {
    Client client(server.port());
    client.say(request("GET", path) + request("GET", "/hello"));
    Answer answer = client.read();
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.headers["connection"], "close");
    EXPECT_EQ(client.rest(), "");
    EXPECT_FALSE(client.wasReset());
  }
  Client client(server.port());
  EXPECT_EQ(client.get("/hello").status, 200);
  EXPECT_EQ(server->getCounts().exceptions, 0u);
}

TEST_F(Server, ExceptionInTheMidstOfAnAnswerCutsIt) {
  Serving server;
  server.on("/broken", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) -> int32_t {
    session->beginResponse(response);
    session->writeBody("half of it");
    throw std::runtime_error("a test");
  });
  Client client(server.port());
  client.say(request("GET", "/broken"));
  EXPECT_EQ(client.rest().find("0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(client.hasEnded());
}

// SEC-15: more parameters than allowed are noticed when the handler asks for one.
TEST_F(Server, TooManyParametersAre400) {
  HttpLimits limits;
  limits.max_params = 2;
  Serving server(true, limits);
  server.on("/p", [](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(request->getParam("a"));
    return 0;
  });
  Client client(server.port());
  EXPECT_EQ(client.get("/p?a=1&b=2").body, "1");
  EXPECT_EQ(client.get("/p?a=1&b=2&c=3").status, 400);
}

// ---- Time. The bounds themselves are in tests/integration; here they are short, and the test waits for what must come.
// ---------

TEST_F(Server, SilentConnectionsEnd) {
  HttpLimits limits;
  limits.first_byte_timeout = limits.idle_timeout = 1ms;
  Serving server(true, limits);
  server.on("/hello", hello);
  Client silent(server.port());
  EXPECT_EQ(silent.rest(), "");
  EXPECT_TRUE(silent.hasEnded());
}

TEST_F(Server, IdleConnectionEnds) {
  HttpLimits limits;
  limits.idle_timeout = 1ms;
  Serving server(true, limits);
  server.on("/hello", hello);
  Client client(server.port());
  EXPECT_EQ(client.get("/hello").status, 200);
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(client.hasEnded());
}

TEST_F(Server, HeadThatDoesNotComeIs408) {
  HttpLimits limits;
  limits.head_timeout = 1ms;
  Serving server(true, limits);
  Client client(server.port());
  client.say("GET ");
  EXPECT_EQ(client.read().status, 408);
  EXPECT_EQ(client.rest(), "");
}

TEST_F(Server, BodyThatDoesNotComeIs408) {
  HttpLimits limits;
  limits.body_grace = 1ms;
  Serving server(true, limits);
  server.on("/upload", sizeOfBody);
  server.onStream("/echo", echo);
  Client client(server.port());
  client.say(request("POST", "/upload", "Content-Length: 10\r\n") + "12345");
  EXPECT_EQ(client.read().status, 408);
  EXPECT_EQ(client.rest(), "");
}

// SEC-07, SEC-10: the handler is held back, then told; what was sent is not taken for the whole.
TEST_F(Server, PeerThatTakesNothingIsCut) {
  HttpLimits limits;
  limits.write_timeout = 1ms;
  Serving server(true, limits);
  std::atomic<int> error{0};
  server.on("/endless", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    session->beginResponse(response);
    const std::string piece(1 << 20, 'x');
    while (session->writeBody(piece)) {
    }
    error = errno;
    return 0;
  });
  Client client(server.port());
  client.say(request("GET", "/endless"));
  while (error == 0) sched_yield();
  EXPECT_TRUE(server->join(Deadline::after(20s)));
  EXPECT_EQ(error, ETIMEDOUT);
  client.rest();
  EXPECT_TRUE(client.wasReset());
}

// ---- The end.
// --------------------------------------------------------------------------------------------------------------------

TEST_F(Server, StopEndsIdleConnectionsAtOnce) {
  HttpLimits limits;
  limits.new_grace = limits.kept_grace = 1ms;
  limits.linger_timeout = 1ms;  // the clients stay
  Serving server(true, limits);
  server.on("/hello", hello);
  Client fresh(server.port());
  Client used(server.port());
  EXPECT_EQ(used.get("/hello").status, 200);
  while (server->getCounts().open < 2) sched_yield();
  server->stop();
  EXPECT_EQ(used.rest(), "");
  EXPECT_FALSE(used.wasReset());
  EXPECT_EQ(fresh.rest(), "");
  EXPECT_TRUE(server->join(Deadline::after(20s)));
  EXPECT_FALSE(Client(server.port()).isConnected());
}

// A connection that has just been made: its first request is on its way.
TEST_F(Server, ANewConnectionIsAnsweredAfterStop) {
  HttpLimits limits;
  limits.new_grace = limits.first_byte_timeout = 1h;
  Serving server(true, limits);
  server.on("/hello", hello);
  Client client(server.port());
  while (server->getCounts().open == 0) sched_yield();
  server->stop();
  Answer answer = client.get("/hello");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(server->join(Deadline::after(20s)));
}

// CD-N8
TEST_F(Server, AKeptConnectionIsAnsweredAfterStop) {
  HttpLimits limits;
  limits.kept_grace = limits.idle_timeout = 1h;
  Serving server(true, limits);
  server.on("/hello", hello);
  Client client(server.port());
  EXPECT_EQ(client.get("/hello").headers.count("connection"), 0u);
  server->stop();
  Answer answer = client.get("/hello");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(server->join(Deadline::after(20s)));
}

/// Too large for the memory of one end, and small enough for that of both.
constexpr size_t kAnswerUnderWay = 1 << 20;

/// A connection whose client has taken nothing of an answer, and whose session waits for the next request.
class AnswerUnderWay {
 public:
  explicit AnswerUnderWay(Serving& server) : client(server.port()) {
    server.on("/large", [this](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
      response->setBody(std::string(kAnswerUnderWay, 'x'));
      m_socket.set_value(session->getSocket());
      return 0;
    });
    client.say(request("GET", "/large"));
    socket = m_socket.get_future().get();
  }
  /// The client sends another request, and finds the answer whole.
  void expectWhole() {
    client.say("GET /late HTTP/1.1\r\n");
    EXPECT_EQ(client.read().body.size(), kAnswerUnderWay);
    EXPECT_EQ(client.rest(), "");
    EXPECT_FALSE(client.wasReset());
  }

  Client client;
  Socket::ptr socket;

 private:
  std::promise<Socket::ptr> m_socket;
};

// A close would make the kernel answer the next request with a reset, and throw away what the client has not taken of the last
// answer.
TEST_F(Server, TheAnswerBeforeAStopIsNotLostThoughTheClientGoesOnSending) {
  HttpLimits limits;
  limits.kept_grace = 0ms;
  limits.linger_timeout = 20s;
  Serving server(true, limits, 1);
  AnswerUnderWay answer(server);
  while (!sylar::detail::SocketControl::endRequest(*answer.socket).idle) sched_yield();
  std::promise<void> parked;
  server.iom().schedule([&] { parked.set_value(); });
  parked.get_future().wait();
  server->stop();
  EXPECT_FALSE(server->join(Deadline::after(1ms)));
  answer.expectWhole();
}

TEST_F(Server, TheAnswerBeforeAnIdleTimeoutIsNotLostThoughTheClientGoesOnSending) {
  HttpLimits limits;
  limits.idle_timeout = 1ms;
  limits.linger_timeout = 20s;
  Serving server(true, limits);
  AnswerUnderWay answer(server);
  tcp_info info{};
  while (answer.socket->getOption(IPPROTO_TCP, TCP_INFO, info) && info.tcpi_state == TCP_ESTABLISHED) sched_yield();
  answer.expectWhole();
}

/// A handler that waits until the test lets it go on.
class Gate {
 public:
  FunctionServlet::callback handler() {
    return [this](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
      m_entered = true;
      while (!m_open) ::usleep(100);
      response->setBody("done");
      return 0;
    };
  }
  void awaitEntry() const {
    while (!m_entered) sched_yield();
  }
  void open() { m_open = true; }

 private:
  std::atomic<bool> m_entered{false};
  std::atomic<bool> m_open{false};
};

// A client that has said that this is its last request may still send: the answer is not lost in a reset.
TEST_F(Server, LastAnswerArrivesThoughTheClientGoesOnSending) {
  Gate gate;
  Serving server;
  server.on("/gate", [&, wait = gate.handler()](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
    wait(request, response, session);
    response->setBody(std::string(kLargeAnswer, 'x'));
    return 0;
  });
  Client client(server.port());
  client.say("GET /gate HTTP/1.0\r\n\r\n");
  gate.awaitEntry();
  client.say("\r\n");
  gate.open();
  EXPECT_EQ(client.read().body.size(), kLargeAnswer);
  EXPECT_EQ(client.rest(), "");
  EXPECT_FALSE(client.wasReset());
}

// One that was let in and has not begun is sent home, too, though the server runs again by then.
TEST_F(Server, StopEndsWhatHasNotBegunAlsoIfItStartsAgain) {
  struct Late : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      while (!open) ::usleep(100);
      HttpServer::handleClient(client);
    }
    std::atomic<bool> open{false};
  };
  HttpLimits limits;
  limits.first_byte_timeout = 1h;
  limits.new_grace = 1ms;
  test::Serving<Late> server(true, limits);
  Client client(server.port());
  while (server->getCounts().open == 0) sched_yield();
  server->stop();
  EXPECT_TRUE(server->bind(IPAddress::Create("127.0.0.1", 0)));
  EXPECT_TRUE(server->start());
  server->open = true;
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(client.hasEnded());
}

TEST_F(Server, StopLetsARunningRequestFinishAndSaysClose) {
  Gate gate;
  HttpLimits limits;
  limits.linger_timeout = 1ms;  // the client stays
  Serving server(true, limits);
  server.on("/gate", gate.handler());
  Client client(server.port());
  client.say(request("GET", "/gate"));
  gate.awaitEntry();
  server->stop();
  EXPECT_FALSE(server->join(Deadline::after(1ms)));
  gate.open();
  Answer answer = client.read();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(server->join(Deadline::after(20s)));
}

// CD-N8
TEST_F(Server, StopAnswersThePipelinedRequestsThatHaveCome) {
  Gate gate;
  Serving server;
  server.on("/gate", gate.handler());
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 30; ++i) all += request("GET", "/gate");
  client.say(all);
  gate.awaitEntry();
  server->stop();
  gate.open();
  for (int i = 0; i < 30; ++i) {
    Answer answer = client.read();
    ASSERT_EQ(answer.status, 200) << i;
    EXPECT_EQ(answer.headers.count("connection"), i < 29 ? 0u : 1u) << i;
  }
  EXPECT_EQ(client.rest(), "");
}

// One who always sends the next requests before the answers is told at some time.
TEST_F(Server, StopTellsAPipeliningClientTheEndAfterTheGrace) {
  Gate gate;
  HttpLimits limits;
  limits.kept_grace = 0ms;
  Serving server(true, limits);
  server.on("/gate", gate.handler());
  Client client(server.port());
  client.say(request("GET", "/gate") + request("GET", "/gate"));
  gate.awaitEntry();
  server->stop();
  gate.open();
  EXPECT_EQ(client.read().headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
}

// A request of which something has come is still taken, and answered.
TEST_F(Server, StopWaitsForTheRestOfARequest) {
  Serving server;
  std::atomic<bool> began{false};
  server.onStream("/upload", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    began = true;
    if (!session->collectBody()) return -1;
    response->setBody("thanks");
    return 0;
  });
  Client client(server.port());
  client.say(request("POST", "/upload", "Content-Length: 10\r\n") + "12345");
  while (!began) sched_yield();
  server->stop();
  client.say("67890");
  Answer answer = client.read();
  EXPECT_EQ(answer.body, "thanks");
  EXPECT_EQ(answer.headers["connection"], "close");
}

// An idle session that is asked to end still answers what the kernel has received.
TEST_F(Server, WhatHasArrivedBeforeTheEndIsAnswered) {
  struct Patient : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      HttpSession session(client, false);
      char byte;
      EXPECT_EQ(client->recv(&byte, 1, MSG_PEEK), 1);  // the request has arrived
      session.end();
      const HttpRequest::ptr request = session.recvRequest();
      ASSERT_NE(request, nullptr);
      EXPECT_GT(session.sendResponse(request->createResponse()), 0);
      EXPECT_EQ(session.recvRequest(), nullptr);
    }
  };
  test::Serving<Patient> server;
  Client client(server.port());
  client.say(request("GET", "/"));
  EXPECT_EQ(client.read().headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
}

// The end comes between an answer that did not say so and the wait for the next request.
TEST_F(Server, EndBetweenTwoRequestsIsNotMissed) {
  struct Ending : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      HttpSession session(client, false);
      const HttpRequest::ptr request = session.recvRequest();
      ASSERT_NE(request, nullptr);
      session.sendResponse(request->createResponse());
      session.end();
      EXPECT_EQ(session.recvRequest(), nullptr);
    }
  };
  test::Serving<Ending> server;
  Client client(server.port());
  EXPECT_EQ(client.get("/").headers.count("connection"), 0u);
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(client.hasEnded());
}

// ---- A session by itself, as sylar's users have it.
// -------------------------------------------------------------------------------

TEST_F(Server, SessionMayBeUsedWithoutServlets) {
  struct Plain : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      const auto session = std::make_shared<HttpSession>(client);
      while (const HttpRequest::ptr request = session->recvRequest()) {
        const HttpResponse::ptr response = request->createResponse();
        response->setBody(request->getPath() + request->getBody());
        session->sendResponse(response);
      }
    }
  };
  test::Serving<Plain> server;
  Client client(server.port());
  EXPECT_EQ(client.get("/a").body, "/a");
  EXPECT_EQ(client.post("/b", "c").body, "/bc");
  client.say("no HTTP\r\n\r\n");
  EXPECT_EQ(client.read().status, 400);
  EXPECT_EQ(client.rest(), "");
}

/// Says everything in disguise, as one that encrypts does.
class DisguisedSocket final : public Socket {
 public:
  DisguisedSocket() : Socket(AF_INET, SOCK_STREAM) {}

  static std::string disguised(std::string text) {
    for (char& c : text) c = static_cast<char>(c ^ 1);
    return text;
  }

  int send(const void* buffer, size_t length, int flags) override {
    return Socket::send(disguised({static_cast<const char*>(buffer), length}).data(), length, flags);
  }
  int recv(void* buffer, size_t length, int flags) override {
    const int n = Socket::recv(buffer, length, flags);
    if (n > 0) disguised({static_cast<const char*>(buffer), static_cast<size_t>(n)}).copy(static_cast<char*>(buffer), length);
    return n;
  }
};

TEST_F(Server, SessionMakesTheCallsOfADerivedSocket) {
  sylar::test::inFiber([] {
    const Socket::ptr listener = Socket::CreateTCPSocket();
    ASSERT_TRUE(listener->bind(IPAddress::Create("127.0.0.1", 0)) && listener->listen());
    const auto socket = std::make_shared<DisguisedSocket>();
    ASSERT_TRUE(socket->connect(listener->getLocalAddress()));
    const Socket::ptr peer = listener->accept();
    const std::string asked = DisguisedSocket::disguised(request("GET", "/secret"));
    ASSERT_EQ(peer->send(asked.data(), asked.size()), static_cast<int>(asked.size()));
    HttpSession session(socket);
    const HttpRequest::ptr came = session.recvRequest();
    ASSERT_NE(came, nullptr);
    EXPECT_EQ(came->getPath(), "/secret");
    EXPECT_EQ(session.sendResponse(came->createResponse()), 1);
    char answer[9];
    ASSERT_EQ(peer->recv(answer, sizeof answer, MSG_WAITALL), static_cast<int>(sizeof answer));
    EXPECT_EQ(DisguisedSocket::disguised({answer, sizeof answer}), "HTTP/1.1 ");
  });
}

// A dispatch in a dispatch: each finds its own, also after the routes have changed.
TEST_F(Server, DispatchMayBeAServletOfAnother) {
  Serving server;
  const auto inner = std::make_shared<ServletDispatch>();
  inner->addServlet("/in/hello", hello);
  server->getServletDispatch()->addGlobServlet("/in/*", inner);
  server.on("/hello", hello);
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.get("/hello").status, 200);
    EXPECT_EQ(client.get("/in/hello").status, 200);
    EXPECT_EQ(client.get("/in/later").status, i == 0 ? 404 : 200);
    EXPECT_EQ(client.get("/later").status, i == 0 ? 404 : 200);
    inner->addServlet("/in/later", hello);
    server.on("/later", hello);
  }
  server->getServletDispatch()->delServlet("/later");
  EXPECT_EQ(client.get("/later").status, 404);
}

TEST_F(Server, NewDispatchHoldsForNewConnections) {
  Serving server;
  server.on("/hello", hello);
  Client old_one(server.port());
  EXPECT_EQ(old_one.get("/hello").status, 200);
  server->setServletDispatch(std::make_shared<ServletDispatch>());
  EXPECT_EQ(old_one.get("/hello").status, 200);
  EXPECT_EQ(Client(server.port()).get("/hello").status, 404);
}

}  // namespace
}  // namespace sylar::http
