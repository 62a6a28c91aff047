// close() against calls on other threads, while descriptor numbers are reused as fast as they can be.
#include <atomic>
#include <random>

#include "sylar/base/sys.h"
#include "tests/net/support.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

// FM-13, FM-14. A receiver never sees a byte of somebody else's: the thread beside it opens pairs that carry another letter, and
// gets the numbers that were closed a moment ago.
TEST(SocketRace, CloseNeverLetsACallReachAnothersDescriptor) {
  const LeakCheck leaks;
  std::atomic<bool> ends{false};
  std::thread grabber([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      int fds[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
      ASSERT_EQ(::send(fds[1], "bbbb", 4, 0), 4);
      ::close(fds[0]);
      ::close(fds[1]);
    }
  });
  {
    const SocketDirectory directory;
    const Socket::ptr listener = listenerOn(directory.address("listener"));
    std::atomic<uint64_t> wrong{0}, received{0};
    IOManager iom(2, false, "race");
    for (uint64_t round = 0; round < scaled(2000); ++round) {
      const Socket::ptr client = connectedTo(listener->getLocalAddress());
      const Socket::ptr server = listener->accept();
      ASSERT_EQ(client->send("aaaa", 4), 4);
      std::atomic<int> running{3};
      for (int i = 0; i < 2; ++i) {
        iom.schedule([&] {
          char byte;
          while (server->recv(&byte, 1) > 0) {
            ++received;
            if (byte != 'a') ++wrong;
          }
          EXPECT_EQ(errno, EBADF);
          --running;
        });
      }
      iom.schedule([&] {
        EXPECT_TRUE(server->close());
        --running;
      });
      while (running.load() > 0) sched_yield();
    }
    EXPECT_EQ(wrong, 0u);
  }
  ends = true;
  grabber.join();
}

// Threads in the kernel's own recv and accept end, too.
TEST(SocketRace, CloseEndsBlockedThreads) {
  const LeakCheck leaks;
  for (uint64_t round = 0; round < scaled(300); ++round) {
    const Ends ends = connectedEnds();
    const Socket::ptr listener = listenerOn();
    std::thread receiver([&] {
      char byte;
      EXPECT_EQ(ends.client->recv(&byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
    std::thread acceptor([&] {
      EXPECT_EQ(listener->accept(), nullptr);
      EXPECT_EQ(errno, EBADF);
    });
    EXPECT_TRUE(ends.client->close());
    EXPECT_TRUE(listener->close());
    receiver.join();
    acceptor.join();
  }
}

// Two who close at once: one of them does.
TEST(SocketRace, OneCloseWins) {
  for (uint64_t round = 0; round < scaled(300); ++round) {
    const Ends ends = connectedEnds();
    std::atomic<int> closed{0};
    const auto close_it = [&] { closed += ends.client->close() ? 1 : 0; };
    std::thread other(close_it);
    close_it();
    other.join();
    EXPECT_EQ(closed, 1);
  }
}

// A service that died has left its socket, and several are started in its place.
TEST(SocketRace, OneOfSeveralTakesThePathOfADeadSocket) {
  const SocketDirectory directory;
  const Address::ptr address = directory.address("s");
  for (uint64_t round = 0; round < scaled(300); ++round) {
    const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(dead, address->getAddr(), address->getAddrLen()), 0);
    ::close(dead);
    std::vector<Socket::ptr> listeners;
    for (int i = 0; i < 3; ++i) listeners.push_back(Socket::CreateUnixTCPSocket());
    std::atomic<int> have_it{0};
    std::vector<std::thread> starts;
    for (const Socket::ptr& listener : listeners) {
      starts.emplace_back([&have_it, &address, &listener] { have_it += listener->bind(address) && listener->listen() ? 1 : 0; });
    }
    for (std::thread& start : starts) start.join();
    ASSERT_EQ(have_it, 1);
    EXPECT_TRUE(connectedTo(address)->isConnected());
  }
}

}  // namespace
}  // namespace sylar::test
