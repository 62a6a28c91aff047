// hook.close: posix, in a race: a call that waits goes on with its open file whatever happens at the moment of the close. Nothing
// is lost, nothing is left open, and the next owner of the number is left alone.
#include <memory>
#include <random>

#include "sylar/base/sanitizers.h"
#include "tests/hook/fd/close_support.h"
#include "tests/hook/fd/stay_support.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

constexpr int kRounds = 2'000;

/// One call that waits on `fd` for two bytes, or for the first of them.
using Call = std::string (*)(int fd);
std::string read(int fd) { return toldRead(fd).substr(0, 3); }
std::string receiveAll(int fd) {
  char bytes[2];
  return told(::recv(fd, bytes, sizeof bytes, MSG_WAITALL), bytes);
}
std::string receiveMessage(int fd) {
  char bytes[2];
  iovec part{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return told(::recvmsg(fd, &message, MSG_WAITALL), bytes);
}

struct Case {
  const char* name;
  Call call;
  const char* expected;
  friend void PrintTo(const Case& one, std::ostream* os) { *os << one.name; }
};
const Case kCases[] = {{"read", read, nullptr}, {"recvAll", receiveAll, "2 da"}, {"recvmsgAll", receiveMessage, "2 da"}};

class StayRace : public testing::TestWithParam<Case> {
 protected:
  static bool isRight(const std::string& all) {
    return GetParam().expected != nullptr ? all == GetParam().expected : all == "1 d" || all == "2 d";
  }
};
INSTANTIATE_TEST_SUITE_P(Of, StayRace, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& one) { return std::string(one.param.name); });

/// Several fibers of several workers wait for the number. `meanwhile` happens while another thread closes it.
struct Round {
  explicit Round(IOManager& iom, const std::vector<pid_t>& threads, size_t waiters, std::function<std::string(int)> call)
      : ends(makeUnix(hookedCalls(), SOCK_STREAM)), given(waiters), fibers(waiters) {
    std::atomic<size_t> parked{0};
    for (size_t i = 0; i < waiters; ++i) {
      const pid_t thread = threads[i % threads.size()];
      iom.schedule(
          [&, call, i, thread] {
            fibers[i] = Fiber::GetThis();
            iom.schedule([&] { parked.fetch_add(1, std::memory_order_release); },
                         thread);  // begins when this one leaves the thread
            given[i] = call(ends[0]);
            ended.fetch_add(1, std::memory_order_release);
          },
          thread);
    }
    busyUntil([&] { return parked.load(std::memory_order_acquire) == waiters; });
  }
  void close() const { EXPECT_EQ(::close(ends[0]), 0); }
  void awaitEnd() const {
    busyUntil([&] { return ended.load(std::memory_order_acquire) == given.size(); });
  }

  const Ends ends;
  std::vector<std::string> given;
  std::vector<Fiber::ptr> fibers;
  std::atomic<size_t> ended{0};
};

// HA-10, FM-14: data arrives, one byte at a time.
TEST_P(StayRace, OfACloseAgainstData) {
  const LeakCheck leaks;
  NewOwner owner;
  {
    IOManager iom(2, false, "stay");
    const std::vector<pid_t> threads = threadsOf(iom, 2);
    const PosixCloses posix;
    for (uint64_t i = 0; i < scaled(kRounds) && !HasFailure(); ++i) {
      Round round(iom, threads, 1, GetParam().call);
      std::thread sender([&] {
        EXPECT_EQ(::send(round.ends[1], "d", 1, MSG_NOSIGNAL), 1);
        ::send(round.ends[1], "a", 1, MSG_NOSIGNAL);  // too late for a read, which has what it wants
      });
      round.close();
      sender.join();
      round.awaitEnd();
      EXPECT_TRUE(isRight(round.given[0])) << round.given[0] << " in round " << i;
      EXPECT_EQ(::close(round.ends[1]), 0);
    }
  }
  EXPECT_GT(owner.finish(), 0);
}

// HA-10, CD-I1: one of those who wait is cancelled, and the other gets the byte. The file is closed when both have ended.
TEST(StayRaceOfSeveral, OfACloseAgainstACancel) {
  const LeakCheck leaks;
  NewOwner owner;
  {
    IOManager iom(2, false, "stay");
    const std::vector<pid_t> threads = threadsOf(iom, 2);
    const PosixCloses posix;
    for (uint64_t i = 0; i < scaled(kRounds) && !testing::Test::HasFailure(); ++i) {
      Round round(iom, threads, 2, toldRead);
      std::thread canceller([&] { round.fibers[0]->cancel(); });
      round.close();
      canceller.join();
      busyUntil([&] { return round.ended.load(std::memory_order_acquire) == 1; });
      EXPECT_EQ(::send(round.ends[1], "d", 1, MSG_NOSIGNAL), 1);
      round.awaitEnd();
      EXPECT_EQ(round.given[0], "-1 ECANCELED") << "in round " << i;
      EXPECT_EQ(round.given[1], "1 d") << "in round " << i;
      char byte;
      EXPECT_EQ(::recv(round.ends[1], &byte, 1, MSG_DONTWAIT), 0) << "in round " << i;
      EXPECT_EQ(::close(round.ends[1]), 0);
    }
  }
  EXPECT_GT(owner.finish(), 0);
}

// HA-10: two polls, the one that the close meets first and the other, and the byte that wakes both.
TEST(StayRaceOfPolls, OfACloseAgainstData) {
  const LeakCheck leaks;
  {
    IOManager iom(2, false, "stay");
    const std::vector<pid_t> threads = threadsOf(iom, 2);
    const PosixCloses posix;
    for (uint64_t i = 0; i < scaled(kRounds) && !testing::Test::HasFailure(); ++i) {
      Round round(iom, threads, 2, [](int fd) {
        pollfd one{fd, POLLIN, 0};
        const int n = ::poll(&one, 1, -1);
        return std::to_string(n) +
               (one.revents == POLLIN || one.revents == POLLNVAL ? "" : " revents " + std::to_string(one.revents));
      });
      std::thread sender([&] { EXPECT_EQ(::send(round.ends[1], "d", 1, MSG_NOSIGNAL), 1); });
      round.close();
      sender.join();
      round.awaitEnd();
      for (const std::string& given : round.given) EXPECT_EQ(given, "1") << "in round " << i;
      EXPECT_EQ(::close(round.ends[1]), 0);
    }
  }
}

#ifndef SYLAR_TSAN  // for which a close against a call that does not wait yet is the program's own race
// HA-10: the number is closed while calls begin and end. A call has its byte, or it came after the close.
TEST(StayRaceOfTheBeginning, OfACloseAgainstACall) {
  const LeakCheck leaks;
  {
    IOManager iom(2, false, "stay");
    const PosixCloses posix;
    for (uint64_t i = 0; i < scaled(kRounds) && !testing::Test::HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      std::atomic<int> begun{0};
      std::atomic<int> ended{0};
      std::string given;
      iom.schedule([&, fd = ends[0]] {
        begun.store(1, std::memory_order_release);
        given = toldRead(fd);
        ended.store(1, std::memory_order_release);
      });
      spinUntil(begun, 1);
      EXPECT_EQ(::close(ends[0]), 0);
      ::send(ends[1], "d", 1, MSG_NOSIGNAL);
      spinUntil(ended, 1);
      EXPECT_TRUE(given == "1 d" || given == "-1 EBADF") << given << " in round " << i;
      EXPECT_EQ(::close(ends[1]), 0);
    }
  }
}
#endif

}  // namespace
}  // namespace sylar::test
