// Every way to close a number on which a fiber waits, thousands of times, while somebody else takes the number at once: the wait
// ends once, with EBADF, and the new owner's bytes stay whole.
#include <csignal>
#include <cstdio>

#include "sylar/base/sanitizers.h"
#include "tests/hook/fd/close_support.h"

namespace sylar::test {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kRounds = 500;
#else
constexpr int kRounds = 10'000;
#endif

/// Closes `fd` in a signal handler that runs on `thread`; returns when it has.
void closeInHandlerOn(pid_t thread, int fd) {
  static std::atomic<int> s_fd;
  s_fd.store(fd, std::memory_order_release);
  static const auto installed = [] {
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) {
      const int saved_errno = errno;
      ::close(s_fd.load(std::memory_order_acquire));
      errno = saved_errno;
      s_fd.store(-1, std::memory_order_release);
    };
    return ::sigaction(SIGUSR1, &action, nullptr);
  }();
  ASSERT_EQ(installed, 0);
  ASSERT_EQ(::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1), 0);
  spinUntil(s_fd, -1);
}

/// Closes `fd`; `worker` is where its reader waits.
struct Closer {
  const char* name;
  void (*close)(int fd, pid_t worker);
  friend void PrintTo(const Closer& closer, std::ostream* os) { *os << closer.name; }
};
const Closer kClosers[] = {
    {"close", [](int fd, pid_t) { EXPECT_EQ(::close(fd), 0); }},
    {"fclose", [](int fd, pid_t) { EXPECT_EQ(std::fclose(::fdopen(fd, "r")), 0); }},
    {"dup2",
     [](int fd, pid_t) {
       EXPECT_EQ(::dup2(2, fd), fd);
       EXPECT_EQ(::close(fd), 0);
     }},
    {"close_range", [](int fd, pid_t) { EXPECT_EQ(::close_range(unsigned(fd), unsigned(fd), 0), 0); }},
    {"handlerHere", [](int fd, pid_t) { closeInHandlerOn(threadId(), fd); }},
#ifndef SYLAR_TSAN  // it runs handlers where a thread meets an interceptor; a worker that sleeps meets none
    {"handlerOnTheWorker", [](int fd, pid_t worker) { closeInHandlerOn(worker, fd); }},
#endif
};

class Closers : public testing::TestWithParam<Closer> {};

// CD-I1, FM-13, FM-14: from a plain thread, of fibers of two IOManagers in turn.
TEST_P(Closers, EndTheWaitOnceAndLeaveTheNextOwnerAlone) {
  const LeakCheck leaks;
  Ended ended;
  NewOwner owner;
  {
    IOManager first(1, false, "first");
    IOManager second(1, false, "second");
    IOManager* const both[] = {&first, &second};
    const pid_t threads[] = {threadsOf(first, 1)[0], threadsOf(second, 1)[0]};
    for (int i = 0; i < kRounds && !HasFailure(); ++i) {
      const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
      std::atomic<int> parked{0};
      waitThere(
          *both[i % 2], threads[i % 2], [&, fd = ends[0]] { ended.check(readOn(fd)); },
          [&] { parked.store(1, std::memory_order_release); });
      spinUntil(parked, 1);
      GetParam().close(ends[0], threads[i % 2]);
      EXPECT_EQ(::close(ends[1]), 0);
      spinUntil(ended.count, i + 1);
    }
  }
  EXPECT_EQ(ended.count.load(), kRounds);
  EXPECT_GT(owner.finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(By, Closers, testing::ValuesIn(kClosers),
                         [](const testing::TestParamInfo<Closer>& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace sylar::test
