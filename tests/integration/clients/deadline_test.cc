// What unmodified client libraries say when a DeadlineScope ends a call, beside what they say when their own timeout does: the
// same, wherever they have one. The servers take connections and then are silent at each place where a client may wait for them.
#include <curl/curl.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <mysql.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "sylar/testing/virtual_time.h"
#include "tests/hook/support.h"
#include "tests/integration/clients/silent_servers.h"
#include "tests/integration/server_process.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 200ms;
constexpr timeval kTimeval{0, std::chrono::microseconds(kTimeout).count()};
constexpr size_t kLarge = 20'000'000;  // more than the kernel takes

struct Servers {
  Full full;
  Silent silent;
  Greeting postgres{greetLikePostgres};
  Greeting tls{TlsGreeter()};
  ServerProcess mariadb{"mariadb_in_brief"};
};

// ---- The clients. ---------------------------------------------------------------------------------------------------------------

/// What bounds a client's last call: a timeout of its own, or a DeadlineScope on virtual time, which stands still until then.
class Bound {
 public:
  Bound() = default;
  explicit Bound(VirtualTime& time) : m_time(&time), m_hold(std::make_unique<VirtualTime::Hold>(time)) {}

  bool own() const { return m_time == nullptr; }

  template <class Call>
  auto operator()(Call call) {
    m_hold = nullptr;
    return own() ? call() : withDeadline(Deadline::after(1min, *m_time), call);
  }
  /// Lets the time go on when the call has been greeted.
  template <class Call>
  auto operator()(Call call, Greeting& by) {
    if (own()) return call();
    std::thread waits([&, times = by.greeted().count() + 1] {
      EXPECT_TRUE(by.greeted().wait(times));
      m_hold = nullptr;
    });
    const auto result = withDeadline(Deadline::after(1min, *m_time), call);
    waits.join();
    return result;
  }

 private:
  VirtualTime* const m_time = nullptr;
  std::unique_ptr<VirtualTime::Hold> m_hold;
};

/// Performs a transfer by `perform`.
template <class Perform>
std::string curl(bool own, const std::string& scheme, int port, size_t body_size, Perform perform) {
  const Owned<CURL, ::curl_easy_cleanup> easy(::curl_easy_init());
  const std::string body(body_size, 'x');
  ::curl_easy_setopt(easy.get(), CURLOPT_URL, (scheme + "://127.0.0.1:" + std::to_string(port) + "/").c_str());
  ::curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYPEER, 0L);
  ::curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  if (body_size > 0) {
    ::curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body_size));
    ::curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDS, body.data());
  }
  if (own) ::curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(kTimeout.count()));
  const CURLcode result = perform([&] { return ::curl_easy_perform(easy.get()); });
  return std::to_string(result) + ' ' + ::curl_easy_strerror(result);
}
std::string curl(Bound& bound, const std::string& scheme, int port, size_t body_size = 0) {
  return curl(bound.own(), scheme, port, body_size, [&](auto call) { return bound(call); });
}
std::string curl(Bound& bound, Greeting& by, size_t body_size = 0) {
  return curl(bound.own(), "https", by.port(), body_size, [&](auto call) { return bound(call, by); });
}
std::string curlFreely(const std::string& scheme, int port) {
  return curl(false, scheme, port, 0, [](auto call) { return call(); });
}

std::string textOf(const redisContext& context) { return std::to_string(context.err) + ' ' + context.errstr; }

std::string hiredisConnects(Bound& bound, int port) {
  const Owned<redisContext, ::redisFree> context(bound(
      [&] { return bound.own() ? ::redisConnectWithTimeout("127.0.0.1", port, kTimeval) : ::redisConnect("127.0.0.1", port); }));
  return textOf(*context);
}

std::string hiredis(Bound& bound, int port, size_t size = 1) {
  const Owned<redisContext, ::redisFree> context(::redisConnect("127.0.0.1", port));
  if (bound.own()) ::redisSetTimeout(context.get(), kTimeval);
  const std::string value(size, 'x');
  EXPECT_EQ(bound([&] { return ::redisCommand(context.get(), "SET key %b", value.data(), value.size()); }), nullptr);
  return textOf(*context);
}

std::string targetOf(int port) {
  return "host=127.0.0.1 user=test dbname=test sslmode=disable gssencmode=disable port=" + std::to_string(port);
}

std::string libpqConnects(Bound& bound, int port) {
  const std::string target = targetOf(port) + (bound.own() ? " connect_timeout=2" : "");  // the least that it has
  const Owned<PGconn, ::PQfinish> connection(bound([&] { return ::PQconnectdb(target.c_str()); }));
  return ::PQerrorMessage(connection.get());
}

/// It has no timeout there, so this says what it says of that for a connection. The end of a connection may have to wait as well.
std::string libpq(Bound& bound, int port, const std::string& query) {
  if (bound.own()) return "timeout expired\n";
  PGconn* const connection = ::PQconnectdb(targetOf(port).c_str());
  EXPECT_EQ(::PQstatus(connection), CONNECTION_OK) << ::PQerrorMessage(connection);
  return bound([&] {
    ::PQclear(::PQexec(connection, query.c_str()));
    const std::string error = ::PQerrorMessage(connection);
    ::PQfinish(connection);
    return error;
  });
}

std::string textOf(MYSQL* connection) { return std::to_string(::mysql_errno(connection)) + ' ' + ::mysql_error(connection); }

void setTimeouts(MYSQL* connection, unsigned seconds) {
  for (const mysql_option option : {MYSQL_OPT_CONNECT_TIMEOUT, MYSQL_OPT_READ_TIMEOUT, MYSQL_OPT_WRITE_TIMEOUT})
    ::mysql_options(connection, option, &seconds);
}

MYSQL* connectTo(int port, MYSQL* connection) {
  return ::mysql_real_connect(connection, "127.0.0.1", "root", "", "test", static_cast<unsigned>(port), nullptr, 0);
}

std::string mariadbConnects(Bound& bound, int port) {
  const Owned<MYSQL, ::mysql_close> connection(::mysql_init(nullptr));
  if (bound.own()) setTimeouts(connection.get(), 1);  // the least that it has
  EXPECT_EQ(bound([&] { return connectTo(port, connection.get()); }), nullptr);
  return textOf(connection.get());
}

/// By a socket BIO on a blocking socket, for which SO_RCVTIMEO and SO_SNDTIMEO are the timeouts.
class Tls {
 public:
  explicit Tls(int port) : m_context(::SSL_CTX_new(::TLS_client_method())), m_tls(::SSL_new(m_context.get())) {
    sockaddr_in address = loopback();
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(::connect(m_fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::SSL_set_fd(m_tls.get(), m_fd);
  }
  ~Tls() { ::close(m_fd); }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  SSL* get() const { return m_tls.get(); }
  void setTimeouts() const {
    EXPECT_EQ(::setsockopt(m_fd, SOL_SOCKET, SO_RCVTIMEO, &kTimeval, sizeof kTimeval), 0);
    EXPECT_EQ(::setsockopt(m_fd, SOL_SOCKET, SO_SNDTIMEO, &kTimeval, sizeof kTimeval), 0);
  }
  /// What OpenSSL has to say of the result of a call.
  std::string said(int result) const {
    return std::to_string(::SSL_get_error(m_tls.get(), result)) + ' ' + std::to_string(::ERR_peek_error());
  }

 private:
  const int m_fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const Owned<SSL_CTX, ::SSL_CTX_free> m_context;
  const Owned<SSL, ::SSL_free> m_tls;
};

std::string opensslMakesAHandshake(Bound& bound, int port) {
  const Tls tls(port);
  if (bound.own()) tls.setTimeouts();
  return tls.said(bound([&] { return ::SSL_connect(tls.get()); }));
}

std::string opensslReceives(Bound& bound, int port) {
  const Tls tls(port);
  EXPECT_EQ(::SSL_connect(tls.get()), 1);
  if (bound.own()) tls.setTimeouts();
  char byte;
  return tls.said(bound([&] { return ::SSL_read(tls.get(), &byte, 1); }));
}

std::string opensslSends(Bound& bound, int port) {
  const Tls tls(port);
  EXPECT_EQ(::SSL_connect(tls.get()), 1);
  if (bound.own()) tls.setTimeouts();
  const std::string bytes(kLarge, 'x');
  return tls.said(bound([&] { return ::SSL_write(tls.get(), bytes.data(), static_cast<int>(bytes.size())); }));
}

// ---- The comparison.
// ---------------------------------------------------------------------------------------------------------------

struct Place {
  const char* name;
  std::string (*talk)(Bound& bound, Servers& at);
};
std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.name; }

const Place kPlaces[] = {
    {"CurlConnects", [](Bound& bound, Servers& at) { return curl(bound, "http", at.full.port()); }},
    {"CurlReceives", [](Bound& bound, Servers& at) { return curl(bound, "http", at.silent.port()); }},
    {"CurlSends", [](Bound& bound, Servers& at) { return curl(bound, "http", at.silent.port(), kLarge); }},
    {"CurlConnectsForTls", [](Bound& bound, Servers& at) { return curl(bound, "https", at.full.port()); }},
    {"CurlMakesAHandshake", [](Bound& bound, Servers& at) { return curl(bound, "https", at.silent.port()); }},
    {"CurlReceivesByTls", [](Bound& bound, Servers& at) { return curl(bound, at.tls); }},
    {"CurlSendsByTls", [](Bound& bound, Servers& at) { return curl(bound, at.tls, kLarge); }},
    {"HiredisConnects", [](Bound& bound, Servers& at) { return hiredisConnects(bound, at.full.port()); }},
    {"HiredisReceives", [](Bound& bound, Servers& at) { return hiredis(bound, at.silent.port()); }},
    {"HiredisSends", [](Bound& bound, Servers& at) { return hiredis(bound, at.silent.port(), kLarge); }},
    {"LibpqConnects", [](Bound& bound, Servers& at) { return libpqConnects(bound, at.full.port()); }},
    {"LibpqIsLetIn", [](Bound& bound, Servers& at) { return libpqConnects(bound, at.silent.port()); }},
    {"LibpqReceives", [](Bound& bound, Servers& at) { return libpq(bound, at.postgres.port(), "SELECT 1"); }},
    {"LibpqSends", [](Bound& bound, Servers& at) { return libpq(bound, at.postgres.port(), std::string(kLarge, ' ')); }},
    {"MariadbConnects", [](Bound& bound, Servers& at) { return mariadbConnects(bound, at.full.port()); }},
    {"MariadbIsLetIn", [](Bound& bound, Servers& at) { return mariadbConnects(bound, at.silent.port()); }},
    {"OpensslMakesAHandshake", [](Bound& bound, Servers& at) { return opensslMakesAHandshake(bound, at.silent.port()); }},
    {"OpensslReceives", [](Bound& bound, Servers& at) { return opensslReceives(bound, at.tls.port()); }},
    {"OpensslSends", [](Bound& bound, Servers& at) { return opensslSends(bound, at.tls.port()); }},
};

class DeadlineOfClient : public testing::TestWithParam<Place> {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(::curl_global_init(CURL_GLOBAL_ALL), CURLE_OK);
    ASSERT_EQ(::mysql_library_init(0, nullptr, nullptr), 0);
    s_servers = new Servers;
  }
  static void TearDownTestSuite() {
    delete s_servers;
    ::mysql_library_end();
  }
  static inline Servers* s_servers = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Places, DeadlineOfClient, testing::ValuesIn(kPlaces),
                         [](const auto& place) { return std::string(place.param.name); });

// HA-12. On virtual time, where the clock jumps as soon as the client waits.
TEST_P(DeadlineOfClient, SaysWhatItsOwnTimeoutSays) {
  const Place& place = GetParam();
  std::string own;
  std::thread([&] {
    Bound by_itself;
    own = place.talk(by_itself, *s_servers);
  }).join();
  VirtualTime time;
  time.run([&] {
    Bound by_scope(time);
    EXPECT_EQ(place.talk(by_scope, *s_servers), own);
  });
  EXPECT_GE(time.elapsed(), 1min);
  EXPECT_LE(time.elapsed(), 1min + 1s);
}

// In real time, because the server is a process of its own.
TEST_F(DeadlineOfClient, MariadbSaysThatItHasLostTheServer) {
  const auto ask = [](MYSQL* connection) {
    const std::string query = "SELECT SLEEP(100)";
    EXPECT_NE(::mysql_real_query(connection, query.data(), query.size()), 0);
    return textOf(connection);
  };
  std::string own;
  std::thread([&] {
    const Owned<MYSQL, ::mysql_close> connection(::mysql_init(nullptr));
    setTimeouts(connection.get(), 5);  // for the connection as well, which a busy machine must be able to make
    ASSERT_NE(connectTo(s_servers->mariadb.port(), connection.get()), nullptr) << ::mysql_error(connection.get());
    own = ask(connection.get());
  }).join();
  inFiber([&] {
    const Owned<MYSQL, ::mysql_close> connection(::mysql_init(nullptr));
    ASSERT_NE(connectTo(s_servers->mariadb.port(), connection.get()), nullptr) << ::mysql_error(connection.get());
    EXPECT_EQ(withDeadline(Deadline::after(kTimeout), [&] { return ask(connection.get()); }), own);
  });
}

// A cancelled transfer ends as if the program had ended it by a callback.
TEST_F(DeadlineOfClient, CurlSaysOfACancelThatItWasAborted) {
  const auto fiber =
      std::make_shared<Fiber>([&] { EXPECT_EQ(curlFreely("http", s_servers->silent.port()).substr(0, 3), "42 "); });
  IOManager iom(1, false, "test");
  iom.schedule(fiber);
  iom.schedule([&] { fiber->cancel(); });
}

// The errors of a handle that cannot be used are libcurl's own.
TEST_F(DeadlineOfClient, CurlKeepsItsOtherErrors) {
  inFiber([] {
    withDeadline(Deadline::after(0ms), [] {
      EXPECT_EQ(::curl_easy_perform(nullptr), CURLE_BAD_FUNCTION_ARGUMENT);
      EXPECT_EQ(curlFreely("nothing", 1).substr(0, 2), "1 ");
    });
    EXPECT_EQ(curlFreely("http", 1).substr(0, 2), "7 ") << "nobody listens there";
  });
}

}  // namespace
}  // namespace sylar::test
