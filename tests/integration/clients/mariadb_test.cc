// Unmodified libmariadb in many fibers.
#include <mysql.h>

#include <memory>
#include <string>

#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(MYSQL* connection) const { ::mysql_close(connection); }
  void operator()(MYSQL_RES* result) const { ::mysql_free_result(result); }
};
using Connection = std::unique_ptr<MYSQL, Free>;

std::string connect(const Connection& connection, const char* host, int port) {
  ::mysql_real_connect(connection.get(), host, "root", "", "test", static_cast<unsigned>(port), nullptr, 0);
  return line(::mysql_error(connection.get()));
}

/// All values of the result, and the error.
std::string ask(const Connection& connection, const std::string& query) {
  std::string text;
  if (::mysql_real_query(connection.get(), query.data(), query.size()) == 0) {
    if (const std::unique_ptr<MYSQL_RES, Free> result{::mysql_store_result(connection.get())}) {
      while (const MYSQL_ROW row = ::mysql_fetch_row(result.get())) {
        for (unsigned column = 0; column < ::mysql_num_fields(result.get()); ++column) text += row[column] + std::string(" ");
      }
    }
  }
  return line(text + ::mysql_error(connection.get()));
}

std::string client(Server& server) {
  Connection connection(::mysql_init(nullptr));
  std::string said = connect(connection, Server::kName, server.port());
  said += ask(connection, "CREATE TEMPORARY TABLE t (text LONGTEXT)");
  said += ask(connection, "INSERT INTO t VALUES ('" + std::string(300'000, 'x') + "')");
  said += ask(connection, "SELECT seq, (SELECT text FROM t) FROM seq_1_to_5");
  said += ask(connection, "SELECT SLEEP(0.05), 1");
  said += ask(connection, "SELECT nothing");
  server.stalls();
  said += ask(connection, "SELECT 'after all'");
  server.dies();
  said += ask(connection, "SELECT 'never'");
  said += ask(connection, "SELECT 'neither'");
  server.isGone();
  connection.reset(::mysql_init(nullptr));
  said += connect(connection, Server::kAddress, server.port());
  server.returns();
  said += connect(connection, Server::kAddress, server.port());
  said += ask(connection, "SELECT 'again'");
  return said;
}

// HA-6
TEST(Mariadb, SaysInFibersWhatItSaysOnAThread) {
  ASSERT_EQ(::mysql_library_init(0, nullptr, nullptr), 0);
  saysInFibersWhatItSaysOnAThread("mariadb_in_brief", &client);
  ::mysql_library_end();
}

}  // namespace
}  // namespace sylar::test
