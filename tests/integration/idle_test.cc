// Who goes on sending stays, who is silent is closed in time, and a touch costs no queue operation: 5 000 connections from a
// second process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/fd.h"
#include "tests/integration/child.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;

constexpr auto kTimeout = 1000ms;
constexpr auto kLate = 50ms;

/// How many connections, how many of them are silent after their first request, and how often the others make one.
struct Plan {
  int connections;
  int silent;
  std::chrono::milliseconds interval;
};
constexpr Plan kPlan{5000, 500, kTimeout / 2};

Time now() { return std::chrono::steady_clock::now(); }
double ms(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// The server, in its own process.
class Server {
 public:
  Server() : m_child({SYLAR_IDLE_SERVER, std::to_string(kTimeout.count())}) {
    std::sscanf(m_child.line().c_str(), "%hu %hu", &echo_port, &http_port);
  }
  ~Server() {
    m_child.signal(SIGTERM);
    EXPECT_EQ(m_child.wait(), 0);
  }

  struct Report {
    uint64_t operations = 0, open = 0, closed = 0;
  };
  Report report() {
    m_child.signal(SIGUSR1);
    Report report;
    std::sscanf(m_child.line().c_str(), "%lu %lu %lu", &report.operations, &report.open, &report.closed);
    return report;
  }

  uint16_t echo_port = 0, http_port = 0;

 private:
  Child m_child;
};

struct Peer {
  UniqueFd fd;
  Time sent, received, closed;
  bool is_closed = false;
  bool talks = true;
};

/// Many connections that make requests.
class Crowd {
 public:
  Crowd(const Plan& plan, uint16_t port, std::string request)
      : m_plan(plan), m_port(port), m_request(std::move(request)), m_epoll(::epoll_create1(0)) {
    m_peers.reserve(static_cast<size_t>(plan.connections));
  }

  /// Spread over the time in which each makes a request, as they will be.
  void connectAll() {
    const Time start = now();
    for (int i = 0; i < m_plan.connections && !testing::Test::HasFatalFailure(); turn(1)) {
      while (i < m_plan.connections && start + i * (kTimeout / 2) / m_plan.connections <= now()) connect(i++);
    }
  }
  /// Time passes; who talks does.
  void goOn(std::chrono::nanoseconds time) {
    for (const Time end = now() + time; now() < end;) turn(1);
  }
  void fallSilent() { m_next.clear(); }

  const std::vector<Peer>& peers() const { return m_peers; }
  uint64_t requests() const { return m_requests; }

 private:
  void connect(int i) {
    Peer& peer = m_peers.emplace_back();
    peer.fd = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(m_port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(peer.fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(i);
    ASSERT_EQ(::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, peer.fd.get(), &event), 0);
    peer.talks = m_plan.silent == 0 || i % (m_plan.connections / m_plan.silent) != 0;
    ask(i);
  }
  void ask(int i) {
    Peer& peer = m_peers[static_cast<size_t>(i)];
    if (peer.is_closed) return;
    peer.sent = now();
    EXPECT_EQ(::send(peer.fd.get(), m_request.data(), m_request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(m_request.size()));
    ++m_requests;
    if (peer.talks) m_next.push_back(i);
  }
  void turn(int wait_ms) {
    while (!m_next.empty() && m_peers[static_cast<size_t>(m_next.front())].sent + m_plan.interval <= now()) {
      const int i = m_next.front();
      m_next.pop_front();
      ask(i);
    }
    epoll_event events[256];
    const int count = ::epoll_wait(m_epoll.get(), events, 256, wait_ms);
    for (int i = 0; i < count; ++i) hear(m_peers[events[i].data.u32]);
  }
  void hear(Peer& peer) {
    char buffer[1024];
    const ssize_t count = ::recv(peer.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count > 0) {
      peer.received = now();
    } else if (count == 0 || errno != EAGAIN) {
      peer.closed = now();
      peer.is_closed = true;
      peer.fd.reset();
    }
  }

  const Plan m_plan;
  const uint16_t m_port;
  const std::string m_request;
  const UniqueFd m_epoll;
  std::vector<Peer> m_peers;
  std::deque<int> m_next;  // who talks, in the order of their last requests
  uint64_t m_requests = 0;
};

/// The server was silent at the earliest when it had the last request, at the latest when we had its answer.
void expectClosedInTime(const Peer& peer, std::chrono::nanoseconds& latest) {
  ASSERT_TRUE(peer.is_closed);
  EXPECT_GE(ms(peer.closed - peer.sent), ms(kTimeout));
  EXPECT_LE(ms(peer.closed - peer.received), ms(kTimeout + kLate));
  latest = std::max<std::chrono::nanoseconds>(latest, peer.closed - peer.received);
}

/// What the server did to timer queues while all talked for ten timeouts, and how many requests that were.
struct Talk {
  uint64_t operations;
  uint64_t requests;
};

Talk talkAndFallSilent(Server& server, const Plan& plan, uint16_t port, const std::string& request) {
  Crowd crowd(plan, port, request);
  crowd.connectAll();
  const auto start = server.report();
  const uint64_t requests = crowd.requests();
  crowd.goOn(10 * kTimeout);
  const Talk talk{server.report().operations - start.operations, crowd.requests() - requests};
  std::chrono::nanoseconds latest{};
  for (const Peer& peer : crowd.peers()) {
    if (peer.talks) {
      EXPECT_FALSE(peer.is_closed) << "after " << ms(peer.closed - peer.sent) << " ms";
    } else {
      expectClosedInTime(peer, latest);
    }
  }
  crowd.fallSilent();
  crowd.goOn(kTimeout + 2 * kLate);
  for (const Peer& peer : crowd.peers()) expectClosedInTime(peer, latest);
  EXPECT_EQ(server.report().open, 0u);
  std::cout << talk.requests << " requests, " << talk.operations << " queue operations; closed after " << ms(latest)
            << " ms at the latest\n";
  return talk;
}

class IdleTest : public testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < rlim_t{kPlan.connections} + 100) GTEST_SKIP() << "too few descriptors";
  }
  Server m_server;
};

// K-1, RG-14: the list of a TcpServer. Each request is two touches. What there is of queue operations: the guard is armed anew,
// and who is silent takes the timeout of his read along.
TEST_F(IdleTest, ATcpServerClosesWhoIsSilentAndNobodyElse) {
  const Talk talk = talkAndFallSilent(m_server, kPlan, m_server.echo_port, "x");
  EXPECT_GT(talk.requests, 17u * (kPlan.connections - kPlan.silent));
  EXPECT_LT(talk.operations, 2u * kPlan.silent + 200u);
  EXPECT_EQ(m_server.report().closed, uint64_t{kPlan.connections});
}

constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// K-1, RG-14: keep-alive connections, whose reads have a timeout each.
TEST_F(IdleTest, AnHttpServerClosesWhoIsSilentAndNobodyElse) {
  const Talk talk = talkAndFallSilent(m_server, kPlan, m_server.http_port, kGet);
  EXPECT_GT(talk.requests, 17u * (kPlan.connections - kPlan.silent));
}

// timers.md 3.5: a wait that begins anew is noted, not queued. Its node is put right when it would be due, once in nearly a
// timeout and not once for each of the many requests meanwhile.
TEST_F(IdleTest, ARequestOfAKeptConnectionIsNoQueueOperation) {
  constexpr Plan kOften{500, 0, kTimeout / 20};
  const Talk talk = talkAndFallSilent(m_server, kOften, m_server.http_port, kGet);
  EXPECT_GT(talk.requests, 150u * kOften.connections);
  EXPECT_LT(talk.operations, 13u * kOften.connections);
}

}  // namespace
}  // namespace sylar::test
