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
  char byte = '0';
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
  Child server({SYLAR_GRACEFUL_STOP, "0"});
  const uint16_t port = portOf(server);
  std::vector<int> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(servedClient(port));
  for (size_t i = 0; i < 10; ++i) ASSERT_EQ(::send(clients[i], "50", 2, 0), 2);
  server.signal(SIGINT);
  for (size_t i = 0; i < clients.size(); ++i) {
    char answer[8] = {};
    EXPECT_EQ(::recv(clients[i], answer, sizeof answer, MSG_WAITALL), i < 10 ? 2 : 0);
    EXPECT_STREQ(answer, i < 10 ? "50" : "");
    ::close(clients[i]);
  }
  EXPECT_EQ(server.line(), "ended");
  EXPECT_EQ(server.wait(), 0);
}

// An answer that takes too long is cut short at the deadline: two seconds, and what the library promises beyond.
TEST(GracefulStop, EndsInTime) {
  Child server({SYLAR_GRACEFUL_STOP, "0"});
  const int fd = servedClient(portOf(server));
  ASSERT_EQ(::send(fd, "600000", 6, 0), 6);  // in the socket before the end: it will be read
  const auto begin = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "ended");
  EXPECT_EQ(server.wait(), 0);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 2s - 100ms) << "the shield held until the deadline";
  EXPECT_LT(took, 2s + 1s) << "with the end of a process";
  ::close(fd);
}

}  // namespace
}  // namespace sylar::test
