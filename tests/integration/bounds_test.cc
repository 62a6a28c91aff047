// Promised bounds, on the real clock: sleeps overlap, timeouts come when they are due.
#include <chrono>
#include <functional>
#include <memory>

#include "tests/hook/support.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSoon(500);  // after the time that was asked for

/// `action` takes `wanted` at least, and little more on a machine that has a processor for it.
void expectTakes(std::chrono::nanoseconds wanted, const std::function<void()>& action) {
  const Stopwatch watch;
  action();
  const auto took = watch.elapsed();
  EXPECT_GE(took, wanted);
  EXPECT_LT(took, watch.allows(wanted + kSoon));
}

class Bounds : public testing::TestWithParam<size_t> {};

TEST_P(Bounds, ThousandSleepersOf50MsOverlap) {
  const LeakCheck leaks;
  std::atomic<int> slept{0};
  const auto spawnSleepers = [&] {
    for (int i = 0; i < 1000; ++i) {
      IOManager::GetThis()->schedule([&] {
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(::usleep(50'000), 0);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
        slept.fetch_add(1);
      });
    }
  };
  expectTakes(milliseconds(50), [&] { inFiber(spawnSleepers, GetParam()); });  // one after the other: 50 s
  EXPECT_EQ(slept.load(), 1000);
}
INSTANTIATE_TEST_SUITE_P(Workers, Bounds, testing::Values(1, 2));

// CD-H3, TD-13
TEST(Bounds, SocketTimeoutsComeInTimeAndAreEagain) {
  inFiber([] {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 50'000);
    setTimeout(hookedCalls(), pair.a, SO_SNDTIMEO, 50'000);
    char byte;
    expectTakes(milliseconds(50), [&] {
      EXPECT_EQ(::read(pair.a, &byte, 1), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    const std::vector<char> bytes(1 << 20);
    expectTakes(milliseconds(50), [&] { EXPECT_GT(::write(pair.a, bytes.data(), bytes.size()), 0); });
    pollfd one{pair.a, POLLIN, 0};
    expectTakes(milliseconds(50), [&] { EXPECT_EQ(::poll(&one, 1, 50), 0); });
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
    expectTakes(milliseconds(50), [&] {
      EXPECT_EQ(::read(pair.a, &byte, 1), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    done = true;
    thief->join();
  });
}

// FM-24: nobody takes the connection; the library's own limit ends it. On TCP with a full backlog, and over AF_UNIX.
TEST(Bounds, ConnectEndsAtItsTimeout) {
  inFiber([] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 0);
    const Pair clients({::socket(AF_INET, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)});
    EXPECT_EQ(connectTo(hookedCalls(), clients.a, addressOf(listener)), 0);
    setConnectTimeout(milliseconds(100));
    const auto connects = [&] { return connectTo(hookedCalls(), clients.b, addressOf(listener)); };
    expectTakes(milliseconds(100), [&] {
      EXPECT_EQ(connects(), -1);
      EXPECT_EQ(errno, ETIMEDOUT);
    });
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
    expectTakes(milliseconds(50), [&] {
      EXPECT_EQ(::accept(listener, nullptr, nullptr), -1);
      EXPECT_EQ(errno, EAGAIN);
    });
    const Pair clients({::socket(AF_INET, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)});
    EXPECT_EQ(connectTo(hookedCalls(), clients.a, addressOf(listener)), 0);
    setTimeout(hookedCalls(), clients.b, SO_SNDTIMEO, 50'000);
    expectTakes(milliseconds(50), [&] {
      EXPECT_EQ(connectTo(hookedCalls(), clients.b, addressOf(listener)), -1);
      EXPECT_EQ(errno, EINPROGRESS);
    });
    EXPECT_EQ(::close(listener), 0);
  });
}

// FM-13: every waiter is told within 10 ms.
TEST(Bounds, CloseIsToldAtOnce) {
  inFiber([] {
    Pair pair = unixPair();
    std::unique_ptr<const Stopwatch> since_close;
    std::chrono::nanoseconds told_after{};
    const auto waiter = std::make_shared<Fiber>([&, fd = pair.a] {
      char byte;
      EXPECT_EQ(::read(fd, &byte, 1), -1);
      told_after = since_close->elapsed();
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    since_close = std::make_unique<const Stopwatch>();
    pair.closeA();
    waiter->join();
    EXPECT_LT(told_after, since_close->allows(milliseconds(10)));
  });
}

}  // namespace
}  // namespace sylar::test
