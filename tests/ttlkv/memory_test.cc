// maxmemory: the refusal, the eviction, and the count of the bytes.
#include <gtest/gtest.h>

#include <string>

#include "examples/ttlkv/memory_size.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

constexpr const char* kOom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

void fill(Store& store, int keys, const std::string& options = "") {
  for (int i = 0; i < keys; ++i) store.ask("SET key:" + std::to_string(i) + " value" + options);
}

TEST(TtlkvMemory, RefusesWhatNeedsMemory) {
  Store store;
  fill(store, 10);
  store.ask("CONFIG SET maxmemory 1");
  for (const char* command : {"SET a 1", "SETEX a 1 1", "PSETEX a 1 1", "SETNX a 1", "GETSET a 1", "MSET a 1", "APPEND a 1",
                              "INCR a", "DECRBY a 1", "LPUSH a 1"}) {
    EXPECT_EQ(store.ask(command), kOom) << command;
  }
  EXPECT_EQ(store.ask("GET key:1"), "$5\r\nvalue\r\n");
  EXPECT_EQ(store.ask("EXPIRE key:1 10"), ":1\r\n");
  EXPECT_EQ(store.ask("GETEX key:1 PERSIST"), "$5\r\nvalue\r\n");
  EXPECT_EQ(store.ask("DEL key:1"), ":1\r\n");
  store.ask("CONFIG SET maxmemory 0");
  EXPECT_EQ(store.ask("SET a 1"), "+OK\r\n");
}

TEST(TtlkvMemory, CountsToZero) {
  Store store;
  store.ask("SET a " + std::string(500, 'x') + " EX 100");
  store.ask("APPEND a " + std::string(5000, 'y'));
  store.ask("SET a short");
  for (int i = 0; i < 100; ++i) store.ask("LPUSH list " + std::string(static_cast<size_t>(i), 'e'));
  EXPECT_GT(store.engine.keyspace().usedBytes(), 100u * sizeof(std::string));
  EXPECT_TRUE(store.engine.keyspace().verify());
  store.ask("DEL a list");
  EXPECT_EQ(store.engine.keyspace().usedBytes(), 0u);
  fill(store, 100);
  store.ask("FLUSHALL");
  EXPECT_EQ(store.engine.keyspace().usedBytes(), 0u);
}

TEST(TtlkvMemory, EvictsWhatWasNotUsedForLong) {
  Options options;
  options.live.victims = Victims::kAll;
  Store store(options);
  constexpr int kKeys = 1000;
  fill(store, kKeys);
  store.clock.advance(std::chrono::seconds(10));
  for (int i = 0; i < kKeys; i += 2) store.ask("GET key:" + std::to_string(i));
  store.clock.advance(std::chrono::seconds(10));
  const size_t used = store.engine.keyspace().usedBytes();
  store.ask("CONFIG SET maxmemory " + std::to_string(used * 7 / 10));
  EXPECT_EQ(store.ask("SET new value"), "+OK\r\n");
  EXPECT_LE(store.engine.keyspace().usedBytes(), used * 7 / 10 + 200);
  int recent = 0, old = 0;
  for (int i = 0; i < kKeys; ++i) (i % 2 == 0 ? recent : old) += store.ask("EXISTS key:" + std::to_string(i)) == ":1\r\n" ? 1 : 0;
  // Chance decides, but five samples are all recent one time in 32 at first, and one time in five at the end.
  EXPECT_GT(recent, 400);
  EXPECT_LT(old, 300);
  EXPECT_TRUE(store.engine.keyspace().verify());
}

TEST(TtlkvMemory, EvictsVolatileKeysOnly) {
  Options options;
  options.live.victims = Victims::kVolatile;
  Store store(options);
  fill(store, 100);
  store.ask("SET volatile 1 EX 100");
  store.ask("CONFIG SET maxmemory " + std::to_string(store.engine.keyspace().usedBytes() - 1));
  EXPECT_EQ(store.ask("SET new 1"), "+OK\r\n");
  EXPECT_EQ(store.ask("EXISTS volatile"), ":0\r\n");
  EXPECT_EQ(store.ask("SET new2 " + std::string(1000, 'x')), "+OK\r\n");  // the limit is checked before a command, as in Redis
  EXPECT_EQ(store.ask("SET new3 1"), kOom);                               // nothing is left to evict
  EXPECT_EQ(store.ask("DBSIZE"), ":102\r\n");
}

TEST(TtlkvMemory, ReadsSizes) {
  EXPECT_EQ(parseMemorySize("0"), 0u);
  EXPECT_EQ(parseMemorySize("1k"), 1000u);
  EXPECT_EQ(parseMemorySize("1KB"), 1024u);
  EXPECT_EQ(parseMemorySize("2mb"), 2u << 20);
  EXPECT_EQ(parseMemorySize("1g"), 1'000'000'000u);
  for (const char* wrong : {"", "x", "1x", "-1", "1 kb", "99999999999gb"}) EXPECT_FALSE(parseMemorySize(wrong)) << wrong;
}

}  // namespace
}  // namespace ttlkv::test
