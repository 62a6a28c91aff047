// A client that sends stays, a silent one is closed in time, and a touch costs no queue operation: 5 000 connections from a
// second process. The machine may be busy: how late it made this process, and timers and workers of the server, is not held against
// the server's lists.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
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
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/base/os_mutex.h"
#include "tests/integration/child.h"
#include "tests/support/beside_program.h"

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

/// When somebody here had no processor who wanted one: the server, which has the same, may not have had one either. Each
/// processor has a witness that is bound to it and wakes once a millisecond.
class Stalls {
 public:
  Stalls() {
    cpu_set_t ours;
    ::sched_getaffinity(0, sizeof ours, &ours);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &ours)) m_witnesses.emplace_back([this, cpu](const std::stop_token& end) { watch(cpu, end); });
    }
  }

  /// The caller had run last at `last`, and wanted to run again within a millisecond or so. Returns the time.
  Time note(Time last) {
    const Time time = now();
    if (time - last >= kNoticed) add(last, time);
    return time;
  }
  void add(Time from, Time to) {
    const Lock lock(m_mutex);
    m_stalls.push_back({from, to});
  }
  /// All of them between the two moments; those of several processors add up.
  std::chrono::nanoseconds within(Time from, Time to) {
    std::chrono::nanoseconds sum{};
    const Lock lock(m_mutex);
    for (const Stall& stall : m_stalls) {
      sum += std::max(std::chrono::nanoseconds::zero(), std::min(to, stall.to) - std::max(from, stall.from));
    }
    return sum;
  }

 private:
  static constexpr auto kNoticed = 5ms;
  struct Stall {
    Time from, to;
  };

  void watch(size_t cpu, const std::stop_token& end) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    ::sched_setaffinity(0, sizeof own, &own);
    for (Time last = now(); !end.stop_requested();) {
      std::this_thread::sleep_for(1ms);
      last = note(last);
    }
  }

  OsMutex m_mutex;
  std::vector<Stall> m_stalls SYLAR_GUARDED_BY(m_mutex);
  std::vector<std::jthread> m_witnesses;  // last: they end first
};

/// The server, in its own process.
class Server {
 public:
  Server() : m_child({besideProgram(SYLAR_IDLE_SERVER), std::to_string(kTimeout.count())}) {
    std::sscanf(m_child.line().c_str(), "%hu %hu", &echo_port, &http_port);
  }
  ~Server() {
    m_child.signal(SIGTERM);
    EXPECT_EQ(m_child.wait(), 0);
  }

  struct Report {
    uint64_t operations = 0, guards = 0, open = 0, closed = 0;
  };
  Report report() {
    m_child.signal(SIGUSR1);
    Report report;
    std::sscanf(m_child.line().c_str(), "%lu %lu %lu %lu", &report.operations, &report.guards, &report.open, &report.closed);
    return report;
  }
  /// Adds when its workers were late since the last call.
  void tellStalls(Stalls& stalls) {
    m_child.signal(SIGUSR2);
    std::istringstream line(m_child.line());
    size_t count = 0;
    line >> count;
    for (int64_t from = 0, to = 0; count > 0 && line >> from >> to; --count)
      stalls.add(Time(std::chrono::nanoseconds(from)), Time(std::chrono::nanoseconds(to)));
    EXPECT_EQ(count, 0u);
  }

  uint16_t echo_port = 0, http_port = 0;

 private:
  Child m_child;
};

struct Peer {
  UniqueFd fd;
  Time sent;      // the last request
  Time asked;     // the first one since the last answer
  Time received;  // the last answer
  Time closed;
  bool is_closed = false;
  bool answered = true;
  bool talks = true;
};

/// Many connections that make requests.
class Crowd {
 public:
  Crowd(const Plan& plan, uint16_t port, std::string request, Stalls& stalls)
      : m_plan(plan), m_port(port), m_request(std::move(request)), m_stalls(stalls), m_epoll(::epoll_create1(0)) {
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
  /// Until all are closed; at most ten timeouts.
  void awaitEnd() {
    const auto is_closed = [](const Peer& peer) { return peer.is_closed; };
    for (const Time end = now() + 10 * kTimeout; now() < end && !std::ranges::all_of(m_peers, is_closed);) turn(1);
  }

  const std::vector<Peer>& peers() const { return m_peers; }
  uint64_t requests() const { return m_requests; }

 private:
  void connect(int i) {
    Peer& peer = m_peers.emplace_back();
    peer.received = now();
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
    if (std::exchange(peer.answered, false)) peer.asked = peer.sent;
    if (::send(peer.fd.get(), m_request.data(), m_request.size(), MSG_NOSIGNAL) < 0) return;  // closed: to be heard of
    ++m_requests;
    if (peer.talks) m_next.push_back(i);
  }
  void turn(int wait_ms) {
    m_last_turn = m_stalls.note(m_last_turn);
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
      peer.answered = true;
    } else if (count == 0 || errno != EAGAIN) {
      peer.closed = now();
      peer.is_closed = true;
      peer.fd.reset();
    }
  }

  const Plan m_plan;
  const uint16_t m_port;
  const std::string m_request;
  Stalls& m_stalls;
  const UniqueFd m_epoll;
  Time m_last_turn = now();
  std::vector<Peer> m_peers;
  std::deque<int> m_next;  // who talks, in the order of their last requests
  uint64_t m_requests = 0;
};

/// Closed though there was a request that nobody answered, or before its next one: only if that came too late.
void expectItWasLate(const Peer& peer, Stalls& stalls) {
  const Time next = peer.answered ? peer.closed : peer.asked;
  EXPECT_GE(ms(next - peer.received + stalls.within(peer.received - kTimeout, peer.closed)), ms(kTimeout));
}

/// The server was silent at the earliest when it had the last request, at the latest when we had its answer.
void expectClosedInTime(const Peer& peer, Stalls& stalls, std::chrono::nanoseconds& latest) {
  ASSERT_TRUE(peer.is_closed);
  if (!peer.answered) return expectItWasLate(peer, stalls);
  const auto stalled = stalls.within(peer.received + kTimeout - kLate, peer.closed);
  EXPECT_GE(ms(peer.closed - peer.sent), ms(kTimeout));
  EXPECT_LE(ms(peer.closed - peer.received), ms(kTimeout + kLate + stalled));
  if (stalled.count() == 0) latest = std::max<std::chrono::nanoseconds>(latest, peer.closed - peer.received);
}

/// Counts what the server did to the queues of its fibers' timeouts from the first connection on, while all talked for ten
/// timeouts, or a little longer; how many requests that were, and how many talkers were closed because they came too late.
struct Talk {
  uint64_t operations;
  uint64_t requests;
  std::chrono::nanoseconds time;
  uint64_t late = 0;
};

Talk talkAndFallSilent(Server& server, const Plan& plan, uint16_t port, const std::string& request) {
  Stalls stalls;
  Crowd crowd(plan, port, request, stalls);
  const Server::Report before = server.report();
  const Time start = now();
  crowd.connectAll();
  crowd.goOn(10 * kTimeout);
  const Server::Report after = server.report();
  Talk talk{after.operations - before.operations, crowd.requests(), now() - start};
  crowd.fallSilent();
  server.tellStalls(stalls);
  std::vector<const Peer*> in_time;
  for (const Peer& peer : crowd.peers()) {
    if (peer.talks && peer.is_closed) {
      expectItWasLate(peer, stalls);
      ++talk.late;
    } else {
      in_time.push_back(&peer);
    }
  }
  crowd.awaitEnd();
  server.tellStalls(stalls);
  std::chrono::nanoseconds latest{};
  for (const Peer* const peer : in_time) expectClosedInTime(*peer, stalls, latest);
  for (const Time end = now() + 10 * kTimeout; server.report().open > 0 && now() < end;) crowd.goOn(1ms);
  EXPECT_EQ(server.report().open, 0u);
  std::cout << talk.requests << " requests, " << talk.operations << " queue operations for its fibers, "
            << after.guards - before.guards << " for timers; closed after " << ms(latest)
            << " ms at the latest, where nothing stalled; " << talk.late << " talkers came too late, and the stalls were "
            << ms(stalls.within(start, now())) << " ms in all\n";
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

// K-1, K-2, RG-14: the list of a TcpServer. Each request is two touches and a read with a timeout. Of queue operations there is
// one for the first wait of each connection, however late the server comes to that, and one or two for the end of each that ends.
// How often the list's guard is armed depends on when the requests come: see IdleListTest.
TEST_F(IdleTest, ATcpServerClosesWhoIsSilentAndNobodyElse) {
  const Talk talk = talkAndFallSilent(m_server, kPlan, m_server.echo_port, "x");
  EXPECT_GT(talk.requests, 10u * (kPlan.connections - kPlan.silent));  // half of what was planned
  EXPECT_LE(talk.operations, kPlan.connections + 2u * (kPlan.silent + talk.late));
  EXPECT_EQ(m_server.report().closed, uint64_t{kPlan.connections});
}

constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// K-1, RG-14: keep-alive connections, whose reads have a timeout each.
TEST_F(IdleTest, AnHttpServerClosesWhoIsSilentAndNobodyElse) {
  const Talk talk = talkAndFallSilent(m_server, kPlan, m_server.http_port, kGet);
  EXPECT_GT(talk.requests, 10u * (kPlan.connections - kPlan.silent));
}

// K-2: a wait that begins again is noted, not queued. Its node is put right when it would be due, once in nearly a
// timeout and not once for each of the many requests meanwhile.
TEST_F(IdleTest, ARequestOfAKeptConnectionIsNoQueueOperation) {
  constexpr Plan kOften{500, 0, kTimeout / 20};
  const Talk talk = talkAndFallSilent(m_server, kOften, m_server.http_port, kGet);
  EXPECT_GT(talk.requests, 100u * kOften.connections);
  EXPECT_LT(talk.operations, static_cast<uint64_t>(talk.time / kTimeout + 3) * kOften.connections + 2 * talk.late);
}

}  // namespace
}  // namespace sylar::test
