// Middleware of a Router and of its groups.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sylar/http/router.h"
#include "tests/web/router_fixture.h"

namespace sylar::http {
namespace {

using test::Answer;
using test::Client;
using test::echo;
using test::RouterTest;
using test::say;

/// Adds its name to a header before what is inside, and the status behind that.
Middleware marks(const std::string& name) {
  return [name](HttpRequest& asked, HttpResponse& response, const Next& next) {
    asked.setHeader("x-way", asked.getHeader("x-way") + name);
    next();
    response.setHeader("x-back", response.getHeader("x-back") + name + std::to_string(static_cast<int>(response.getStatus())));
  };
}

Router::Handler way() {
  return [](HttpRequest& asked, HttpResponse& response) { response.text(asked.getHeader("x-way")); };
}

TEST_F(RouterTest, MiddlewareRunsFromTheOutermostInAndBack) {
  router().get("/a", way());
  router().use(marks("1"));
  router().use(marks("2"));
  Answer answer = ask("GET", "/a");
  EXPECT_EQ(answer.body, "12");
  EXPECT_EQ(answer.headers["x-back"], "22001200");
}

// WEB-3, WEB-4: middleware sees what no route answers as well.
TEST_F(RouterTest, MiddlewareRunsFor404And405AndOptionsAndServlets) {
  router().use(marks("m"));
  router().get("/a/{x}", way());
  router().addServlet("/hello", test::hello);
  EXPECT_EQ(ask("GET", "/nothing").headers["x-back"], "m404");
  EXPECT_EQ(ask("PUT", "/a/b").headers["x-back"], "m405");
  EXPECT_EQ(ask("OPTIONS", "/a/b").headers["x-back"], "m200");
  EXPECT_EQ(ask("GET", "/a/%").headers["x-back"], "m400");
  EXPECT_EQ(ask("GET", "/hello").headers["x-back"], "m200");
}

TEST_F(RouterTest, MiddlewareMayAnswerBeforeTheBodyIsRead) {
  router().use([](HttpRequest& asked, HttpResponse& response, const Next& next) {
    if (asked.getPathParam("x") != "no") return next();
    response.text("no", HttpStatus::FORBIDDEN);
  });
  router().post("/{x}", [](HttpRequest& asked, HttpResponse& response) { response.text(asked.getBody()); });
  EXPECT_EQ(ask("POST", "/no", "Expect: 100-continue\r\nContent-Length: 5\r\n").status, 403);
  EXPECT_EQ(Client(port()).post("/yes", "body").body, "body");
}

TEST_F(RouterTest, ExceptionsPassThroughMiddleware) {
  router().use([](HttpRequest&, HttpResponse& response, const Next& next) {
    try {
      next();
    } catch (const std::runtime_error& error) {
      response.text(error.what(), HttpStatus::BAD_GATEWAY);
    }
  });
  router().get("/fails", [](HttpRequest&, HttpResponse&) { throw std::runtime_error("too bad"); });
  Answer answer = ask("GET", "/fails");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.body, "too bad");
}

// ---- Groups. ----------------------------------------------------------------------------------------------------------------

TEST_F(RouterTest, GroupHasAPrefixAndMiddlewareOfItsOwn) {
  Router& api = router().group("/api");
  Router& users = api.group("/users/{user}");
  Router& plain = api.group("");
  router().get("/a", way());
  api.get("/a", way());
  api.handle("GET h.example/a", say("of a host"));
  api.get("", say("the prefix itself"));
  users.get("", echo({"user"}));
  users.get("/a", way());
  plain.get("/plain", way());
  users.use(marks("u"));
  plain.use(marks("p"));
  api.use(marks("g"));
  router().use(marks("r"));
  EXPECT_EQ(bodyOf("/a"), "r");
  EXPECT_EQ(bodyOf("/api/a"), "rg");
  EXPECT_EQ(bodyOf("/api"), "the prefix itself");
  EXPECT_EQ(bodyOf("http://h.example/api/a"), "of a host");
  EXPECT_EQ(bodyOf("/api/users/ada"), "GET user=ada");
  EXPECT_EQ(bodyOf("/api/users/ada/a"), "rgu");
  EXPECT_EQ(bodyOf("/api/plain"), "rgp");
  EXPECT_EQ(ask("GET", "/x").headers["x-back"], "r404");
  EXPECT_EQ(ask("GET", "/apis").headers["x-back"], "r404");
  EXPECT_EQ(ask("GET", "/api/x").headers["x-back"], "g404r404");
  EXPECT_EQ(ask("PUT", "/api/users/ada/a").headers["x-back"], "u405g405r405");
}

TEST_F(RouterTest, GroupSharesTheOtherRoutesOfItsRouter) {
  Router& api = router().group("/api");
  api.get("/a", say("a"));
  api.addServlet("/exact", test::hello);
  EXPECT_EQ(bodyOf("/exact"), "hello");
  EXPECT_THROW(router().get("/api/a", say("b")), std::invalid_argument);
  EXPECT_EQ(bodyOf("/api/a"), "a");
}

TEST_F(RouterTest, MalformedPrefixIsRefused) {
  for (const char* prefix : {"api", "/", "/api/", "/{x...}", "/{$}", "GET /api", "host/api", "/{x"}) {
    EXPECT_THROW(router().group(prefix), std::invalid_argument) << prefix;
  }
  Router& group = router().group("/{x}");
  EXPECT_THROW(group.get("/{x}", echo()), std::invalid_argument) << "the name stands in the prefix";
}

}  // namespace
}  // namespace sylar::http
