// FM-03, FM-04: in the life of a connection each allocation, each mapping of a stack and each registration in turn is the one
// that cannot be had. It costs that connection at most: it is closed, not lost, and the next one is served.
#include <sys/socket.h>

#include "sylar/tcp_server.h"
#include "tests/faults/injector.h"
#include "tests/net/server_support.h"

namespace sylar::test {
namespace {

using faults::Fault;
using faults::Kind;

/// A plain echo that gives up at the first error.
void echoWhilePossible(const Socket::ptr& client) {
  char byte;
  while (client->recv(&byte, 1) == 1 && client->send(&byte, 1) == 1) continue;
}

class TcpServerFaults : public testing::TestWithParam<Fault> {
 protected:
  ~TcpServerFaults() override { closeAll(); }
  void closeAll() {
    for (const int fd : m_clients) ::close(fd);
    m_clients.clear();
  }
  /// Returns true if a new client of `address` gets its byte back, false if it sees the end. It stays connected, so that each
  /// needs a stack.
  bool isServed(const Address& address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    m_clients.push_back(fd);
    EXPECT_EQ(::connect(fd, address.getAddr(), address.getAddrLen()), 0);
    char byte = 'x';
    return ::send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd, &byte, 1, 0) == 1;
  }

 private:
  std::vector<int> m_clients;
};
INSTANTIATE_TEST_SUITE_P(Faults, TcpServerFaults,
                         testing::Values(Fault{Kind::kNew, ENOMEM}, Fault{Kind::kNew, ENOMEM, 4}, Fault{Kind::kMap, ENOMEM},
                                         Fault{Kind::kAdvise, ENOMEM}, Fault{Kind::kEpollControl, ENOMEM},
                                         Fault{Kind::kEpollControl, ENOSPC}));

TEST_P(TcpServerFaults, CostOneConnectionAtMost) {
  IOManager iom(1, false, "server");
  const auto server = TestServer::started(iom, echoWhilePossible);
  const auto address = server->address();
  EXPECT_TRUE(isServed(*address));
  uint64_t ended = 0;
  long nth = 0;
  bool fired = true;
  while (fired) {
    faults::arm(GetParam(), ++nth);
    bool served;
    {
      const faults::Exempt exempt;
      served = isServed(*address);
    }
    fired = faults::disarm();
    if (!served) ++ended;
    EXPECT_TRUE(isServed(*address)) << "after fault " << nth << " of " << faults::describe(GetParam());
    ASSERT_LT(nth, 1000);
  }
  closeAll();
  EXPECT_TRUE(server->join());
  const TcpServerCounts counts = server->getCounts();
  EXPECT_GE(counts.accepted + counts.accept_errors, 2 * static_cast<uint64_t>(nth) + 1) << "each was seen";
  EXPECT_LE(counts.not_started, ended);
  EXPECT_EQ(counts.listeners_failed, 0u);
  std::cout << faults::describe(GetParam()) << ": " << nth - 1 << " faults, " << ended << " connections ended, "
            << counts.not_started << " of them before they began\n";
  server->stop();
}

}  // namespace
}  // namespace sylar::test
