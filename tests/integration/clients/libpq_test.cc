// Unmodified libpq in many fibers.
#include <libpq-fe.h>

#include <memory>
#include <string>

#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(PGconn* connection) const { ::PQfinish(connection); }
  void operator()(PGresult* result) const { ::PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Free>;

Connection connectTo(const char* host, int port) {
  const std::string target = "user=test dbname=postgres host=" + std::string(host) + " port=" + std::to_string(port);
  return Connection(::PQconnectdb(target.c_str()));
}

/// All values of the result, and the error.
std::string ask(const Connection& connection, const char* query) {
  const std::unique_ptr<PGresult, Free> result(::PQexec(connection.get(), query));
  std::string text;
  for (int row = 0; row < ::PQntuples(result.get()); ++row) {
    for (int column = 0; column < ::PQnfields(result.get()); ++column) {
      text += ::PQgetvalue(result.get(), row, column) + std::string(" ");
    }
  }
  return line(text + ::PQresultErrorMessage(result.get()));
}

std::string client(Server& server) {
  Connection connection = connectTo(Server::kName, server.port());
  std::string said = line(::PQerrorMessage(connection.get()));
  said += ask(connection, "CREATE TEMPORARY TABLE t (i int)");
  said += ask(connection, "INSERT INTO t SELECT generate_series(1, 20000)");
  said += ask(connection, "SELECT i, repeat('x', 20) FROM t ORDER BY i");
  said += ask(connection, "SELECT pg_sleep(0.05), 1");
  said += ask(connection, "SELECT 1 / 0");
  server.stalls();
  said += ask(connection, "SELECT 'after all'");
  server.dies();
  said += ask(connection, "SELECT 'never'");
  said += ask(connection, "SELECT 'neither'");
  server.isGone();
  connection = connectTo(Server::kAddress, server.port());
  said += line(::PQerrorMessage(connection.get()));
  server.returns();
  ::PQreset(connection.get());
  said += ask(connection, "SELECT 'again'");
  return said;
}

// HA-6
TEST(Libpq, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("postgres", &client); }

}  // namespace
}  // namespace sylar::test
