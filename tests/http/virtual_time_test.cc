// A server's limits of time are its scheduler's: on virtual time an hour of patience takes no time.
#include "sylar/testing/virtual_time.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>

#include "sylar/http/http_server.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;

/// Connects to a server with an idle timeout of an hour, says `text`, and waits for the end; the virtual time that took.
std::chrono::nanoseconds untilTheServerEnds(const std::string& text) {
  VirtualTime time;
  time.run([&] {
    IOManager* const iom = IOManager::GetThis();
    const auto server = std::make_shared<HttpServer>(true, iom, iom, iom);
    HttpLimits limits;
    limits.idle_timeout = 1h;
    server->setHttpLimits(limits);
    ASSERT_TRUE(server->bind(IPAddress::Create("127.0.0.1", 0)));
    ASSERT_TRUE(server->start());
    const Socket::ptr client = Socket::CreateTCPSocket();
    ASSERT_TRUE(client->connect(server->getSocks().at(0)->getLocalAddress()));
    if (!text.empty()) {
      ASSERT_EQ(client->send(text.data(), text.size()), static_cast<int>(text.size()));
    }
    char buffer[1024];
    while (client->recv(buffer, sizeof buffer) > 0) continue;
    client->close();
    server->stop();
    server->join(Deadline::never());
  });
  return time.elapsed();
}

// SEC-05
TEST(VirtualHttp, APeerThatSaysNothingIsLeftAfterTenSeconds) {
  const auto took = untilTheServerEnds("");
  EXPECT_GE(took, 10s);
  EXPECT_LT(took, 12s);
}

// A new one has its grace from its beginning, however long before its end the server stops.
TEST(VirtualHttp, AStoppedServerAwaitsANewConnectionForFiveSeconds) {
  VirtualTime time;
  time.run([] {
    IOManager* const iom = IOManager::GetThis();
    const auto server = std::make_shared<HttpServer>(true, iom, iom, iom);
    ASSERT_TRUE(server->bind(IPAddress::Create("127.0.0.1", 0)));
    ASSERT_TRUE(server->start());
    const Socket::ptr client = Socket::CreateTCPSocket();
    ASSERT_TRUE(client->connect(server->getSocks().at(0)->getLocalAddress()));
    ::sleep(2);
    server->stop();
    EXPECT_TRUE(server->join(Deadline::never()));
  });
  EXPECT_GE(time.elapsed(), 5s);
  EXPECT_LT(time.elapsed(), 7s) << "with what is still read from a peer that stays";
}

TEST(VirtualHttp, AStoppedServerWithoutGraceAwaitsNoNewConnection) {
  VirtualTime time;
  time.run([] {
    IOManager* const iom = IOManager::GetThis();
    const auto server = std::make_shared<HttpServer>(true, iom, iom, iom);
    HttpLimits limits;
    limits.new_grace = 0s;
    server->setHttpLimits(limits);
    ASSERT_TRUE(server->bind(IPAddress::Create("127.0.0.1", 0)));
    ASSERT_TRUE(server->start());
    const Socket::ptr client = Socket::CreateTCPSocket();
    ASSERT_TRUE(client->connect(server->getSocks().at(0)->getLocalAddress()));
    ::sleep(2);
    server->stop();
    EXPECT_TRUE(server->join(Deadline::never()));
  });
  EXPECT_LT(time.elapsed(), 4s) << "with what is still read from a peer that stays";
}

/// The virtual time from the stop of a server to its end, `silence` after the last answer of a connection that stays.
std::chrono::nanoseconds endOfStopAfter(std::chrono::seconds silence) {
  VirtualTime time;
  std::chrono::nanoseconds stopped{0};
  time.run([&] {
    IOManager* const iom = IOManager::GetThis();
    const auto server = std::make_shared<HttpServer>(true, iom, iom, iom);
    HttpLimits limits;
    limits.kept_grace = 100s;
    limits.idle_timeout = 1h;
    server->setHttpLimits(limits);
    ASSERT_TRUE(server->bind(IPAddress::Create("127.0.0.1", 0)));
    ASSERT_TRUE(server->start());
    const Socket::ptr client = Socket::CreateTCPSocket();
    ASSERT_TRUE(client->connect(server->getSocks().at(0)->getLocalAddress()));
    const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    char buffer[1024];
    ASSERT_EQ(client->send(request.data(), request.size()), static_cast<int>(request.size()));
    ASSERT_GT(client->recv(buffer, sizeof buffer), 0);
    ::sleep(static_cast<unsigned>(silence.count()));
    stopped = time.elapsed();
    server->stop();
    EXPECT_TRUE(server->join(Deadline::never()));
  });
  return time.elapsed() - stopped;
}

// One that was active lately may send its next request, up to a time after its last answer. One that was not is ended at once. What
// is still read from a peer that stays comes on top.
TEST(VirtualHttp, AStoppedServerAwaitsTheNextRequestOfAKeptConnectionForAWhile) {
  const auto active = endOfStopAfter(30s);
  EXPECT_GE(active, 70s);
  EXPECT_LT(active, 72s);
  EXPECT_LT(endOfStopAfter(200s), 2s);
}

TEST(VirtualHttp, AnIdleConnectionIsLeftAfterAnHour) {
  const auto took = untilTheServerEnds("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_GE(took, 1h);
  EXPECT_LT(took, 1h + 2s);
}

}  // namespace
}  // namespace sylar::http
