// A program of its own: no worker may have run in this process before it forks.
#include <sys/wait.h>

#include "tests/hook/process/children.h"

namespace sylar::test {
namespace {

// Cause: the process that first asked counted as the original, also if it only ever closed a descriptor before it forked.
TEST(Daemon, RunsFibersInTheChild) {
  ASSERT_EQ(::close(::socket(AF_INET, SOCK_STREAM, 0)), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    bool overlapped = false;
    inFiber([&overlapped] {
      const Ends ends = makePipe(hookedCalls());
      IOManager::GetThis()->schedule([&ends] { (void)!::write(ends[1], "x", 1); });
      char byte;
      overlapped = ::read(ends[0], &byte, 1) == 1;  // blocks the only worker forever if it does not park
    });
    ::_exit(overlapped ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// A process that lets `body` call daemon, and hears from it: what the daemon that it becomes has returned.
template <class Body>
int daemonsAnswer(Body body) {
  Pair said = pipePair();
  const pid_t process = startChild([&] {
    body([&said](int answer) {
      const char byte = static_cast<char>(answer);
      (void)!::write(said.b, &byte, 1);
    });
    return 0;
  });
  int status = -1;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0) << "the daemon's parent has ended";
  said.closeB();  // so that silence ends the read
  char byte = 99;
  EXPECT_EQ(::read(said.a, &byte, 1), 1);
  return byte;
}

// The child of daemon is that of a fork: the fiber goes on alone, and its calls are libc's.
TEST(Daemon, OfAFiberGoesOnWithIt) {
  EXPECT_EQ(daemonsAnswer([](auto say) {
              inFiber([&say] {
                const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
                IOManager::GetThis()->schedule([&] {
                  char byte;
                  (void)!::read(ends[0], &byte, 1);  // parked when the process ends
                  say(50);
                });
                Fiber::YieldToReady();
                if (::daemon(1, 1) != 0) return say(2);
                char byte = 0;
                if (::getsid(0) != ::getpid() || sys::threadId() != threadId() || !sys::inForkedChild()) return say(3);
                if (::write(ends[1], "x", 1) != 1 || ::read(ends[0], &byte, 1) != 1 || byte != 'x') return say(4);
                if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return say(5);
                if (::read(ends[0], &byte, 1) != -1 || errno != EAGAIN) return say(6);
                const pid_t child = startChild([] { return 3; });
                int status = 0;
                if (::waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) return say(7);
                say(1);
              });
            }),
            1);
}

// daemon puts /dev/null behind numbers that it does not close by our names.
TEST(Daemon, KnowsItsStandardStreams) {
  EXPECT_EQ(daemonsAnswer([](auto say) {
              const Ends ends = makePipe(hookedCalls());
              if (::dup2(ends[0], 0) != 0) return say(2);
              if (::daemon(0, 0) != 0) return say(3);
              inFiber([&say] {
                char byte;
                say(::read(0, &byte, 1) == 0 && ::write(1, "x", 1) == 1 ? 1 : 4);
              });
            }),
            1);
}

}  // namespace
}  // namespace sylar::test
