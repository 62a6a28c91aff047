// Calls that never have to wait let others run all the same: fibers, timers, descriptors of the only worker.
#include <atomic>
#include <mutex>
#include <vector>

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

// A peer that is always faster does not have the worker for itself.
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

/// Makes `call`, which cannot wait, many times: nobody runs meanwhile, for it is never suspended. The next call that may wait
/// takes the turn that they have used up.
template <class Call>
void othersAtTheNextWait(Call call) {
  const Pair ready = unixPair();
  bool others_turn = false, seen = false;
  inFiber([&] {
    Scheduler::GetThis()->schedule([&] {
      others_turn = true;
      Fiber::YieldToReady();
      seen = true;
    });
    while (!others_turn) Fiber::YieldToReady();  // now the other is runnable, and runs before this one again
    for (int i = 0; i < 100; ++i) call();
    EXPECT_FALSE(seen);
    pollfd one{ready.a, POLLOUT, 0};
    EXPECT_EQ(::poll(&one, 1, 1000), 1);
    EXPECT_TRUE(seen);
  });
}

// Client libraries read and write descriptors that they made non-blocking until there is no more, and then poll. A fast peer
// always has more.
TEST(Fairness, CallsOnWhatTheUserMadeNonBlockingCount) {
  const Pair pair = unixPair();
  ASSERT_EQ(::fcntl(pair.a, F_SETFL, O_NONBLOCK), 0);
  ASSERT_EQ(::fcntl(pair.b, F_SETFL, O_NONBLOCK), 0);
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  othersAtTheNextWait([&] {
    EXPECT_EQ(::write(pair.b, &byte, 1), 1);
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
  });
  othersAtTheNextWait([&] {
    EXPECT_EQ(::send(pair.b, &byte, 1, 0), 1);
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
  });
  othersAtTheNextWait([&] {
    EXPECT_EQ(::writev(pair.b, &part, 1), 1);
    EXPECT_EQ(::readv(pair.a, &part, 1), 1);
  });
  othersAtTheNextWait([&] {
    EXPECT_EQ(::sendmsg(pair.b, &message, 0), 1);
    EXPECT_EQ(::recvmsg(pair.a, &message, 0), 1);
  });
  othersAtTheNextWait([&] { EXPECT_EQ(::recv(pair.a, &byte, 1, 0), -1); });
}

TEST(Fairness, CallsThatAreToldNotToWaitCount) {
  const Pair pair = unixPair();
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  othersAtTheNextWait([&] {
    EXPECT_EQ(::send(pair.b, &byte, 1, MSG_DONTWAIT), 1);
    EXPECT_EQ(::recv(pair.a, &byte, 1, MSG_DONTWAIT), 1);
  });
  othersAtTheNextWait([&] {
    EXPECT_EQ(::sendmsg(pair.b, &message, MSG_DONTWAIT), 1);
    EXPECT_EQ(::recvmsg(pair.a, &message, MSG_DONTWAIT), 1);
  });
  othersAtTheNextWait([&] { EXPECT_EQ(::recvmsg(pair.a, &message, MSG_DONTWAIT), -1); });
  othersAtTheNextWait([&] {
    pollfd one{pair.a, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 0), 0);
  });
}

// What cannot wait may stand under a lock of the thread, as in the clients of log and statistics servers.
TEST(Fairness, WhatCannotWaitMayStandUnderALock) {
  const Pair pair = unixPair();
  ASSERT_EQ(::fcntl(pair.b, F_SETFL, O_NONBLOCK), 0);
  std::mutex mutex;
  int rounds = 0;
  inFiber([&] {
    for (int fiber = 0; fiber < 2; ++fiber) {
      Scheduler::GetThis()->schedule([&] {
        for (int i = 0; i < 1000; ++i, ++rounds) {
          const std::lock_guard lock(mutex);
          char byte = 'x';
          EXPECT_EQ(::send(pair.a, &byte, 1, MSG_DONTWAIT), 1);
          EXPECT_EQ(::read(pair.b, &byte, 1), 1);
          pollfd one{pair.a, POLLOUT, 0};
          EXPECT_EQ(::poll(&one, 1, 0), 1);
        }
      });
    }
  });
  EXPECT_EQ(rounds, 2000);
}

// How a bulk download of a client library looks: what is there without waiting, then a poll, which finds more at once.
TEST(Fairness, ADownloadThatPollsOnlyWhenThereIsNothing) {
  constexpr size_t kSize = 8 << 20;
  constexpr int kTurn = 64;
  const Pair pair = tcpPair();
  ASSERT_EQ(::fcntl(pair.a, F_SETFL, O_NONBLOCK), 0);
  std::thread server([&] {
    const std::vector<char> bytes(kSize);
    EXPECT_EQ(libcCalls().write(pair.b, bytes.data(), kSize), static_cast<ssize_t>(kSize));
  });
  std::atomic<bool> done{false};
  int calls = 0;  // since others ran
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      for (; !done; Fiber::YieldToReady()) calls = 0;
    });
    std::vector<char> buffer(1460);
    for (size_t got = 0; got < kSize; ++calls) {
      const ssize_t n = ::recv(pair.a, buffer.data(), buffer.size(), 0);
      if (n > 0) got += static_cast<size_t>(n);
      if (n > 0) continue;
      ASSERT_EQ(errno, EAGAIN);
      pollfd one{pair.a, POLLIN, 0};
      const bool turn_is_over = calls > kTurn;
      ASSERT_EQ(::poll(&one, 1, -1), 1);
      if (turn_is_over) {
        ASSERT_EQ(calls, 0);
      }
    }
    done = true;
  });
  server.join();
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
