#include "sylar/http/http_connection.h"

#include <string>

#include "tests/client/web_server.h"

namespace sylar::test {
namespace {

using http::HttpConnection;
using http::HttpConnectionPool;
using http::HttpMethod;
using http::HttpResult;
using http::HttpStatus;
using Error = HttpResult::Error;

int number(Error error) { return static_cast<int>(error); }

class HttpConnectionTest : public InBothPlaces {
 protected:
  void TearDown() override { BlockingPool::process().endAll(); }
};
INSTANTIATE_TEST_SUITE_P(Places, HttpConnectionTest, kPlaces, placeName);

TEST_P(HttpConnectionTest, HasTheCallsAndNumbersOfSylar) {
  run([] {
    const WebServer server(echoing());
    const HttpResult::ptr got = HttpConnection::DoGet(server.url("/echo?a=1"), 5000, {{"X-Own", "mine"}});
    ASSERT_EQ(got->result, 0) << got->error;
    EXPECT_EQ(got->response->getStatus(), HttpStatus::OK);
    EXPECT_EQ(got->response->getHeader("x-got-x-own"), "mine");
    EXPECT_NE(got->toString().find("result=0"), std::string::npos);
    const HttpResult::ptr posted = HttpConnection::DoPost(server.url("/echo"), 5000, {}, "body");
    ASSERT_EQ(posted->result, 0) << posted->error;
    EXPECT_EQ(posted->response->getBody(), "body");
    EXPECT_EQ(HttpConnection::DoRequest(HttpMethod::PUT, server.url("/echo"), 5000, {}, "put")->response->getBody(), "put");
    EXPECT_EQ(HttpConnection::DoGet(server.url("/nothing"), 5000)->response->getStatus(), HttpStatus::NOT_FOUND);
    EXPECT_EQ(HttpConnection::DoGet("nonsense", 5000)->result, number(Error::INVALID_URL));
    EXPECT_EQ(HttpConnection::DoGet("http://name.invalid/", 5000)->result, number(Error::INVALID_HOST));
    const Socket::ptr nobody = heldPort();
    const HttpResult::ptr refused = HttpConnection::DoGet("http://" + nobody->getLocalAddress()->toString() + "/", 5000);
    EXPECT_EQ(refused->result, number(Error::CONNECT_FAIL));
    EXPECT_EQ(refused->response, nullptr);
    EXPECT_EQ(HttpConnection::DoGet(server.url("/slow"), 30)->result, number(Error::TIMEOUT));
    EXPECT_EQ(HttpConnection::DoGet(server.url("/echo"), 0)->result, number(Error::TIMEOUT));
  });
}

// CD-N6
TEST_P(HttpConnectionTest, APoolKeepsItsConnections) {
  run([] {
    const WebServer server(echoing());
    const HttpConnectionPool::ptr pool = HttpConnectionPool::Create(server.url("/ignored"), "virtual.test", 10, 30'000, 5);
    ASSERT_NE(pool, nullptr);
    for (int i = 0; i < 5; ++i) {
      const HttpResult::ptr got = pool->doGet("/echo", 5000);
      ASSERT_EQ(got->result, 0) << got->error;
      EXPECT_EQ(got->response->getHeader("x-got-host"), "virtual.test");
    }
    EXPECT_EQ(server.connections(), 1u);
    EXPECT_EQ(pool->doPost("echo", 5000, {}, "body")->response->getBody(), "body");
    EXPECT_EQ(HttpConnectionPool::Create("ftp://a/", "", 10, 30'000, 5), nullptr);
  });
}

}  // namespace
}  // namespace sylar::test
