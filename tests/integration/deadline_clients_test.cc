// Unmodified clients that talk to a server which never answers, within a DeadlineScope: their calls end on time, and what they
// leave can be closed. On virtual time, where the deadline is an hour away.
#include <curl/curl.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <string>

#include "sylar/testing/virtual_time.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// The kernel makes connections to it, and nobody reads from them.
class SilentServer {
 public:
  SilentServer() : m_fd(boundSocket(libcCalls(), SOCK_STREAM)) {}
  ~SilentServer() { libcCalls().close(m_fd); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  int port() const { return ntohs(addressOf(m_fd).sin_port); }

 private:
  const int m_fd;
};

/// Runs `body` in a fiber whose time is up after an hour, and returns how long it took.
std::chrono::nanoseconds forAnHour(const std::function<void()>& body) {
  VirtualTime time;
  time.run([&] { withDeadline(Deadline::after(1h, time), body); });
  return time.elapsed();
}

TEST(DeadlineClients, Hiredis) {
  const SilentServer server;
  const auto took = forAnHour([&] {
    redisContext* const context = ::redisConnect("127.0.0.1", server.port());
    ASSERT_NE(context, nullptr);
    ASSERT_EQ(context->err, 0) << context->errstr;
    EXPECT_EQ(::redisCommand(context, "PING"), nullptr);
    EXPECT_EQ(context->err, REDIS_ERR_IO) << context->errstr;
    EXPECT_EQ(::redisCommand(context, "PING"), nullptr) << "it has failed, and says so at once";
    ::redisFree(context);
  });
  EXPECT_EQ(took, 1h);
}

TEST(DeadlineClients, Libpq) {
  const SilentServer server;
  const auto took = forAnHour([&] {
    const std::string target = "host=127.0.0.1 user=nobody dbname=none sslmode=disable port=" + std::to_string(server.port());
    PGconn* const connection = ::PQconnectdb(target.c_str());
    ASSERT_NE(connection, nullptr);
    EXPECT_EQ(::PQstatus(connection), CONNECTION_BAD) << ::PQerrorMessage(connection);
    ::PQfinish(connection);
  });
  EXPECT_EQ(took, 1h);
}

TEST(DeadlineClients, Libcurl) {
  const SilentServer server;
  ASSERT_EQ(::curl_global_init(CURL_GLOBAL_ALL), CURLE_OK);
  const auto took = forAnHour([&] {
    CURL* const easy = ::curl_easy_init();
    ASSERT_NE(easy, nullptr);
    const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
    ::curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    EXPECT_NE(::curl_easy_perform(easy), CURLE_OK);
    ::curl_easy_cleanup(easy);
  });
  EXPECT_GE(took, 1h);
  EXPECT_LE(took, 1h + 1s);
}

}  // namespace
}  // namespace sylar::test
