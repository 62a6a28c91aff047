// A connection to PostgreSQL by libpq, as it is: its blocking calls suspend the fiber that makes them.
#pragma once

#include <libpq-fe.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job.h"

namespace jobs {

struct PostgresTarget {
  std::string conninfo;  ///< key=value ..., or a URI
};

/// Thread safety: none.
class PostgresConnection {
 public:
  struct Free {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };

  /// The rows of an answer.
  class Result {
   public:
    explicit Result(PGresult* result) : m_result(result) {}
    int rows() const { return PQntuples(m_result.get()); }
    bool isNull(int row, int column) const { return PQgetisnull(m_result.get(), row, column) != 0; }
    std::string text(int row, int column) const { return PQgetvalue(m_result.get(), row, column); }
    int64_t number(int row, int column) const { return std::stoll(text(row, column)); }
    Time time(int row, int column) const { return Time(number(row, column)); }

   private:
    std::unique_ptr<PGresult, Free> m_result;
  };

  /// Connects, makes the schema if there is none, and prepares the statements of postgres_schema.h. Throws StoreError.
  explicit PostgresConnection(const PostgresTarget& target);

  /// Executes a statement that was prepared. Throws StoreError, ConnectionLost.
  Result execute(const char* statement, const std::vector<std::string>& arguments);
  /// Calls `heard` with each notification of `channel` from now on, and first with "". Returns when the fiber is cancelled, and
  /// throws ConnectionLost.
  void listen(const std::string& channel, const std::function<void(const std::string&)>& heard);

 private:
  Result checked(PGresult* result) const;

  const std::unique_ptr<PGconn, Free> m_connection;
};

/// What array literals of PostgreSQL look like.
std::string arrayOf(const std::vector<std::string>& texts);

}  // namespace jobs
