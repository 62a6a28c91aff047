// Subscriptions, and the outbox of a client that does not read.
#include <gtest/gtest.h>

#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

TEST(TtlkvPubSub, MessagesFollowTheConfirmation) {
  Store store;
  TestClient listener(store.engine);
  EXPECT_EQ(listener.ask("SUBSCRIBE a b"),
            "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n");
  EXPECT_EQ(store.ask("PUBLISH a hello"), ":1\r\n");
  EXPECT_EQ(listener.messages(), "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n");
  EXPECT_EQ(listener.ask("PSUBSCRIBE *"), "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:3\r\n");
  EXPECT_EQ(store.ask("PUBLISH a hello"), ":2\r\n");
  listener.messages();
  EXPECT_EQ(listener.ask("UNSUBSCRIBE"),
            "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:2\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n");
  EXPECT_EQ(store.ask("PUBLISH a hello"), ":1\r\n");
  listener.messages();
  EXPECT_EQ(listener.ask("PING"), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  EXPECT_EQ(listener.ask("RESET"), "+RESET\r\n");
  EXPECT_EQ(listener.ask("PING"), "+PONG\r\n");
  EXPECT_EQ(store.ask("PUBLISH a hello"), ":0\r\n");
}

TEST(TtlkvPubSub, ForgetsAClientThatEnds) {
  Store store;
  {
    TestClient listener(store.engine);
    listener.ask("SUBSCRIBE a");
    listener.ask("PSUBSCRIBE b*");
    EXPECT_EQ(store.engine.hub().channels() + store.engine.hub().patterns(), 2u);
  }
  EXPECT_EQ(store.engine.hub().channels() + store.engine.hub().patterns(), 0u);
  EXPECT_EQ(store.ask("PUBLISH a hello"), ":0\r\n");
}

TEST(TtlkvPubSub, GivesUpAClientThatDoesNotRead) {
  Store store;
  TestClient listener(store.engine), other(store.engine);
  listener.ask("SUBSCRIBE a");
  other.ask("SUBSCRIBE a");
  const std::string message(400, 'm');
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(store.ask("PUBLISH a " + message), ":2\r\n");  // the publisher never waits
    EXPECT_FALSE(other.messages().empty());
  }
  EXPECT_TRUE(listener.overflowed);
  EXPECT_FALSE(other.overflowed);
}

TEST(TtlkvOutbox, HandsOverWhatCameBeforeItsEnd) {
  sylar::test::inFiber([] {
    Outbox outbox(1000, [] {});
    std::string got, all;
    outbox.append("one ");
    EXPECT_TRUE(outbox.take(got));
    EXPECT_EQ(got, "one ");
    sylar::IOManager::GetThis()->schedule([&] {
      outbox.append("two ");
      outbox.append("three");
      outbox.close();
      outbox.append("never");
    });
    while (outbox.take(got)) all += got;
    EXPECT_EQ(all, "two three");
    EXPECT_FALSE(outbox.take(got));
  });
}

}  // namespace
}  // namespace ttlkv::test
