// Descriptors of fibers in the hands of others: plain threads, fibers that move between workers, engines that end.
#include <memory>

#include "sylar/fiber/fiber_control.h"
#include "tests/hook/fd/close_support.h"

namespace sylar::test {
namespace {

/// Passes every byte back until the end of the stream; how many.
size_t echo(int fd) {
  char buffer[512];
  size_t total = 0;
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0; total += size_t(n)) {
    EXPECT_EQ(::write(fd, buffer, size_t(n)), n);
  }
  return total;
}

// CD-H8: a plain thread gets libc's blocking calls on a socket whose other end fibers use.
TEST(ForeignThread, TalksToAFiber) {
  const LeakCheck leaks;
  for (const Ends& ends : {makeUnix(hookedCalls(), SOCK_STREAM), makeTcp(hookedCalls())}) {
    Pair pair(ends);
    size_t echoed = 0;
    std::thread thread([&] { echoed = echo(pair.a); });
    inFiber([&] {
      const std::vector<char> sent = streamBytes(1 << 20);
      IOManager::GetThis()->schedule([&] {
        EXPECT_EQ(::write(pair.b, sent.data(), sent.size()), ssize_t(sent.size()));
        EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
      });
      std::vector<char> got(sent.size());
      EXPECT_EQ(::recv(pair.b, got.data(), got.size(), MSG_WAITALL), ssize_t(got.size()));
      EXPECT_TRUE(got == sent);
    });
    thread.join();
    EXPECT_EQ(echoed, size_t{1} << 20);
  }
}

// A thread and fibers read one socket: every message arrives once, and a fiber that lost a race waits on.
TEST(ForeignThread, ReadsBesideFibers) {
  const LeakCheck leaks;
  constexpr int kReaders = 4;
  constexpr int kMessages = 2000;
  const Pair pair = unixPair(SOCK_SEQPACKET);
  std::atomic<int> received{0};
  const auto readAll = [&] {
    char byte = 0;
    while (::read(pair.a, &byte, 1) == 1 && byte == 'm') received.fetch_add(1);
    EXPECT_EQ(byte, 'q');
  };
  std::thread thread(readAll);
  {
    IOManager iom(2, false, "readers");
    for (int i = 0; i < kReaders; ++i) iom.schedule(readAll);
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(::write(pair.b, "m", 1), 1);
    for (int i = 0; i < kReaders + 1; ++i) ASSERT_EQ(::write(pair.b, "q", 1), 1);
    thread.join();
  }
  EXPECT_EQ(received.load(), kMessages);
}

// The registration follows a fiber that has itself moved, while others wait where they are.
TEST(MovingFiber, TakesItsDescriptorsAlong) {
  const LeakCheck leaks;
  const Pair pair = unixPair();
  const Pair stays = unixPair();
  IOManager iom(2, false, "moving");
  const std::vector<pid_t> threads = threadsOf(iom, 2);
  std::atomic<int> done{0};
  iom.schedule([&] { EXPECT_EQ(readOn(stays.a), 1); }, threads[0]);
  iom.schedule(
      [&] {
        for (int i = 0; i < 100; ++i) {
          iom.switchTo(threads[size_t(i % 2)]);
          EXPECT_EQ(threadId(), threads[size_t(i % 2)]);
          iom.schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); }, threads[size_t((i / 2) % 2)]);
          EXPECT_EQ(readOn(pair.a), 1);
        }
        EXPECT_EQ(::write(stays.b, "x", 1), 1);
        done.store(1);
      },
      threads[0]);
  iom.stop();
  EXPECT_EQ(done.load(), 1);
}

// Two managers wait for one number; that of the registration ends first, its wait having timed out.
TEST(EndingEngine, LeavesTheWaitersOfOthersTheirEvents) {
  const LeakCheck leaks;
  for (int round = 0; round < 20; ++round) {
    const Pair pair = unixPair();
    ssize_t got = 0;
    IOManager stays(1, false, "stays");
    const auto waiter = std::make_shared<Fiber>([&] { got = readOn(pair.a); });
    {
      IOManager ends(1, false, "ends");
      std::atomic<int> parked{0};
      waitThere(
          ends, threadsOf(ends, 1)[0],
          [&] {
            pollfd one{pair.a, POLLIN, 0};
            EXPECT_EQ(::poll(&one, 1, 20), 0);
          },
          [&] { parked.store(1); });
      spinUntil(parked, 1);
      stays.schedule(waiter);
      while (stateOf(*waiter) != FiberState::kParked) std::this_thread::yield();
    }
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    stays.stop();
    EXPECT_EQ(got, 1);
  }
}

}  // namespace
}  // namespace sylar::test
