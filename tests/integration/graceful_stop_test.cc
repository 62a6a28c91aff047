// The graceful_stop example, from outside.
#include <chrono>
#include <string>
#include <vector>

#include "tests/hook/support.h"
#include "tests/integration/child.h"
#include "tests/support/beside_program.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// A client whose connection has a fiber: that has taken `request`.
int clientWith(uint16_t port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connectTo(hookedCalls(), fd, loopback(port)), 0);
  EXPECT_EQ(::send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  char taken[6];
  EXPECT_EQ(::recv(fd, taken, sizeof taken, MSG_WAITALL), 6);
  return fd;
}

std::string rest(int fd) {
  std::string all;
  for (char byte; ::recv(fd, &byte, 1, 0) == 1;) all += byte;
  return all;
}

uint16_t portOf(Child& server) {
  const std::string line = server.line();
  return static_cast<uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
}

// Every request that was sent is answered; who only waits is sent home.
TEST(GracefulStop, AnswersWhatIsAtHandAndEnds) {
  Child server({besideProgram(SYLAR_GRACEFUL_STOP), "0"});
  const uint16_t port = portOf(server);
  std::vector<int> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(clientWith(port, "500"));
  for (int i = 0; i < 10; ++i) {
    clients.push_back(clientWith(port, "0"));
    char done;
    ASSERT_EQ(::recv(clients.back(), &done, 1, 0), 1);
  }
  server.signal(SIGINT);
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(rest(clients[i]), i < 10 ? "500" : "");
    ::close(clients[i]);
  }
  EXPECT_EQ(server.line(), "ended");
  EXPECT_EQ(server.wait(), 0);
}

// An answer that takes too long is cut short at the deadline: two seconds, and what the library promises beyond.
TEST(GracefulStop, EndsInTime) {
  Child server({besideProgram(SYLAR_GRACEFUL_STOP), "0"});
  const int fd = clientWith(portOf(server), "600000");
  const Stopwatch watch;
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "ended");
  EXPECT_EQ(server.wait(), 0);
  const auto took = watch.elapsed();
  EXPECT_GE(took, 2s - 100ms) << "the shield held until the deadline";
  EXPECT_LT(took, watch.allows(2s + 1s)) << "with the end of a process";
  ::close(fd);
}

}  // namespace
}  // namespace sylar::test
