// Many fibers start children and wait for their own, while others take any. Every child is told of once, and a ticker has its
// turns. FM-21.
#include <spawn.h>

#include "sylar/base/sanitizers.h"
#include "tests/hook/process/children.h"

extern char** environ;

namespace sylar::test {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kRounds = 4;
#else
constexpr int kRounds = 20;
#endif
constexpr int kStarters = 8;

pid_t spawnShell() {
  char name[] = "sh", option[] = "-c", command[] = "exit 3";
  char* const arguments[] = {name, option, command, nullptr};
  pid_t child = -1;
  EXPECT_EQ(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
  return child;
}

/// Waits for `child` in the `way`th way. Returns true unless another has taken it.
bool takes(pid_t child, int way) {
  int status = -1;
  siginfo_t info{};
  long result = 0;
  switch (way % 3) {
    case 0: result = ::waitpid(child, &status, 0); break;
    case 1: result = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED); break;
    default: {
      const int pidfd = pidfdOf(child);  // fails if another has taken it
      result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED);
      const int error = errno;
      if (pidfd >= 0) {
        EXPECT_EQ(::close(pidfd), 0);
      } else {
        return false;
      }
      errno = error;
    }
  }
  if (result < 0) {
    EXPECT_EQ(errno, ECHILD);
    return false;
  }
  const int code = way % 3 == 0 ? (WIFEXITED(status) ? WEXITSTATUS(status) : -1) : info.si_status;
  EXPECT_EQ(code, 3);
  return true;
}

class ChildrenRace : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, ChildrenRace, testing::Values(1, 2, 4));

TEST_P(ChildrenRace, EachChildIsToldOfOnce) {
  std::atomic<int> starters{kStarters};
  std::atomic<int> told{0};
  std::atomic<int> ticks{0};
  inFiber(
      [&] {
        IOManager* const iom = IOManager::GetThis();
        iom->schedule([&] {
          do {  // its worker may come to it late
            ticks.fetch_add(1);
            ::usleep(100);
          } while (starters.load() > 0);
        });
        for (int i = 0; i < kStarters; ++i) {
          iom->schedule([&, i] {
            for (int round = 0; round < kRounds; ++round) {
              const pid_t child = round % 2 == 0 ? spawnShell() : startChild([] { return 3; });
              told.fetch_add(takes(child, i + round));
            }
            starters.fetch_sub(1);
          });
        }
        for (int i = 0; i < 2; ++i) {
          iom->schedule([&] {
            while (starters.load() > 0) {
              if (::wait(nullptr) > 0) {
                told.fetch_add(1);
              } else {
                EXPECT_EQ(errno, ECHILD);
                Fiber::YieldToReady();
              }
            }
          });
        }
      },
      workers());
  EXPECT_EQ(told.load(), kStarters * kRounds);
  EXPECT_GT(ticks.load(), 0);
  EXPECT_EQ(::wait(nullptr), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace sylar::test
