// Accepts that fail: the listener is one that fails when the test says so.
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "sylar/testing/virtual_time.h"
#include "tests/net/server_support.h"

namespace sylar::test {
namespace {

/// Fails with the errors that it was given, then accepts. A stop accepts beside the server's own fiber.
class FailingListener : public Socket {
 public:
  explicit FailingListener(std::deque<int> errors) : Socket(IPv4, TCP), m_errors(std::move(errors)) {}
  Socket::ptr accept() override {
    {
      const std::lock_guard lock(m_mutex);
      if (!m_errors.empty()) {
        errno = m_errors.front();
        m_errors.pop_front();
        return nullptr;
      }
    }
    return Socket::accept();
  }

 private:
  std::mutex m_mutex;
  std::deque<int> m_errors;
};

class FailingServer : public TestServer {
 public:
  FailingServer(IOManager& iom, std::deque<int> errors) : TestServer(iom, echo), m_errors(std::move(errors)) {}

 protected:
  /// The first listener fails.
  Socket::ptr makeListener(const Address::ptr& addr) override {
    return m_errors.empty() ? TestServer::makeListener(addr) : std::make_shared<FailingListener>(std::exchange(m_errors, {}));
  }

 private:
  std::deque<int> m_errors;
};

std::shared_ptr<FailingServer> startedWith(IOManager& iom, std::deque<int> errors) {
  auto server = std::make_shared<FailingServer>(iom, std::move(errors));
  EXPECT_TRUE(server->bind(loopback()));
  EXPECT_TRUE(server->start());
  return server;
}

// FM-01, FM-02.
TEST(FailingAccept, IsTriedAgainIfItMaySucceed) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const std::deque<int> errors{EMFILE,   ENFILE,      ENOBUFS,   ENOMEM, ECONNABORTED, EINTR,      EPERM,      EPROTO,
                               ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
  for (const int error : errors) {
    const auto server = startedWith(iom, {error, error});
    EXPECT_TRUE(echoes(*connectedTo(server->address()))) << std::strerror(error);
    EXPECT_EQ(server->getCounts().accept_errors, 2u);
    EXPECT_EQ(server->getCounts().listeners_failed, 0u);
    server->stop();
  }
}

// A timeout of the listener, and cancelAccept(): no errors.
TEST(FailingAccept, IsNoErrorWhenItWasEndedOnPurpose) {
  IOManager iom(1, false, "server");
  const auto server = startedWith(iom, {EAGAIN, ECANCELED, EAGAIN});
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  EXPECT_EQ(server->getCounts().accept_errors, 0u);
  while (!server->getSocks().front()->cancelAccept()) sched_yield();
  EXPECT_TRUE(echoes(*connectedTo(server->address())));
  server->stop();
}

// FM-02.
TEST(FailingAccept, OfAnotherKindEndsThatListenerOnly) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  for (const int error : {EINVAL, EBADF, ENOTSOCK, EFAULT}) {
    const auto server = std::make_shared<FailingServer>(iom, std::deque<int>{EMFILE, error});
    std::vector<Address::ptr> fails;
    ASSERT_TRUE(server->TcpServer::bind({loopback(), loopback()}, fails));
    const auto sockets = server->getSocks();
    const auto failing = sockets[0]->getLocalAddress(), good = sockets[1]->getLocalAddress();
    ASSERT_TRUE(server->start());
    until([&] { return server->getSocks().size() == 1 && !sockets[0]->isValid(); });
    EXPECT_EQ(server->getCounts().listeners_failed, 1u);
    EXPECT_EQ(server->getCounts().accept_errors, 1u);
    EXPECT_TRUE(echoes(*connectedTo(good)));
    server->stop();
  }
}

TEST(FailingAccept, EndsQuietlyWhenTheListenerIsClosed) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = TestServer::started(iom, echo);
  EXPECT_TRUE(server->getSocks().front()->close());
  until([&] { return server->getSocks().empty(); });
  EXPECT_EQ(server->getCounts().listeners_failed, 0u);
  server->stop();
}

// Each wait is twice as long as the one before, up to 512 ms, on the clock of the IOManager.
TEST(FailingAccept, WaitsOnTheClockOfItsIOManager) {
  using namespace std::chrono_literals;
  VirtualTime time;
  time.run([] {
    const auto server = startedWith(*IOManager::GetThis(), std::deque<int>(12, EMFILE));
    EXPECT_TRUE(echoes(*connectedTo(server->address())));
    server->stop();
    EXPECT_TRUE(server->join());
  });
  EXPECT_EQ(time.elapsed(), 1023ms + 2 * 512ms);
}

// The wait after a failure ends with stop(), however long it would have been.
TEST(FailingAccept, DoesNotKeepStopWaiting) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = startedWith(iom, std::deque<int>(100, EMFILE));
  until([&] { return server->getCounts().accept_errors >= 3; });
  server->stop();
  iom.stop();
  EXPECT_LT(server->getCounts().accept_errors, 100u);
}

/// Says when its accepting fiber has ended.
class WatchedServer : public TestServer {
 public:
  using TestServer::TestServer;
  std::function<void()> before_last_accept;
  std::atomic<bool> fiber_ended{false};

 protected:
  class Listener : public Socket {
   public:
    explicit Listener(std::function<void()> before) : Socket(IPv4, TCP), m_before(std::move(before)) {}
    Socket::ptr accept() override {
      if (IOManager::GetThis() == nullptr && m_before) std::exchange(m_before, nullptr)();
      return Socket::accept();
    }

   private:
    std::function<void()> m_before;
  };
  Socket::ptr makeListener(const Address::ptr& /*addr*/) override { return std::make_shared<Listener>(before_last_accept); }
  void startAccept(Socket::ptr sock) override {
    TcpServer::startAccept(std::move(sock));
    fiber_ended = true;
  }
};

// Cause: the accepting fiber, which a connection wakes during stop(), closed the listener, with whoever was in its queue.
TEST(Stop, AcceptsWhoWaitsThoughTheAcceptingFiberEndsMeanwhile) {
  const LeakCheck leaks;
  IOManager iom(1, false, "server");
  const auto server = std::make_shared<WatchedServer>(iom, echo);
  const Socket::ptr early = Socket::CreateTCP(loopback()), late = Socket::CreateTCP(loopback());
  server->before_last_accept = [&] {  // in stop()
    EXPECT_TRUE(early->connect(server->address()));
    until([&] { return server->fiber_ended.load(); });
    EXPECT_TRUE(late->connect(server->address()));
  };
  ASSERT_TRUE(server->bind(loopback()));
  ASSERT_TRUE(server->start());
  server->stop();
  EXPECT_TRUE(echoes(*early));
  EXPECT_TRUE(echoes(*late));
  early->close();
  late->close();
  EXPECT_TRUE(server->join());
}

}  // namespace
}  // namespace sylar::test
