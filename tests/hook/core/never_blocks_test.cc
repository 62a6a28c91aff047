// Calls that do not block are not parked, events that were not asked for wake nobody, and timeouts are the kernel's.
#include <chrono>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// Leaves `pair.a`, TCP, read empty by a short read: from here on it is known to be empty.
void drain(const Pair& pair) {
  char buffer[64];
  ASSERT_EQ(::write(pair.b, "x", 1), 1);
  ASSERT_EQ(::read(pair.a, buffer, sizeof buffer), 1);
}

// Cause: what is known to be empty was not asked at all.
TEST(NeverBlocks, ReadOfNothing) {
  inFiber([] {
    const Pair pair = tcpPair();
    drain(pair);
    char byte;
    EXPECT_EQ(::read(pair.a, &byte, 0), 0);
  });
}

// Cause: the same.
TEST(NeverBlocks, UrgentDataThatIsNotThere) {
  inFiber([] {
    const Pair pair = tcpPair();
    drain(pair);
    char byte;
    EXPECT_EQ(::recv(pair.a, &byte, 1, MSG_OOB), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

// Cause: on a shared descriptor each wait has its readiness reported again, wanted or not; it won against the timeout every time.
TEST(Poll, IsNotKeptAwakeByWhatItDidNotAskFor) {
  inFiber([] {
    const Pair pair = pipePair();
    const Pair copy({::dup(pair.a), -1});
    ASSERT_EQ(::write(pair.b, "x", 1), 1);
    pollfd one{copy.a, POLLPRI, 0};
    EXPECT_EQ(::poll(&one, 1, 20), 0);
  });
}

TEST(Accepted, TakesTimeoutsFromATcpListener) {
  inFiber([] {
    const Pair listener({boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM, 0)});
    setTimeout(hookedCalls(), listener.a, SO_RCVTIMEO, 10'000);
    ASSERT_EQ(connectTo(hookedCalls(), listener.b, addressOf(listener.a)), 0);
    const Pair server({::accept(listener.a, nullptr, nullptr), -1});
    char byte;
    EXPECT_EQ(::read(server.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

// Cause: AF_UNIX inherits nothing, but was taken to.
TEST(Accepted, TakesNoTimeoutFromAUnixListener) {
  inFiber([] {
    const Pair ends({::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)});
    sockaddr_un address{AF_UNIX, {}};
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(ends.a, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);  // the kernel names it
    ASSERT_EQ(::getsockname(ends.a, reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_EQ(::listen(ends.a, 1), 0);
    setTimeout(hookedCalls(), ends.a, SO_RCVTIMEO, 10'000);
    ASSERT_EQ(::connect(ends.b, reinterpret_cast<sockaddr*>(&address), size), 0);
    const Pair server({::accept(ends.a, nullptr, nullptr), -1});
    IOManager::GetThis()->schedule([&ends] {
      EXPECT_EQ(::usleep(30'000), 0);  // three times the listener's timeout
      EXPECT_EQ(::write(ends.b, "x", 1), 1);
    });
    char byte;
    EXPECT_EQ(::read(server.a, &byte, 1), 1);
  });
}

// Cause: signed overflow made 584 years 291 ms.
TEST(SocketTimeout, OfCenturiesDoesNotPass) {
  inFiber([] {
    const Pair pair = tcpPair();
    const timeval centuries{18'446'744'074, 0};
    ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_RCVTIMEO, &centuries, sizeof centuries), 0);
    IOManager::GetThis()->schedule([&pair] {
      EXPECT_EQ(::usleep(350'000), 0);
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
    char byte;
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
  });
}

}  // namespace
}  // namespace sylar::test
