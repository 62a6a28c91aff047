// Unmodified libpq over TLS in many fibers of which some fail. OpenSSL keeps a queue of errors for each thread.
#include <libpq-fe.h>

#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"
#include "tests/integration/server_process.h"
#include "tests/support/certificate.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(PGconn* connection) const { ::PQfinish(connection); }
  void operator()(PGresult* result) const { ::PQclear(result); }
};

/// All values of the result, and the error.
std::string ask(Users& us, PGconn* connection, const std::string& query) {
  us.meet();
  const std::unique_ptr<PGresult, Free> result(::PQexec(connection, query.c_str()));
  us.meet();
  std::string text;
  for (int row = 0; row < ::PQntuples(result.get()); ++row) text += ::PQgetvalue(result.get(), row, 0) + std::string(" ");
  return text + ::PQresultErrorMessage(result.get()) + '\n';
}

TEST(LibpqTls, SeesInFibersWhatItSeesInThreads) {
  ServerProcess server("postgres_tls");
  const Certificate certificate(server.port(), "-starttls postgres"), other;
  seesInFibersWhatItSeesInThreads(7, [&](Users& us, size_t i) {
    const std::string number = std::to_string(i);
    const std::string target = "user=test dbname=postgres sslmode=verify-full hostaddr=127.0.0.1 host=" +
                               std::string(i % 8 == 1 ? "other.test" : "server.test") +
                               " sslrootcert=" + (i % 8 == 2 ? other : certificate).path() +
                               " port=" + (i % 8 == 3 ? "1" : std::to_string(server.port()));
    std::string seen;
    for (int round = 0; round < 3; ++round) {
      us.meet();
      const std::unique_ptr<PGconn, Free> connection(::PQconnectdb(target.c_str()));
      us.meet();
      seen += ::PQerrorMessage(connection.get()) + std::to_string(::PQsslInUse(connection.get())) + '\n';
      seen += ask(us, connection.get(), "SELECT " + number + " FROM (SELECT pg_sleep(0.01)) AS slept");
      switch (i % 8) {
        case 4: seen += ask(us, connection.get(), "SELECT 1 / 0, " + number); break;
        case 5: seen += ask(us, connection.get(), "SET statement_timeout = 20; SELECT pg_sleep(1000)"); break;
        case 6: seen += ask(us, connection.get(), "SELECT pg_terminate_backend(pg_backend_pid())"); break;
        default: seen += ask(us, connection.get(), "SELECT repeat('" + number + "', 20) FROM generate_series(1, 50)"); break;
      }
      seen += ask(us, connection.get(), "SELECT " + number);
    }
    return seen;
  });
}

}  // namespace
}  // namespace sylar::test
