// close against waiting fibers: each wait ends once, with EBADF, and the number's next owner is left alone.
#include <memory>

#include "tests/hook/fd/close_support.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

constexpr int kRounds = 10'000;

/// One call that waits on `fd` forever; what it gave.
using WaitOn = ssize_t (*)(int fd);
ssize_t recvmsgOn(int fd) { return ::recvmsg(fd, std::make_unique<msghdr>().get(), 0); }
ssize_t pollOn(int fd) {
  pollfd one{fd, POLLIN, 0};
  const int n = ::poll(&one, 1, -1);
  errno = n == 1 && one.revents == POLLNVAL ? EBADF : EDOM;  // poll's way of saying it
  return -1;
}

class CloseRace : public testing::TestWithParam<int> {
 protected:
  WaitOn wait() const {
    static constexpr WaitOn kWaits[] = {readOn, recvmsgOn, pollOn};
    return kWaits[GetParam()];
  }
  int rounds() const { return static_cast<int>(scaled(GetParam() == 0 ? kRounds : kRounds / 10)); }
};

// FM-13, FM-14, CD-I1
TEST_P(CloseRace, FromAnotherFiberOfTheSameWorker) {
  const LeakCheck leaks;
  Ended ended;
  NewOwner owner;
  inFiber([&] {
    for (int i = 0; i < rounds() && !HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      const auto waiter = std::make_shared<Fiber>([&, fd = ends[0]] { ended.check(wait()(fd)); });
      IOManager::GetThis()->schedule(waiter);
      untilParked(*waiter);
      EXPECT_EQ(::close(ends[0]), 0);
      EXPECT_EQ(::close(ends[1]), 0);
      waiter->join();
    }
  });
  EXPECT_EQ(ended.count.load(), rounds());
  EXPECT_GT(owner.finish(), 0);
}

TEST_P(CloseRace, FromAnotherWorker) {
  const LeakCheck leaks;
  Ended ended;
  NewOwner owner;
  {
    IOManager iom(2, false, "close");
    const std::vector<pid_t> threads = threadsOf(iom, 2);
    for (int i = 0; i < rounds() && !HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      std::atomic<int> closed{0};
      waitThere(
          iom, threads[0], [&, fd = ends[0]] { ended.check(wait()(fd)); },
          [&] {
            iom.schedule(
                [&] {
                  EXPECT_EQ(::close(ends[0]), 0);
                  EXPECT_EQ(::close(ends[1]), 0);
                  closed.store(1, std::memory_order_release);
                },
                threads[1]);
          });
      spinUntil(closed, 1);
      spinUntil(ended.count, i + 1);
    }
  }
  EXPECT_EQ(ended.count.load(), rounds());
  EXPECT_GT(owner.finish(), 0);
}

TEST_P(CloseRace, FromAPlainThread) {
  const LeakCheck leaks;
  Ended ended;
  NewOwner owner;
  {
    IOManager iom(1, false, "close");
    const std::vector<pid_t> threads = threadsOf(iom, 1);
    for (int i = 0; i < rounds() && !HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      std::atomic<int> parked{0};
      waitThere(
          iom, threads[0], [&, fd = ends[0]] { ended.check(wait()(fd)); }, [&] { parked.store(1, std::memory_order_release); });
      spinUntil(parked, 1);
      EXPECT_EQ(::close(ends[0]), 0);
      EXPECT_EQ(::close(ends[1]), 0);
      spinUntil(ended.count, i + 1);
    }
  }
  EXPECT_EQ(ended.count.load(), rounds());
  EXPECT_GT(owner.finish(), 0);
}

std::string nameOfWait(const testing::TestParamInfo<int>& one) {
  static constexpr const char* kNames[] = {"read", "recvmsg", "poll"};
  return kNames[one.param];
}
INSTANTIATE_TEST_SUITE_P(Of, CloseRace, testing::Values(0, 1, 2), nameOfWait);

// FM-13: the same while data arrives all the time, so that the waiter is woken, closed and reused at any moment.
TEST(CloseWhileDataArrives, NewOwnerKeepsItsBytes) {
  NewOwner owner;
  std::atomic<int> ended{0};
  {
    IOManager iom(2, false, "close");
    for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      const int writer = ::dup(ends[1]);
      std::atomic<int> started{0};
      iom.schedule([&, fd = ends[0]] {
        iom.schedule([&] { started.store(1, std::memory_order_release); }, threadId());
        char byte;
        // One call only: after an answer the number may be another's.
        if (const ssize_t n = ::read(fd, &byte, 1); n == 1) {
          EXPECT_EQ(byte, 'd');
        } else {
          EXPECT_EQ(errno, EBADF);
        }
        ended.fetch_add(1);
      });
      spinUntil(started, 1);
      std::thread sender([=] { ::send(writer, "d", 1, MSG_NOSIGNAL); });
      ::close(ends[0]);
      sender.join();
      ::close(ends[1]);
      ::close(writer);
      spinUntil(ended, i + 1);
    }
  }
  EXPECT_GT(owner.finish(), 0);
}

// FM-15: dup2 over a waited number is its close.
TEST(CloseRaceByDup, Dup2OverAWaitedNumberEndsTheWait) {
  const LeakCheck leaks;
  inFiber([&] {
    for (const bool dup3 : {false, true}) {
      const Pair waited = unixPair();
      const Pair other = unixPair();
      Ended ended;
      const auto waiter = std::make_shared<Fiber>([&] { ended.check(readOn(waited.a)); });
      IOManager::GetThis()->schedule(waiter);
      untilParked(*waiter);
      EXPECT_EQ(dup3 ? ::dup3(other.a, waited.a, O_CLOEXEC) : ::dup2(other.a, waited.a), waited.a);
      waiter->join();
      EXPECT_EQ(ended.count.load(), 1);
      // The number is the other's now, and parks as such.
      char byte = 0;
      IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(other.b, "n", 1), 1); });
      EXPECT_EQ(::read(waited.a, &byte, 1), 1);
      EXPECT_EQ(byte, 'n');
    }
  });
}

// FM-24, CD-H12: it never says that the connection was made.
TEST(CloseRaceOfConnect, CloseDuringAConnectEndsIt) {
  const LeakCheck leaks;
  inFiber([&] {
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sa_family_t family = AF_UNIX;
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&family), sizeof family), 0);
    sockaddr_un address{};
    socklen_t size = sizeof address;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    ASSERT_EQ(::listen(listener, 0), 0);
    const auto connects = [&](int fd) { return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size); };
    const int first = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const int second = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(connects(first), 0);
    Ended ended;
    const auto waiter = std::make_shared<Fiber>([&] { ended.check(connects(second)); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(::close(second), 0);
    const int reused = ::socket(AF_UNIX, SOCK_STREAM, 0);  // must not be connected by the one who waited
    EXPECT_EQ(reused, second);
    EXPECT_EQ(::close(::accept(listener, nullptr, nullptr)), 0);
    waiter->join();
    EXPECT_EQ(ended.count.load(), 1);
    EXPECT_EQ(::send(reused, "x", 1, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, ENOTCONN);
    for (const int fd : {listener, first, reused}) EXPECT_EQ(::close(fd), 0);
  });
}

TEST(CloseRaceOfAccept, CloseOfAListenerEndsAllAccepts) {
  const LeakCheck leaks;
  Ended ended;
  inFiber([&] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM);
    for (int i = 0; i < 10; ++i) {
      const auto waiter = std::make_shared<Fiber>([&, listener] { ended.check(::accept(listener, nullptr, nullptr)); });
      IOManager::GetThis()->schedule(waiter);
      untilParked(*waiter);
    }
    EXPECT_EQ(::close(listener), 0);
  });
  EXPECT_EQ(ended.count.load(), 10);
}

// P3: between the real close and the end of "closing" the number may be anybody's who opened it without a hook.
TEST(CloseThenOpenWithoutAHook, TheFileBehindTheNumberIsRead) {
  std::atomic<bool> done{false};
  std::thread closer([&] {
    while (!done.load()) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      ::close(ends[0]);
      ::close(ends[1]);
    }
  });
  inFiber([&] {
    for (int i = 0; i < 20'000 && !testing::Test::HasFailure(); ++i) {
      const int fd = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
      char byte = 1;
      EXPECT_EQ(::read(fd, &byte, 1), 1) << ::strerrorname_np(errno) << " in round " << i;
      EXPECT_EQ(::close(fd), 0);
    }
  });
  done.store(true);
  closer.join();
}

}  // namespace
}  // namespace sylar::test
