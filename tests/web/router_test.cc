// A Router in a server, asked over real connections.
#include "sylar/http/router.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sylar/http/http_error.h"
#include "sylar/http/http_session.h"
#include "tests/support/scale.h"
#include "tests/web/router_fixture.h"

namespace sylar::http {
namespace {

using test::Answer;
using test::Client;
using test::echo;
using test::request;
using test::RouterTest;
using test::say;

// WEB-1
TEST_F(RouterTest, MostSpecificRouteAnswers) {
  router().handle("/", say("all"));
  router().get("/users/{name}", echo({"name"}));
  router().get("/users/me", say("me"));
  router().get("/files/{path...}", echo({"path"}));
  router().get("/users/{$}", say("users"));
  router().get("a.example/users/me", say("me of a"));
  EXPECT_EQ(bodyOf("/users/ada"), "GET name=ada");
  EXPECT_EQ(bodyOf("/users/me"), "me");
  EXPECT_EQ(bodyOf("/users/"), "users");
  EXPECT_EQ(bodyOf("/users"), "all");
  EXPECT_EQ(bodyOf("/files/a/b?c=d"), "GET path=a/b");
  EXPECT_EQ(bodyOf("/files/"), "GET path=");
  EXPECT_EQ(bodyOf("http://A.example:80/users/me"), "me of a");
  EXPECT_EQ(bodyOf("http://b.example/users/me"), "me");
}

TEST_F(RouterTest, EachMethodHasItsFunction) {
  router().get("/x", echo());
  router().post("/x", echo());
  router().put("/x", echo());
  router().patch("/x", echo());
  router().del("/x", echo());
  router().handle("PROPFIND /x", echo());
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"}) {
    EXPECT_EQ(ask(method, "/x").body, method);
  }
}

// WEB-2
TEST_F(RouterTest, ConflictIsRefusedAndChangesNothing) {
  router().get("/a/{x}", echo({"x"}));
  EXPECT_THROW(router().get("/{y}/b", echo()), std::invalid_argument);
  EXPECT_THROW(router().get("/a/{z}", echo()), std::invalid_argument);
  EXPECT_THROW(router().get("/a/{x", echo()), std::invalid_argument);
  EXPECT_EQ(bodyOf("/a/b"), "GET x=b");
  EXPECT_EQ(ask("GET", "/c/b").status, 404);
}

// WEB-3
TEST_F(RouterTest, UnknownPathAndWrongMethodTakeNothingOfTheBody) {
  router().get("/known/{x}", echo());
  router().put("/known/a", echo());
  for (const std::string fields : {"Content-Length: 3000000\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n"}) {
    Client unknown(port()), known(port());
    unknown.say(request("POST", "/nothing", fields));
    EXPECT_EQ(unknown.read().status, 404) << "and not 100";
    EXPECT_EQ(unknown.rest(), "");
    known.say(request("POST", "/known/a", fields));
    Answer answer = known.read();
    EXPECT_EQ(answer.status, 405) << "and not 100";
    EXPECT_EQ(answer.headers["allow"], "GET, HEAD, PUT, OPTIONS");
    EXPECT_EQ(known.rest(), "");
  }
}

// WEB-4
TEST_F(RouterTest, HeadAndOptionsComeFromTheRouteAndTraceIs405) {
  router().get("/read", say("hello"));
  router().handle("/all", echo());
  router().handle("OPTIONS /cors", echo());
  Answer answer = ask("HEAD", "/read");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["content-length"], "5");
  answer = ask("OPTIONS", "/read");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["allow"], "GET, HEAD, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "/all").headers["allow"], "DELETE, GET, HEAD, POST, PUT, OPTIONS, PATCH");
  EXPECT_EQ(ask("OPTIONS", "/cors").body, "OPTIONS");
  for (const std::string path : {"/read", "/all", "/cors"}) EXPECT_EQ(ask("TRACE", path).status, 405) << path;
}

// WEB-5
TEST_F(RouterTest, PartsAreDecodedOnceAndASlashInThemSeparatesNothing) {
  router().get("/keys/{key}", echo({"key"}));
  router().get("/keys/{key}/{rest...}", echo({"key", "rest"}));
  EXPECT_EQ(bodyOf("/keys/a%2Fb"), "GET key=a/b");
  EXPECT_EQ(bodyOf("/%6beys/%252F"), "GET key=%2F");
  EXPECT_EQ(bodyOf("/keys/a+b%20c"), "GET key=a+b c");
  EXPECT_EQ(bodyOf("/keys/%2F/%2F/%41"), "GET key=/ rest=//A");
  EXPECT_EQ(bodyOf("/keys/.."), "GET key=..");
}

// WEB-5
TEST_F(RouterTest, MalformedEscapeIs400ForAPathThatAPatternMatches) {
  router().get("/keys/{key}", echo({"key"}));
  router().addServlet("/100%", test::hello);
  for (const std::string path : {"/keys/%", "/keys/%4", "/keys/%zz", "/keys/a%2"})
    EXPECT_EQ(ask("GET", path).status, 400) << path;
  EXPECT_EQ(ask("POST", "/keys/%zz").status, 400);
  EXPECT_EQ(bodyOf("/100%"), "hello");
  EXPECT_EQ(ask("GET", "/%zz").status, 404);
}

// WEB-D16
TEST_F(RouterTest, EmptySegmentIsNoName) {
  router().get("/keys/{key}", echo({"key"}));
  router().get("/keys/{key}/{part}", echo({"key", "part"}));
  for (const std::string path : {"/keys/", "/keys//", "/keys//a", "/keys/a/"}) EXPECT_EQ(ask("GET", path).status, 404) << path;
}

// WEB-L22
TEST_F(RouterTest, PatternsBeyondTheLimitAreRefused) {
  for (size_t i = 0; i < Router::kMostPatterns; ++i)
    router().get("/" + std::to_string(i % 100) + "/" + std::to_string(i), echo());
  EXPECT_THROW(router().get("/a", echo()), std::length_error);
  EXPECT_EQ(bodyOf("/99/9999"), "GET");
}

// ---- sylar's own. -----------------------------------------------------------------------------------------------------------

TEST_F(RouterTest, PatternsComeBeforeExactPathsAndThoseBeforeGlobs) {
  router().addServlet("/a", test::hello);
  router().addServlet("/b", test::hello);
  router().addGlobServlet("/c*", test::hello);
  EXPECT_EQ(bodyOf("/a"), "hello") << "as in a dispatch without patterns";
  router().post("/{x}", echo({"x"}));
  router().get("/a/{x}", echo({"x"}));
  EXPECT_EQ(ask("GET", "/a").status, 405) << "a pattern knows the path";
  EXPECT_EQ(bodyOf("/a/1"), "GET x=1");
  EXPECT_EQ(bodyOf("/c/d"), "hello");
  router().setDefault(std::make_shared<FunctionServlet>(test::hello));
  EXPECT_EQ(bodyOf("/d/e"), "hello");
}

TEST_F(RouterTest, ServletMayHaveAPattern) {
  const auto servlet = std::make_shared<FunctionServlet>(
      [](HttpRequest::ptr asked, HttpResponse::ptr response, HttpSession::ptr) {
        response->setBody(asked->getPathParam("x") + asked->getBody());
        return 0;
      },
      MethodSet{HttpMethod::POST});
  servlet->setBodyLimit(3);
  servlet->setGate([](const HttpRequest& asked, HttpResponse& response) {
    if (asked.getPathParam("x") != "no") return true;
    response.setStatus(HttpStatus::FORBIDDEN);
    return false;
  });
  router().handle("/s/{x}", servlet);
  router().handle("PUT /t/{x}", servlet, {.body = Body::upTo(4)});
  Client client(port());
  EXPECT_EQ(client.post("/s/a", "123").body, "a123");
  EXPECT_EQ(client.post("/s/no", "123").status, 403);
  EXPECT_EQ(ask("GET", "/s/a").headers["allow"], "POST, OPTIONS");
  EXPECT_EQ(Client(port()).post("/s/a", "1234").status, 413);
  EXPECT_EQ(ask("PUT", "/t/a", "Content-Length: 4\r\n\r\n1234").body, "a1234");
  EXPECT_EQ(ask("POST", "/t/a").headers["allow"], "PUT, OPTIONS") << "the method of the pattern replaces those of the servlet";
}

TEST_F(RouterTest, MayItselfBeAServlet) {
  const auto inner = std::make_shared<Router>();
  inner->get("/inner/{x}", echo({"x"}));
  router().handle("/inner/", inner);
  router().addGlobServlet("/in*", inner);
  EXPECT_EQ(bodyOf("/inner/a"), "GET x=a");
  EXPECT_EQ(ask("GET", "/inside").status, 404);
}

// ---- Options. ---------------------------------------------------------------------------------------------------------------

// WEB-3: they hold before a byte of the body is read.
TEST_F(RouterTest, BodyAndGateAreDecidedBeforeTheBody) {
  const auto size = [](HttpRequest& asked, HttpResponse& response) { response.text(std::to_string(asked.getBody().size())); };
  router().post("/none", size).body(Body::none());
  router().post("/some", size).body(Body::upTo(5));
  router().post("/all", size);
  router().post("/gate", size).gate([](const HttpRequest&, HttpResponse& response) {
    response.setStatus(HttpStatus::UNAUTHORIZED);
    return false;
  });
  const std::string expect = "Expect: 100-continue\r\nContent-Length: ";
  EXPECT_EQ(ask("POST", "/none", expect + "1\r\n").status, 413);
  EXPECT_EQ(ask("POST", "/some", expect + "6\r\n").status, 413);
  EXPECT_EQ(ask("POST", "/gate", expect + "1\r\n").status, 401);
  EXPECT_EQ(ask("POST", "/some", expect + "5\r\n").status, 100);
  Client client(port());
  EXPECT_EQ(client.post("/none", "").body, "0");
  EXPECT_EQ(client.post("/some", "12345").body, "5");
  EXPECT_EQ(client.post("/all", std::string(100'000, 'x')).body, "100000");
}

TEST_F(RouterTest, StreamIsReadByTheHandler) {
  const auto count = [](HttpRequest::ptr asked, HttpResponse::ptr response, HttpSession::ptr session) {
    EXPECT_EQ(asked->getBody(), "");
    char piece[1024];
    ssize_t sum = 0;
    for (ssize_t size; (size = session->readBody(piece, sizeof piece)) > 0;) sum += size;
    response->text(std::to_string(sum) + ' ' + asked->getPathParam("name"));
    return 0;
  };
  router().put("/files/{name}", count, {.body = Body::stream()});
  router().put("/small", count, {.body = Body::stream(10)});
  EXPECT_EQ(ask("PUT", "/files/a", "Content-Length: 3\r\n\r\nabc").body, "3 a");
  EXPECT_EQ(ask("PUT", "/small", "Content-Length: 11\r\n\r\n12345678901").status, 413);
}

TEST_F(RouterTest, ExceptionsOfHandlersAreAnswered) {
  router().get("/gone", [](HttpRequest&, HttpResponse&) { throw HttpError(HttpStatus::GONE, "gone"); });
  router().get("/fails", [](HttpRequest&, HttpResponse&) { throw std::runtime_error("no"); });
  EXPECT_EQ(ask("GET", "/gone").status, 410);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ask("GET", "/fails").status, 500);
  testing::internal::GetCapturedStderr();
}

// ---- Changes while it serves. -----------------------------------------------------------------------------------------------

// Each request sees a route before or after a change of it.
TEST_F(RouterTest, RoutesMayBeAddedWhileItServes) {
  router().get("/always/{x}", echo({"x"}));
  std::atomic<bool> over{false};
  std::thread changer([&] {
    for (size_t i = 0; !over && i < 2000; ++i) {
      router().get("/sometimes/" + std::to_string(i), echo(), {.body = Body::none()}).body(Body::upTo(i));
      if (i % 100 == 0) router().use([](HttpRequest&, HttpResponse&, const Next& next) { next(); });
    }
  });
  Client client(port());
  for (uint64_t round = sylar::test::scaled(500); round > 0; --round) {
    ASSERT_EQ(client.get("/always/a").body, "GET x=a");
    const int status = client.get("/sometimes/" + std::to_string(round)).status;
    ASSERT_TRUE(status == 200 || status == 404) << status;
  }
  over = true;
  changer.join();
}

// ---- Misuse. ----------------------------------------------------------------------------------------------------------------

using RouterDeathTest = testing::Test;
TEST(RouterDeathTest, NullIsAProgrammersError) {
  Router router;
  EXPECT_DEATH(router.get("/a", Router::Handler()), "m_handler != nullptr");
  EXPECT_DEATH(router.get("/a", Servlet::ptr()), "servlet != nullptr");
  EXPECT_DEATH(router.use(nullptr), "middleware != nullptr");
}

}  // namespace
}  // namespace sylar::http
