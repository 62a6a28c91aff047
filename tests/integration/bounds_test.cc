// Promised bounds, on the real clock: sleeps overlap, timeouts come when they are due. The upper bounds leave room for a busy
// machine; that sleeps overlap at all is in the factor.
#include <chrono>
#include <functional>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

steady_clock::duration timed(const std::function<void()>& action) {
  const auto start = steady_clock::now();
  action();
  return steady_clock::now() - start;
}

class Bounds : public testing::TestWithParam<size_t> {};

TEST_P(Bounds, ThousandSleepersOf50MsOverlap) {
  const LeakCheck leaks;
  std::atomic<int> slept{0};
  const auto elapsed = timed([&] {
    inFiber(
        [&] {
          for (int i = 0; i < 1000; ++i) {
            IOManager::GetThis()->schedule([&] {
              EXPECT_GE(timed([] { EXPECT_EQ(::usleep(50'000), 0); }), milliseconds(50));
              slept.fetch_add(1);
            });
          }
        },
        GetParam());
  });
  EXPECT_EQ(slept.load(), 1000);
  EXPECT_LT(elapsed, milliseconds(5'000));  // one after the other: 50 s
}
INSTANTIATE_TEST_SUITE_P(Workers, Bounds, testing::Values(1, 2));

// CD-H3, TD-13
TEST(Bounds, SocketTimeoutsComeInTimeAndAreEagain) {
  inFiber([] {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 50'000);
    setTimeout(hookedCalls(), pair.a, SO_SNDTIMEO, 50'000);
    char byte;
    const auto read = timed([&] {
      EXPECT_EQ(::read(pair.a, &byte, 1), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    const std::vector<char> bytes(1 << 20);
    const auto write = timed([&] { EXPECT_GT(::write(pair.a, bytes.data(), bytes.size()), 0); });
    pollfd one{pair.a, POLLIN, 0};
    const auto poll = timed([&] { EXPECT_EQ(::poll(&one, 1, 50), 0); });
    for (const auto elapsed : {read, write, poll}) {
      EXPECT_GE(elapsed, milliseconds(50));
      EXPECT_LT(elapsed, milliseconds(2'000));
    }
  });
}

// C-51: other readers take each byte away: events that bring nothing must not prolong the timeout.
TEST(Bounds, ATimeoutIsNotProlongedByEventsForOthers) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair copy({::dup(pair.a), -1});
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 50'000);
    bool done = false;
    const auto thief = std::make_shared<Fiber>([&] {
      while (!done) {
        char byte;
        EXPECT_EQ(::write(pair.b, "x", 1), 1);
        EXPECT_EQ(::recv(copy.a, &byte, 1, MSG_DONTWAIT), 1);
        Fiber::YieldToReady();
      }
    });
    IOManager::GetThis()->schedule(thief);
    char byte;
    const auto elapsed = timed([&] {
      EXPECT_EQ(::read(pair.a, &byte, 1), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    done = true;
    thief->join();
    EXPECT_GE(elapsed, milliseconds(50));
    EXPECT_LT(elapsed, milliseconds(2'000));
  });
}

// FM-24: nobody takes the connection; the library's own limit ends it. On TCP with a full backlog, and over AF_UNIX.
TEST(Bounds, ConnectEndsAtItsTimeout) {
  setConnectTimeout(milliseconds(100));
  inFiber([] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 0);
    const Pair clients({::socket(AF_INET, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)});
    EXPECT_EQ(connectTo(hookedCalls(), clients.a, addressOf(listener)), 0);
    const auto connects = [&] { return connectTo(hookedCalls(), clients.b, addressOf(listener)); };
    const auto elapsed = timed([&] {
      EXPECT_EQ(connects(), -1);
      EXPECT_EQ(errno, ETIMEDOUT);
    });
    EXPECT_GE(elapsed, milliseconds(100));
    EXPECT_LT(elapsed, milliseconds(2'000));
    EXPECT_EQ(::fcntl(clients.b, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::close(listener), 0);
  });
  setConnectTimeout(std::chrono::seconds(5));
}

// CD-H3: accept honours SO_RCVTIMEO, and SO_SNDTIMEO ends a connect with EINPROGRESS.
TEST(Bounds, SocketTimeoutsEndAcceptAndConnect) {
  inFiber([] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 0);
    setTimeout(hookedCalls(), listener, SO_RCVTIMEO, 50'000);
    const auto accept = timed([&] {
      EXPECT_EQ(::accept(listener, nullptr, nullptr), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    const Pair clients({::socket(AF_INET, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)});
    EXPECT_EQ(connectTo(hookedCalls(), clients.a, addressOf(listener)), 0);
    setTimeout(hookedCalls(), clients.b, SO_SNDTIMEO, 50'000);
    const auto connect = timed([&] {
      EXPECT_EQ(connectTo(hookedCalls(), clients.b, addressOf(listener)), -1);
      EXPECT_EQ(errno, EINPROGRESS);
    });
    for (const auto elapsed : {accept, connect}) {
      EXPECT_GE(elapsed, milliseconds(50));
      EXPECT_LT(elapsed, milliseconds(2'000));
    }
    EXPECT_EQ(::close(listener), 0);
  });
}

// FM-13: every waiter is told within 10 ms; here with room for a busy machine.
TEST(Bounds, CloseIsToldAtOnce) {
  inFiber([] {
    Pair pair = unixPair();
    steady_clock::time_point told;
    const auto waiter = std::make_shared<Fiber>([&, fd = pair.a] {
      char byte;
      EXPECT_EQ(::read(fd, &byte, 1), -1);
      told = steady_clock::now();
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const auto closed = steady_clock::now();
    pair.closeA();
    waiter->join();
    EXPECT_LT(told - closed, milliseconds(500));
  });
}

}  // namespace
}  // namespace sylar::test
