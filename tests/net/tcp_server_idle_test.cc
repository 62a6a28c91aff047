// The idle timeout of a TcpServer. That it comes in time: tests/integration/idle_test.cc.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/net/server_support.h"
#ifdef SYLAR_COUNTS_QUEUE_OPERATIONS
#include "tests/support/queue_operations.h"
#endif

namespace sylar::test {
namespace {

constexpr uint64_t kSoon = 5;            // ms: what is to happen
constexpr uint64_t kNotNow = 3'600'000;  // ms: what is not

/// A client that its handler closes at the last moment before the idle timeout does.
class ClosedFirst : public Socket {
 public:
  /// Takes over the descriptor of `accepted`.
  explicit ClosedFirst(const Socket& accepted) : Socket(accepted.getFamily(), accepted.getType()) {
    EXPECT_GE(::dup2(accepted.getSocket(), getSocket()), 0);
  }
  bool close() override {
    Socket::close();
    return Socket::close();
  }
};

class ClosedFirstServer : public TestServer {
 public:
  using TestServer::TestServer;

 protected:
  Socket::ptr makeListener(const Address::ptr& address) override {
    struct Listener : Socket {
      using Socket::Socket;
      Socket::ptr accept() override {
        const Socket::ptr accepted = Socket::accept();
        return accepted == nullptr ? nullptr : std::make_shared<ClosedFirst>(*accepted);
      }
    };
    return std::make_shared<Listener>(address->getFamily(), Socket::TCP);
  }
};

class TcpServerIdleTest : public testing::Test {
 protected:
  std::shared_ptr<TestServer> started(uint64_t idle_ms, TestServer::Handler handler) {
    const auto server = std::make_shared<TestServer>(m_iom, std::move(handler));
    server->setIdleTimeout(idle_ms);
    EXPECT_TRUE(server->bind(loopback()));
    EXPECT_TRUE(server->start());
    return server;
  }
  IOManager& iom() { return m_iom; }

 private:
  LeakCheck m_leaks;
  IOManager m_iom{2, false, "server"};
};

// K-1
TEST_F(TcpServerIdleTest, ClosesWhoIsSilent) {
  std::atomic<int> error{0};
  const auto server = started(kSoon, [&](const Socket::ptr& client) {
    echo(client);
    error = errno;
    EXPECT_FALSE(client->isValid());
  });
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(isEnded(*client));
  EXPECT_TRUE(server->join());
  EXPECT_EQ(error, EBADF);
  EXPECT_EQ(server->getCounts().idle_closed, 1u);
  until([&] { return !iom().hasTimer(); });  // the guard's run, which has closed it, may still be under way
  server->stop();
}

TEST_F(TcpServerIdleTest, ClosesAlsoWhoseHandlerIsBusyWithSomethingElse) {
  std::atomic<bool> closed{false};
  const auto server = started(kSoon, [&](const Socket::ptr& client) {
    until([&] { return !client->isValid(); });
    closed = true;
  });
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(isEnded(*client));
  EXPECT_TRUE(server->join());
  EXPECT_TRUE(closed);
  server->stop();
}

TEST_F(TcpServerIdleTest, DoesNotCountWhomTheHandlerClosedFirst) {
  const auto server =
      std::make_shared<ClosedFirstServer>(iom(), [](const Socket::ptr& client) { until([&] { return !client->isValid(); }); });
  server->setIdleTimeout(kSoon);
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  EXPECT_TRUE(isEnded(*connectedTo(server->address())));
  EXPECT_TRUE(server->join());
  until([&] { return !iom().hasTimer(); });
  server->stop();
  iom().stop();  // the callback has ended
  EXPECT_EQ(server->getCounts().idle_closed, 0u);
}

TEST_F(TcpServerIdleTest, IsOffAtFirst) {
  const auto server = TestServer::started(iom(), echo);
  EXPECT_EQ(server->getIdleTimeout(), 0u);
  const auto client = connectedTo(server->address());
  EXPECT_TRUE(echoes(*client));
  EXPECT_FALSE(iom().hasTimer());
  client->close();
  EXPECT_TRUE(server->join());
  server->stop();
}

// An IOManager's stop() waits for timers: with the last connection the guard goes.
TEST_F(TcpServerIdleTest, NoTimerOutlivesTheConnections) {
  const auto server = started(kNotNow, echo);
  const auto one = connectedTo(server->address()), two = connectedTo(server->address());
  EXPECT_TRUE(echoes(*one) && echoes(*two));
  EXPECT_TRUE(iom().hasTimer());
  one->close();
  until([&] { return server->getCounts().open == 1; });
  EXPECT_TRUE(iom().hasTimer());
  two->close();
  EXPECT_TRUE(server->join());
  until([&] { return !iom().hasTimer(); });
  EXPECT_EQ(server->getCounts().idle_closed, 0u);
  server->stop();
}

// The limits that a connection began with hold for it.
TEST_F(TcpServerIdleTest, AnotherTimeoutHoldsForThoseWhoComeLater) {
  const auto server = started(kNotNow, echo);
  const auto old = connectedTo(server->address());
  EXPECT_TRUE(echoes(*old));
  server->stop();
  server->setIdleTimeout(kSoon);
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  EXPECT_TRUE(isEnded(*connectedTo(server->address())));
  EXPECT_TRUE(echoes(*old));
  old->close();
  EXPECT_TRUE(server->join());
  server->stop();
}

TEST_F(TcpServerIdleTest, ASocketMayOutliveItsServer) {
  Socket::ptr kept;
  {
    const auto server = started(kNotNow, [&](const Socket::ptr& client) { kept = client; });
    EXPECT_TRUE(isEnded(*connectedTo(server->address())));
    EXPECT_TRUE(server->join());
    server->stop();
  }
  char byte = 'x';
  EXPECT_EQ(kept->send(&byte, 1), -1);
  EXPECT_EQ(errno, EBADF);
}

#ifdef SYLAR_COUNTS_QUEUE_OPERATIONS
// K-2: neither a touch of the list nor a read with a timeout is a queue operation.
TEST_F(TcpServerIdleTest, ARequestIsNoQueueOperation) {
  const auto server = started(kNotNow, echo);
  const auto one = connectedTo(server->address()), two = connectedTo(server->address());
  EXPECT_TRUE(echoes(*one) && echoes(*two));
  const uint64_t start = queueOperations();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(echoes(*(i % 2 == 0 ? one : two)));
  EXPECT_LE(queueOperations(), start + 2);  // a connection's first wait may have been still to come
  one->close();
  two->close();
  EXPECT_TRUE(server->join());
  server->stop();
}
#endif

}  // namespace
}  // namespace sylar::test
