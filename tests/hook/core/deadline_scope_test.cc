// A DeadlineScope bounds what libraries call without knowing of it: each hooked call ends as it does when its own timeout passes.
// On virtual time, where the deadline is an hour away, except where the kernel's own time matters.
#include <sys/epoll.h>
#include <threads.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/testing/virtual_time.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// Runs `body` in a fiber whose time is up after an hour, and expects that the hour passes.
void forAnHour(const std::function<void()>& body) {
  VirtualTime time;
  time.run([&] { withDeadline(Deadline::after(1h, time), body); });
  EXPECT_EQ(time.elapsed(), 1h);
}

void expectError(ssize_t result, int error) {
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, error) << ::strerror(errno);
}

TEST(DeadlineScope, ReceivesEnd) {
  using Receive = ssize_t (*)(int fd, char* byte);
  const Receive receives[] = {
      [](int fd, char* byte) { return ::read(fd, byte, 1); },
      [](int fd, char* byte) { return ::recv(fd, byte, 1, 0); },
      [](int fd, char* byte) { return ::recvfrom(fd, byte, 1, 0, nullptr, nullptr); },
      [](int fd, char* byte) {
        const iovec part{byte, 1};
        return ::readv(fd, &part, 1);
      },
  };
  for (const Receive receive : receives) {
    const Pair pair = unixPair();
    forAnHour([&] {
      char byte = 0;
      expectError(receive(pair.a, &byte), EAGAIN);
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      EXPECT_EQ(receive(pair.a, &byte), 1) << "what is there is delivered after the deadline, too";
      EXPECT_EQ(byte, 'x');
      expectError(receive(pair.a, &byte), EAGAIN);
    });
  }
}

TEST(DeadlineScope, AReceiveOfAllBytesReturnsThoseThatHaveCome) {
  const Pair pair = unixPair();
  forAnHour([&] {
    EXPECT_EQ(::write(pair.b, "abc", 3), 3);
    char bytes[8];
    EXPECT_EQ(::recv(pair.a, bytes, sizeof bytes, MSG_WAITALL), 3);
  });
}

TEST(DeadlineScope, SendsEnd) {
  for (const bool tcp : {false, true}) {
    const Pair pair = tcp ? tcpPair() : unixPair();
    forAnHour([&] {
      const std::vector<char> bytes(20'000'000, 'x');
      const ssize_t n = ::send(pair.a, bytes.data(), bytes.size(), 0);
      EXPECT_GT(n, 0);
      EXPECT_LT(n, 20'000'000);
      ssize_t more;  // TCP may find some room later
      while ((more = ::write(pair.a, bytes.data(), bytes.size())) > 0) continue;
      expectError(more, EAGAIN);
    });
  }
}

TEST(DeadlineScope, AcceptsAndPipesEnd) {
  const int listener = boundSocket(hookedCalls(), SOCK_STREAM);
  forAnHour([&] { expectError(::accept(listener, nullptr, nullptr), EAGAIN); });
  ::close(listener);
  const Pair pipe = pipePair();
  forAnHour([&] {
    char byte;
    expectError(::read(pipe.a, &byte, 1), EAGAIN);
  });
}

TEST(DeadlineScope, PollsFindNothing) {
  for (const int timeout_ms : {-1, 24 * 3600 * 1000}) {
    const Pair pair = unixPair();
    forAnHour([&] {
      pollfd one{pair.a, POLLIN, 0};
      EXPECT_EQ(::poll(&one, 1, timeout_ms), 0);
      expectError(::poll(&one, 1, timeout_ms), ETIMEDOUT);  // a loop that only polls again ends
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      EXPECT_EQ(::poll(&one, 1, timeout_ms), 1);
    });
  }
}

// The loops around it take an error for the end of everything, so they are told once.
TEST(DeadlineScope, AnEpollWaitFindsNothingOnce) {
  const Pair pair = unixPair();
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {}};
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pair.a, &event), 0);
  VirtualTime time;
  time.run([&] {
    withDeadline(Deadline::after(1h, time), [&] {
      EXPECT_EQ(::epoll_wait(epoll, &event, 1, -1), 0);
      EXPECT_EQ(time.elapsed(), 1h);
      EXPECT_EQ(::epoll_wait(epoll, &event, 1, 60'000), 0);
      EXPECT_EQ(time.elapsed(), 1h + 1min) << "the next ends at its own time";
      IOManager::GetThis()->schedule([&] {
        ::sleep(3600);
        EXPECT_EQ(::write(pair.b, "x", 1), 1);
      });
      EXPECT_EQ(::epoll_wait(epoll, &event, 1, -1), 1);
    });
  });
  EXPECT_EQ(time.elapsed(), 2h + 1min);
  ::close(epoll);
}

TEST(DeadlineScope, SleepsReturnTheRest) {
  forAnHour([] { EXPECT_EQ(::sleep(3 * 3600), 2u * 3600); });
  forAnHour([] {
    const timespec wanted{3 * 3600, 0};
    timespec rest{};
    expectError(::nanosleep(&wanted, &rest), EINTR);
    EXPECT_EQ(rest.tv_sec, 2 * 3600);
    EXPECT_EQ(rest.tv_nsec, 0);
  });
  forAnHour([] { expectError(::usleep(4'000'000'000), EINTR); });
  forAnHour([] {
    const timespec wanted{3 * 3600, 0};
    timespec rest{};
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, &rest), EINTR);
    EXPECT_EQ(rest.tv_sec, 2 * 3600);
  });
}

// Otherwise they would go round and round until the sleep is over.
TEST(DeadlineScope, LoopsThatSleepTheRestEnd) {
  forAnHour([] { std::this_thread::sleep_for(24h); });
  forAnHour([] {
    for (unsigned left = 24 * 3600; left > 0;) left = ::sleep(left);
  });
  forAnHour([] {
    timespec left{24 * 3600, 0};
    while (::nanosleep(&left, &left) != 0 && errno == EINTR) continue;
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(left.tv_sec, 23 * 3600);
  });
  forAnHour([] {
    timespec left{24 * 3600, 0};
    while (::thrd_sleep(&left, &left) == -1) continue;
    EXPECT_EQ(::usleep(0), 0) << "it needs no waiting";
  });
}

TEST(DeadlineScope, WhatEndsBeforeIsNotTouched) {
  const Pair pair = unixPair();
  setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1'000'000);
  VirtualTime time;
  time.run([&] {
    withDeadline(Deadline::after(1h, time), [&] {
      EXPECT_EQ(::sleep(60), 0u);
      char byte;
      expectError(::recv(pair.a, &byte, 1, 0), EAGAIN);
    });
    EXPECT_EQ(::sleep(2 * 3600), 0u) << "the scope is over";
  });
  EXPECT_EQ(time.elapsed(), 2h + 61s);
}

TEST(DeadlineScope, TheEarliestOfNestedOnesCounts) {
  VirtualTime time;
  time.run([&] {
    EXPECT_TRUE(this_fiber::deadline().isNever());
    const Deadline outer = Deadline::after(1h, time), inner = Deadline::after(1min, time), late = Deadline::after(24h, time);
    withDeadline(outer, [&] {
      EXPECT_EQ(this_fiber::deadline(), outer);
      withDeadline(inner, [&] {
        EXPECT_EQ(this_fiber::deadline(), inner);
        EXPECT_EQ(::sleep(3600), 3540u);
      });
      withDeadline(late, [&] {
        EXPECT_EQ(this_fiber::deadline(), outer);
        EXPECT_EQ(::sleep(3600), 60u);
      });
      EXPECT_EQ(this_fiber::deadline(), outer);
    });
    EXPECT_TRUE(this_fiber::deadline().isNever());
  });
  EXPECT_EQ(time.elapsed(), 1h);
}

TEST(DeadlineScope, AShieldLetsACleanUpWait) {
  VirtualTime time;
  time.run([&] {
    const this_fiber::DeadlineScope scope(Deadline::after(1h, time));
    EXPECT_EQ(::sleep(2 * 3600), 3600u);
    const this_fiber::CancelShield shield;
    EXPECT_EQ(::sleep(60), 0u);
  });
  EXPECT_EQ(time.elapsed(), 1h + 60s);
}

// A shield hides what is outside of it, so a clean-up can have a bound of its own.
TEST(DeadlineScope, InAShieldItBoundsTheCleanUp) {
  VirtualTime time;
  const Deadline outer = Deadline::after(1h, time), inner = Deadline::after(2h, time);
  time.run([&] {
    const this_fiber::DeadlineScope scope(outer);
    {
      const this_fiber::CancelShield shield;
      EXPECT_TRUE(this_fiber::deadline().isNever());
      withDeadline(inner, [&] {
        EXPECT_EQ(this_fiber::deadline(), inner);
        EXPECT_EQ(::sleep(3 * 3600), 3600u);
        const this_fiber::CancelShield in_it;
        EXPECT_EQ(::sleep(3600), 0u);
      });
      EXPECT_TRUE(this_fiber::deadline().isNever());
      EXPECT_EQ(::sleep(3600), 0u);
    }
    EXPECT_EQ(this_fiber::deadline(), outer);
  });
  EXPECT_EQ(time.elapsed(), 4h);
}

TEST(DeadlineScope, OthersAreNotBounded) {
  VirtualTime time;
  time.run([&] {
    const this_fiber::DeadlineScope scope(Deadline::after(1h, time));
    const auto other = std::make_shared<Fiber>([] { EXPECT_EQ(::sleep(2 * 3600), 0u); });
    IOManager::GetThis()->schedule(other);
    other->join();
  });
  EXPECT_EQ(time.elapsed(), 2h);
}

TEST(DeadlineScope, AnExceptionEndsIt) {
  VirtualTime time;
  time.run([&] {
    EXPECT_THROW(withDeadline(Deadline::after(1h, time), []() -> int { throw std::runtime_error("out"); }), std::runtime_error);
    EXPECT_TRUE(this_fiber::deadline().isNever());
    EXPECT_EQ(withDeadline(Deadline::after(1h, time), [] { return 7; }), 7);
  });
}

TEST(DeadlineScope, ReachesFibersThatAreResumedByHand) {
  VirtualTime time;
  time.run([&] {
    const Deadline inner = Deadline::after(1min, time);
    Fiber by_hand([&] {
      EXPECT_EQ(::sleep(3600), 3540u);
      const this_fiber::CancelShield shield;
      EXPECT_EQ(::sleep(60), 0u);
    });
    const this_fiber::DeadlineScope outer(Deadline::after(1h, time));
    withDeadline(inner, [&] { by_hand.resume(); });
    EXPECT_EQ(by_hand.getState(), Fiber::TERM);
  });
  EXPECT_EQ(time.elapsed(), 2min);
}

// Its stack goes without the destructors, and the next fiber gets what it leaves.
TEST(DeadlineScope, OfAFiberThatIsDroppedIsForgotten) {
  VirtualTime time;
  time.run([&] {
    for (int i = 0; i < 10; ++i) {
      auto dropped = std::make_shared<Fiber>([&] {
        const this_fiber::DeadlineScope scope(Deadline::after(1min, time));
        Fiber::YieldToHold();
      });
      dropped->resume();
      dropped = nullptr;
      const auto next = std::make_shared<Fiber>([] {
        EXPECT_TRUE(this_fiber::deadline().isNever());
        EXPECT_EQ(::sleep(3600), 0u);
      });
      IOManager::GetThis()->schedule(next);
      next->join();
    }
  });
  EXPECT_EQ(time.elapsed(), 10h);
}

// A cancel says more than a deadline.
TEST(DeadlineScope, ACancelledFiberIsCancelled) {
  VirtualTime time;
  time.run([&] {
    const this_fiber::DeadlineScope scope(Deadline::after(1h, time));
    Fiber::GetThis()->cancel();
    const timespec wanted{3600, 0};
    expectError(::nanosleep(&wanted, nullptr), ECANCELED);
  });
  EXPECT_EQ(time.elapsed(), 0h);
}

// The kernel drops what does not fit into the backlog, so the connection is never made.
TEST(DeadlineScope, AConnectTimesOut) {
  for (const int type : {AF_INET, AF_UNIX}) {
    const int listener = ::socket(type, SOCK_STREAM, 0);
    sockaddr_un path{AF_UNIX, {}};  // of length 2: the kernel chooses a name
    const sockaddr_in address = loopback();
    const auto* const wanted = type == AF_INET ? reinterpret_cast<const sockaddr*>(&address) : reinterpret_cast<sockaddr*>(&path);
    ASSERT_EQ(::bind(listener, wanted, type == AF_INET ? sizeof address : sizeof(sa_family_t)), 0);
    ASSERT_EQ(::listen(listener, 0), 0);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size), 0);
    inFiber([&] {
      std::vector<int> sockets;
      bool timed_out = false;
      for (int i = 0; i < 8 && !timed_out; ++i) {
        sockets.push_back(::socket(type, SOCK_STREAM, 0));
        withDeadline(Deadline::after(30ms), [&] {
          if (::connect(sockets.back(), reinterpret_cast<const sockaddr*>(&bound), size) == 0) return;
          EXPECT_EQ(errno, ETIMEDOUT) << ::strerror(errno);
          timed_out = true;
        });
      }
      EXPECT_TRUE(timed_out);
      for (const int fd : sockets) ::close(fd);
    });
    ::close(listener);
  }
}

// Nothing there has a clock of its own to end by.
TEST(DeadlineScope, OnAPlainThreadItHasNoEffect) {
  const this_fiber::DeadlineScope scope(Deadline::after(0ns));
  EXPECT_TRUE(this_fiber::deadline().isNever());
  EXPECT_EQ(::usleep(1), 0);
}

}  // namespace
}  // namespace sylar::test
