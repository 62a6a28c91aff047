// stop() against accepts, handlers, other stops, and clients that come and go.
#include <unistd.h>

#include <atomic>
#include <random>

#include "tests/net/server_support.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

/// The connection may be closed while it answers.
void echoUntilClosed(const Socket::ptr& client) {
  char byte;
  while (client->recv(&byte, 1) == 1 && client->send(&byte, 1) == 1) continue;
}

class TcpServerRace : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, TcpServerRace, testing::Values(1, 2, 4));

// CD-N7. A client sees an answer or an end, never neither; after stop() and join() nothing is open.
TEST_P(TcpServerRace, StopAgainstAcceptAndHandlers) {
  IOManager iom(workers(), false, "server");
  const auto server = std::make_shared<TestServer>(iom, echo);
  server->on_end = [](const Socket::ptr& client) { client->shutdown(SHUT_RD); };
  for (uint64_t round = 0; round < scaled(30); ++round) {
    std::vector<Address::ptr> fails;
    const Socket::ptr held[] = {heldPort(), heldPort()};  // no other process may answer after the end
    ASSERT_TRUE(server->TcpServer::bind({held[0]->getLocalAddress(), held[1]->getLocalAddress()}, fails));
    const auto sockets = server->getSocks();
    ASSERT_TRUE(server->start());
    std::atomic<int> served{0};
    std::vector<std::thread> clients;
    for (size_t i = 0; i < 4; ++i) {
      clients.emplace_back([&, address = sockets[i % 2]->getLocalAddress()] {
        for (;;) {
          const auto client = Socket::CreateTCPSocket();
          if (!client->connect(address)) break;
          if (!echoes(*client)) break;
          ++served;
        }
      });
    }
    while (served < 20) sched_yield();
    std::thread second([&] { server->stop(); });
    const auto third = std::make_shared<Fiber>([&] { server->stop(); });
    iom.schedule(third);
    server->stop();
    EXPECT_TRUE(server->join());
    EXPECT_EQ(server->getCounts().open, 0u);
    second.join();
    third->join();
    for (auto& client : clients) client.join();
  }
}

// The limits hold while connections come and go, and nobody waits forever.
TEST_P(TcpServerRace, LimitsAgainstConnectionsThatEnd) {
  IOManager iom(workers(), false, "server");
  std::atomic<int> open{0}, most{0};
  const auto server = std::make_shared<TestServer>(iom, [&](const Socket::ptr& client) {
    const int now = ++open;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    echo(client);
    --open;
  });
  server->setLimits({.max_connections = 3, .max_per_peer = 2, .limit_loopback = true});
  std::vector<Address::ptr> fails;
  ASSERT_TRUE(server->TcpServer::bind({loopback(), loopback()}, fails));
  const auto sockets = server->getSocks();
  ASSERT_TRUE(server->start());
  std::vector<std::thread> clients;
  std::atomic<uint64_t> served{0}, refused{0};
  for (size_t i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      for (uint64_t round = 0; round < scaled(200); ++round) {
        const auto client = Socket::CreateTCPSocket();
        ASSERT_TRUE(client->bind(IPAddress::Create(i % 2 == 0 ? "127.0.0.1" : "127.0.0.2")));
        ASSERT_TRUE(client->connect(sockets[i / 2]->getLocalAddress()));
        ++(echoes(*client) ? served : refused);
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_TRUE(server->join());
  const TcpServerCounts counts = server->getCounts();
  EXPECT_EQ(counts.accepted, served + refused);
  EXPECT_EQ(counts.refused_per_peer, refused);
  EXPECT_LE(most, 3);
  EXPECT_GT(served, 0u);
  server->stop();
}

// The idle timeout against calls, closes and the end of the server: whoever comes first, a connection ends once, and no timer
// stays.
TEST_P(TcpServerRace, IdleTimeoutAgainstCallsAndCloses) {
  IOManager iom(workers(), false, "server");
  for (uint64_t round = 0; round < scaled(10); ++round) {
    const auto server = std::make_shared<TestServer>(iom, echoUntilClosed);
    server->setIdleTimeout(2);
    ASSERT_TRUE(server->bind(loopback()));
    ASSERT_TRUE(server->start());
    std::vector<std::thread> clients;
    for (uint64_t i = 0; i < 4; ++i) {
      clients.emplace_back([&, random = std::mt19937_64(4 * round + i)]() mutable {
        for (int n = 0; n < 30; ++n) {
          const auto client = connectedTo(server->address());
          while (random() % 8 != 0 && echoes(*client)) {
            if (random() % 4 == 0) usleep(random() % 4000);
          }
          const bool stays = random() % 2 == 0;
          EXPECT_TRUE(!stays || isEnded(*client));
        }
      });
    }
    for (auto& client : clients) client.join();
    EXPECT_TRUE(server->join());
    EXPECT_GT(server->getCounts().idle_closed, 0u);
    until([&] { return !iom.hasTimer(); });  // the guard's run may still be under way
    server->stop();
  }
}

// stop() against connections that are being let in: whom endClient() closes leaves the idle list, whoever comes first.
TEST_P(TcpServerRace, EndClientAgainstAdmission) {
  IOManager iom(workers(), false, "server");
  for (uint64_t round = 0; round < scaled(100); ++round) {
    OsMutex mutex;
    std::vector<Socket::ptr> ended;  // kept: their entries would be unlinked with them
    const auto server = std::make_shared<TestServer>(iom, [](const Socket::ptr& client) { echoUntilClosed(client); });
    server->setIdleTimeout(3'600'000);
    server->on_end = [&](const Socket::ptr& client) {
      client->close();
      const Lock lock(mutex);
      ended.push_back(client);
    };
    ASSERT_TRUE(server->bind(loopback()));
    const auto address = server->address();
    ASSERT_TRUE(server->start());
    std::vector<Socket::ptr> clients;
    for (int i = 0; i < 4; ++i) clients.push_back(connectedTo(address));
    until([&] { return server->getCounts().accepted > round % 4; });
    server->stop();
    EXPECT_TRUE(server->join());
    until([&] { return !iom.hasTimer(); });  // the guard's run may still be under way
  }
}

// join() on threads and in fibers, all at once.
TEST_P(TcpServerRace, EveryJoinReturns) {
  IOManager iom(workers(), false, "server");
  for (uint64_t round = 0; round < scaled(100); ++round) {
    const auto server = TestServer::started(iom, echo);
    const auto client = connectedTo(server->address());
    EXPECT_TRUE(echoes(*client));
    std::atomic<int> joined{0};
    std::thread thread([&] {
      EXPECT_TRUE(server->join());
      ++joined;
    });
    for (int i = 0; i < 2; ++i) {
      iom.schedule([&] {
        EXPECT_TRUE(server->join());
        ++joined;
      });
    }
    EXPECT_TRUE(client->close());
    thread.join();
    while (joined < 3) sched_yield();
    server->stop();
  }
}

}  // namespace
}  // namespace sylar::test
