// Calls that never have to wait let others run all the same: fibers, timers, descriptors of the only worker.
#include <atomic>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

constexpr int kFarTooMany = 1'000'000;

/// Makes `call` until `*seen`, or for far too long; in a fiber of the only worker, beside one that sets it.
template <class Call>
void others(Call call) {
  bool seen = false;
  int calls = 0;
  inFiber([&] {
    Scheduler::GetThis()->schedule([&seen] { seen = true; });
    while (!seen && calls < kFarTooMany) {
      call();
      ++calls;
    }
  });
  EXPECT_LE(calls, 200);
}

// hooks.md 3.5 (fairness): a peer that is always faster does not have the worker for itself.
TEST(Fairness, ReadsAndWritesThatNeverWait) {
  const Pair pair = unixPair();
  others([&] {
    char byte = 'x';
    EXPECT_EQ(::write(pair.b, &byte, 1), 1);
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
  });
}

TEST(Fairness, APollThatIsAlwaysReady) {
  const Pair pair = unixPair();
  pollfd one{pair.a, POLLOUT, 0};
  others([&] { EXPECT_EQ(::poll(&one, 1, 1000), 1); });
}

TEST(Fairness, CallsThatFail) {
  others([] {
    char byte = 'x';
    EXPECT_EQ(::read(-1, &byte, 1), -1);
    const Pair pair = unixPair();
    EXPECT_EQ(::recv(pair.a, nullptr, 1, MSG_OOB), -1);
    EXPECT_EQ(::send(pair.a, &byte, 1, 0), 1);
  });
}

// What a call brings is in the caller's hand before anybody else runs: two libraries that read into a buffer of their thread do
// not meet in it.
TEST(Fairness, OthersRunBeforeACallAndNotAfterItsBytesHaveCome) {
  const Pair mine = unixPair(), others = unixPair();
  char shared = ' ';
  bool done = false;
  inFiber([&] {
    Scheduler::GetThis()->schedule([&] {
      while (!done) {
        EXPECT_EQ(::write(others.b, "o", 1), 1);
        EXPECT_EQ(::read(others.a, &shared, 1), 1);
      }
    });
    for (int i = 0; i < 1000; ++i) {
      const int bytes = 1 + i % 2;  // so that the last call of a turn is now a read, now a write
      for (int n = 0; n < bytes; ++n) EXPECT_EQ(::write(mine.b, "m", 1), 1);
      for (int n = 0; n < bytes; ++n) {
        EXPECT_EQ(::read(mine.a, &shared, 1), 1);
        EXPECT_EQ(shared, 'm');
      }
    }
    done = true;
  });
}

// errno of a call that fails is its own, also if the fiber let others run in between.
TEST(Fairness, ErrnoIsTheCallsOwn) {
  const Pair pair = unixPair();
  ASSERT_EQ(::shutdown(pair.a, SHUT_WR), 0);
  inFiber([&] {
    for (int i = 0; i < 10; ++i) Scheduler::GetThis()->schedule([] { errno = E2BIG; });
    for (int i = 0; i < 200; ++i) {
      errno = 0;
      ASSERT_EQ(::send(pair.a, "x", 1, MSG_NOSIGNAL), -1);
      ASSERT_EQ(errno, EPIPE);
    }
  });
}

// A number that is closed while its caller lets others run is closed for the next call.
TEST(Fairness, ANumberMayBeClosedMeanwhile) {
  inFiber([] {
    Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
    bool closed = false;
    Scheduler::GetThis()->schedule([&] {
      ::close(ends[0]);
      closed = true;
    });
    int writes = 0;
    char byte = 'x';
    while (::send(ends[0], &byte, 1, MSG_NOSIGNAL) == 1 && writes < kFarTooMany) {
      ++writes;
      EXPECT_EQ(::read(ends[1], &byte, 1), 1);
    }
    EXPECT_TRUE(closed);
    EXPECT_EQ(errno, EBADF);
    ::close(ends[1]);
  });
}

// A chain: the inner fiber's calls do not give control to its resumer.
TEST(Fairness, AFiberThatIsResumedByHandIsItsResumersAffair) {
  const Pair pair = unixPair();
  inFiber([&] {
    bool through = false;
    const auto inner = std::make_shared<Fiber>([&] {
      char byte = 'x';
      for (int i = 0; i < 500; ++i) {
        EXPECT_EQ(::write(pair.b, &byte, 1), 1);
        EXPECT_EQ(::read(pair.a, &byte, 1), 1);
      }
      through = true;
    });
    inner->resume();
    EXPECT_TRUE(through);
  });
}

}  // namespace
}  // namespace sylar::test
