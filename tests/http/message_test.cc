#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/http/http.h"
#include "sylar/http/http_error.h"
#include "sylar/http/percent.h"

namespace sylar::http {
namespace {

using namespace std::string_literals;

TEST(HttpNames, ConvertBothWays) {
  EXPECT_EQ(StringToHttpMethod("GET"), HttpMethod::GET);
  EXPECT_EQ(CharsToHttpMethod("M-SEARCH"), HttpMethod::MSEARCH);
  EXPECT_EQ(toHttpMethod("get"), HttpMethod::INVALID_METHOD);
  EXPECT_EQ(toHttpMethod("GETS"), HttpMethod::INVALID_METHOD);
  EXPECT_EQ(toHttpMethod(""), HttpMethod::INVALID_METHOD);
  for (int i = 0; i < static_cast<int>(HttpMethod::INVALID_METHOD); ++i) {
    const auto method = static_cast<HttpMethod>(i);
    EXPECT_EQ(StringToHttpMethod(HttpMethodToString(method)), method);
  }
  EXPECT_STREQ(HttpMethodToString(HttpMethod::INVALID_METHOD), "<unknown>");
  EXPECT_STREQ(HttpStatusToString(HttpStatus::NOT_FOUND), "Not Found");
  EXPECT_STREQ(HttpStatusToString(static_cast<HttpStatus>(299)), "<unknown>");
}

TEST(HttpMessage, FindsHeadersInAnyCase) {
  HttpRequest request;
  request.setHeader("Content-Type", " text/plain ");
  EXPECT_EQ(request.getHeader("CONTENT-TYPE"), "text/plain");
  EXPECT_EQ(request.getHeader("absent"), "");
  EXPECT_EQ(request.getHeader("absent", "x"), "x");
  std::string value;
  EXPECT_TRUE(request.hasHeader("content-type", &value));
  EXPECT_EQ(value, "text/plain");
  request.setHeader("CONTENT-type", "text/html");
  EXPECT_EQ(request.headers().size(), 1u);
  EXPECT_EQ(request.getHeader("content-type"), "text/html");
  request.delHeader("content-TYPE");
  EXPECT_FALSE(request.hasHeader("content-type"));
}

TEST(HttpMessage, MapFollowsChanges) {
  HttpResponse response;
  response.setHeader("A", "1");
  const auto& map = response.getHeaders();
  EXPECT_EQ(map.at("a"), "1");
  response.headerList().add("a", "2");
  EXPECT_EQ(response.getHeaders().at("A"), "1, 2");
  response.setHeaders({{"B", "3"}});
  EXPECT_EQ(response.getHeaders().size(), 1u);
  EXPECT_EQ(&response.getHeaders(), &map);
}

TEST(HttpMessage, ConvertsValues) {
  HttpRequest request;
  request.setHeader("n", "42");
  request.setHeader("text", "42x");
  request.setHeader("yes", "true");
  request.setHeader("half", "0.5");
  request.setHeader("big", "300");
  EXPECT_EQ(request.getHeaderAs<int>("n"), 42);
  EXPECT_EQ(request.getHeaderAs<int>("text", -1), -1);
  EXPECT_TRUE(request.getHeaderAs<bool>("yes"));
  EXPECT_DOUBLE_EQ(request.getHeaderAs<double>("half"), 0.5);
  EXPECT_EQ(request.getHeaderAs<std::string>("text"), "42x");
  uint8_t small = 1;
  EXPECT_FALSE(request.checkGetHeaderAs<uint8_t>("big", small, 7));
  EXPECT_EQ(small, 7);
  EXPECT_FALSE(request.checkGetHeaderAs<uint8_t>("absent", small));
  EXPECT_EQ(small, 0);
  int n = 0;
  EXPECT_TRUE(request.checkGetHeaderAs("n", n));
  EXPECT_EQ(n, 42);
}

// SEC-36
TEST(HttpMessage, SettersRefuseControlCharacters) {
  HttpRequest request;
  HttpResponse response;
  for (const std::string& bad : {"a\rb"s, "a\nb"s, "a\0b"s, "a\r\nSet-Cookie: x"s}) {
    EXPECT_THROW(request.setHeader("x", bad), std::invalid_argument);
    EXPECT_THROW(request.setHeader(bad, "x"), std::invalid_argument);
    EXPECT_THROW(request.headerList().add("x", bad), std::invalid_argument);
    EXPECT_THROW(request.setHeaders({{"x", bad}}), std::invalid_argument);
    EXPECT_THROW(request.setPath(bad), std::invalid_argument);
    EXPECT_THROW(request.setQuery(bad), std::invalid_argument);
    EXPECT_THROW(request.setFragment(bad), std::invalid_argument);
    EXPECT_THROW(request.setCookie("x", bad), std::invalid_argument);
    EXPECT_THROW(request.setCookie(bad, "x"), std::invalid_argument);
    EXPECT_THROW(response.setHeader("x", bad), std::invalid_argument);
    EXPECT_THROW(response.setReason(bad), std::invalid_argument);
    EXPECT_THROW(response.setRedirect(bad), std::invalid_argument);
    EXPECT_THROW(response.setCookie("x", bad), std::invalid_argument);
    EXPECT_THROW(response.setCookie(bad, "x"), std::invalid_argument);
    EXPECT_THROW(response.setCookie("x", "y", 0, bad), std::invalid_argument);
    EXPECT_THROW(response.setCookie("x", "y", 0, "", bad), std::invalid_argument);
  }
  for (const std::string& bad : {"a\x01"s, "a\x0b"s, "\x1b[31m"s, "a\x7f"s}) {
    EXPECT_THROW(response.setHeader("x", bad), std::invalid_argument);
    EXPECT_THROW(response.setReason(bad), std::invalid_argument);
    EXPECT_THROW(response.setRedirect(bad), std::invalid_argument);
    EXPECT_THROW(response.setCookie("x", "y", 0, bad), std::invalid_argument);
  }
  EXPECT_NO_THROW(HttpRequest().setHeader("x", "a\tb\xc3\xa4"));
  EXPECT_THROW(response.setHeader("", "x"), std::invalid_argument);
  EXPECT_THROW(response.setHeader("a b", "x"), std::invalid_argument);
  EXPECT_THROW(response.setHeader("a:", "x"), std::invalid_argument);
  EXPECT_THROW(response.setCookie("x", "y; secure"), std::invalid_argument);
  EXPECT_TRUE(request.headers().empty());
  EXPECT_TRUE(response.headers().empty());
  EXPECT_EQ(request.getPath(), "/");
}

TEST(HttpRequest, ParsesParametersOnFirstUse) {
  HttpRequest request;
  request.setQuery("a=1&b=x%20y+z&&c&=d&a=2&e=%zz&f=1=2");
  EXPECT_EQ(request.getParam("a"), "1") << "the first counts";
  EXPECT_EQ(request.getParam("B"), "x y z");
  EXPECT_TRUE(request.hasParam("c"));
  EXPECT_EQ(request.getParam("e"), "%zz");
  EXPECT_EQ(request.getParam("f"), "1=2");
  EXPECT_EQ(request.getParam("absent", "def"), "def");
  EXPECT_EQ(request.getParamAs<int>("a"), 1);
  request.setParam("a", "3");
  EXPECT_EQ(request.getParam("a"), "3");
  request.delParam("a");
  EXPECT_FALSE(request.hasParam("a"));
}

TEST(HttpRequest, HasAllValuesOfARepeatedParameter) {
  using Values = std::vector<std::string>;
  HttpRequest request;
  request.setQuery("tag=a&x=1&tag=b%20c&Tag=");
  request.setBody("tag=d");
  request.setHeader("content-type", "application/x-www-form-urlencoded");
  EXPECT_EQ(request.getParamValues("tag"), (Values{"a", "b c", "", "d"}));
  EXPECT_EQ(request.getParamValues("x"), Values{"1"});
  EXPECT_EQ(request.getParamValues("absent"), Values{});
  EXPECT_EQ(request.getParam("tag"), "a");
  EXPECT_EQ(request.getParams().size(), 2u) << "the map has the first of each";
  request.setParam("TAG", "e");
  EXPECT_EQ(request.getParamValues("tag"), Values{"e"});
  request.reset();
  request.setQuery("tag=f&tag=g");
  request.delParam("tag");
  EXPECT_EQ(request.getParamValues("tag"), Values{});
  request.reset();
  request.setQuery("tag=h&tag=i");
  request.initParam();
  request.setParams({{"tag", "j"}});
  EXPECT_EQ(request.getParamValues("tag"), Values{"j"});
}

TEST(HttpRequest, TakesAFormOnlyIfItIsOne) {
  HttpRequest request;
  request.setQuery("a=1");
  request.setBody("a=2&b=3");
  request.setHeader("content-type", "Application/X-WWW-Form-Urlencoded; charset=utf-8");
  EXPECT_EQ(request.getParam("a"), "1");
  EXPECT_EQ(request.getParam("b"), "3");

  HttpRequest text;
  text.setBody("b=3");
  text.setHeader("content-type", "text/plain");
  EXPECT_FALSE(text.hasParam("b"));
}

std::string pairs(size_t count, const std::string& separator) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? separator : "") + "k" + std::to_string(i) + "=v";
  return text;
}

void expectBadRequest(const std::function<void()>& ask) {
  try {
    ask();
    FAIL() << "no HttpError";
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), HttpStatus::BAD_REQUEST);
  }
}

// SEC-15
TEST(HttpRequest, RefusesTooManyParametersEachTimeItIsAsked) {
  HttpRequest most;
  most.setQuery(pairs(256, "&"));
  EXPECT_EQ(most.getParams().size(), 256u);

  HttpRequest more;
  more.setQuery(pairs(257, "&"));
  expectBadRequest([&] { more.getParam("k0"); });
  expectBadRequest([&] { more.getParam("k0"); });

  HttpRequest equal;
  equal.setQuery(pairs(200, "&"));
  equal.setHeader("content-type", "application/x-www-form-urlencoded");
  equal.setBody(pairs(57, "&"));
  expectBadRequest([&] { equal.getParams(); });
}

// SEC-15
TEST(HttpRequest, RefusesTooManyCookies) {
  HttpRequest most;
  most.setHeader("cookie", pairs(64, "; "));
  EXPECT_EQ(most.getCookies().size(), 64u);
  HttpRequest more;
  more.setHeader("cookie", pairs(65, "; "));
  expectBadRequest([&] { more.getCookie("k0"); });
  expectBadRequest([&] { more.getCookie("k0"); });
}

TEST(HttpRequest, ParsesCookies) {
  HttpRequest request;
  request.headerList().add("Cookie", "a=1; b = 2;;c=x=y ");
  request.headerList().add("cookie", "d=4");
  EXPECT_EQ(request.getCookie("a"), "1");
  EXPECT_EQ(request.getCookie("c"), "x=y");
  EXPECT_EQ(request.getCookieAs<int>("d"), 4);
  EXPECT_FALSE(request.hasCookie("e"));
  request.setCookie("e", "5");
  EXPECT_TRUE(request.hasCookie("e"));
  request.delCookie("e");
  EXPECT_FALSE(request.hasCookie("e"));
}

// Otherwise another reader of the same request could see another session.
TEST(HttpRequest, TellsCookiesApartThatDifferInCase) {
  HttpRequest request;
  request.setHeader("cookie", "Session=evil; session=good");
  EXPECT_EQ(request.getCookie("session"), "good");
  EXPECT_EQ(request.getCookie("Session"), "evil");
  EXPECT_FALSE(request.hasCookie("SESSION"));
  request.setCookies({{"a", "1"}});
  request.setCookie("A", "2");
  EXPECT_EQ(request.getCookie("a"), "1");
  EXPECT_EQ(request.getCookie("A"), "2");
}

TEST(HttpRequest, MakesAResponseOfItsKind) {
  HttpRequest request(0x10, false);
  const auto response = request.createResponse();
  EXPECT_EQ(response->getVersion(), 0x10);
  EXPECT_FALSE(response->isClose());
  EXPECT_EQ(response->getStatus(), HttpStatus::OK);
}

TEST(HttpRequest, IsAsNewAfterReset) {
  HttpRequest request(0x10, false);
  request.setMethod(HttpMethod::PUT);
  request.setPath("/x");
  request.setQuery("a=1");
  request.setFragment("f");
  request.setHeader("cookie", "c=1");
  request.setBody("body");
  request.setWebsocket(true);
  request.setPathParam("name", "part");
  EXPECT_TRUE(request.hasParam("a"));
  EXPECT_TRUE(request.hasCookie("c"));
  EXPECT_EQ(request.getHeaders().size(), 1u);
  request.reset();
  EXPECT_EQ(request.toString(), HttpRequest().toString());
  EXPECT_FALSE(request.hasParam("a"));
  EXPECT_FALSE(request.hasCookie("c"));
  EXPECT_EQ(request.getPathParam("name"), "");
  EXPECT_TRUE(request.getHeaders().empty());
  EXPECT_EQ(request.getFragment(), "");
  EXPECT_FALSE(request.isWebsocket());
}

TEST(HttpRequest, DumpsAsAClientWouldSendIt) {
  HttpRequest request(0x11, false);
  request.setMethod(HttpMethod::POST);
  request.setPath("/p");
  request.setQuery("a=b");
  request.setHeader("Host", "h");
  request.setHeader("Content-Length", "999");
  request.setHeader("Connection", "close");
  EXPECT_EQ(request.toString(), "POST /p?a=b HTTP/1.1\r\nconnection: keep-alive\r\nHost: h\r\n\r\n");
  request.setBody("hello");
  EXPECT_EQ(request.toString(), "POST /p?a=b HTTP/1.1\r\nconnection: keep-alive\r\nHost: h\r\ncontent-length: 5\r\n\r\nhello");
}

TEST(HttpRequest, NamedPartOfThePathHasOneValue) {
  HttpRequest request;
  EXPECT_EQ(request.getPathParam("a"), "");
  request.setPathParam("a", "1");
  request.setPathParam("b", "2");
  request.setPathParam("a", "3");
  EXPECT_EQ(request.getPathParam("a"), "3");
  EXPECT_EQ(request.getPathParam("b"), "2");
  EXPECT_EQ(request.getPathParam("A"), "");
}

TEST(HttpRequest, TakesCloseFromTheConnectionHeader) {
  HttpRequest request;
  request.setHeader("Connection", "Keep-Alive");
  request.init();
  EXPECT_FALSE(request.isClose());
  request.setHeader("Connection", "close");
  request.init();
  EXPECT_TRUE(request.isClose());
}

TEST(HttpResponse, RedirectsAndSetsCookies) {
  HttpResponse response;
  response.setRedirect("/there");
  response.setCookie("a", "1");
  response.setCookie("b", "2", 784111777, "/", "example.org", true);
  EXPECT_EQ(response.toString(),
            "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /there\r\nset-cookie: a=1\r\nset-cookie: b=2; expires=Sun, 06 "
            "Nov 1994 "
            "08:49:37 GMT; domain=example.org; path=/; secure\r\ncontent-length: 0\r\n\r\n");
}

TEST(HttpResponse, HasStatusTypeAndBodyFromOneCall) {
  HttpResponse response;
  response.html("<p>", HttpStatus::ACCEPTED);
  EXPECT_EQ(response.getHeader("content-type"), "text/html; charset=utf-8");
  response.text("hi", HttpStatus::CONFLICT);
  EXPECT_EQ(response.getHeader("content-type"), "text/plain; charset=utf-8");
  response.json("{}");
  EXPECT_EQ(response.toString(),
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
}

TEST(HttpResponse, RedirectsWithAStatusOfARedirectionOnly) {
  for (const unsigned status : {301, 302, 303, 307, 308}) {
    HttpResponse response;
    response.redirect("/there", static_cast<HttpStatus>(status));
    EXPECT_EQ(static_cast<unsigned>(response.getStatus()), status);
    EXPECT_EQ(response.getHeader("location"), "/there");
  }
  for (const unsigned status : {200, 300, 304, 305, 306, 309, 404}) {
    HttpResponse response;
    EXPECT_THROW(response.redirect("/there", static_cast<HttpStatus>(status)), std::invalid_argument) << status;
    EXPECT_FALSE(response.hasHeader("location"));
  }
  HttpResponse response;
  EXPECT_THROW(response.redirect("/the\nre"), std::invalid_argument);
  EXPECT_EQ(response.getStatus(), HttpStatus::OK);
}

std::string textOf(const Cookie& cookie) {
  HttpResponse response;
  response.setCookie(cookie);
  return response.getHeader("set-cookie");
}

TEST(HttpResponse, SetsACookieWithAllThatBelongsToIt) {
  EXPECT_EQ(textOf({.name = "a", .value = ""}), "a=");
  EXPECT_EQ(textOf({.name = "a",
                    .value = "1",
                    .path = "/p",
                    .domain = "example.org",
                    .max_age = std::chrono::hours(1),
                    .expires = 784111777,
                    .secure = true,
                    .http_only = true,
                    .same_site = Cookie::SameSite::kStrict}),
            "a=1; expires=Sun, 06 Nov 1994 08:49:37 GMT; max-age=3600; domain=example.org; path=/p; secure; httponly; "
            "samesite=strict");
  EXPECT_EQ(textOf({.name = "a", .value = "1", .max_age = std::chrono::seconds(0)}), "a=1; max-age=0");
  EXPECT_EQ(textOf({.name = "a", .value = "1", .same_site = Cookie::SameSite::kLax}), "a=1; samesite=lax");
  EXPECT_EQ(textOf({.name = "a", .value = "1", .secure = true, .same_site = Cookie::SameSite::kNone}),
            "a=1; secure; samesite=none");
  EXPECT_THROW(textOf({.name = "a", .value = "1", .same_site = Cookie::SameSite::kNone}), std::invalid_argument);
}

TEST(HttpResponse, RefusesACookieValueThatAnotherWouldReadDifferently) {
  for (const std::string& bad : {"a b"s, "a,b"s, "a;b"s, "a\"b"s, "a\\b"s, "a\tb"s, "a\x01"s, "a\x7f"s, "\xc3\xa4"s}) {
    EXPECT_THROW(textOf({.name = "a", .value = bad}), std::invalid_argument) << bad;
    HttpResponse response;
    EXPECT_THROW(response.setCookie("a", bad), std::invalid_argument) << bad;
    EXPECT_TRUE(response.headers().empty());
  }
  EXPECT_EQ(textOf({.name = "a", .value = "!#[]~=%20"}), "a=!#[]~=%20");
}

TEST(FieldList, KeepsOrderAndReplacesInPlace) {
  FieldList list;
  list.add("a", "1");
  list.add("b", "2");
  list.add("A", "3");
  list.set("a", "4");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[0].value, "4");
  EXPECT_EQ(list[1].value, "2");
  EXPECT_TRUE(list.del("B"));
  EXPECT_FALSE(list.del("B"));
}

// A field that is set again and again does not make the list grow without end; what else is in it stays.
TEST(FieldList, GivesBackTheBytesOfReplacedFields) {
  FieldList list;
  list.add("other", "stays");
  for (int i = 0; i < 10000; ++i) list.set("x", std::string(100, static_cast<char>('a' + i % 26)));
  EXPECT_EQ(list.find("other"), "stays");
  EXPECT_EQ(list.find("x"), std::string(100, static_cast<char>('a' + 9999 % 26)));
  EXPECT_LE(list.memory(), 32u * 1024);
}

TEST(Percent, DecodesOnceAndStrictly) {
  EXPECT_EQ(percentDecode("/a%20b%2fC"), "/a b/C");
  EXPECT_EQ(percentDecode("%2541"), "%41");
  EXPECT_EQ(percentDecode("a+b"), "a+b");
  EXPECT_EQ(percentDecode("%00"), "\0"s);
  EXPECT_EQ(percentDecode("%"), std::nullopt);
  EXPECT_EQ(percentDecode("%4"), std::nullopt);
  EXPECT_EQ(percentDecode("%4g"), std::nullopt);
  EXPECT_EQ(percentDecode("x%"), std::nullopt);
  EXPECT_EQ(formDecode("a+b%41%"), "a bA%");
}

TEST(Percent, EncodesWhatDecodesAgain) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percentDecode(percentEncode(all)), all);
  EXPECT_EQ(percentEncode("aZ0-._~ /"), "aZ0-._~%20%2F");
}

}  // namespace
}  // namespace sylar::http
