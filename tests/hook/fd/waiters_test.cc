// Several waiters on one descriptor, and everybody who must be woken is.
#include <algorithm>
#include <memory>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

class Waiters : public OverWorkers {};

// FM-18
TEST_P(Waiters, HundredReadersOfOneSocketAreAllServed) {
  constexpr int kReaders = 100;
  const Pair pair = unixPair(SOCK_SEQPACKET);
  std::atomic<int> served{0};
  std::atomic<int> sum{0};
  {
    IOManager iom(workers(), false, "readers");
    for (int i = 0; i < kReaders; ++i) {
      iom.schedule([&] {
        int message = -1;
        EXPECT_EQ(::read(pair.a, &message, sizeof message), ssize_t(sizeof message));
        sum.fetch_add(message);
        served.fetch_add(1);
      });
    }
    iom.schedule([&] {
      for (int i = 0; i < kReaders; ++i) EXPECT_EQ(::write(pair.b, &i, sizeof i), ssize_t(sizeof i));
    });
  }
  EXPECT_EQ(served.load(), kReaders);
  EXPECT_EQ(sum.load(), kReaders * (kReaders - 1) / 2);  // each message once
}

TEST_P(Waiters, TheEndOfAStreamWakesAllReaders) {
  for (const bool tcp : {false, true}) {
    Pair pair(tcp ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_STREAM));
    std::atomic<int> ended{0};
    {
      IOManager iom(workers(), false, "readers");
      for (int i = 0; i < 50; ++i) {
        iom.schedule([&] {
          char byte;
          EXPECT_EQ(::read(pair.a, &byte, 1), 0);
          ended.fetch_add(1);
        });
      }
      iom.schedule([&] { pair.closeB(); });
    }
    EXPECT_EQ(ended.load(), 50);
  }
}

TEST_P(Waiters, AcceptorsOfOneListenerShareTheConnections) {
  constexpr int kAcceptors = 20;
  const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 64);
  std::atomic<int> accepted{0};
  {
    IOManager iom(workers(), false, "acceptors");
    for (int i = 0; i < kAcceptors; ++i) {
      iom.schedule([&] {
        const int fd = ::accept(listener, nullptr, nullptr);
        EXPECT_GE(fd, 0);
        char byte = 0;
        EXPECT_EQ(::read(fd, &byte, 1), 1);
        EXPECT_EQ(::close(fd), 0);
        accepted.fetch_add(1);
      });
      iom.schedule([&] {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(connectTo(hookedCalls(), fd, addressOf(listener)), 0);
        EXPECT_EQ(::write(fd, "c", 1), 1);
        char byte;
        EXPECT_EQ(::read(fd, &byte, 1), 0);
        EXPECT_EQ(::close(fd), 0);
      });
    }
  }
  EXPECT_EQ(accepted.load(), kAcceptors);
  EXPECT_EQ(::close(listener), 0);
}

// Two directions of one socket at a time, from different workers.
TEST_P(Waiters, AReaderAndAWriterOfOneSocketDoNotDisturbEachOther) {
  constexpr size_t kSize = 1 << 20;
  for (const bool tcp : {false, true}) {
    const Pair pair(tcp ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_STREAM));
    setBuffer(pair.a, SO_SNDBUF, 4096);
    setBuffer(pair.b, SO_SNDBUF, 4096);
    const std::vector<char> bytes = streamBytes(kSize);
    IOManager iom(workers(), false, "duplex");
    for (const int fd : {pair.a, pair.b}) {
      iom.schedule([&, fd] { EXPECT_EQ(::write(fd, bytes.data(), kSize), ssize_t(kSize)); });
      iom.schedule([&, fd] {
        std::vector<char> got(kSize);
        EXPECT_EQ(::recv(fd, got.data(), kSize, MSG_WAITALL), ssize_t(kSize));
        EXPECT_TRUE(got == bytes);
      });
    }
    iom.stop();
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Waiters, kWorkerCounts);

/// A reader and a writer that wait on one TCP socket until `end` is done to it; what both got.
struct Both {
  ssize_t read = -2;
  int read_error = 0;
  ssize_t write = -2;
};
Both waitBoth(const Pair& pair, const std::function<void()>& end) {
  Both both;
  inFiber([&] {
    IOManager* const iom = IOManager::GetThis();
    iom->schedule([&] {
      char byte;
      errno = 0;
      both.read = ::read(pair.a, &byte, 1);
      both.read_error = errno;
    });
    iom->schedule([&] {
      const std::vector<char> bytes(16 << 20);
      both.write = ::send(pair.a, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    });
    iom->schedule(end);
  });
  return both;
}

// FM-11
TEST(WaitersOfBothDirections, AResetWakesReaderAndWriter) {
  Pair pair = tcpPair();
  const Both both = waitBoth(pair, [&] {
    resetOnClose(pair.b);
    pair.closeB();
  });
  EXPECT_EQ(both.read, -1);
  EXPECT_EQ(both.read_error, ECONNRESET);
  EXPECT_GT(both.write, 0);
  EXPECT_LT(both.write, 16 << 20);
}

TEST(WaitersOfBothDirections, AShutdownOfBothWakesReaderAndWriter) {
  const Pair pair = tcpPair();
  const Both both = waitBoth(pair, [&] { ::shutdown(pair.a, SHUT_RDWR); });
  EXPECT_EQ(both.read, 0);
  EXPECT_GT(both.write, 0);
}

// FM-19: pollers and readers of the same descriptor.
TEST(WaitersOfBothDirections, PollersAndAReaderAreWokenTogether) {
  const Pair pair = unixPair();
  int polled = 0;
  ssize_t got = 0;
  inFiber([&] {
    IOManager* const iom = IOManager::GetThis();
    for (int i = 0; i < 10; ++i) {
      iom->schedule([&] {
        pollfd one{pair.a, POLLIN, 0};
        polled += ::poll(&one, 1, -1);
      });
    }
    iom->schedule([&] { EXPECT_EQ(::write(pair.b, "xy", 2), 2); });
    iom->schedule([&] {
      char byte;
      got = ::recv(pair.a, &byte, 1, 0);
    });
  });
  EXPECT_EQ(polled, 10);
  EXPECT_EQ(got, 1);
}

// One poll over many descriptors: each of them wakes it.
TEST(WaitersOfBothDirections, APollOfManyIsWokenByAnyOfThem) {
  constexpr size_t kPairs = 40;
  std::vector<Ends> pairs;
  std::vector<pollfd> fds;
  for (size_t i = 0; i < kPairs; ++i) {
    pairs.push_back(i % 2 == 0 ? makeUnix(hookedCalls(), SOCK_STREAM) : makePipe(hookedCalls()));
    fds.push_back({pairs.back()[0], POLLIN, 0});
  }
  inFiber([&] {
    for (size_t i = 0; i < kPairs; ++i) {
      IOManager::GetThis()->schedule([&, i] { EXPECT_EQ(::write(pairs[i][1], "p", 1), 1); });
      EXPECT_EQ(::poll(fds.data(), fds.size(), -1), 1);
      EXPECT_EQ(fds[i].revents, POLLIN);
      char byte;
      EXPECT_EQ(::read(pairs[i][0], &byte, 1), 1);
    }
  });
  for (const Ends& ends : pairs) {
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

// In the kernel any wake ends it, and a shutdown of the own sending side is no event.
TEST(WaitersOfOneSide, AShutdownEndsAReceiveOfNoBytesFromTcp) {
  const Pair pair = tcpPair();
  inFiber([&] {
    bool ended = false;
    const auto receiver = std::make_shared<Fiber>([&] {
      EXPECT_EQ(::recv(pair.a, &ended, 0, 0), 0);
      ended = true;
    });
    IOManager::GetThis()->schedule(receiver);
    untilParked(*receiver);
    EXPECT_EQ(::shutdown(pair.a, SHUT_WR), 0);
    untilPolled();
    EXPECT_TRUE(ended);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
  });
}

}  // namespace
}  // namespace sylar::test
