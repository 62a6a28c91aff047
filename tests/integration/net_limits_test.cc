// A server without descriptors, under a flood, and with many idle connections: the promised bounds, on the real clock, against
// the example tcp_echo as a process of its own.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/integration/child.h"
#include "tests/net/server_support.h"
#include "tests/support/beside_program.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The example, its log lines among its output.
class EchoProcess : public Child {
 public:
  EchoProcess() : Child({"/bin/sh", "-c", "exec " + besideProgram(SYLAR_TCP_ECHO) + " 127.0.0.1:0 2>&1"}) {
    const std::string text = line();
    const std::string begin = "listening on ";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    m_address = Address::LookupAny(text.substr(std::min(begin.size(), text.size())));
  }
  const Address::ptr& address() const { return m_address; }

  /// The lowest number that is free: with it as the limit there is none left.
  size_t descriptors() const {
    size_t free = 0;
    while (std::filesystem::is_symlink("/proc/" + std::to_string(pid()) + "/fd/" + std::to_string(free))) ++free;
    return free;
  }
  void limitDescriptors(size_t count) const {
    rlimit limit{};
    EXPECT_EQ(::prlimit(pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
    limit.rlim_cur = count;
    EXPECT_EQ(::prlimit(pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  /// Processor time so far.
  std::chrono::milliseconds processor() const {
    std::ifstream file("/proc/" + std::to_string(pid()) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 3; i < 14; ++i) fields >> skipped;
    long user = 0, system = 0;
    fields >> user >> system;
    return std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
  }

  /// Memory of its own that is in use.
  size_t residentBytes() const {
    std::ifstream file("/proc/" + std::to_string(pid()) + "/smaps_rollup");
    for (std::string word; file >> word;) {
      size_t kib = 0;
      if (word == "Rss:" && file >> kib) return kib << 10;
    }
    ADD_FAILURE() << "no Rss in smaps_rollup";
    return 0;
  }

 private:
  Address::ptr m_address;
};

#ifdef SYLAR_EXHAUSTS_DESCRIPTORS
// FM-01, CD-N1: without descriptors the acceptor uses at most 5 % of a core and logs at most once a second; existing connections
// are served, and the first in the queue is within a second after there are descriptors again.
TEST(Exhaustion, OfDescriptorsIsSurvived) {
  EchoProcess server;
  const auto before = connectedTo(server.address());
  EXPECT_TRUE(echoes(*before));
  const size_t open = server.descriptors();
  server.limitDescriptors(open);
  std::vector<Socket::ptr> queued;
  for (int i = 0; i < 5; ++i) {
    queued.push_back(connectedTo(server.address()));
    EXPECT_EQ(queued.back()->send("q", 1), 1);
  }
  const auto begin = Clock::now();
  const auto processor = server.processor();
  char byte;
  ASSERT_TRUE(queued[0]->setRecvTimeout(4000));
  EXPECT_EQ(queued[0]->recv(&byte, 1), -1);
  EXPECT_TRUE(queued[0]->isTimeout());
  const auto waited = Clock::now() - begin;
  const auto used = server.processor() - processor;
  EXPECT_LE(used, waited / 20);
  EXPECT_TRUE(echoes(*before));

  const Stopwatch relief;
  server.limitDescriptors(open + 100);
  ASSERT_TRUE(queued[0]->setRecvTimeout(0));
  EXPECT_EQ(queued[0]->recv(&byte, 1), 1);
  EXPECT_LE(relief.elapsed(), relief.allows(1s));
  for (size_t i = 1; i < queued.size(); ++i) EXPECT_EQ(queued[i]->recv(&byte, 1), 1);

  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(Clock::now() - begin).count();
  int lines = 0;
  for (std::string text; !(text = server.line()).empty();) lines += text.find("Too many open files") != std::string::npos;
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, seconds + 1);
  std::cout << "processor: " << used.count() << " ms of " << waited / 1ms << ", " << lines << " log lines\n";
}

// FM-01: a connection that ends makes room for one in the queue at once, not at the end of a pause.
TEST(Exhaustion, EndsWithAConnection) {
  EchoProcess server;
  auto before = connectedTo(server.address());
  EXPECT_TRUE(echoes(*before));
  server.limitDescriptors(server.descriptors());
  const auto queued = connectedTo(server.address());
  EXPECT_EQ(queued->send("q", 1), 1);
  ASSERT_TRUE(queued->setRecvTimeout(1500));
  char byte;
  EXPECT_EQ(queued->recv(&byte, 1), -1);
  ASSERT_TRUE(queued->setRecvTimeout(0));
  const Stopwatch relief;
  EXPECT_TRUE(before->close());
  EXPECT_EQ(queued->recv(&byte, 1), 1);
  EXPECT_LE(relief.elapsed(), relief.allows(1s));
}

#endif

// SEC-09: a flood from a few addresses takes what these may have, and nobody else's place.
TEST(Flood, FromSeveralAddressesStaysWithinTheLimits) {
  constexpr size_t kPerPeer = 40, kFlood = 60;
  const LeakCheck leaks;
  IOManager iom(2, false, "server");
  const auto server =
      TestServer::started(iom, echo, {.max_connections = 4 * kPerPeer - 10, .max_per_peer = kPerPeer, .limit_loopback = true});
  const auto from = [&](const std::string& host) {
    const auto client = Socket::CreateTCPSocket();
    EXPECT_TRUE(client->bind(IPAddress::Create(host.c_str())));
    EXPECT_TRUE(client->connect(server->address()));
    return client;
  };
  std::vector<Socket::ptr> flood;
  for (const char* host : {"127.0.0.2", "127.0.0.3", "127.0.0.4"}) {
    size_t served = 0;
    for (size_t i = 0; i < kFlood; ++i) {
      flood.push_back(from(host));
      served += echoes(*flood.back());
    }
    EXPECT_EQ(served, kPerPeer) << host;
  }
  EXPECT_EQ(server->getCounts().refused_per_peer, 3 * (kFlood - kPerPeer));
  EXPECT_TRUE(echoes(*from("127.0.0.5"))) << "an honest client meanwhile";
  until([&] { return server->getCounts().open == 3 * kPerPeer; });
  for (size_t i = 0; i < kPerPeer - 10; ++i) {
    flood.push_back(from("127.0.0.6"));
    EXPECT_TRUE(echoes(*flood.back()));
  }
  const auto beyond = from("127.0.0.5");
  EXPECT_TRUE(beyond->setRecvTimeout(20));
  EXPECT_FALSE(echoes(*beyond));
  EXPECT_TRUE(beyond->isTimeout()) << "it waits: the house is full";
  EXPECT_EQ(server->getCounts().open, server->getLimits().max_connections);
  until([&] { return server->getCounts().paused == 1; });  // it may come to that later than in those 20 ms
  flood.clear();
  EXPECT_TRUE(beyond->setRecvTimeout(0));
  char byte;
  EXPECT_EQ(beyond->recv(&byte, 1), 1);
  server->stop();
}

// FM-07: the example under the distrustful client.
TEST(TcpEcho, AnswersThousandConnectionsAndEndsCleanly) {
  EchoProcess server;
  const std::string messages = std::to_string(SYLAR_TCP_ECHO_MESSAGES);
  Child client({besideProgram(SYLAR_ECHO_CLIENT), server.address()->toString(), "1000", messages});
  const std::string seed = client.line();
  const std::string summary = client.line();
  EXPECT_EQ(client.wait(), 0) << seed;
  EXPECT_NE(summary.find("every byte right"), std::string::npos) << seed;
  const auto idle = connectedTo(server.address());
  EXPECT_TRUE(echoes(*idle));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_TRUE(isEnded(*idle));
}

#ifdef SYLAR_MEASURES_MEMORY
// An idle connection costs the server at most 10 KiB of resident memory.
TEST(IdleConnections, CostTenKibibytesEach) {
  constexpr size_t kConnections = 5000;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kConnections + 100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < kConnections + 100) GTEST_SKIP() << "needs " << kConnections + 100 << " descriptors";
  EchoProcess server;
  std::vector<Socket::ptr> clients(kConnections);
  const size_t before = server.residentBytes();
  for (auto& client : clients) {
    client = connectedTo(server.address());
    ASSERT_TRUE(echoes(*client));
  }
  const size_t each = (server.residentBytes() - before) / kConnections;
  EXPECT_LE(each, size_t{10} << 10);
  std::cout << each << " bytes for an idle connection\n";
}
#endif

}  // namespace
}  // namespace sylar::test
