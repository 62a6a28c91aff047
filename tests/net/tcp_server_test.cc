#include "sylar/tcp_server.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "sylar/base/sys.h"
#include "tests/net/server_support.h"
#include "tests/support/busy.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

class TcpServerTest : public testing::Test {
 protected:
  IOManager& iom() { return m_iom; }

 private:
  LeakCheck m_leaks;
  IOManager m_iom{2, false, "server"};
};

TEST_F(TcpServerTest, ServesEachConnectionInItsOwnFiber) {
  std::atomic<int> handlers{0};
  const auto server = TestServer::started(iom(), [&](const Socket::ptr& client) {
    EXPECT_NE(Fiber::GetFiberId(), 0u);
    ++handlers;
    echo(client);
  });
  EXPECT_FALSE(server->isStop());
  std::vector<Socket::ptr> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(connectedTo(server->address()));
  for (int round = 0; round < 3; ++round) {
    for (const auto& client : clients) EXPECT_TRUE(echoes(*client));
  }
  EXPECT_EQ(handlers, 20);
  const TcpServerCounts counts = server->getCounts();
  EXPECT_EQ(counts.accepted, 20u);
  EXPECT_EQ(counts.open, 20u);
  for (const auto& client : clients) EXPECT_TRUE(client->close());
  EXPECT_TRUE(server->join());
  EXPECT_EQ(server->getCounts().open, 0u);
  server->stop();
  EXPECT_TRUE(server->isStop());
}

TEST_F(TcpServerTest, ConnectionsHaveTheTimeouts) {
  std::atomic<int64_t> recv_ms{0}, send_ms{0};
  const auto server = std::make_shared<TestServer>(iom(), [&](const Socket::ptr& client) {
    recv_ms = client->getRecvTimeout();
    send_ms = client->getSendTimeout();
    char byte;
    EXPECT_EQ(client->recv(&byte, 1), -1);
    EXPECT_TRUE(client->isTimeout());
  });
  EXPECT_EQ(server->getRecvTimeout(), 120'000u);
  EXPECT_EQ(server->getSendTimeout(), 30'000u);
  server->setRecvTimeout(5);
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(isEnded(*client));
  EXPECT_EQ(recv_ms, 5);
  EXPECT_EQ(send_ms, 30'000);
  server->stop();
}

// SEC-07: a peer that reads nothing holds a writer for no longer than the send timeout.
TEST_F(TcpServerTest, ASlowReaderEndsTheWrite) {
  std::atomic<bool> ended{false};
  const auto server = std::make_shared<TestServer>(iom(), [&](const Socket::ptr& client) {
    const std::string much(1 << 20, 'x');
    while (client->send(much.data(), much.size()) > 0) continue;
    EXPECT_TRUE(client->isTimeout());
    ended = true;
  });
  server->setSendTimeout(5);
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  const auto client = connectedTo(server->address());
  until([&] { return ended.load(); });
  EXPECT_TRUE(server->join());
  server->stop();
}

TEST_F(TcpServerTest, ListensOnSeveralAddresses) {
  const SocketDirectory directory;
  const auto server = std::make_shared<TestServer>(iom(), echo);
  std::vector<Address::ptr> fails;
  ASSERT_TRUE(server->bind({loopback(), loopback(), directory.address("s")}, fails));
  EXPECT_TRUE(fails.empty());
  ASSERT_TRUE(server->start());
  EXPECT_TRUE(server->start()) << "again: no effect";
  const auto sockets = server->getSocks();
  ASSERT_EQ(sockets.size(), 3u);
  for (const auto& socket : sockets) EXPECT_TRUE(echoes(*connectedTo(socket->getLocalAddress())));
  EXPECT_NE(server->toString("> ").find("> "), std::string::npos);
  EXPECT_NE(server->toString().find(sockets[0]->getLocalAddress()->toString()), std::string::npos);
  server->stop();
  EXPECT_TRUE(server->getSocks().empty());
}

TEST_F(TcpServerTest, BindsAllOrNothing) {
  const auto taken = listenerOn();
  const auto server = std::make_shared<TestServer>(iom(), echo);
  std::vector<Address::ptr> fails;
  const auto held = heldPort();
  const auto free_port = held->getLocalAddress();
  EXPECT_FALSE(server->bind({free_port, taken->getLocalAddress(), nullptr}, fails));
  ASSERT_EQ(fails.size(), 2u);
  EXPECT_EQ(*fails[0], *taken->getLocalAddress());
  EXPECT_TRUE(server->getSocks().empty());
  EXPECT_FALSE(server->bind(taken->getLocalAddress()));
  EXPECT_EQ(errno, EADDRINUSE);
  fails.clear();
  EXPECT_TRUE(server->bind({free_port}, fails)) << "nothing was kept";
  server->stop();
}

TEST_F(TcpServerTest, WhatIsBoundLaterIsServed) {
  const auto server = TestServer::started(iom(), echo);
  const auto first = server->address();
  ASSERT_TRUE(server->bind(loopback()));
  EXPECT_NE(*server->address(), *first);
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  EXPECT_TRUE(echoes(*connectedTo(first)));
  server->stop();
}

TEST_F(TcpServerTest, NeedsIOManagersAndPossibleLimits) {
  EXPECT_THROW(TcpServer server, std::invalid_argument) << "not in a fiber of one";
  TcpServer server(&iom(), &iom(), &iom());
  EXPECT_THROW(server.setLimits({.max_connections = 0}), std::invalid_argument);
  EXPECT_THROW(server.setLimits({.max_per_peer = 0}), std::invalid_argument);
  EXPECT_THROW(server.setLimits({.backlog = 0}), std::invalid_argument);
  EXPECT_THROW(server.setLimits({.listeners = 0}), std::invalid_argument);
  EXPECT_THROW(server.setLimits({.listeners = 1025}), std::invalid_argument);
  iom().schedule([] { EXPECT_NO_THROW(TcpServer()); });
}

// Each connection stays with the worker that accepted it.
TEST_F(TcpServerTest, SeveralListenersShareAnAddress) {
  std::mutex mutex;
  std::set<pid_t> workers;
  const auto server = std::make_shared<TestServer>(iom(), [&](const Socket::ptr& client) {
    {
      const std::lock_guard lock(mutex);
      workers.insert(sys::threadId());
    }
    echo(client);
  });
  server->setLimits({.listeners = 2});
  ASSERT_TRUE(server->TcpServer::bind(loopback()));
  ASSERT_EQ(server->getSocks().size(), 2u);
  const Address::ptr address = server->getSocks()[0]->getLocalAddress();
  EXPECT_EQ(*server->getSocks()[1]->getLocalAddress(), *address);
  ASSERT_TRUE(server->start());
  std::vector<Socket::ptr> clients;
  for (int i = 0; i < 64; ++i) {  // all to the same listener once in 10^19 times
    clients.push_back(connectedTo(address));
    EXPECT_TRUE(echoes(*clients.back()));
  }
  EXPECT_EQ(workers.size(), 2u);
  EXPECT_EQ(server->getCounts().accepted, 64u);
  server->stop();
  EXPECT_TRUE(server->getSocks().empty());
  clients.clear();
  EXPECT_TRUE(server->join());
}

TEST_F(TcpServerTest, OnlyInternetAddressesHaveSeveralListeners) {
  const auto server = std::make_shared<TestServer>(iom(), echo);
  server->setLimits({.listeners = 3});
  ASSERT_TRUE(server->bind(std::make_shared<UnixAddress>(std::string("\0sylar-listeners-", 17) + std::to_string(::getpid()))));
  EXPECT_EQ(server->getSocks().size(), 1u);
  server->stop();
}

// A server whose second listener has no room has none.
TEST_F(TcpServerTest, ListenersAreThereTogetherOrNotAtAll) {
  const auto alone = std::make_shared<TestServer>(iom(), echo);
  ASSERT_TRUE(alone->TcpServer::bind(loopback()));
  const auto server = std::make_shared<TestServer>(iom(), echo);
  server->setLimits({.listeners = 2});
  std::vector<Address::ptr> fails;
  EXPECT_FALSE(server->TcpServer::bind({loopback(), alone->getSocks()[0]->getLocalAddress()}, fails));
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(fails.size(), 1u);
  EXPECT_TRUE(server->getSocks().empty());
  alone->stop();
}

TEST_F(TcpServerTest, DoesNotStartWithoutAnAddress) {
  const auto server = std::make_shared<TestServer>(iom(), echo);
  EXPECT_FALSE(server->start());
  EXPECT_EQ(errno, EDESTADDRREQ);
  EXPECT_TRUE(server->isStop());
  ASSERT_TRUE(server->bind(loopback()));
  EXPECT_TRUE(server->start());
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  server->stop();
}

// As many configurations of other servers say it: the IPv6 listener is for IPv6 alone.
TEST_F(TcpServerTest, ListensOnOnePortOfBothFamilies) {
  const auto server = TestServer::started(iom(), echo);
  const uint16_t port = std::dynamic_pointer_cast<IPAddress>(server->address())->getPort();
  const auto all_v6 = IPAddress::Create("::", port);
  if (!Socket::CreateTCPSocket6()->bind(IPAddress::Create("::1"))) GTEST_SKIP() << "a host without IPv6";
  ASSERT_TRUE(server->bind(all_v6)) << std::strerror(errno);
  EXPECT_TRUE(echoes(*connectedTo(IPAddress::Create("::1", port))));
  EXPECT_TRUE(echoes(*connectedTo(loopback(port))));
  server->stop();

  const auto alone = std::make_shared<TestServer>(iom(), echo);
  ASSERT_TRUE(alone->bind(IPAddress::Create("::")));
  ASSERT_TRUE(alone->start());
  const auto its_port = std::dynamic_pointer_cast<IPAddress>(alone->address())->getPort();
  EXPECT_FALSE(Socket::CreateTCPSocket()->connect(loopback(its_port)));
  EXPECT_EQ(errno, ECONNREFUSED);
  alone->stop();
}

// ---- stop() and join(). -----------------------------------------------------------------------------------------------------

TEST_F(TcpServerTest, StopRefusesNewConnectionsAndLeavesTheOthers) {
  const auto server = TestServer::started(iom(), echo);
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(echoes(*client));
  server->stop();
  EXPECT_FALSE(Socket::CreateTCPSocket()->connect(server->address()));
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_TRUE(echoes(*client));
  EXPECT_FALSE(server->join(Deadline::after(0ms)));
  server->stop();  // again: no effect
  EXPECT_TRUE(echoes(*client));
  EXPECT_TRUE(client->close());
  EXPECT_TRUE(server->join(Deadline::never()));
}

TEST_F(TcpServerTest, StopTellsEveryClient) {
  const auto server = TestServer::started(iom(), echo);
  std::multiset<std::string> told;
  server->on_end = [&](const Socket::ptr& client) {
    told.insert(client->getRemoteAddress()->toString());
    EXPECT_TRUE(client->shutdown(SHUT_RD));
  };
  std::vector<Socket::ptr> clients;
  std::multiset<std::string> all;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(connectedTo(server->address()));
    EXPECT_TRUE(echoes(*clients.back()));
    all.insert(clients.back()->getLocalAddress()->toString());
  }
  server->stop();
  EXPECT_EQ(told, all);
  EXPECT_TRUE(server->join(Deadline::after(10s)));
  for (const auto& client : clients) EXPECT_TRUE(isEnded(*client));
}

/// Keeps the only worker of an IOManager busy, so that nothing else runs there.
class Busy {
 public:
  explicit Busy(IOManager& iom) {
    iom.schedule([state = m_state] {
      state->busy = true;
      busyUntil([&] { return state->over.load(); });
    });
    until([this] { return m_state->busy.load(); });
  }
  ~Busy() { m_state->over = true; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  struct State {
    std::atomic<bool> busy{false};
    std::atomic<bool> over{false};
  };
  const std::shared_ptr<State> m_state = std::make_shared<State>();  // the fiber's, too
};

// Connections that the kernel has taken are the server's, so no client that could connect sees a reset.
TEST(TcpServerStop, ServesWhoWaitsInTheKernelsQueue) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = TestServer::started(iom, echo);
  std::atomic<int> told{0};
  server->on_end = [&](const Socket::ptr&) { ++told; };
  std::vector<Socket::ptr> clients;
  {
    const Busy nobody_accepts(iom);
    for (int i = 0; i < 20; ++i) clients.push_back(connectedTo(server->address()));
    EXPECT_EQ(server->getCounts().accepted, 0u);
    server->stop();
    EXPECT_EQ(server->getCounts().accepted, 20u);
    EXPECT_FALSE(Socket::CreateTCPSocket()->connect(server->address()));
    EXPECT_EQ(errno, ECONNREFUSED);
  }
  for (const auto& client : clients) EXPECT_TRUE(echoes(*client));
  EXPECT_EQ(told, 20);
  EXPECT_FALSE(server->join(Deadline::after(0ms)));
  for (const auto& client : clients) EXPECT_TRUE(client->close());
  EXPECT_TRUE(server->join());
}

// It does not wait for room: who finds none is refused, as by a server that is not there.
TEST(TcpServerStop, ClosesWhoFindsNoRoom) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = TestServer::started(iom, echo, {.max_connections = 2});
  const auto first = connectedTo(server->address());
  EXPECT_TRUE(echoes(*first));
  std::vector<Socket::ptr> clients;
  {
    const Busy nobody_accepts(iom);
    for (int i = 0; i < 3; ++i) clients.push_back(connectedTo(server->address()));
    server->stop();
  }
  EXPECT_TRUE(echoes(*clients[0]));
  EXPECT_TRUE(isEnded(*clients[1]));
  EXPECT_TRUE(isEnded(*clients[2]));
  EXPECT_EQ(server->getCounts().paused, 0u);
}

// A client can connect as soon as it is bound; but it may not be ready to serve anybody.
TEST(TcpServerStop, ServesNobodyIfItNeverRan) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = std::make_shared<TestServer>(iom, [](const Socket::ptr&) { FAIL() << "it serves"; });
  ASSERT_TRUE(server->bind(loopback()));
  const auto client = connectedTo(server->address());
  server->stop();
  EXPECT_TRUE(isEnded(*client));
  EXPECT_EQ(server->getCounts().accepted, 0u);
}

/// A listener that hands over what it accepted when the test lets it.
class HeldListener : public Socket {
 public:
  struct Gate {
    std::atomic<bool> accepted{false};
    std::atomic<bool> open{false};
  };
  explicit HeldListener(Gate& gate) : Socket(IPv4, TCP), m_gate(gate) {}
  Socket::ptr accept() override {
    Socket::ptr client = Socket::accept();
    const int error = errno;
    if (client != nullptr) {
      m_gate.accepted = true;
      until([this] { return m_gate.open.load(); });
    }
    errno = error;
    return client;
  }

 private:
  Gate& m_gate;
};

class HeldServer : public TestServer {
 public:
  HeldServer(IOManager& iom, HeldListener::Gate& gate) : TestServer(iom, echo), m_gate(gate) {}

 protected:
  Socket::ptr makeListener(const Address::ptr&) override { return std::make_shared<HeldListener>(m_gate); }

 private:
  HeldListener::Gate& m_gate;
};

// A connection that has left the queue and is not let in yet when the server stops.
TEST(TcpServerStop, ServesWhatIsJustBeingAccepted) {
  const LeakCheck leaks;
  IOManager iom(2, false, "server");
  HeldListener::Gate gate;
  const auto server = std::make_shared<HeldServer>(iom, gate);
  std::atomic<int> told{0};
  server->on_end = [&](const Socket::ptr&) { ++told; };
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  const auto client = connectedTo(server->address());
  until([&] { return gate.accepted.load(); });
  server->stop();
  EXPECT_FALSE(server->join(Deadline::after(0ms))) << "there may be one more";
  gate.open = true;
  EXPECT_TRUE(echoes(*client));
  until([&] { return told == 1; });
  EXPECT_TRUE(client->close());
  EXPECT_TRUE(server->join());
  EXPECT_EQ(told, 1);
}

TEST_F(TcpServerTest, StopWorksFromAHandler) {
  std::shared_ptr<TestServer> server;
  server = TestServer::started(iom(), [&](const Socket::ptr& client) {
    server->stop();
    echo(client);
  });
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  EXPECT_TRUE(server->isStop());
  EXPECT_TRUE(server->join());
}

TEST_F(TcpServerTest, JoinSuspendsAFiber) {
  const auto server = TestServer::started(iom(), echo);
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(echoes(*client));
  server->stop();
  std::atomic<int> joined{0};
  const auto joiner = std::make_shared<Fiber>([&] {
    EXPECT_FALSE(server->join(Deadline::after(5ms)));
    ++joined;
    EXPECT_TRUE(server->join());
    ++joined;
  });
  iom().schedule(joiner);
  until([&] { return joined == 1; });
  EXPECT_TRUE(echoes(*client));
  EXPECT_EQ(joined, 1);
  EXPECT_TRUE(client->close());
  joiner->join();
  EXPECT_EQ(joined, 2);
}

TEST_F(TcpServerTest, ACancelledJoinEnds) {
  const auto server = TestServer::started(iom(), echo);
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(echoes(*client));
  const auto joiner = std::make_shared<Fiber>([&] { EXPECT_FALSE(server->join()); });
  iom().schedule(joiner);
  joiner->cancel();
  joiner->join();
  server->stop();
}

TEST_F(TcpServerTest, IsBoundAndStartedAgain) {
  const auto server = TestServer::started(iom(), echo);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(echoes(*connectedTo(server->address())));
    server->stop();
    ASSERT_TRUE(server->bind(server->address())) << std::strerror(errno);
    ASSERT_TRUE(server->start());
  }
  server->stop();
  ASSERT_TRUE(server->bind(server->address()));
  server->stop();  // bound, never started
  EXPECT_FALSE(Socket::CreateTCPSocket()->connect(server->address()));
}

// The IOManager ends when the server was stopped; a cancelling stop ends the server.
TEST(TcpServerOnItsIOManager, EndsWithACancellingStop) {
  const LeakCheck leaks;
  IOManager iom(2, false, "server");
  const auto server = TestServer::started(iom, echo);
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(echoes(*client));
  EXPECT_TRUE(iom.stop(Deadline::after(10s)).clean);
  EXPECT_TRUE(isEnded(*client));
  EXPECT_TRUE(server->getSocks().empty());
  EXPECT_FALSE(Socket::CreateTCPSocket()->connect(server->address()));
  EXPECT_EQ(server->getCounts().open, 0u);
}

// ---- Limits. ----------------------------------------------------------------------------------------------------------------

// SEC-09.
TEST_F(TcpServerTest, AcceptingPausesAtTheTotalLimit) {
  constexpr size_t kMost = 3;
  const auto server = TestServer::started(iom(), echo, {.max_connections = kMost});
  std::vector<Socket::ptr> clients;
  for (size_t i = 0; i < kMost + 2; ++i) clients.push_back(connectedTo(server->address()));
  for (size_t i = 0; i < kMost; ++i) EXPECT_TRUE(echoes(*clients[i]));
  until([&] { return server->getCounts().paused == 1; });
  EXPECT_EQ(server->getCounts().open, kMost);
  ASSERT_TRUE(clients[kMost]->setRecvTimeout(5));
  EXPECT_FALSE(echoes(*clients[kMost]));
  EXPECT_TRUE(clients[kMost]->isTimeout()) << "it waits";
  ASSERT_TRUE(clients[kMost]->setRecvTimeout(0));
  EXPECT_TRUE(clients[0]->close());
  char byte;
  EXPECT_EQ(clients[kMost]->recv(&byte, 1), 1) << "its turn";
  until([&] { return server->getCounts().paused == 2; });  // the answer may come before the next one is accepted
  EXPECT_TRUE(clients[1]->close());
  EXPECT_TRUE(echoes(*clients[kMost + 1]));
  EXPECT_EQ(server->getCounts().open, kMost);
  EXPECT_EQ(server->getCounts().paused, 2u);
  server->stop();
}

TEST_F(TcpServerTest, StopEndsAPause) {
  const auto server = TestServer::started(iom(), echo, {.max_connections = 1});
  const auto first = connectedTo(server->address());
  EXPECT_TRUE(echoes(*first));
  const auto second = connectedTo(server->address());
  until([&] { return server->getCounts().paused == 1; });
  server->stop();
  EXPECT_TRUE(isEnded(*second));
  EXPECT_TRUE(echoes(*first));
}

// SEC-09. Loopback is exempt unless it is asked for.
TEST_F(TcpServerTest, OnePeerHasItsLimit) {
  const auto from = [&](const TestServer& server, const char* host) {
    const auto client = Socket::CreateTCPSocket();
    EXPECT_TRUE(client->bind(IPAddress::Create(host)));
    EXPECT_TRUE(client->connect(server.address()));
    return client;
  };
  const auto server = TestServer::started(iom(), echo, {.max_per_peer = 2, .limit_loopback = true});
  const auto one = from(*server, "127.0.0.1"), two = from(*server, "127.0.0.1");
  EXPECT_TRUE(echoes(*one));
  EXPECT_TRUE(echoes(*two));
  EXPECT_TRUE(isEnded(*from(*server, "127.0.0.1")));
  EXPECT_TRUE(echoes(*from(*server, "127.0.0.2"))) << "another peer";
  EXPECT_EQ(server->getCounts().refused_per_peer, 1u);
  EXPECT_TRUE(one->close());
  until([&] { return server->getCounts().open == 1; });
  EXPECT_TRUE(echoes(*from(*server, "127.0.0.1"))) << "there is room again";
  EXPECT_TRUE(echoes(*two));
  server->stop();

  const auto exempt = TestServer::started(iom(), echo, {.max_per_peer = 1});
  std::vector<Socket::ptr> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(connectedTo(exempt->address()));
    EXPECT_TRUE(echoes(*clients.back()));
  }
  EXPECT_EQ(exempt->getCounts().refused_per_peer, 0u);
  exempt->stop();
}

// ---- Handlers. --------------------------------------------------------------------------------------------------------------

TEST_F(TcpServerTest, AnExceptionEndsItsConnectionOnly) {
  const auto server = TestServer::started(iom(), [](const Socket::ptr& client) {
    char what = 0;
    EXPECT_EQ(client->recv(&what, 1), 1);
    if (what == 's') throw std::runtime_error("the handler's own");
    if (what == 'i') throw 42;
    EXPECT_EQ(client->send(&what, 1), 1);
  });
  for (const char what : {'s', 'i', 's'}) {
    const auto client = connectedTo(server->address());
    EXPECT_EQ(client->send(&what, 1), 1);
    EXPECT_TRUE(isEnded(*client));
  }
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  EXPECT_TRUE(server->join());
  EXPECT_EQ(server->getCounts().exceptions, 3u);
  server->stop();
}

TEST_F(TcpServerTest, AConnectionEndsWithItsHandler) {
  Socket::ptr kept;
  const auto server = TestServer::started(iom(), [&](const Socket::ptr& client) { kept = client; });
  EXPECT_TRUE(isEnded(*connectedTo(server->address())));
  EXPECT_TRUE(server->join());
  EXPECT_FALSE(kept->isValid());
  server->stop();
}

// The default handler says nothing.
TEST_F(TcpServerTest, ThePlainServerClosesWhoeverComes) {
  const auto server = std::make_shared<TcpServer>(&iom(), &iom(), &iom());
  ASSERT_TRUE(server->bind(loopback()));
  const auto address = server->getSocks()[0]->getLocalAddress();
  ASSERT_TRUE(server->start());
  EXPECT_TRUE(isEnded(*connectedTo(address)));
  server->stop();
}

}  // namespace
}  // namespace sylar::test
