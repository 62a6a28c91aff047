// A program that locks and allocates a lot, and waits for nothing: its work is done N times, on a plain thread. Built twice: with
// the hooks linked and without.
//
//   sqlite   a database in memory, whose connection several threads may share, so that each call locks a recursive mutex
//   queue    values through a queue with a mutex and a condition, as between threads
//   malloc   blocks of many sizes, allocated and freed
#include <sqlite3.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(int result) {
  if (result != SQLITE_OK && result != SQLITE_DONE && result != SQLITE_ROW) throw std::runtime_error(sqlite3_errstr(result));
}

void queries(long count) {
  sqlite3* database;
  check(sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr));
  check(sqlite3_exec(database, "CREATE TABLE pairs (name INTEGER PRIMARY KEY, value TEXT)", nullptr, nullptr, nullptr));
  const auto prepared = [&](const char* text) {
    sqlite3_stmt* statement;
    check(sqlite3_prepare_v2(database, text, -1, &statement, nullptr));
    return statement;
  };
  sqlite3_stmt* const insert = prepared("INSERT INTO pairs VALUES (?1, ?2)");
  sqlite3_stmt* const select = prepared("SELECT value FROM pairs WHERE name = ?1");
  for (long i = 0; i < count; ++i) {
    check(sqlite3_bind_int64(insert, 1, i));
    check(sqlite3_bind_text(insert, 2, "some value", -1, SQLITE_STATIC));
    check(sqlite3_step(insert));
    check(sqlite3_reset(insert));
    check(sqlite3_bind_int64(select, 1, i / 2));
    check(sqlite3_step(select));
    if (sqlite3_column_text(select, 0) == nullptr) throw std::runtime_error("a row is lost");
    check(sqlite3_reset(select));
  }
  sqlite3_finalize(insert);
  sqlite3_finalize(select);
  sqlite3_close(database);
}

void throughQueue(long count) {
  std::mutex mutex;
  std::condition_variable there;
  std::deque<std::string> queue;
  for (long i = 0; i < count; ++i) {
    {
      const std::lock_guard lock(mutex);
      queue.push_back(std::to_string(i));
      there.notify_one();
    }
    std::unique_lock lock(mutex);
    there.wait(lock, [&] { return !queue.empty(); });
    queue.pop_front();
  }
}

void allocations(long count) {
  std::vector<std::unique_ptr<char[]>> blocks(64);
  for (long i = 0; i < count; ++i) {
    const auto number = static_cast<size_t>(i);
    blocks[number % blocks.size()].reset(new char[16 + number * 31 % 3000]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(long)>> kinds{
      {"sqlite", queries}, {"queue", throughQueue}, {"malloc", allocations}};
  const auto kind = argc == 3 ? kinds.find(argv[1]) : kinds.end();
  const long count = argc == 3 ? std::atol(argv[2]) : 0;
  if (kind == kinds.end() || count < 1) return 2;
  std::mutex held;
  held.lock();
  std::thread second([&] { const std::lock_guard lock(held); });  // with one thread only, libc's locks cost less
  kind->second(count);
  held.unlock();
  second.join();
}
