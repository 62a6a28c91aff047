// A program of its own: no worker may have run in this process before it forks.
#include <sys/wait.h>

#include "tests/hook/support.h"

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
      overlapped = ::read(ends[0], &byte, 1) == 1;  // blocks the only worker for ever if it does not park
    });
    ::_exit(overlapped ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sylar::test
