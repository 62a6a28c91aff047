// The server with real connections, on virtual time: idle timeouts, limits, and clients that break the protocol.
#include "examples/ttlkv/server.h"

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/iomanager.h"
#include "sylar/testing/virtual_time.h"
#include "sylar/timer_stats.h"
#include "tests/net/support.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

using namespace std::chrono_literals;
using sylar::Socket;

/// A server in a fiber on a clock that moves by itself, and its clients, which are fibers too.
class TtlkvServer : public testing::Test {
 protected:
  /// Runs `body` beside a server with these options.
  void run(Options options, std::function<void()> body, size_t workers = 1) {
    time.run(
        [&] {
          sylar::IOManager* const iom = sylar::IOManager::GetThis();
          engine = std::make_unique<Engine>(wall, options);
          engine->expirer().start(*iom);
          const auto server = std::make_shared<Server>(*engine, iom, iom, iom);
          ASSERT_TRUE(server->bind(sylar::test::loopback()));
          ASSERT_TRUE(server->start());
          address = server->getSocks().front()->getLocalAddress();
          body();
          server->stop();
          EXPECT_TRUE(server->join());
          engine->expirer().stop();
          EXPECT_EQ(engine->clients, 0u);
        },
        workers);
  }
  Socket::ptr connect() const { return sylar::test::connectedTo(address); }

  static void send(const Socket::ptr& client, std::string_view bytes) {
    EXPECT_EQ(client->send(bytes.data(), bytes.size()), static_cast<int>(bytes.size()));
  }
  /// Returns as many bytes as `wanted` has.
  static std::string receive(const Socket::ptr& client, size_t size) {
    std::string bytes(size, '\0');
    size_t filled = 0;
    for (int n; filled < size && (n = client->recv(bytes.data() + filled, size - filled)) > 0;) filled += static_cast<size_t>(n);
    bytes.resize(filled);
    return bytes;
  }
  static void exchange(const Socket::ptr& client, std::string_view request, std::string_view reply) {
    send(client, request);
    EXPECT_EQ(receive(client, reply.size()), reply) << request;
  }
  /// Returns everything until the server closes the connection.
  static std::string rest(const Socket::ptr& client) { return receive(client, 1'000'000); }

  sylar::VirtualTime time;
  TestWallClock wall{time};
  std::unique_ptr<Engine> engine;
  sylar::Address::ptr address;
};

Options idleAfter(std::chrono::milliseconds timeout) {
  Options options;
  options.idle_timeout_ms = static_cast<size_t>(timeout.count());
  return options;
}

// K-1
TEST_F(TtlkvServer, ClosesASilentConnectionOnTime) {
  run(idleAfter(10s), [this] {
    const auto client = connect();
    exchange(client, "PING\r\n", "+PONG\r\n");
    const auto begin = time.elapsed();
    EXPECT_EQ(rest(client), "");
    EXPECT_GE(time.elapsed() - begin, 10s);
    EXPECT_LE(time.elapsed() - begin, 10s + 50ms);
    EXPECT_EQ(engine->idle_closed, 1u);
  });
}

/// Returns 10 000, or how many connections with both their ends the process may have. Sanitizers take a minute for so many.
size_t manyClients() {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  return 200;
#else
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return std::min<size_t>(10'000, (files.rlim_cur - 100) / 2);
#endif
}

// K-2
TEST_F(TtlkvServer, KeepsConnectionsThatSendABitNowAndThen) {
  const size_t count = manyClients();
  Options options = idleAfter(10s);
  options.live.max_clients = 20'000;
  run(options, [this, count] {
    sylar::IOManager* const iom = sylar::IOManager::GetThis();
    std::vector<Socket::ptr> clients;
    for (size_t i = 0; i < count; ++i) {
      exchange(clients.emplace_back(connect()), "PING\r\n", "+PONG\r\n");
      clients.back()->setOption(SOL_SOCKET, SO_LINGER, linger{1, 0});  // leaves no port in TIME_WAIT
    }
    const uint64_t relinked = iom->getStats().relinked;
    const uint64_t armed = iom->getStats().armed;
    for (int round = 0; round < 20; ++round) {
      sleep(5);
      for (const auto& client : clients) send(client, round % 2 == 0 ? "PI" : "NG\r\n");
    }
    for (const auto& client : clients)
      EXPECT_EQ(receive(client, 70),
                std::string("+PONG\r\n+PONG\r\n+PONG\r\n+PONG\r\n+PONG\r\n") + "+PONG\r\n+PONG\r\n+PONG\r\n+PONG\r\n+PONG\r\n");
    EXPECT_EQ(engine->idle_closed, 0u);
    EXPECT_EQ(iom->getStats().relinked, relinked);       // much has arrived, and no timer was moved
    EXPECT_LE(iom->getStats().armed - armed, 100u / 5);  // the one timer of the list was armed again when it ran
  });
}

// K-3
TEST_F(TtlkvServer, ClosesAConnectionWithHalfARequest) {
  run(idleAfter(10s), [this] {
    for (const char* half : {"*2\r\n$3\r\nGET\r\n$1", "*1\r\n$1000000\r\nabc", "PIN", "*"}) {
      const auto client = connect();
      send(client, half);
      const auto begin = time.elapsed();
      EXPECT_EQ(rest(client), "");
      EXPECT_LE(time.elapsed() - begin, 10s + 50ms);
    }
    EXPECT_EQ(engine->idle_closed, 4u);
  });
}

TEST_F(TtlkvServer, LetsASubscriberBeSilent) {
  run(idleAfter(10s), [this] {
    const auto listener = connect();
    exchange(listener, "SUBSCRIBE __keyevent@0__:expired\r\n",
             "*3\r\n$9\r\nsubscribe\r\n$22\r\n__keyevent@0__:expired\r\n:1\r\n");
    const auto writer = connect();
    exchange(writer, "CONFIG SET notify-keyspace-events Ex\r\n", "+OK\r\n");
    exchange(writer, "SET a 1 EX 3600\r\n", "+OK\r\n");
    const auto begin = time.elapsed();
    EXPECT_EQ(receive(listener, 53), "*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\na\r\n");
    EXPECT_GE(time.elapsed() - begin, 3600s);
    EXPECT_LE(time.elapsed() - begin, 3600s + 5ms);
    exchange(listener, "PING x\r\n", "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
    exchange(listener, "QUIT\r\n", "+OK\r\n");
    EXPECT_EQ(rest(listener), "");
  });
}

TEST_F(TtlkvServer, EndsOnlyTheConnectionThatBreaksTheProtocol) {
  run({}, [this] {
    const auto other = connect();
    exchange(other, "SET a 1\r\n", "+OK\r\n");
    const auto client = connect();
    send(client, "GET a\r\n*1\r\n$x\r\nGET a\r\n");
    EXPECT_EQ(rest(client), "$1\r\n1\r\n-ERR Protocol error: invalid bulk length\r\n");
    exchange(other, "GET a\r\n", "$1\r\n1\r\n");
    EXPECT_EQ(engine->protocol_errors, 1u);
  });
}

TEST_F(TtlkvServer, HangsUpOnABrowser) {
  run({}, [this] {
    const auto client = connect();
    send(client, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n");
    EXPECT_EQ(rest(client), "");
    EXPECT_EQ(engine->keyspace().size(), 0u);
  });
}

TEST_F(TtlkvServer, AnswersARequestThatArrivesByteByByte) {
  run({}, [this] {
    const auto client = connect();
    for (const char byte : std::string("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n")) send(client, {&byte, 1});
    EXPECT_EQ(receive(client, 11), "$5\r\nhello\r\n");
  });
}

TEST_F(TtlkvServer, TurnsAwayOneClientTooMany) {
  Options options;
  options.live.max_clients = 2;
  run(options, [this] {
    const auto one = connect(), two = connect();
    exchange(one, "PING\r\n", "+PONG\r\n");
    exchange(two, "PING\r\n", "+PONG\r\n");
    EXPECT_EQ(rest(connect()), "-ERR max number of clients reached\r\n");
    EXPECT_EQ(engine->refused_connections, 1u);
    exchange(one, "QUIT\r\n", "+OK\r\n");
    EXPECT_EQ(rest(one), "");
    while (engine->clients > 1) sylar::Fiber::YieldToReady();
    exchange(connect(), "PING\r\n", "+PONG\r\n");
  });
}

// A pipeline of reads of a large value: the server sends while it executes, and does not collect all replies first.
TEST_F(TtlkvServer, SendsALargePipelineInParts) {
  run({}, [this] {
    const auto client = connect();
    const std::string value(100'000, 'v');
    exchange(client, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\n" + value + "\r\n", "+OK\r\n");
    std::string pipeline;
    for (int i = 0; i < 200; ++i) pipeline += "GET a\r\n";
    send(client, pipeline);
    const std::string reply = "$100000\r\n" + value + "\r\n";
    for (int i = 0; i < 200; ++i) ASSERT_EQ(receive(client, reply.size()), reply);
  });
}

// The server ends while a client is connected, and answers the requests that have arrived.
TEST_F(TtlkvServer, AnswersWhatHasArrivedAtTheEnd) {
  Socket::ptr client;
  run({}, [&] {
    client = connect();
    exchange(client, "PING\r\n", "+PONG\r\n");
    send(client, "ECHO last\r\n");
  });
  EXPECT_EQ(rest(client), "$4\r\nlast\r\n");
}

// hiredis blocks in connect, write and read, each time in the fiber that calls it.
TEST_F(TtlkvServer, ServesHiredis) {
  run({}, [this] {
    const auto port = std::dynamic_pointer_cast<sylar::IPAddress>(address)->getPort();
    redisContext* const redis = redisConnect("127.0.0.1", static_cast<int>(port));
    ASSERT_EQ(redis->err, 0);
    const auto ask = [redis](const char* command) {
      auto* const reply = static_cast<redisReply*>(redisCommand(redis, command));
      std::string text =
          reply->type == REDIS_REPLY_INTEGER ? std::to_string(reply->integer) : std::string(reply->str, reply->len);
      freeReplyObject(reply);
      return text;
    };
    EXPECT_EQ(ask("SET key hello PX 1500"), "OK");
    EXPECT_EQ(ask("GET key"), "hello");
    EXPECT_EQ(ask("PTTL key"), "1500");
    usleep(1'501'000);
    EXPECT_EQ(ask("EXISTS key"), "0");
    EXPECT_EQ(ask("NOSUCH"), "ERR unknown command 'NOSUCH', with args beginning with: ");
    for (int i = 0; i < 100; ++i) redisAppendCommand(redis, "INCR counter");
    for (int i = 1; i <= 100; ++i) {
      redisReply* reply = nullptr;
      ASSERT_EQ(redisGetReply(redis, reinterpret_cast<void**>(&reply)), REDIS_OK);
      EXPECT_EQ(reply->integer, i);
      freeReplyObject(reply);
    }
    redisFree(redis);
  });
}

}  // namespace
}  // namespace ttlkv::test
