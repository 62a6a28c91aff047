// Bytes that move while no call of the Socket returns: they count for the idle timeout of a TcpServer, too.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tests/net/server_support.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 300ms;

/// The longest time from one call of note() to the next. A busy machine may keep a test from its next move until the connection
/// is rightly idle; such a round proves nothing, and another is made.
class Pauses {
 public:
  void note() {
    const int64_t now_ns = steadyClock().nowNs();
    m_longest_ns = std::max(m_longest_ns, now_ns - std::exchange(m_last_ns, now_ns));
  }
  /// Two of them with the bytes of the other side in between are no timeout.
  bool areShort() const { return std::chrono::nanoseconds(m_longest_ns) < kTimeout / 3; }

 private:
  int64_t m_last_ns = steadyClock().nowNs();
  int64_t m_longest_ns = 0;
};

class IdleCallsTest : public testing::Test {
 protected:
  std::shared_ptr<TestServer> started(TestServer::Handler handler, std::chrono::milliseconds timeout = kTimeout) {
    const auto server = std::make_shared<TestServer>(m_iom, std::move(handler));
    server->setIdleTimeout(static_cast<uint64_t>(timeout.count()));
    EXPECT_TRUE(server->bind(loopback()));
    EXPECT_TRUE(server->start());
    return server;
  }

 private:
  LeakCheck m_leaks;
  IOManager m_iom{2, false, "server"};
};

// Calls that pass the Socket by, as those of a client library that has the descriptor, are noticed all the same.
TEST_F(IdleCallsTest, AsksTheKernelBeforeItCloses) {
  const auto server = started([&](const Socket::ptr& client) {
    char byte;
    while (::recv(client->getSocket(), &byte, 1, 0) == 1 && ::send(client->getSocket(), &byte, 1, MSG_NOSIGNAL) == 1) {
    }
  });
  for (bool in_time = false; !in_time;) {
    const uint64_t closed_before = server->getCounts().idle_closed;
    Pauses pauses;
    const auto client = connectedTo(server->address());
    bool stays_open = true;
    for (const Deadline end = Deadline::after(3 * kTimeout); stays_open && steadyClock().nowNs() < end.ns(); usleep(20'000)) {
      stays_open = echoes(*client) && server->getCounts().idle_closed == closed_before;
      pauses.note();
    }
    in_time = pauses.areShort();
    EXPECT_TRUE(stays_open || !in_time);
    EXPECT_TRUE(isEnded(*client));
    EXPECT_TRUE(server->join());
    EXPECT_EQ(server->getCounts().idle_closed, closed_before + 1);
  }
  server->stop();
}

// The kernel sends again and again to a peer that is gone. That moves no byte, and the first look finds out.
TEST_F(IdleCallsTest, ARetransmissionIsIdle) {
  constexpr auto kLong = 2000ms;  // the kernel's attempts come at about 0.2, 0.6, 1.4, 3 and 6.2 s
  std::atomic<bool> gone{false};
  const auto server = started(
      [&](const Socket::ptr& client) {
        char byte = 0;
        EXPECT_TRUE(client->recv(&byte, 1) == 1 && client->send(&byte, 1) == 1);
        until([&] { return gone.load(); });
        EXPECT_EQ(client->send(&byte, 1), 1);
        EXPECT_EQ(client->recv(&byte, 1), -1);
      },
      kLong);
  const auto client = connectedTo(server->address());
  ASSERT_TRUE(echoes(*client));
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  ASSERT_TRUE(client->setOption(SOL_SOCKET, SO_ATTACH_FILTER, sock_fprog{1, &nothing}));
  const Stopwatch watch;
  gone = true;
  EXPECT_TRUE(server->join());
  const auto took = watch.elapsed();
  EXPECT_GE(took, kLong);
  EXPECT_LT(took, watch.allows(2 * kLong));  // the second look
  EXPECT_EQ(server->getCounts().idle_closed, 1u);
  server->stop();
}

// A send that is under way moves bytes as long as the peer takes them.
TEST_F(IdleCallsTest, ALongSendIsNotIdle) {
  const std::string much(64 << 20, 'x');
  std::atomic<int> sent{0};
  const auto server = started([&](const Socket::ptr& client) { sent = client->send(much.data(), much.size()); });
  std::string buffer(1 << 20, 0);
  for (bool in_time = false; !in_time;) {
    const uint64_t closed_before = server->getCounts().idle_closed;
    Pauses pauses;
    const auto client = connectedTo(server->address());
    client->setOption(SOL_SOCKET, SO_RCVBUF, 64 * 1024);
    size_t taken = 0;
    int n = 1;
    for (const Deadline slow = Deadline::after(3 * kTimeout); n > 0 && taken < much.size();) {
      n = client->recv(buffer.data(), buffer.size());
      taken += static_cast<size_t>(std::max(n, 0));
      pauses.note();
      if (steadyClock().nowNs() < slow.ns()) usleep(20'000);
    }
    EXPECT_TRUE(server->join());
    in_time = pauses.areShort();
    if (!in_time) continue;
    EXPECT_EQ(taken, much.size());
    EXPECT_EQ(static_cast<size_t>(sent), much.size());
    EXPECT_EQ(server->getCounts().idle_closed, closed_before);
  }
  server->stop();
}

}  // namespace
}  // namespace sylar::test
