// Answers in pieces, and connections that change their protocol: how they end, and what becomes of bytes that came early.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "sylar/fiber.h"
#include "sylar/http/http_server.h"
#include "tests/http/client.h"
#include "tests/support/fibers.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;
using test::Answer;
using test::Client;
using test::request;
using Serving = test::Serving<>;

class ServerStream : public testing::Test {
 private:
  sylar::test::LeakCheck m_leaks;
};

// ---- Streams without an end of their own. -----------------------------------------------------------------------------------

/// A stream that ends only when writeBody() says so. `kEnough` pieces stand for a loop that never ends.
struct Endless {
  static constexpr int kEnough = 1000;

  FunctionServlet::callback handler(HttpStatus status = HttpStatus::OK) {
    return [this, status](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
      response->setStatus(status);
      EXPECT_TRUE(session->beginResponse(response));
      int pieces = 0;
      while (session->writeBody("data: x\n\n") && pieces < kEnough) ++pieces;
      error = errno;
      most = std::max<int>(most, pieces);
      return 0;
    };
  }
  std::atomic<int> error{0};
  std::atomic<int> most{0};
};

TEST_F(ServerStream, EndlessStreamEndsAtOnceWhereNoBodyMayFollow) {
  struct Row {
    const char* method;
    HttpStatus status;
  };
  for (const Row& row : {Row{"HEAD", HttpStatus::OK}, Row{"GET", HttpStatus::NO_CONTENT}, Row{"GET", HttpStatus::NOT_MODIFIED}}) {
    SCOPED_TRACE(static_cast<int>(row.status));
    Endless stream;
    Serving server;
    server.on("/events", stream.handler(row.status));
    Client client(server.port());
    for (int i = 0; i < 3; ++i) {
      client.say(request(row.method, "/events"));
      EXPECT_EQ(client.read(true).status, static_cast<int>(row.status)) << "the connection goes on";
    }
    EXPECT_EQ(stream.most, 0);
    EXPECT_EQ(stream.error, EALREADY);
  }
}

TEST_F(ServerStream, HeadOfManyEndlessStreamsLeavesNoFiber) {
  Endless stream;
  Serving server(true, {}, 1);
  server.on("/events", stream.handler());
  for (int i = 0; i < 20; ++i) {
    Client client(server.port());
    client.say(request("HEAD", "/events"));
    EXPECT_EQ(client.read(true).status, 200);
  }
  EXPECT_TRUE(server->join(Deadline::after(30s)));
  EXPECT_EQ(stream.most, 0);
}

TEST_F(ServerStream, EndlessStreamEndsWhenItsClientHasGone) {
  std::atomic<int> error{0};
  Serving server;
  server.on("/flood", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    EXPECT_TRUE(session->beginResponse(response));
    const std::string piece(1 << 16, 'x');
    while (session->writeBody(piece)) continue;
    error = errno;
    return 0;
  });
  {
    Client client(server.port());
    client.say(request("GET", "/flood"));
    EXPECT_EQ(client.read(true).status, 200);
  }
  EXPECT_TRUE(server->join(Deadline::after(30s)));
  EXPECT_TRUE(error == EPIPE || error == ECONNRESET) << error;
}

// A close finds the writer wherever it is; the writer never waits for, or asks about, a number that is somebody else's by then.
TEST_F(ServerStream, CloseEndsAWriterThatWaitsForRoom) {
  std::promise<HttpSession::ptr> writing;
  std::atomic<int> error{0};
  HttpLimits limits;
  limits.write_timeout = 1h;
  Serving server(true, limits);
  server.on("/flood", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    EXPECT_TRUE(session->beginResponse(response));
    const std::string piece(1 << 20, 'x');
    writing.set_value(session);
    while (session->writeBody(piece)) continue;
    error = errno;
    return 0;
  });
  Client client(server.port());
  client.say(request("GET", "/flood"));
  HttpSession::ptr session = writing.get_future().get();
  while (session->getSocket()->getUnsent() <= 0) sched_yield();
  session->getSocket()->close();
  session = nullptr;
  EXPECT_TRUE(server->join(Deadline::after(30s)));
  EXPECT_EQ(error, EBADF);
}

// The program's own may end before it.
TEST_F(ServerStream, SessionKeepsTheLimitsThatItWasMadeWith) {
  struct Plain : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      auto limits = std::make_unique<HttpLimits>();
      limits->max_body = 4;
      HttpSession session(client, false, *limits);
      limits = nullptr;
      while (const HttpRequest::ptr request = session.recvRequest()) session.sendResponse(request->createResponse());
    }
  };
  test::Serving<Plain> server;
  Client client(server.port());
  client.say(request("POST", "/", "Content-Length: 4\r\n") + "1234" + request("POST", "/", "Content-Length: 5\r\n") + "12345");
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(client.read().status, 413);
}

// The end that one session was asked for holds for the next one of the connection, which may have been meant.
TEST_F(ServerStream, EndHoldsForTheNextSessionOfTheConnection) {
  struct TwoSessions : HttpServer {
    using HttpServer::HttpServer;
    void handleClient(Socket::ptr client) override {
      HttpSession(client, false).end();
      HttpSession session(client, false);
      while (const HttpRequest::ptr request = session.recvRequest()) session.sendResponse(request->createResponse());
    }
  };
  test::Serving<TwoSessions> server;
  Client client(server.port());
  Answer answer = client.get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(client.rest(), "");
  EXPECT_TRUE(client.hasEnded());
}

// ---- Handlers that were cancelled. ------------------------------------------------------------------------------------------

/// Counts what a cancelled handler does after its wait.
Answer answerOfCancelled(FunctionServlet::callback after, bool* was_reset = nullptr) {
  std::promise<Fiber::ptr> at_work;
  Serving server;
  server.on("/wait", [&](HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
    at_work.set_value(Fiber::GetThis());
    ::sleep(3600);
    return after(request, response, session);
  });
  Client client(server.port());
  client.say(request("GET", "/wait"));
  at_work.get_future().get()->cancel();
  Answer answer = client.read(was_reset != nullptr);
  client.rest();
  EXPECT_TRUE(client.hasEnded());
  if (was_reset != nullptr) *was_reset = client.wasReset();
  return answer;
}

TEST_F(ServerStream, WorkThatWasCancelledIsNoSuccess) {
  Answer answer = answerOfCancelled([](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody("slept");
    return 0;
  });
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(answer.body, "");
}

TEST_F(ServerStream, StreamThatWasCancelledIsCut) {
  bool was_reset = false;
  answerOfCancelled(
      [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
        EXPECT_TRUE(session->beginResponse(response));
        session->writeBody("half of it");
        return 0;
      },
      &was_reset);
  EXPECT_TRUE(was_reset);
}

TEST_F(ServerStream, CancelledHandlerMaySayItselfThatItHasFinished) {
  const Answer answer = answerOfCancelled([](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    EXPECT_TRUE(this_fiber::cancelled());
    response->setBody("done all the same");
    EXPECT_GT(session->sendResponse(response), 0);
    return 0;
  });
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "done all the same");
}

// ---- Another protocol on the connection. SEC-35 ------------------------------------------------------------------------------

int32_t upgradeToEcho(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
  response->setStatus(HttpStatus::SWITCHING_PROTOCOLS);
  response->setHeader("connection", "upgrade");
  response->setHeader("upgrade", "echo");
  EXPECT_GT(session->sendResponse(response), 0);
  char bytes[4];
  for (int size; (size = session->read(bytes, sizeof bytes)) > 0;) {
    EXPECT_EQ(session->writeFixSize(bytes, static_cast<size_t>(size)), size);
  }
  return 0;
}

TEST_F(ServerStream, BytesThatCameWithTheUpgradeAreTheNewProtocolsFirst) {
  Serving server;
  server.on("/up", upgradeToEcho);
  Client client(server.port());
  client.say(request("GET", "/up", "Connection: upgrade\r\nUpgrade: echo\r\n") + "early bytes, ");
  EXPECT_EQ(client.read().status, 101);
  client.say("late bytes");
  client.sayNoMore();
  EXPECT_EQ(client.rest(), "early bytes, late bytes");
}

TEST_F(ServerStream, ReadIsReadBodyUntilTheProtocolChanges) {
  Serving server;
  server.onStream("/read", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
    char bytes[4];
    int size;
    while ((size = session->read(bytes, sizeof bytes)) > 0) response->body().append(bytes, static_cast<size_t>(size));
    EXPECT_EQ(size, 0);
    return 0;
  });
  Client client(server.port());
  client.say(request("POST", "/read", "Content-Length: 10\r\n") + "0123456789" +
             request("POST", "/read", "Transfer-Encoding: chunked\r\n") + "5\r\nabcde\r\n0\r\n\r\n" + request("GET", "/read"));
  EXPECT_EQ(client.read().body, "0123456789");
  EXPECT_EQ(client.read().body, "abcde");
  EXPECT_EQ(client.read().body, "") << "the next request is no body";
}

TEST_F(ServerStream, ReadOfABrokenBodyFailsWithEPROTO) {
  std::atomic<int> error{0};
  Serving server;
  server.onStream("/read", [&](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr session) {
    char bytes[4];
    int size;
    while ((size = session->read(bytes, sizeof bytes)) > 0) continue;
    error = size < 0 ? errno : 0;
    return 0;
  });
  Client client(server.port());
  client.say(request("POST", "/read", "Transfer-Encoding: chunked\r\n") + "no chunk\r\n");
  EXPECT_EQ(client.read().status, 400);
  EXPECT_EQ(error, EPROTO);
}

}  // namespace
}  // namespace sylar::http
