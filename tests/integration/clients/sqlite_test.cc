// Unmodified SQLite in many fibers: with a connection each, which wait for the lock of the file, and with one connection, which
// they wait for by its mutex.
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/integration/clients/crowd.h"

namespace sylar::test {
namespace {

constexpr int kPatienceMs = std::chrono::milliseconds(kPatience).count();

struct Free {
  void operator()(sqlite3* database) const { EXPECT_EQ(::sqlite3_close(database), SQLITE_OK); }
  void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
};

/// A connection.
class Database {
 public:
  explicit Database(const std::string& path, int busy_ms = kPatienceMs) {
    sqlite3* opened = nullptr;
    EXPECT_EQ(
        ::sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr),
        SQLITE_OK);
    m_connection.reset(opened);
    EXPECT_EQ(::sqlite3_busy_timeout(opened, busy_ms), SQLITE_OK);
    EXPECT_EQ(::sqlite3_create_function(opened, "pause", 0, SQLITE_UTF8, nullptr, &pause, nullptr, nullptr), SQLITE_OK);
  }

  /// The first value of the result, or the error.
  std::string ask(const std::string& query) {
    sqlite3_stmt* prepared = nullptr;
    if (::sqlite3_prepare_v2(m_connection.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) return error();
    const std::unique_ptr<sqlite3_stmt, Free> statement(prepared);
    std::string value;
    int result;
    while ((result = ::sqlite3_step(prepared)) == SQLITE_ROW) {
      const unsigned char* const text = ::sqlite3_column_text(prepared, 0);
      if (value.empty() && text != nullptr) value = reinterpret_cast<const char*>(text);
    }
    return result == SQLITE_DONE ? value : error();
  }
  void waitsForNoDisk() { EXPECT_EQ(ask("PRAGMA synchronous=OFF"), ""); }
  sqlite3_mutex* mutex() { return ::sqlite3_db_mutex(m_connection.get()); }

 private:
  std::string error() { return ::sqlite3_errmsg(m_connection.get()); }

  /// pause() in SQL lets other fibers run in the middle of a statement.
  static void pause(sqlite3_context* context, int, sqlite3_value**) {
    ::usleep(1);
    ::sqlite3_result_int(context, 1);
  }

  std::unique_ptr<sqlite3, Free> m_connection;
};

class Folder {
 public:
  Folder() { EXPECT_NE(::mkdtemp(m_path.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(m_path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return m_path + '/' + name; }

 private:
  std::string m_path = std::filesystem::temp_directory_path() / "sylar_sqlite_XXXXXX";
};

/// A database with a table of which a row counts.
class Sqlite : public Crowds {
 protected:
  Sqlite() {
    m_own.waitsForNoDisk();
    EXPECT_EQ(m_own.ask("CREATE TABLE counters (name TEXT PRIMARY KEY, value INT)"), "");
    EXPECT_EQ(m_own.ask("INSERT INTO counters VALUES ('all', 0)"), "");
  }
  Database& own() { return m_own; }
  std::string path() const { return m_folder.file("database"); }
  std::string count() { return m_own.ask("SELECT value FROM counters WHERE name = 'all'"); }

  /// Adds one in a transaction that is held over suspensions: to the row of all, from what was read, and by a row of its own.
  static void addOne(Database& database, size_t i) {
    EXPECT_EQ(database.ask("BEGIN IMMEDIATE"), "");
    const std::string before = database.ask("SELECT value FROM counters WHERE name = 'all' AND pause()");
    ::usleep(1);
    EXPECT_EQ(database.ask("UPDATE counters SET value = 1 + " + before + " WHERE name = 'all' AND pause()"), "");
    EXPECT_EQ(database.ask("INSERT OR REPLACE INTO counters VALUES ('fiber " + std::to_string(i) + "', 1)"), "");
    EXPECT_EQ(database.ask("COMMIT"), "");
  }

 private:
  Folder m_folder;
  Database m_own{path()};
};
INSTANTIATE_TEST_SUITE_P(Workers, Sqlite, kOneAndTwo);

// HA-6
TEST_P(Sqlite, AFileHasOneWriterAtATime) {
  for (const std::string mode : {"delete", "wal"}) {
    SCOPED_TRACE(mode);
    EXPECT_EQ(own().ask("PRAGMA journal_mode=" + mode), mode);
    EXPECT_EQ(own().ask("UPDATE counters SET value = 0"), "");
    EXPECT_EQ(own().ask("BEGIN IMMEDIATE"), "");
    {
      Crowd crowd(workers(), [&](Crowd& us, size_t i) {
        Database database(path());
        database.waitsForNoDisk();
        us.arrive();
        for (int round = 0; round < 3; ++round) addOne(database, i);
      });
      crowd.untilAllWait();
      EXPECT_EQ(own().ask("COMMIT"), "");
    }
    EXPECT_EQ(count(), std::to_string(3 * Crowd::kSize));
    EXPECT_EQ(own().ask("SELECT COUNT(*) FROM counters"), std::to_string(1 + Crowd::kSize));
    EXPECT_EQ(own().ask("PRAGMA integrity_check"), "ok");
  }
}

// Each would wait forever: nobody lets go of the file before they are done.
TEST_P(Sqlite, AWriterGivesUpAtItsTime) {
  EXPECT_EQ(own().ask("BEGIN EXCLUSIVE"), "");
  Crowd crowd(workers(), [&](Crowd&, size_t) {
    Database database(path(), 20);
    EXPECT_EQ(database.ask("BEGIN IMMEDIATE"), "database is locked");
    EXPECT_EQ(database.ask("SELECT value FROM counters"), "database is locked");
  });
  crowd.end();
  EXPECT_EQ(own().ask("COMMIT"), "");
}

// The owner of its recursive mutex is a fiber that is suspended in the middle of a statement, and may enter once more.
TEST_P(Sqlite, FibersShareAConnection) {
  std::atomic<int> inside{0};
  ::sqlite3_mutex_enter(own().mutex());
  {
    Crowd crowd(workers(), [&](Crowd& us, size_t i) {
      us.arrive();
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(own().ask("UPDATE counters SET value = value + 1 WHERE name = 'all' AND pause()"), "");
        ::sqlite3_mutex_enter(own().mutex());
        EXPECT_EQ(inside.fetch_add(1), 0);
        addOne(own(), i);
        EXPECT_EQ(inside.fetch_sub(1), 1);
        ::sqlite3_mutex_leave(own().mutex());
      }
    });
    crowd.untilAllWait();
    ::sqlite3_mutex_leave(own().mutex());
  }
  EXPECT_EQ(count(), std::to_string(6 * Crowd::kSize));
}

}  // namespace
}  // namespace sylar::test
