// The echo example under its distrustful client, and a server of the same kind inside the test.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "tests/hook/support.h"
#include "tests/integration/child.h"
#include "tests/support/beside_program.h"

namespace sylar::test {
namespace {

/// Its address, from the line that it prints when it listens.
std::string addressFrom(const std::string& line) {
  const std::string begin = "listening on ";
  EXPECT_EQ(line.substr(0, begin.size()), begin);
  return line.substr(std::min(begin.size(), line.size()));
}

#ifdef SYLAR_ECHO_SERVER
// FM-07. 1 000 connections at once, 100 000 messages of random size, every byte right; Ctrl-C ends it with 0.
TEST(EchoServer, AnswersThousandConnectionsAndEndsCleanly) {
  Child server({besideProgram(SYLAR_ECHO_SERVER), "0"});
  const std::string address = addressFrom(server.line());
  Child client({besideProgram(SYLAR_ECHO_CLIENT), address, "1000", SYLAR_ECHO_MESSAGES});
  const std::string seed = client.line();
  const std::string summary = client.line();
  EXPECT_EQ(client.wait(), 0) << seed;
  EXPECT_NE(summary.find("every byte right"), std::string::npos) << seed;
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
}

// It ends also while connections are open and idle.
TEST(EchoServer, EndsWhileClientsAreConnected) {
  Child server({besideProgram(SYLAR_ECHO_SERVER), "0"});
  const std::string address = addressFrom(server.line());
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
  std::vector<int> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connectTo(hookedCalls(), clients.back(), loopback(port)), 0);
    char byte = 'e';
    ASSERT_EQ(::send(clients.back(), &byte, 1, 0), 1);
    ASSERT_EQ(::recv(clients.back(), &byte, 1, 0), 1);
  }
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
  for (const int fd : clients) {
    char byte;
    EXPECT_EQ(::recv(fd, &byte, 1, 0), 0);
    ::close(fd);
  }
}
#endif

// Connections are placed, so both workers serve.
TEST(EchoOnTwoWorkers, FourConnectionsAreServedByBoth) {
  const LeakCheck leaks;
  constexpr int kConnections = 4;
  const int listener = boundSocket(hookedCalls(), SOCK_STREAM);
  std::mutex mutex;
  std::multiset<pid_t> served_by;
  {
    IOManager iom(2, false, "echo");
    iom.schedule([&] {
      for (int i = 0; i < kConnections; ++i) {
        const int fd = ::accept(listener, nullptr, nullptr);
        EXPECT_GE(fd, 0);
        IOManager::GetThis()->place([&, fd] {
          {
            const std::lock_guard lock(mutex);
            served_by.insert(threadId());
          }
          char buffer[256];
          for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) EXPECT_EQ(::write(fd, buffer, n), n);
          EXPECT_EQ(::close(fd), 0);
        });
      }
    });
    // All four are open at the same time, from a plain thread.
    std::vector<int> clients;
    for (int i = 0; i < kConnections; ++i) {
      clients.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      ASSERT_EQ(connectTo(hookedCalls(), clients.back(), addressOf(listener)), 0);
    }
    for (int round = 0; round < 100; ++round) {
      for (const int fd : clients) ASSERT_EQ(::send(fd, "message", 7, 0), 7);
      for (const int fd : clients) {
        char buffer[8] = {};
        ASSERT_EQ(::recv(fd, buffer, 7, MSG_WAITALL), 7);
        ASSERT_STREQ(buffer, "message");
      }
    }
    for (const int fd : clients) EXPECT_EQ(::close(fd), 0);
  }
  EXPECT_EQ(::close(listener), 0);
  EXPECT_EQ(served_by.size(), size_t{kConnections});
  const std::set<pid_t> workers(served_by.begin(), served_by.end());
  EXPECT_EQ(workers.size(), 2u);
  for (const pid_t worker : workers) EXPECT_EQ(served_by.count(worker), 2u);
}

}  // namespace
}  // namespace sylar::test
