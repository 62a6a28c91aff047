// select, pselect, ppoll and the waits of epoll in fibers: others run meanwhile, and a mask is the waiting fiber's affair.
// Deadlines, cancels, closes and the budget of calls are as for poll.
#include <csetjmp>
#include <csignal>
#include <functional>
#include <stop_token>

#include "sylar/cancel.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/support.h"

// What a fortified or an old binary calls.
extern "C" {
int __select(int count, fd_set* reads, fd_set* writes, fd_set* fails, timeval* timeout);
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t size_bytes);
}

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// In every thread of the process. A mask of a call lets them through.
const bool g_signals_are_blocked = [] {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGUSR1);
  ::sigaddset(&signals, SIGUSR2);
  return ::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0;
}();

/// A call that waits until a descriptor is readable, under a mask if the call has one, and returns its result. A negative time is
/// none.
struct ReadyWait {
  std::string name;
  bool masks;
  int descriptors;  // that `wait` opens for itself
  std::function<int(int fd, int time_ms, const sigset_t* mask)> wait;
};

std::ostream& operator<<(std::ostream& out, const ReadyWait& one) { return out << one.name; }

int lowestFree() {
  const int fd = ::dup(0);
  EXPECT_EQ(::close(fd), 0);
  return fd;
}

timespec timespecOf(int time_ms) { return {time_ms / 1000, time_ms % 1000 * 1'000'000}; }

template <class Select>
auto viaSelect(Select select) {
  return [select](int fd, int time_ms, const sigset_t* mask) {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(fd, &reads);
    return select(fd + 1, &reads, time_ms, mask);
  };
}

template <class Wait>
auto viaEpoll(Wait wait) {
  return [wait](int fd, int time_ms, const sigset_t* mask) {
    const Pair epoll({::epoll_create1(0), -1});
    epoll_event event{.events = EPOLLIN, .data = {}};
    EXPECT_EQ(::epoll_ctl(epoll.a, EPOLL_CTL_ADD, fd, &event), 0);
    const int ready = wait(epoll.a, &event, time_ms, mask);
    const int error = errno;
    if (ready == 1) {
      EXPECT_EQ(event.events, EPOLLIN);
    }
    errno = error;
    return ready;
  };
}

std::vector<ReadyWait> readyWaits() {
  const auto select = [](auto call) {
    return viaSelect([call](int count, fd_set* reads, int time_ms, const sigset_t*) {
      timeval time{time_ms / 1000, time_ms % 1000 * 1000};
      return call(count, reads, nullptr, nullptr, time_ms < 0 ? nullptr : &time);
    });
  };
  return {
      {"select", false, 0, select(::select)},
      {"underscore_select", false, 0, select(__select)},
      {"pselect", true, 0, viaSelect([](int count, fd_set* reads, int time_ms, const sigset_t* mask) {
         const timespec time = timespecOf(time_ms);
         return ::pselect(count, reads, nullptr, nullptr, time_ms < 0 ? nullptr : &time, mask);
       })},
      {"ppoll", true, 0,
       [](int fd, int time_ms, const sigset_t* mask) {
         pollfd one{fd, POLLIN, 0};
         const timespec time = timespecOf(time_ms);
         return ::ppoll(&one, 1, time_ms < 0 ? nullptr : &time, mask);
       }},
      {"ppoll_chk", true, 0,
       [](int fd, int time_ms, const sigset_t* mask) {
         pollfd one{fd, POLLIN, 0};
         const timespec time = timespecOf(time_ms);
         return __ppoll_chk(&one, 1, time_ms < 0 ? nullptr : &time, mask, sizeof one);
       }},
      {"epoll_wait", false, 1, viaEpoll([](int epoll, epoll_event* event, int time_ms, const sigset_t*) {
         return ::epoll_wait(epoll, event, 1, time_ms);
       })},
      {"epoll_pwait", true, 1, viaEpoll([](int epoll, epoll_event* event, int time_ms, const sigset_t* mask) {
         return ::epoll_pwait(epoll, event, 1, time_ms, mask);
       })},
      {"epoll_pwait2", true, 1, viaEpoll([](int epoll, epoll_event* event, int time_ms, const sigset_t* mask) {
         const timespec time = timespecOf(time_ms);
         return ::epoll_pwait2(epoll, event, 1, time_ms < 0 ? nullptr : &time, mask);
       })},
  };
}

class ReadyCallTest : public testing::TestWithParam<ReadyWait> {
 protected:
  int wait(int fd, int time_ms = -1, const sigset_t* mask = nullptr) { return GetParam().wait(fd, time_ms, mask); }
  void expectError(int result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error) << ::strerror(errno);
  }
};

// HA-8, CD-H10
TEST_P(ReadyCallTest, LetsAnotherFiberOfTheOnlyWorkerRun) {
  const LeakCheck leaks;
  for (const int time_ms : {-1, 3'600'000}) {
    const Pair pair = unixPair();
    std::string order;
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {  // without the hook it would never begin
        order += "other ";
        EXPECT_EQ(::write(pair.b, "x", 1), 1);
      });
      errno = ENOENT;
      EXPECT_EQ(wait(pair.a, time_ms), 1);
      EXPECT_EQ(errno, ENOENT);
      order += "waiter";
    });
    EXPECT_EQ(order, "other waiter");
  }
}

TEST_P(ReadyCallTest, WithHooksOffBlocksTheOnlyWorker) {
  const Pair pair = unixPair();
  std::string order;
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { order += "other"; });
    EXPECT_EQ(wait(pair.a, 1), 0);
    order += "waiter ";
  });
  EXPECT_EQ(order, "waiter other");
}

TEST_P(ReadyCallTest, EndsInItsTimeAndAtTheScopesDeadline) {
  const Pair pair = unixPair();
  const bool serves_others = GetParam().name.starts_with("epoll");
  VirtualTime time;
  time.run([&] {
    EXPECT_EQ(wait(pair.a, 3'600'000), 0);
    for (const int time_ms : {-1, 24 * 3'600'000}) {
      withDeadline(Deadline::after(1h, time), [&] {
        EXPECT_EQ(wait(pair.a, time_ms), 0);
        if (serves_others) {
          EXPECT_EQ(wait(pair.a, 1'800'000), 0);  // it is told once
        } else {
          expectError(wait(pair.a, time_ms), ETIMEDOUT);  // a loop that only asks again ends
        }
      });
    }
  });
  EXPECT_EQ(time.elapsed(), serves_others ? 4h : 3h);
}

TEST_P(ReadyCallTest, IsCancelled) {
  const Pair pair = unixPair();
  inFiber([&] {
    std::stop_source stop;
    const auto waiter =
        std::make_shared<Fiber>([&] { withCancel(stop.get_token(), [&] { expectError(wait(pair.a), ECANCELED); }); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    stop.request_stop();
    waiter->join();
  });
}

TEST_P(ReadyCallTest, IsFair) {
  const Pair pair = unixPair();
  ASSERT_EQ(::write(pair.b, "x", 1), 1);
  constexpr int kFarTooMany = 10'000;
  int calls = 0;
  bool seen = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { seen = true; });
    while (!seen && calls++ < kFarTooMany) EXPECT_EQ(wait(pair.a, 1000), 1);
  });
  EXPECT_LE(calls, 200);
}

// The kernel is asked under the mask, but the thread keeps its own while the fiber is parked.
class MaskedCallTest : public ReadyCallTest {};

TEST_P(MaskedCallTest, OnlyTheWaitingFiberIsInterrupted) {
  ASSERT_TRUE(g_signals_are_blocked);
  static std::atomic<int> handled[2];
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    struct sigaction count {};
    count.sa_handler = [](int which) { handled[which == SIGUSR2 ? 1 : 0].fetch_add(1); };
    ASSERT_EQ(::sigaction(signal, &count, nullptr), 0);
    handled[signal == SIGUSR2 ? 1 : 0] = 0;
  }
  const LeakCheck leaks;
  const Pair pair = unixPair();
  inFiber([&] {
    const auto waiterFor = [&](int signal) {
      return std::make_shared<Fiber>([&, signal] {
        sigset_t mask;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        ::sigdelset(&mask, signal);
        expectError(wait(pair.a, -1, &mask), EINTR);
        EXPECT_EQ(handled[signal == SIGUSR2 ? 1 : 0], 1) << "the handler has run when the call returns";
      });
    };
    const auto first = waiterFor(SIGUSR1);
    const auto second = waiterFor(SIGUSR2);
    const int lowest = lowestFree();
    IOManager::GetThis()->schedule(first);
    IOManager::GetThis()->schedule(second);
    untilParked(*first);
    untilParked(*second);

    EXPECT_LE(lowestFree() - lowest, GetParam().descriptors * 2) << "the wait takes no low number";
    ::pthread_kill(::pthread_self(), SIGUSR2);
    EXPECT_EQ(handled[1], 0) << "it is blocked for this fiber";
    second->join();
    EXPECT_EQ(handled[1], 1);
    untilPolled();
    EXPECT_EQ(stateOf(*first), FiberState::kParked) << "the other one waits on";

    ::kill(::getpid(), SIGUSR1);
    EXPECT_EQ(handled[0], 0);
    first->join();
    EXPECT_EQ(handled[0], 1);
  });
}

// The signal itself wakes the fiber. Cause: it was looked for from time to time.
TEST_P(MaskedCallTest, IsInterruptedBeforeAnyTimePasses) {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &nothing, nullptr), 0);
  const Pair pair = unixPair();
  VirtualTime time;
  time.run([&] {
    const auto waiter = std::make_shared<Fiber>([&] {
      sigset_t none;
      ::sigemptyset(&none);
      expectError(wait(pair.a, -1, &none), EINTR);
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    ::kill(::getpid(), SIGUSR1);  // the clock's thread sees no signal that is another thread's
    waiter->join();
  });
  EXPECT_EQ(time.elapsed(), 0ns);
}

sigjmp_buf g_out_of_the_handler;

// Cause: the handler ran while the call held its numbers, and the jump left them held: a close waited forever, and no hook acted.
TEST_P(MaskedCallTest, AHandlerMayJumpOutOfIt) {
  struct sigaction jumps {
  }, before{};
  jumps.sa_handler = [](int) { ::siglongjmp(g_out_of_the_handler, 1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &jumps, &before), 0);
  inFiber([&] {
    Pair pair = unixPair();
    IOManager::GetThis()->schedule([me = Fiber::GetThis()] {
      untilParked(*me);
      ::raise(SIGUSR1);
    });
    if (sigsetjmp(g_out_of_the_handler, 1) == 0) {
      sigset_t none;
      ::sigemptyset(&none);
      wait(pair.a, -1, &none);
      ADD_FAILURE() << "the handler came back";
    }
    bool other = false;
    IOManager::GetThis()->schedule([&] { other = true; });
    ::usleep(1);
    EXPECT_TRUE(other) << "the hooks still act";
    pair.closeA();
  });
  ::sigaction(SIGUSR1, &before, nullptr);
}

std::vector<ReadyWait> maskedWaits() {
  std::vector<ReadyWait> waits = readyWaits();
  std::erase_if(waits, [](const ReadyWait& one) { return !one.masks; });
  return waits;
}

INSTANTIATE_TEST_SUITE_P(Of, ReadyCallTest, testing::ValuesIn(readyWaits()), [](const auto& one) { return one.param.name; });
INSTANTIATE_TEST_SUITE_P(Of, MaskedCallTest, testing::ValuesIn(maskedWaits()), [](const auto& one) { return one.param.name; });

// Two fibers wait on one epoll. The first of them takes what comes once.
TEST(EpollOfTwoFibers, OneTakesAnEventThatComesOnce) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair epoll({::epoll_create1(0), -1});
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
    ASSERT_EQ(::epoll_ctl(epoll.a, EPOLL_CTL_ADD, pair.a, &event), 0);
    int woken = 0;
    std::vector<Fiber::ptr> waiters;
    for (int i = 0; i < 2; ++i) {
      waiters.push_back(std::make_shared<Fiber>([&] {
        epoll_event got{};
        EXPECT_EQ(::epoll_wait(epoll.a, &got, 1, -1), 1);
        ++woken;
      }));
      IOManager::GetThis()->schedule(waiters.back());
      untilParked(*waiters.back());
    }
    for (int i = 1; i <= 2; ++i) {
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      untilPolled(4);
      EXPECT_EQ(woken, i);
    }
    for (const Fiber::ptr& waiter : waiters) waiter->join();
  });
}

// poll has POLLNVAL for a number that is closed while it waits, these have EBADF.
TEST(ReadyCallDuringAClose, SaysThatTheNumberIsClosed) {
  inFiber([] {
    Pair pair = unixPair();
    Pair epoll({::epoll_create1(0), -1});
    const auto select = std::make_shared<Fiber>([&] {
      fd_set reads;
      FD_ZERO(&reads);
      FD_SET(pair.a, &reads);
      EXPECT_EQ(::select(pair.a + 1, &reads, nullptr, nullptr, nullptr), -1);
      EXPECT_EQ(errno, EBADF);
    });
    const auto epolls = std::make_shared<Fiber>([&] {
      epoll_event got{};
      EXPECT_EQ(::epoll_wait(epoll.a, &got, 1, -1), -1);
      EXPECT_EQ(errno, EBADF);
    });
    for (const auto& one : {select, epolls}) {
      IOManager::GetThis()->schedule(one);
      untilParked(*one);
    }
    pair.closeA();
    epoll.closeA();
    select->join();
    epolls->join();
  });
}

// The kernel passes over numbers that are higher than any that the process can have. Cause: they were waited for, without end and
// without letting others run.
TEST(Select, PassesOverNumbersThatCannotBe) {
  const Pair pair = unixPair();
  std::vector<uint64_t> bits(1 << 13);
  bits[static_cast<size_t>(pair.a) / 64] = uint64_t{1} << (pair.a % 64);
  bits.back() = ~uint64_t{0};
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::select(static_cast<int>(bits.size() * 64), reinterpret_cast<fd_set*>(bits.data()), nullptr, nullptr, nullptr), 1);
  });
  EXPECT_EQ(bits[static_cast<size_t>(pair.a) / 64], uint64_t{1} << (pair.a % 64));
  EXPECT_EQ(bits.back(), ~uint64_t{0});
}

// The time that select leaves is the rest, by the clock of the fiber's deadlines.
// select(2), getdtablesize(3). Cause: all that lies behind a set, as far as the count goes, was overwritten at the end of each
// wait.
TEST(Select, LeavesWhatLiesBehindItsSetsAlone) {
  const Pair pair = unixPair();
  struct {
    fd_set reads;
    std::array<char, 2000> others;
  } memory{};
  FD_SET(pair.a, &memory.reads);
  memory.others.fill('a');
  inFiber([&] {
    IOManager::GetThis()->schedule([&, me = Fiber::GetThis()] {
      untilParked(*me);
      memory.others.fill('b');
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
    EXPECT_EQ(::select(1 << 20, &memory.reads, nullptr, nullptr, nullptr), 1);
  });
  EXPECT_TRUE(FD_ISSET(pair.a, &memory.reads));
  EXPECT_EQ(std::count(memory.others.begin(), memory.others.end(), 'b'), ssize_t(memory.others.size()));
}

TEST(Select, LeavesTheRestOfItsTime) {
  const Pair pair = unixPair();
  VirtualTime time;
  time.run([&] {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(pair.a, &reads);
    timeval left{3 * 3600, 7};
    withDeadline(Deadline::after(1h, time), [&] { EXPECT_EQ(::select(pair.a + 1, &reads, nullptr, nullptr, &left), 0); });
    EXPECT_EQ(left.tv_sec, 2 * 3600);
    EXPECT_EQ(left.tv_usec, 7);
    EXPECT_EQ(::select(0, nullptr, nullptr, nullptr, &left), 0);
    EXPECT_EQ(left.tv_sec, 0);
    EXPECT_EQ(left.tv_usec, 0);
  });
  EXPECT_GE(time.elapsed(), 3h);
}

TEST(ReadyCallDeathTest, AFortifiedCallEndsTheProcessOnASmallArray) {
  pollfd two[2] = {};
  volatile size_t small = 8;
  int n = 0;
  EXPECT_DEATH(n = __ppoll_chk(two, 2, nullptr, nullptr, small), "buffer overflow");
  EXPECT_EQ(n, 0);
}

}  // namespace
}  // namespace sylar::test
