// Each command and each error text: the replies are those that redis-server 7.0.15 has given, from replies.txt.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "examples/ttlkv/command.h"
#include "tests/support/beside_program.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

/// Returns the bytes that Python's unicode_escape has written.
std::string unescaped(std::string_view text) {
  std::vector<std::string> words;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  EXPECT_TRUE(splitWords(quoted + "\"", words));
  return words.at(0);
}

TEST(TtlkvCommands, ReplyAsRedisDoes) {
  std::ifstream file(sylar::test::besideProgram(TTLKV_REPLIES));
  ASSERT_TRUE(file.is_open());
  std::unique_ptr<Store> store;
  std::string line, reply, command;
  int number = 0, compared = 0;
  while (std::getline(file, line)) {
    ++number;
    if (line.empty()) store = nullptr;
    if (line.empty() || line[0] == '#') continue;
    if (!line.starts_with("    ")) {
      if (store == nullptr) store = std::make_unique<Store>();
      command = line;
      reply = store->ask(line);
      EXPECT_TRUE(store->engine.keyspace().verify()) << number << ": " << command;
      continue;
    }
    EXPECT_EQ(reply, unescaped(std::string_view(line).substr(4))) << number << ": " << command;
    ++compared;
  }
  EXPECT_GT(compared, 350);
}

TEST(TtlkvCommands, AreFoundInAnyCase) {
  for (const Command& command : allCommands()) {
    std::string upper(command.name);
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(findCommand(command.name), &command);
    EXPECT_EQ(findCommand(upper), &command);
  }
  EXPECT_EQ(findCommand("nosuchcommand"), nullptr);
  EXPECT_EQ(findCommand(std::string(1000, 'a')), nullptr);
}

TEST(TtlkvCommands, NameNoMoreThan128BytesOfAnUnknownCommand) {
  Store store;
  const std::string reply = store.client.ask({std::string(1000, 'x'), std::string(1000, 'y'), "z"});
  EXPECT_EQ(reply, "-ERR unknown command '" + std::string(128, 'x') + "', with args beginning with: '" + std::string(128, 'y') +
                       "' \r\n");
}

TEST(TtlkvCommands, CannotForgeAReplyByAnError) {
  Store store;
  EXPECT_EQ(store.client.ask(std::vector<std::string_view>{"a\r\n+OK"}),
            "-ERR unknown command 'a  +OK', with args beginning with: \r\n");
}

TEST(TtlkvCommands, TimeToLiveIsRoundedAsInRedis) {
  Store store;
  const auto after = [&](int ms, const char* command) {
    store.clock.set(std::chrono::milliseconds(ms));
    return store.ask(command);
  };
  store.ask("SET a 1 PX 10000");
  EXPECT_EQ(after(0, "TTL a"), ":10\r\n");
  EXPECT_EQ(after(499, "TTL a"), ":10\r\n");
  EXPECT_EQ(after(500, "TTL a"), ":10\r\n");
  EXPECT_EQ(after(501, "TTL a"), ":9\r\n");
  EXPECT_EQ(after(501, "PTTL a"), ":9499\r\n");
  EXPECT_EQ(after(9600, "TTL a"), ":0\r\n");
  EXPECT_EQ(after(10'000, "PTTL a"), ":0\r\n");  // a key exists for the whole of its last millisecond
  EXPECT_EQ(after(10'001, "PTTL a"), ":-2\r\n");
}

TEST(TtlkvCommands, TellTheTimeAndTheState) {
  Store store;
  EXPECT_TRUE(store.ask("TIME").starts_with("*2\r\n$10\r\n"));
  EXPECT_TRUE(store.ask("CLIENT ID").starts_with(":"));
  EXPECT_TRUE(store.ask("LASTSAVE").starts_with(":1800000000"));
  EXPECT_TRUE(store.ask("HELLO").starts_with("*14\r\n$6\r\nserver\r\n"));
  EXPECT_TRUE(store.ask("HELLO 2").starts_with("*14\r\n"));
  EXPECT_EQ(store.ask("HELLO 3"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_TRUE(store.ask("COMMAND").starts_with("*" + std::to_string(allCommands().size()) + "\r\n*10\r\n$6\r\nappend\r\n:3\r\n"));
  EXPECT_EQ(store.ask("COMMAND COUNT"), ":" + std::to_string(allCommands().size()) + "\r\n");
  EXPECT_EQ(store.ask("COMMAND DOCS get"), "*0\r\n");
  EXPECT_EQ(store.ask("COMMAND INFO nosuch"), "*1\r\n$-1\r\n");
  EXPECT_EQ(store.ask("CONFIG SET timeout 5"),
            "-ERR CONFIG SET failed (possibly related to argument 'timeout') - can't set immutable config\r\n");
  EXPECT_EQ(store.ask("CONFIG SET save \"\" appendonly no"), "+OK\r\n");  // the values that they have
}

TEST(TtlkvCommands, InfoHasTheAskedSections) {
  Store store;
  store.ask("SET a 1 EX 100");
  store.ask("GET a");
  store.ask("GET b");
  const std::string all = store.ask("INFO");
  for (const char* line :
       {"# Server\r\nredis_version:7.0.15\r\n", "volatile_keys:1\r\n", "keyspace_hits:1\r\n", "keyspace_misses:1\r\n",
        "db0:keys=1,expires=1,avg_ttl=0\r\n", "expiry_lag_p99_ms:0.000\r\n", "fibers:"}) {
    EXPECT_NE(all.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(store.ask("INFO keyspace"), "$44\r\n# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=0\r\n\r\n");
  EXPECT_EQ(store.ask("INFO nosuch"), "$0\r\n\r\n");
}

}  // namespace
}  // namespace ttlkv::test
