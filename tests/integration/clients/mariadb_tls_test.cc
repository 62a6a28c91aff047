// Unmodified libmariadb over TLS in many fibers of which some fail. OpenSSL keeps a queue of errors for each thread.
#include <mysql.h>
#include <poll.h>

#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"
#include "tests/integration/server_process.h"
#include "tests/support/certificate.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(MYSQL* connection) const { ::mysql_close(connection); }
  void operator()(MYSQL_RES* result) const { ::mysql_free_result(result); }
};

/// All values of the result, and the error.
std::string ask(Users& us, MYSQL* connection, const std::string& query) {
  us.meet();
  std::string text;
  if (::mysql_real_query(connection, query.data(), query.size()) == 0) {
    if (const std::unique_ptr<MYSQL_RES, Free> result{::mysql_store_result(connection)}) {
      while (const MYSQL_ROW row = ::mysql_fetch_row(result.get())) text += row[0] + std::string(" ");
    }
  }
  us.meet();
  return text + std::to_string(::mysql_errno(connection)) + ' ' + ::mysql_error(connection) + '\n';
}

TEST(MariadbTls, SeesInFibersWhatItSeesInThreads) {
  ASSERT_EQ(::mysql_library_init(0, nullptr, nullptr), 0);
  ServerProcess server("mariadb_tls");
  const Certificate certificate(server.port(), "-starttls mysql"), other;
  seesInFibersWhatItSeesInThreads(7, [&](Users& us, size_t i) {
    const std::string number = std::to_string(i);
    const char* const host = i % 8 == 1 ? "localhost" : "127.0.0.1";  // of which only one is in the certificate
    const auto port = static_cast<unsigned>(i % 8 == 3 ? 1 : server.port());
    std::string seen;
    for (int round = 0; round < 3; ++round) {
      const std::unique_ptr<MYSQL, Free> connection(::mysql_init(nullptr));
      const unsigned tcp = MYSQL_PROTOCOL_TCP, second = 1;
      const my_bool yes = 1;
      ::mysql_options(connection.get(), MYSQL_OPT_PROTOCOL, &tcp);
      ::mysql_options(connection.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
      ::mysql_options(connection.get(), MYSQL_OPT_SSL_CA, (i % 8 == 2 ? other : certificate).path().c_str());
      if (i % 8 == 5) ::mysql_options(connection.get(), MYSQL_OPT_READ_TIMEOUT, &second);
      us.meet();
      const bool connected = ::mysql_real_connect(connection.get(), host, "root", "", "test", port, nullptr, 0) != nullptr;
      us.meet();
      const char* const cipher = connected ? ::mysql_get_ssl_cipher(connection.get()) : "none";
      seen += std::string(::mysql_error(connection.get())) + ' ' + (cipher != nullptr ? cipher : "plain") + '\n';
      seen += ask(us, connection.get(), "SELECT SLEEP(0.01) + " + number);
      switch (i % 8) {
        case 4: seen += ask(us, connection.get(), "SELECT nothing_" + number); break;
        case 5: seen += ask(us, connection.get(), "SELECT SLEEP(1000)"); break;
        case 6: seen += ask(us, connection.get(), "KILL CONNECTION_ID()"); break;
        default: seen += ask(us, connection.get(), "SELECT REPEAT('" + number + "', 20) FROM seq_1_to_50"); break;
      }
      if (i % 8 == 6) {  // the server has closed before the next query, so its error is certain
        pollfd closed{static_cast<int>(::mysql_get_socket(connection.get())), POLLRDHUP, 0};
        EXPECT_EQ(::poll(&closed, 1, -1), 1);
      }
      seen += ask(us, connection.get(), "SELECT " + number);
    }
    ::mysql_thread_end();
    return seen;
  });
  ::mysql_library_end();
}

}  // namespace
}  // namespace sylar::test
