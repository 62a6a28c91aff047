// hook.close: posix. A call that waits goes on with its open file when its number is closed, as on a thread in the kernel, and the
// number is free at once.
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <set>

#include "sylar/base/sanitizers.h"
#include "sylar/socket.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/fd/stay_support.h"
#include "tests/support/thread_state.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

class Stays : public testing::TestWithParam<StayingCase> {};
INSTANTIATE_TEST_SUITE_P(Of, Stays, testing::ValuesIn(stayingCases()),
                         [](const testing::TestParamInfo<StayingCase>& one) { return one.param.name; });

/// A fiber of this worker that makes a call, and has come to its wait.
class Caller {
 public:
  explicit Caller(std::function<std::string()> call)
      : m_fiber(std::make_shared<Fiber>([this, call = std::move(call)] { m_told = call(); })) {
    IOManager::GetThis()->schedule(m_fiber);
    untilParked(*m_fiber);
  }
  /// Returns true if it still waits, after all that has happened to it.
  bool waits() {
    untilPolled(4);  // the mail, the event that the copy's registration brings, and the look at it
    return m_told.empty() && (untilParked(*m_fiber), m_told.empty());
  }
  void cancel() { m_fiber->cancel(); }
  std::string told() {
    m_fiber->join();
    return m_told;
  }

 private:
  std::string m_told;
  const Fiber::ptr m_fiber;
};

bool isOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
std::set<int> openNumbers() {
  std::set<int> numbers;
  for (int fd = 0; fd < 1024; ++fd) {
    if (isOpen(fd)) numbers.insert(fd);
  }
  return numbers;
}

std::string toldInFiber(const StayingCase& one) {
  std::string all;
  inFiber([&] {
    const StayingCall call = one.make();
    Caller caller(call.call);
    EXPECT_EQ(::close(call.fd), 0);
    EXPECT_FALSE(isOpen(call.fd));
    EXPECT_TRUE(caller.waits());
    call.finish();
    all = caller.told();
  });
  return all;
}

[[maybe_unused]] std::string toldOnThread(const StayingCase& one) {
  const StayingCall call = one.make();
  std::string all;
  std::atomic<pid_t> thread{0};
  std::thread caller([&] {
    thread.store(threadId());
    all = call.call();
  });
  busyUntil([&] { return thread.load() != 0 && sleepsInCall(thread.load()); });
  EXPECT_EQ(::close(call.fd), 0);
  EXPECT_FALSE(isOpen(call.fd));
  call.finish();
  caller.join();
  return all;
}

// HA-10: the kernel is the witness.
TEST_P(Stays, AsOnAThread) {
  const LeakCheck leaks;
  const PosixCloses posix;
  const std::string all = toldInFiber(GetParam());
#ifdef SYLAR_TSAN  // it takes a close while another thread is in a call for a race
  EXPECT_NE(all.substr(0, 2), "-1");
#else
  EXPECT_EQ(all, toldOnThread(GetParam()));
#endif
}

// HA-10, FM-14: another file takes the number at once, and neither call hears of the other's file.
TEST(StayingRead, LeavesItsNumberToTheNextOwner) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair old = unixPair();
    const int number = old.a;
    Caller first([=] { return toldRead(number); });
    old.closeA();
    const Pair next = unixPair();
    ASSERT_EQ(next.a, number);
    Caller second([=] { return toldRead(number); });
    EXPECT_EQ(::write(next.b, "new", 3), 3);
    EXPECT_EQ(second.told(), "3 new");
    EXPECT_TRUE(first.waits());
    EXPECT_EQ(::write(old.b, "old", 3), 3);
    EXPECT_EQ(first.told(), "3 old");
    char byte;
    EXPECT_EQ(::read(old.b, &byte, 1), 0) << "the file is open for nobody any more";
  });
}

// HA-10: a later call on the number comes after the close.
TEST(StayingRead, IsTheOnlyCallThatGoesOn) {
  const PosixCloses posix;
  inFiber([] {
    Pair pair = unixPair();
    const int number = pair.a;
    Caller caller([=] { return toldRead(number); });
    pair.closeA();
    EXPECT_EQ(toldRead(number), "-1 EBADF");
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(caller.told(), "1 x");
  });
}

// HA-10: the last of them closes the file.
TEST(StayingReads, ShareTheFileUntilTheLastHasEnded) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair pair = unixPair(SOCK_SEQPACKET);
    const int number = pair.a;
    Caller first([=] { return toldRead(number); });
    Caller second([=] { return toldRead(number); });
    pair.closeA();
    EXPECT_TRUE(first.waits());
    EXPECT_TRUE(second.waits());
    first.cancel();
    EXPECT_EQ(first.told(), "-1 ECANCELED");
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(second.told(), "1 x");
    EXPECT_EQ(::send(pair.b, "x", 1, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
  });
}

// FM-15: a copy that the program has made is closed independently.
TEST(StayingRead, EndsWhenReadingIsShutDownThroughAnotherNumber) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair pair = tcpPair();
    const int other = ::dup(pair.a);
    Caller caller([fd = pair.a] { return toldRead(fd); });
    pair.closeA();
    EXPECT_TRUE(caller.waits());
    EXPECT_EQ(::shutdown(other, SHUT_RD), 0);
    EXPECT_EQ(caller.told(), "0 ");
    EXPECT_EQ(::close(other), 0);
  });
}

// HA-10: the time goes on from where it was.
TEST(StayingRead, EndsWithItsTimeout) {
  const PosixCloses posix;
  VirtualTime time;
  time.run([] {
    Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 3'000'000);
    std::string all;
    const auto caller = std::make_shared<Fiber>([&, fd = pair.a] { all = toldRead(fd); });
    IOManager::GetThis()->schedule(caller);
    ::sleep(1);
    pair.closeA();
    caller->join();
    EXPECT_EQ(all, "-1 EAGAIN");
    char byte;
    EXPECT_EQ(::read(pair.b, &byte, 1), 0);
  });
  EXPECT_EQ(time.elapsed(), 3s);
}

// HA-10: the kernel's poll looks at its numbers once more when its time is over.
TEST(StayingPoll, TellsAtItsTimeoutThatTheNumberIsClosed) {
  const PosixCloses posix;
  VirtualTime time;
  time.run([] {
    Pair pair = unixPair();
    pollfd one{pair.a, POLLIN, 0};
    int n = 0;
    const auto caller = std::make_shared<Fiber>([&] { n = ::poll(&one, 1, 3'000); });
    IOManager::GetThis()->schedule(caller);
    ::sleep(1);
    pair.closeA();
    caller->join();
    EXPECT_EQ(n, 1);
    EXPECT_EQ(one.revents, POLLNVAL);
  });
  EXPECT_EQ(time.elapsed(), 3s);
}

// HA-10: as in the kernel, the old file wakes it, and what it looks at is the number.
TEST(StayingPoll, LooksAtTheNextOwnerWhenTheOldFileWakesIt) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair old = unixPair();
    const int number = old.a;
    pollfd one{number, POLLIN, 0};
    Caller caller([&] { return told(::poll(&one, 1, -1)); });
    old.closeA();
    const Pair next = unixPair();
    ASSERT_EQ(next.a, number);
    EXPECT_EQ(::write(old.b, "x", 1), 1);
    EXPECT_TRUE(caller.waits()) << "the next owner has nothing";
    EXPECT_EQ(::write(next.b, "x", 1), 1);
    EXPECT_TRUE(caller.waits()) << "the next owner is not waited for";
    EXPECT_EQ(::write(old.b, "x", 1), 1);
    EXPECT_EQ(caller.told(), "1");
    EXPECT_EQ(one.revents, POLLIN);
  });
}

// CD-I1: a cancel and a deadline end it as any call.
TEST(StayingRead, EndsWithACancel) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair pair = tcpPair();
    Caller caller([fd = pair.a] { return toldRead(fd); });
    pair.closeA();
    EXPECT_TRUE(caller.waits());
    caller.cancel();
    EXPECT_EQ(caller.told(), "-1 ECANCELED");
    char byte;
    EXPECT_EQ(::read(pair.b, &byte, 1), 0);
  });
}

struct ClosingCall {
  const char* name;
  void (*close)(int fd);
  bool puts_another;  ///< what it leaves is open
  friend void PrintTo(const ClosingCall& closer, std::ostream* os) { *os << closer.name; }
};
const ClosingCall kClosingCalls[] = {
    {"close", [](int fd) { EXPECT_EQ(::close(fd), 0); }, false},
    {"syscall", [](int fd) { EXPECT_EQ(::syscall(SYS_close, fd), 0); }, false},
    {"fclose", [](int fd) { EXPECT_EQ(std::fclose(::fdopen(fd, "r")), 0); }, false},
    {"dup2", [](int fd) { EXPECT_EQ(::dup2(2, fd), fd); }, true},
    {"dup3", [](int fd) { EXPECT_EQ(::dup3(2, fd, O_CLOEXEC), fd); }, true},
    {"close_range", [](int fd) { EXPECT_EQ(::close_range(unsigned(fd), unsigned(fd), 0), 0); }, false},
    {"handler",
     [](int fd) {
       static int s_fd;
       s_fd = fd;
       struct sigaction action {};
       action.sa_handler = [](int) { ::close(s_fd); };
       EXPECT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
       ::raise(SIGUSR1);
       std::signal(SIGUSR1, SIG_DFL);
     },
     false},
};
class StayingReadWithACloser : public testing::TestWithParam<ClosingCall> {};
INSTANTIATE_TEST_SUITE_P(By, StayingReadWithACloser, testing::ValuesIn(kClosingCalls),
                         [](const testing::TestParamInfo<ClosingCall>& one) { return std::string(one.param.name); });

// HA-10
TEST_P(StayingReadWithACloser, GoesOnWhoeverCloses) {
  const LeakCheck leaks;
  const PosixCloses posix;
  const auto check = [](auto close_it) {
    inFiber([&] {
      Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      Caller caller([fd = ends[0]] { return toldRead(fd); });
      close_it(ends[0]);
      EXPECT_EQ(isOpen(ends[0]), GetParam().puts_another);
      EXPECT_TRUE(caller.waits());
      EXPECT_EQ(::write(ends[1], "data", 4), 4);
      EXPECT_EQ(caller.told(), "4 data");
      EXPECT_EQ(::recv(ends[1], ends.data(), 1, MSG_DONTWAIT), 0) << "nobody has the file";
      EXPECT_EQ(::close(ends[1]), 0);
      if (GetParam().puts_another) {
        EXPECT_EQ(::close(ends[0]), 0);
      }
    });
  };
  check([](int fd) { GetParam().close(fd); });
  check([](int fd) { std::thread([fd] { GetParam().close(fd); }).join(); });
  check([](int fd) {
    IOManager other(1, false, "other");
    other.schedule([fd] { GetParam().close(fd); });
    other.stop();
  });
}

// HA-10: a program that closes everything does not close what its calls stay with, and cannot name it.
TEST(StayingRead, HasANumberThatNobodyCanClose) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair pair = unixPair();
    Caller caller([fd = pair.a] { return toldRead(fd); });
    const std::set<int> before = openNumbers();
    pair.closeA();
    EXPECT_TRUE(caller.waits());
    std::set<int> copies = openNumbers();
    for (const int fd : before) copies.erase(fd);
    ASSERT_EQ(copies.size(), 1u);
    const int copy = *copies.begin();
    EXPECT_GE(copy, 64);
    EXPECT_EQ(::close(copy), -1);
    EXPECT_EQ(::dup2(2, copy), -1);
    EXPECT_EQ(::close_range(unsigned(copy), unsigned(copy), 0), 0);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(caller.told(), "1 x");
  });
}

// HA-10: without a number the close ends the call, as under wake.
TEST(StayingRead, EndsWithEbadfWhenThereIsNoNumberLeft) {
#ifdef SYLAR_ASAN
  GTEST_SKIP() << "the sanitizer needs a pipe to look at the type of an object";
#endif
  const LeakCheck leaks;
  const PosixCloses posix;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  inFiber([&] {
    Pair pair = unixPair();
    Caller caller([fd = pair.a] { return toldRead(fd); });
    const rlimit none{3, before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    pair.closeA();
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(caller.told(), "-1 EBADF");
  });
}

// HA-10, HA-7: the child of a fork has nothing of the parent's calls.
TEST(StayingRead, IsNotKeptOpenByAChild) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    Pair pair = unixPair();
    Pair gate = pipePair();
    const int number = pair.a;
    Caller caller([=] { return toldRead(number); });
    pair.closeA();
    EXPECT_TRUE(caller.waits());
    const pid_t child = ::fork();
    if (child == 0) {
      gate.closeB();
      const bool is_closed = ::fcntl(number, F_GETFD) == -1 && errno == EBADF;
      char byte;
      ::read(gate.a, &byte, 1);  // lives until the parent has seen the end
      ::_exit(is_closed ? 0 : 1);
    }
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(caller.told(), "1 x");
    char byte;
    EXPECT_EQ(::read(pair.b, &byte, 1), 0);
    gate.closeB();
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

// HA-10: a fiber that its scheduler has given up does not go on with a file.
TEST(AnAbandonedRead, LetsItsFileGoWithTheNumber) {
  const PosixCloses posix;
  Pair pair = unixPair();
  IOManager iom(1, false, "left");
  iom.schedule([fd = pair.a] {
    for (;;) toldRead(fd);  // ignores that it is cancelled
  });
  EXPECT_FALSE(iom.stop(Deadline::after(0ms)).clean);
  pair.closeA();
  char byte;
  EXPECT_EQ(::read(pair.b, &byte, 1), 0);
}

// CD-I1: the library's own sockets end their calls in either mode.
TEST(SocketUnderPosix, EndsItsCallsWhenItIsClosed) {
  const LeakCheck leaks;
  const PosixCloses posix;
  inFiber([] {
    const Socket::ptr listener = Socket::CreateTCPSocket();
    ASSERT_TRUE(listener->bind(IPv4Address::Create("127.0.0.1", 0)));
    ASSERT_TRUE(listener->listen());
    Caller caller([&] { return listener->accept() == nullptr ? told(-1) : "accepted"; });
    EXPECT_TRUE(listener->close());
    EXPECT_EQ(caller.told(), "-1 EBADF");
  });
}

// FM-13: a close ends calls that began to wait before the mode was set.
TEST(CallsThatWaitAlready, EndWithTheClose) {
  inFiber([] {
    Pair pair = unixPair();
    Caller caller([fd = pair.a] { return toldRead(fd); });
    const PosixCloses posix;
    pair.closeA();
    EXPECT_EQ(caller.told(), "-1 EBADF");
  });
}

}  // namespace
}  // namespace sylar::test
