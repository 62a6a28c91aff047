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
void others(Call call, int most = 200) {
  bool seen = false;
  int calls = 0;
  inFiber([&] {
    Scheduler::GetThis()->schedule([&seen] { seen = true; });
    while (!seen && calls < kFarTooMany) {
      call();
      ++calls;
    }
  });
  EXPECT_LE(calls, most);
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

// A loop that spins until another fiber has done something.
TEST(Fairness, ASchedYieldLetsOtherFibersRun) {
  others([] { EXPECT_EQ(::sched_yield(), 0); });
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

// A loop of nothing else would keep the worker forever.
TEST(Fairness, LoopsOfCallsThatCannotWaitLetOthersRun) {
  constexpr int kMost = 5000;
  const Pair pair = unixPair();
  pollfd one{pair.a, POLLIN, 0};
  char byte = 'x';
  others([&] { EXPECT_EQ(::poll(&one, 1, 0), 0); }, kMost);
  others([&] { EXPECT_EQ(::recv(pair.a, &byte, 1, MSG_DONTWAIT), -1); }, kMost);
  others(
      [&] {
        fd_set none;
        FD_ZERO(&none);
        timeval no_time{};
        EXPECT_EQ(::select(0, &none, nullptr, nullptr, &no_time), 0);
      },
      kMost);
  others([&] { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1); }, kMost);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {}};
  EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pair.a, &event), 0);
  others([&] { EXPECT_EQ(::epoll_wait(epoll, &event, 1, 0), 0); }, kMost);
  others([&] { EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_MOD, pair.a, &event), 0); }, kMost);
  EXPECT_EQ(::close(epoll), 0);
  ASSERT_EQ(::fcntl(pair.a, F_SETFL, O_NONBLOCK), 0);
  others([&] { EXPECT_EQ(::read(pair.a, &byte, 1), -1); }, kMost);
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
  int unfair = 0;
  size_t got = 0;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      for (; !done; Fiber::YieldToReady()) calls = 0;
    });
    std::vector<char> buffer(1460);
    for (; got < kSize; ++calls) {
      const ssize_t n = ::recv(pair.a, buffer.data(), buffer.size(), 0);
      if (n > 0) got += static_cast<size_t>(n);
      if (n > 0) continue;
      pollfd one{pair.a, POLLIN, 0};
      const bool turn_is_over = calls > kTurn;
      if (n == 0 || errno != EAGAIN || ::poll(&one, 1, -1) != 1) break;
      if (turn_is_over && calls > 0) ++unfair;
    }
    done = true;
  });
  server.join();
  EXPECT_EQ(got, kSize);
  EXPECT_EQ(unfair, 0);
}

/// Standing still, it writes a byte whenever it is asked while `fd` >= 0.
struct WritingClock : Clock {
  int64_t nowNs() const override {
    if (fd >= 0) {
      EXPECT_EQ(libcCalls().write(std::exchange(fd, -1), "x", 1), 1);
    }
    return 0;
  }
  mutable int fd = -1;
};

// poll looks, computes its deadline by the scheduler's clock, and looks again before it waits. It has not let others run if the
// second look finds something.
TEST(Fairness, APollThatFindsSomethingJustBeforeItWaits) {
  const Pair pair = unixPair();
  WritingClock clock;
  bool seen = false;
  int calls = 0;
  IOManager iom(SchedulerOptions{.threads = 1, .use_caller = false, .name = "fairness", .clock = &clock});
  iom.schedule([&] {
    Scheduler::GetThis()->schedule([&] { seen = true; });
    for (; !seen && calls < 1000; ++calls) {
      clock.fd = pair.b;
      pollfd one{pair.a, POLLIN, 0};
      EXPECT_EQ(::poll(&one, 1, 1000), 1);
      clock.fd = -1;
      char byte = 0;
      EXPECT_EQ(libcCalls().read(pair.a, &byte, 1), 1);
    }
  });
  iom.stop();
  EXPECT_LE(calls, 100);
}

// The budget is of time as well: a fiber that computes between its calls has eight of them in a turn, because the clock is asked
// at each fourth.
TEST(Fairness, FewCallsThatTakeLong) {
  const Pair pair = unixPair();
  bool seen = false;
  int calls = 0;
  inFiber([&] {
    Scheduler::GetThis()->schedule([&] { seen = true; });
    for (; !seen && calls < 1000; ++calls) {
      const int64_t until = steadyClock().nowNs() + 100'000;
      while (steadyClock().nowNs() < until) {
      }
      pollfd one{pair.a, POLLOUT, 0};
      EXPECT_EQ(::poll(&one, 1, 1000), 1);
    }
  });
  EXPECT_LE(calls, 9);
}

/// Spends its budget again and again, until `*over`; counts its turns.
void spend(const bool& over, int& turns) {
  const Pair pair = unixPair();
  while (!over) {
    const uint64_t before = IOManager::GetThis()->getWorkerStats().switches;
    char byte = 'x';
    EXPECT_EQ(::write(pair.b, &byte, 1), 1);
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    if (IOManager::GetThis()->getWorkerStats().switches != before) ++turns;
  }
}

// A fiber that is woken comes before those that have used up their budget, however many they are.
TEST(Fairness, TenThatSpendTheirBudgetLetAWokenFiberPass) {
  constexpr int kSpenders = 10;
  constexpr int kWakes = 20;
  const Pair pair = unixPair();
  bool over = false;
  int turns = 0, begun = 0;
  inFiber([&] {
    for (int i = 0; i < kSpenders; ++i) {
      Scheduler::GetThis()->schedule([&] {
        ++begun;
        spend(over, turns);
      });
    }
    Scheduler::GetThis()->schedule([&] {
      ++begun;
      for (int i = 0; i < kWakes; ++i) {
        char byte = 0;
        EXPECT_EQ(::read(pair.a, &byte, 1), 1);
        EXPECT_LE(turns, 2);
      }
      over = true;
    });
    while (begun <= kSpenders) Fiber::YieldToReady();  // some may have to wait for their threads
    for (int i = 0; i < kWakes; ++i) {
      turns = 0;
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      while (turns < 5) Fiber::YieldToReady();
    }
  });
}

// The others always have something to do, but cannot keep it from its turns.
TEST(Fairness, TheOneThatSpentItsBudgetGetsItsTurnsAmongManyThatYield) {
  constexpr int kTurns = 20;
  bool over = false;
  int turns = 0;
  int yields = 0;
  inFiber([&] {
    for (int i = 0; i < 300; ++i) {
      Scheduler::GetThis()->schedule([&] {
        for (; turns < kTurns && yields < kFarTooMany; ++yields) Fiber::YieldToReady();
        over = true;
      });
    }
    spend(over, turns);
  });
  EXPECT_GE(turns, kTurns);
  EXPECT_LT(yields, kFarTooMany);
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
