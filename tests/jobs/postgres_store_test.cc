// The store in PostgreSQL keeps the contract, with a real server.
#include "examples/jobs/postgres_store.h"

#include "tests/integration/server_process.h"
#include "tests/jobs/store_contract.h"

namespace jobs {
namespace {

const auto& g_server = sylar::test::ServerOfAllTests::add("postgres");

const MakeStore kPostgres{[] {
  const std::string port = std::to_string(g_server->port());
  return std::make_unique<PostgresStore>(PostgresTarget{"host=127.0.0.1 user=test dbname=postgres port=" + port});
}};
INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract, testing::Values(kPostgres), [](const auto&) { return "Store"; });

/// Executes SQL as somebody who looks after the database does. Returns what the server complains of.
std::string sql(const std::string& text) {
  const std::string port = std::to_string(g_server->port());
  const std::unique_ptr<PGconn, PostgresConnection::Free> connection(
      PQconnectdb(("host=127.0.0.1 user=test dbname=postgres port=" + port).c_str()));
  const PostgresConnection::Result result(PQexec(connection.get(), text.c_str()));
  return PQerrorMessage(connection.get());
}

// J-11: what Redis keeps under several keys is one row here, which is there or not, and is whole.
TEST(PostgresDamage, NoJobCanBeDamagedInPart) {
  sylar::test::inFiber([] {
    const auto store = kPostgres.make();
    for (const char* id : {"x", "y"}) store->put({{id, "1", When::at(Time(1000))}});
    for (const char* change :
         {"payload = null", "due = null", "due = 'x'", "due = 9223372036854775807", "due = -9223372036854775807", "period = null",
          "period = -1", "period = 9223372036854775807", "at = null", "at = 9223372036854775807", "at = -9223372036854775807",
          "died = 1", "died = 1, at = 9223372036854775807", "run = null", "token = null", "attempts = null",
          "attempts = 2147483648"}) {
      EXPECT_NE(sql(std::string("UPDATE jobs.job SET ") + change + " WHERE id = 'x'"), "") << change;
    }
    EXPECT_EQ(sql("DELETE FROM jobs.job WHERE id = 'x'"), "");
    EXPECT_EQ(store->cancel("x"), Cancelled::kGone);
    EXPECT_FALSE(store->retry("x"));
    const Claims claims = store->claim({10, Micros(0), kHour, 5});
    ASSERT_EQ(claims.taken.size(), 1U);
    EXPECT_EQ(store->settle({{"x", 1}, {"y", claims.taken[0].token}}), 1U);
    EXPECT_EQ(store->counts().jobs, 0U);
  });
}

// What a replica was told was no number, and ended the process.
TEST(PostgresDamage, WhatAnybodyNotifiesEndsNoListener) {
  sylar::test::inFiber([] {
    const auto store = kPostgres.make();
    sylar::TaskGroup listener;
    std::vector<Time> heard;
    std::vector<sylar::Event> events(3);
    listener.spawn([&] {
      store->listen([&](Time at) {
        heard.push_back(at);
        events[std::min(heard.size(), events.size()) - 1].set();
      });
    });
    events[0].wait();
    EXPECT_EQ(sql("NOTIFY jobs, 'soon'"), "");
    events[1].wait();
    EXPECT_EQ(sql("NOTIFY jobs, '1000'"), "");
    events[2].wait();
    EXPECT_EQ(heard, (std::vector<Time>{Time(0), Time(0), Time(1000)}));
    listener.cancel();
  });
}

}  // namespace
}  // namespace jobs
