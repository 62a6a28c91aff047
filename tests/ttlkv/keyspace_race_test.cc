// Many threads on the same keys: nothing is torn, lost or counted twice.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "examples/ttlkv/keyspace.h"
#include "tests/support/rounds.h"
#include "tests/support/seed.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

TEST(TtlkvKeyspaceRace, CommandsOnSeveralKeysAreAtomic) {
  Store store;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      TestClient client(store.engine);
      const std::string value = std::to_string(writer);
      sylar::test::Rounds rounds(2000);
      for (int i = 0; rounds.next(); ++i) {
        client.ask(i % 2 == 0 ? "MSET a " + value + " b " + value + " c " + value
                              : "MSET c " + value + " b " + value + " a " + value);
      }
    });
  }
  TestClient reader(store.engine);
  reader.ask("MSET a 0 b 0 c 0");
  for (sylar::test::Rounds rounds(2000); rounds.next();) {
    const std::string reply = reader.ask("MGET a b c");
    EXPECT_TRUE(reply == "*3\r\n$1\r\n0\r\n$1\r\n0\r\n$1\r\n0\r\n" || reply == "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n")
        << reply;
  }
  for (auto& thread : threads) thread.join();
}

TEST(TtlkvKeyspaceRace, StaysConsistent) {
  Options options;
  options.live.victims = Victims::kAll;
  options.live.max_memory_bytes = 20'000;
  Store store(options);
  const uint64_t seed = sylar::test::seed();
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      TestClient client(store.engine);
      std::mt19937_64 random(seed + number);
      const char* const kCommands[] = {"SET", "SETEX", "DEL", "LPUSH", "INCR", "EXPIRE", "PERSIST", "GET", "APPEND", "GETDEL"};
      sylar::test::Rounds rounds(5000);
      for (int i = 0; rounds.next(); ++i) {
        const std::string name = kCommands[random() % std::size(kCommands)];
        std::string line = name + " key:" + std::to_string(random() % 200);
        if (name == "SETEX") line += " 100";
        if (name != "DEL" && name != "INCR" && name != "GET" && name != "PERSIST" && name != "GETDEL") line += " 12";
        client.ask(line);
        if (i % 1000 == 999) client.ask("FLUSHALL");
        if (number == 0 && i % 100 == 0) store.clock.advance(std::chrono::seconds(13));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(store.engine.keyspace().verify());
  store.ask("FLUSHALL");
  EXPECT_EQ(store.engine.keyspace().usedBytes(), 0u);
}

}  // namespace
}  // namespace ttlkv::test
