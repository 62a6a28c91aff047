// The graceful_stop example, from outside.
#include <chrono>
#include <string>
#include <vector>

#include "tests/hook/support.h"
#include "tests/integration/child.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// A client that was served once, so its connection has a fiber.
int servedClient(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connectTo(hookedCalls(), fd, loopback(port)), 0);
  char byte = 'e';
  EXPECT_EQ(::send(fd, &byte, 1, 0), 1);
  EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
  return fd;
}

uint16_t portOf(Child& server) {
  const std::string line = server.line();
  return static_cast<uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
}

// Every request that was sent is answered; who only waits is sent home.
TEST(GracefulStop, AnswersWhatIsAtHandAndEnds) {
  Child server({SYLAR_GRACEFUL_STOP, "0", "50"});
  const uint16_t port = portOf(server);
  std::vector<int> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(servedClient(port));
  for (size_t i = 0; i < 10; ++i) ASSERT_EQ(::send(clients[i], "q", 1, 0), 1);
  server.signal(SIGINT);
  for (size_t i = 0; i < clients.size(); ++i) {
    char byte = 0;
    EXPECT_EQ(::recv(clients[i], &byte, 1, 0), i < 10 ? 1 : 0);
    EXPECT_EQ(byte, i < 10 ? 'q' : 0);
    ::close(clients[i]);
  }
  EXPECT_EQ(server.line(), "ended");
  EXPECT_EQ(server.wait(), 0);
}

// An answer that takes too long is cut short at the deadline: two seconds, and what the library promises beyond.
TEST(GracefulStop, EndsInTime) {
  Child server({SYLAR_GRACEFUL_STOP, "0", "0"});
  const uint16_t quick = portOf(server);
  const int fd = servedClient(quick);
  Child slow({SYLAR_GRACEFUL_STOP, "0", "600000"});
  const int waiting = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connectTo(hookedCalls(), waiting, loopback(portOf(slow))), 0);
  ASSERT_EQ(::send(waiting, "q", 1, 0), 1);
  const auto begin = std::chrono::steady_clock::now();
  slow.signal(SIGTERM);
  EXPECT_EQ(slow.line(), "ended");
  EXPECT_EQ(slow.wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s + 1s) << "with the start and the end of a process";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  ::close(waiting);
  ::close(fd);
}

}  // namespace
}  // namespace sylar::test
