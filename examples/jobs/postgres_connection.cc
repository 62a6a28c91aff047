#include "postgres_connection.h"

#include <poll.h>

#include <array>

#include "postgres_schema.h"
#include "sylar/fiber.h"

namespace jobs {

namespace {

PGconn* connectTo(const std::string& conninfo) {
  // What comes later wins, so that conninfo may say otherwise. The kernel notices after 15 s of silence if the other side is gone.
  const std::array<const char*, 6> names{
      "keepalives_idle", "keepalives_interval", "keepalives_count", "fallback_application_name", "dbname", nullptr};
  const std::array<const char*, 6> values{"15", "5", "3", "jobs", conninfo.c_str(), nullptr};
  return PQconnectdbParams(names.data(), values.data(), 1);
}

}  // namespace

PostgresConnection::PostgresConnection(const PostgresTarget& target) : m_connection(connectTo(target.conninfo)) {
  if (m_connection == nullptr) throw std::bad_alloc();
  if (PQstatus(m_connection.get()) != CONNECTION_OK)
    throw ConnectionLost(std::string("postgres: ") + PQerrorMessage(m_connection.get()));
  checked(PQexec(m_connection.get(), kPostgresSchema));
  checked(PQexec(m_connection.get(), kPostgresSession));
  for (const auto& [name, text] : kPostgresStatements) checked(PQprepare(m_connection.get(), name, text, 0, nullptr));
}

PostgresConnection::Result PostgresConnection::execute(const char* statement, const std::vector<std::string>& arguments) {
  std::vector<const char*> texts;
  for (const std::string& each : arguments) texts.push_back(each.c_str());
  return checked(
      PQexecPrepared(m_connection.get(), statement, static_cast<int>(texts.size()), texts.data(), nullptr, nullptr, 0));
}

void PostgresConnection::listen(const std::string& channel, const std::function<void(const std::string&)>& heard) {
  checked(PQexec(m_connection.get(), ("LISTEN " + channel).c_str()));
  heard("");
  while (true) {
    while (PGnotify* const notification = PQnotifies(m_connection.get())) {
      const std::string text = notification->extra;
      PQfreemem(notification);
      heard(text);
    }
    pollfd readable{PQsocket(m_connection.get()), POLLIN, 0};
    poll(&readable, 1, -1);
    if (sylar::this_fiber::cancelled()) return;
    if (PQconsumeInput(m_connection.get()) == 0)
      throw ConnectionLost(std::string("postgres: ") + PQerrorMessage(m_connection.get()));
  }
}

PostgresConnection::Result PostgresConnection::checked(PGresult* result) const {
  const ExecStatusType status = PQresultStatus(result);
  Result owned(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return owned;
  const std::string error = std::string("postgres: ") + PQerrorMessage(m_connection.get());
  if (PQstatus(m_connection.get()) != CONNECTION_OK) throw ConnectionLost(error);
  throw StoreError(error);
}

std::string arrayOf(const std::vector<std::string>& texts) {
  std::string array = "{";
  for (const std::string& each : texts) {
    array += array.size() > 1 ? ",\"" : "\"";
    for (const char letter : each) {
      if (letter == '"' || letter == '\\') array += '\\';
      array += letter;
    }
    array += '"';
  }
  return array + '}';
}

}  // namespace jobs
