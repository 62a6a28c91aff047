// A filter that refuses a system call: the start works without it, or says which call was refused, and why.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <string>

#include "sylar/fiber.h"
#include "sylar/iomanager.h"
#include "tests/hook/core/refuse_call.h"

namespace sylar {
namespace {

/// Starts a scheduler and runs a fiber on it, in a process of its own that may not make `call`. Returns "ran", or the reason why
/// not.
std::string startWithout(int call, int error) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "ran";
    ::alarm(60);  // for a start that hangs
    test::refuseCall(call, error);
    try {
      IOManager iom(1, false);
      const auto fiber = std::make_shared<Fiber>([] {});
      iom.schedule(fiber);
      fiber->join();
      iom.stop();
    } catch (const std::exception& failure) {
      said = failure.what();
    }
    ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::array<char, 500> said{};
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0 || size <= 0) return "ended with the status " + std::to_string(status);
  return {said.data(), static_cast<size_t>(size)};
}

// A refused madvise ended a service with nothing but "std::bad_alloc".
TEST(RefusedStart, SaysWhichCallWasRefusedAndWhy) {
  const struct {
    int call;
    const char* names;
  } kNeeded[] = {
      {SYS_madvise, "madvise"},  {SYS_epoll_create1, "epoll"}, {SYS_epoll_ctl, "epoll"}, {SYS_timerfd_create, "timerfd"},
      {SYS_eventfd2, "eventfd"}, {SYS_clone3, "thread"},       {SYS_mprotect, "thread"},
  };
  for (const auto& [call, names] : kNeeded) {
    const std::string said = startWithout(call, EPERM);
    EXPECT_NE(said.find(names), std::string::npos) << said;
    EXPECT_NE(said.find("Operation not permitted"), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with("sylar")) << said;
  }
}

// What makes things faster or reports better is done without.
TEST(RefusedStart, GoesOnWithoutWhatIsNotNeeded) {
  for (const int call : {SYS_membarrier, SYS_io_uring_setup, SYS_sigaltstack, SYS_prctl, SYS_memfd_create, SYS_epoll_pwait2,
                         SYS_sched_getaffinity, SYS_set_robust_list}) {
    for (const int error : {EPERM, ENOSYS}) EXPECT_EQ(startWithout(call, error), "ran") << call << ' ' << error;
  }
}

}  // namespace
}  // namespace sylar
