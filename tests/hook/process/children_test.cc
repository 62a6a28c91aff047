// Fibers that wait for children: others run meanwhile, a wait ends early as the fiber's own affairs want, and no child is lost.
#include "tests/hook/process/children.h"

#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include <chrono>
#include <climits>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>

#include "sylar/cancel.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/core/busy_helper.h"

extern "C" {
pid_t __wait(int* status);
pid_t __waitpid(pid_t child, int* status, int options);
}

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

int exitCode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

/// A shell command that exits with the number in the first line that comes to `fd`.
std::string commandThatReads(int fd) {
  return "read code </proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd) + "; exit $code";
}

struct ChildWait {
  std::string name;
  std::function<int(int fd)> wait;  ///< starts a child that exits with the first byte, which is '7', and returns its exit code
};

std::ostream& operator<<(std::ostream& out, const ChildWait& one) { return out << one.name; }

template <class Wait>
ChildWait waits(const std::string& name, Wait wait) {
  return {name, [wait](int fd) {
            const pid_t child = childThatReads(fd);
            int status = -1;
            EXPECT_EQ(wait(child, &status), child);
            return exitCode(status) - '0';
          }};
}

ChildWait waitsById(const std::string& name, std::function<std::pair<idtype_t, int>(pid_t)> of) {
  return {name, [of](int fd) {
            const pid_t child = childThatReads(fd);
            const auto [type, id] = of(child);
            siginfo_t info{};
            EXPECT_EQ(::waitid(type, static_cast<id_t>(id), &info, WEXITED), 0);
            EXPECT_EQ(info.si_pid, child);
            if (type == P_PIDFD) {
              EXPECT_EQ(::close(id), 0);
            }
            return info.si_status - '0';
          }};
}

std::vector<ChildWait> childWaits() {
  return {
      waits("waitpid", [](pid_t child, int* status) { return ::waitpid(child, status, 0); }),
      waits("waitpid_any", [](pid_t, int* status) { return ::waitpid(-1, status, 0); }),
      waits("waitpid_group", [](pid_t, int* status) { return ::waitpid(0, status, 0); }),
      waits("wait", [](pid_t, int* status) { return ::wait(status); }),
      waits("wait3", [](pid_t, int* status) { return ::wait3(status, 0, nullptr); }),
      waits("wait4", [](pid_t child, int* status) { return ::wait4(child, status, 0, nullptr); }),
      waits("underscore_wait", [](pid_t, int* status) { return __wait(status); }),
      waits("underscore_waitpid", [](pid_t child, int* status) { return __waitpid(child, status, 0); }),
      waitsById("waitid",
                [](pid_t child) {
                  return std::pair{P_PID, child};
                }),
      waitsById("waitid_any",
                [](pid_t) {
                  return std::pair{P_ALL, 0};
                }),
      waitsById("waitid_group",
                [](pid_t) {
                  return std::pair{P_PGID, ::getpgrp()};
                }),
      waitsById("waitid_descriptor",
                [](pid_t child) {
                  return std::pair{P_PIDFD, pidfdOf(child)};
                }),
      {"system", [](int fd) { return exitCode(std::system(commandThatReads(fd).c_str())); }},
      {"pclose", [](int fd) { return exitCode(::pclose(::popen(commandThatReads(fd).c_str(), "r"))); }},
  };
}

class ChildrenParking : public testing::TestWithParam<ChildWait> {};
INSTANTIATE_TEST_SUITE_P(Of, ChildrenParking, testing::ValuesIn(childWaits()), [](const auto& one) { return one.param.name; });

// Cause: the number stayed open until a helper came to close it, so a call that began before that waited for the child's bytes.
TEST(Pclose, ACallThatBeginsDuringItFindsTheNumberClosed) {
  const Pair gate = pipePair();
  FILE* const stream = ::popen(commandThatReads(gate.a).c_str(), "r");
  const int fd = ::fileno(stream);
  BusyHelper helper;
  inFiber([&] {
    helper.begin();
    const auto closer = std::make_shared<Fiber>([&] { EXPECT_EQ(exitCode(::pclose(stream)), 7); });
    IOManager::GetThis()->schedule(closer);
    untilParked(*closer);
    char byte;
    EXPECT_EQ(::read(fd, &byte, 1), -1);
    EXPECT_EQ(errno, EBADF);
    helper.release();
    EXPECT_EQ(::write(gate.b, "7\n", 2), 2);
    closer->join();
  });
}

TEST_P(ChildrenParking, LetsAnotherFiberOfTheOnlyWorkerRun) {
  const Pair pipe = pipePair();
  inFiber([&] {
    IOManager::GetThis()->schedule([fd = pipe.b] { EXPECT_EQ(::write(fd, "7\n", 2), 2); });
    errno = EDOM;
    EXPECT_EQ(GetParam().wait(pipe.a), 7);
    EXPECT_EQ(errno, EDOM);
  });
}

TEST_P(ChildrenParking, WithHooksOffBlocksTheOnlyWorker) {
  const Pair pipe = pipePair();
  std::atomic<bool> other_ran{false};
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { other_ran.store(true); });
    std::thread outside([&] { EXPECT_EQ(::write(pipe.b, "7\n", 2), 2); });
    EXPECT_EQ(GetParam().wait(pipe.a), 7);
    EXPECT_FALSE(other_ran.load());
    outside.join();
  });
}

/// Calls that wait for `child`, which does not end while they do, in all ways.
std::vector<std::function<int()>> waysToWaitFor(pid_t child) {
  return {
      [=] { return ::waitpid(child, nullptr, 0); },
      [=] { return ::waitpid(child, nullptr, WUNTRACED); },
      [=] { return ::wait(nullptr); },
      [=] { return ::waitid(P_PID, static_cast<id_t>(child), nullptr, WEXITED); },
      [=] { return ::waitid(P_ALL, 0, nullptr, WEXITED); },
  };
}

TEST(Children, ACancelEndsTheWaitAndLeavesTheChild) {
  const LeakCheck leaks;
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  for (const auto& wait : waysToWaitFor(child)) {
    inFiber([&] {
      const auto waiter = std::make_shared<Fiber>([&] {
        EXPECT_EQ(wait(), -1);
        EXPECT_EQ(errno, ECANCELED);
      });
      IOManager::GetThis()->schedule(waiter);
      untilParked(*waiter);
      waiter->cancel();
      waiter->join();
    });
  }
  tellToExit(pipe.b, 3);
  int status = -1;
  inFiber([&] { EXPECT_EQ(::waitpid(child, &status, 0), child); });
  EXPECT_EQ(exitCode(status), 3);
}

TEST(Children, ADeadlineEndsTheWaitButNotWhatIsThere) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  for (const auto& wait : waysToWaitFor(child)) {
    VirtualTime time;
    time.run([&] {
      withDeadline(Deadline::after(1min, time), [&] {
        EXPECT_EQ(wait(), -1);
        EXPECT_EQ(errno, ETIMEDOUT);
        EXPECT_EQ(wait(), -1) << "at once, so that a loop ends";
        EXPECT_EQ(errno, ETIMEDOUT);
      });
    });
    EXPECT_EQ(time.elapsed(), 1min);
  }
  tellToExit(pipe.b, 3);
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  VirtualTime time;
  time.run([&] { withDeadline(Deadline::after(0s, time), [&] { EXPECT_EQ(::waitpid(child, nullptr, 0), child); }); });
}

TEST(Children, ACancelDoesNotEndACommand) {
  const std::function<int(const std::string&)> ways[] = {
      [](const std::string& command) { return std::system(command.c_str()); },
      [](const std::string& command) { return ::pclose(::popen(command.c_str(), "r")); },
  };
  for (const auto& way : ways) {
    const Pair pipe = pipePair();
    inFiber([&] {
      const auto waiter = std::make_shared<Fiber>([&] { EXPECT_EQ(exitCode(way(commandThatReads(pipe.a))), 7); });
      IOManager::GetThis()->schedule(waiter);
      untilParked(*waiter);
      waiter->cancel();
      for (int i = 0; i < 3; ++i) Fiber::YieldToReady();
      EXPECT_EQ(stateOf(*waiter), FiberState::kParked);
      EXPECT_EQ(::write(pipe.b, "7\n", 2), 2);
      waiter->join();
    });
  }
}

TEST(Children, OneOfTwoFibersGetsTheChild) {
  const Pair pipe = pipePair();
  inFiber([&] {
    const pid_t child = childThatReads(pipe.a);
    int told = 0, not_told = 0;
    std::vector<Fiber::ptr> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.push_back(std::make_shared<Fiber>([&, i] {
        const pid_t result = i % 2 == 0 ? ::waitpid(child, nullptr, 0) : ::wait(nullptr);
        (result == child ? told : not_told) += 1;
        if (result == -1) {
          EXPECT_EQ(errno, ECHILD);
        }
      }));
      IOManager::GetThis()->schedule(waiters.back());
    }
    for (const auto& waiter : waiters) untilParked(*waiter);
    tellToExit(pipe.b, 0);
    for (const auto& waiter : waiters) waiter->join();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(not_told, 3);
  });
}

TEST(Children, AnotherThreadTakesTheChild) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  inFiber([&] {
    const auto waiter = std::make_shared<Fiber>([&] {
      EXPECT_EQ(::waitpid(child, nullptr, 0), -1);
      EXPECT_EQ(errno, ECHILD);
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    set_hook_enable(false);  // the only worker stays here, so the fiber cannot be faster
    std::thread([&] {
      tellToExit(pipe.b, 0);
      EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    }).join();
    set_hook_enable(true);
    waiter->join();
  });
}

// The kernel's wait goes on, too, and the number may be another file by then.
TEST(Children, ACloseOfTheDescriptorDoesNotEndTheWait) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  const int pidfd = pidfdOf(child);
  inFiber([&] {
    siginfo_t info{};
    const auto waiter =
        std::make_shared<Fiber>([&] { EXPECT_EQ(::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED), 0); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(::close(pidfd), 0);
    for (int i = 0; i < 3; ++i) Fiber::YieldToReady();
    EXPECT_EQ(stateOf(*waiter), FiberState::kParked);
    tellToExit(pipe.b, 3);
    waiter->join();
    EXPECT_EQ(info.si_pid, child);
  });
}

/// The numbers of this process that are pidfds.
std::vector<int> pidfds() {
  std::vector<int> found;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(one.path(), gone).string();
    if (target.find("pidfd") != std::string::npos) found.push_back(std::stoi(one.path().filename()));
  }
  return found;
}

TEST(Children, AProgramThatClosesAllItHasDoesNotCloseTheWaits) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  inFiber([&] {
    const auto waiter = std::make_shared<Fiber>([&] { EXPECT_EQ(::waitpid(child, nullptr, 0), child); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const std::vector<int> mine = pidfds();
    ASSERT_EQ(mine.size(), 1u);
    EXPECT_GE(mine[0], 64);
    EXPECT_EQ(::fcntl(mine[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ(::close(mine[0]), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(::close_range(static_cast<unsigned>(mine[0]), static_cast<unsigned>(mine[0]), 0), 0);
    EXPECT_EQ(pidfds(), mine);
    tellToExit(pipe.b, 0);
    waiter->join();
    EXPECT_EQ(pidfds(), std::vector<int>{});
  });
}

/// Lets no descriptor be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &m_before), 0);
    const rlimit none{0, m_before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &m_before), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit m_before;
};

TEST(Children, AWaitNeedsNoDescriptor) {
  const Pair pipe = pipePair();
  inFiber([&] {
    const pid_t child = childThatReads(pipe.a), next = childThatReads(pipe.a);
    const int pidfd = pidfdOf(next);
    siginfo_t info{};
    IOManager& iom = *IOManager::GetThis();
    const auto first = std::make_shared<Fiber>([] {});
    iom.schedule(first);  // UBSan needs descriptors when it meets a class first
    first->join();
    {
      const NoDescriptors none;
      const auto waiter = std::make_shared<Fiber>([&] { EXPECT_EQ(::waitpid(child, nullptr, 0), child); });
      const auto other =
          std::make_shared<Fiber>([&] { EXPECT_EQ(::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED), 0); });
      iom.schedule(waiter);
      iom.schedule(other);
      untilParked(*waiter);
      untilParked(*other);
      tellToExit(pipe.b, 1);
      tellToExit(pipe.b, 1);
      waiter->join();
      other->join();
    }
    EXPECT_EQ(info.si_pid, next);
    EXPECT_EQ(::close(pidfd), 0);
  });
}

// A child that has ended is its tracer's before it is its parent's. Cause: the wait asked again and again without a pause.
TEST(Children, AChildThatAnotherProcessTracesIsWaitedForQuietly) {
  const Pair go = pipePair();
  const Pair said = pipePair();
  const Pair end = pipePair();
  inFiber([&] {
    const pid_t child = childThatReads(go.a);
    const pid_t tracer = startChild([&, child] {
      char byte = 't';
      if (::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) byte = 'f';
      if (::write(said.b, &byte, 1) != 1) return 1;
      return ::read(end.a, &byte, 1) == 1 ? 0 : 1;  // its end lets go of the child
    });
    char byte = 0;
    EXPECT_EQ(::read(said.a, &byte, 1), 1);
    if (byte != 't') {
      tellToExit(go.b, 0);
      tellToExit(end.b, 0);
      EXPECT_EQ(::waitpid(tracer, nullptr, 0), tracer);
      EXPECT_EQ(::waitpid(child, nullptr, 0), child);
      GTEST_SKIP() << "no process may trace another here";
    }
    const auto waiter = std::make_shared<Fiber>([&] { EXPECT_EQ(::waitpid(child, nullptr, 0), child); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const std::vector<int> mine = pidfds();
    ASSERT_EQ(mine.size(), 1u);
    tellToExit(go.b, 0);
    while (sys::pollNow(mine[0], POLLIN) == 0) ::usleep(1000);
    untilPolled();         // it has been told, asked, and
    untilParked(*waiter);  // waits again
    EXPECT_EQ(sys::pollNow(mine[0], POLLIN), POLLIN);
    tellToExit(end.b, 0);
    EXPECT_EQ(::waitpid(tracer, nullptr, 0), tracer);
    waiter->join();
  });
}

TEST(Children, AskingWithoutWaitingNeverSuspendsButCounts) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  const pid_t ended = startChild([] { return 0; });
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  inFiber([&] {
    bool other_ran = false;
    IOManager::GetThis()->schedule([&] { other_ran = true; });
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
      EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG), 0);
    }
    EXPECT_FALSE(other_ran);
    EXPECT_EQ(::waitpid(ended, nullptr, 0), ended);  // has its result at once
    EXPECT_TRUE(other_ran);
  });
  tellToExit(pipe.b, 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(Children, ManyThatHaveEndedLetOthersRun) {
  bool other_ran = false;
  inFiber([&] {
    for (int i = 0; i < 80; ++i) startChild([] { return 0; });
    siginfo_t info{};
    IOManager::GetThis()->schedule([&] { other_ran = true; });
    set_hook_enable(false);  // until one has ended
    for (int i = 0; i < 80; ++i) {
      EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
      set_hook_enable(true);
      EXPECT_GT(::wait(nullptr), 0);  // that one, or an older one that has ended since
      set_hook_enable(false);
    }
    EXPECT_TRUE(other_ran);
  });
}

TEST(Children, InAForkedChildTheWaitsAreLibcs) {
  inFiber([] {
    const pid_t child = startChild([] {
      int status = 0;
      const pid_t grandchild = startChild([] {
        ::usleep(1000);
        return 3;
      });
      if (::waitpid(grandchild, &status, 0) != grandchild || exitCode(status) != 3) return 1;
      if (exitCode(std::system("exit 4")) != 4) return 2;
      if (exitCode(::pclose(::popen("exit 5", "r"))) != 5) return 3;
      return ::wait(nullptr) == -1 && errno == ECHILD ? 0 : 4;
    });
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(exitCode(status), 0);
  });
}

// wait4 is declared to throw nothing, and in C it is a cancellation point all the same.
TEST(Children, APlainThreadIsCancelledInEveryWait) {
  const Pair pipe = pipePair();
  const pid_t child = childThatReads(pipe.a);
  static pid_t s_child;
  s_child = child;
  using Wait = void* (*)(void*);
  const Wait waits[] = {
      [](void*) -> void* { return reinterpret_cast<void*>(long{::waitpid(s_child, nullptr, 0)}); },
      [](void*) -> void* { return reinterpret_cast<void*>(long{::wait(nullptr)}); },
      [](void*) -> void* { return reinterpret_cast<void*>(long{::wait4(s_child, nullptr, 0, nullptr)}); },
      [](void*) -> void* { return reinterpret_cast<void*>(long{::wait3(nullptr, 0, nullptr)}); },
      [](void*) -> void* { return reinterpret_cast<void*>(long{::waitid(P_ALL, 0, nullptr, WEXITED)}); },
  };
  for (const Wait wait : waits) {
    pthread_t thread;
    ASSERT_EQ(::pthread_create(&thread, nullptr, wait, nullptr), 0);
    EXPECT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    EXPECT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
  tellToExit(pipe.b, 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace sylar::test
