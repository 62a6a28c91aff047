// fork and similar calls, seen from both sides: descriptors that two processes have, and a child that is left with one fiber.
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <semaphore>
#include <stdexcept>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/park.h"
#include "tests/hook/support.h"

extern char** environ;

namespace sylar::test {
namespace {

/// Waits for a child without blocking the worker.
/// A child that hangs is killed, and the test sees it.
int exitOfOrKilled(const std::function<int()>& in_child) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(in_child());
  }
  return exitOf(child);
}

int spawnTrue(decltype(&::posix_spawn) spawn) {
  char name[] = "true";
  char* const arguments[] = {name, nullptr};
  pid_t child = -1;
  EXPECT_EQ(spawn(&child, spawn == &::posix_spawnp ? "true" : "/bin/true", nullptr, nullptr, arguments, environ), 0);
  return exitOf(child);
}

// FM-22: two processes may set flags and timeouts of what both have: from then on this one asks the kernel.
TEST(Fork, SharesWhatIsOpen) {
  const std::function<int()> ways[] = {
      [] { return exitOfOrKilled([] { return 0; }); },
      [] {
        const pid_t child = ::vfork();
        if (child == 0) ::_exit(0);
        return exitOf(child);
      },
      [] { return spawnTrue(&::posix_spawn); },
      [] { return spawnTrue(&::posix_spawnp); },
      [] { return ::pclose(::popen("true", "r")); },
      [] { return std::system("true"); },
  };
  for (const auto& way : ways) {
    const Pair pair = unixPair();
    const Entry& entry = *FdTable::find(pair.a);
    ASSERT_TRUE(entry.isPrivate());
    EXPECT_EQ(way(), 0);
    EXPECT_FALSE(entry.isPrivate());
    EXPECT_EQ(entry.kind(), FdKind::kStream) << "what it is does not change";
    const Pair later = unixPair();
    EXPECT_TRUE(FdTable::find(later.a)->isPrivate());
  }
}

// HA-7: what the child sets holds for the parent's calls, as it does without us.
TEST(Fork, AFlagThatTheChildSetsHoldsInTheParent) {
  const Pair pair = unixPair();
  inFiber([&] {
    EXPECT_EQ(exitOfOrKilled([&] { return ::fcntl(pair.a, F_SETFL, O_NONBLOCK); }), 0);
    char byte;
    EXPECT_EQ(::read(pair.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(exitOfOrKilled([&] { return ::fcntl(pair.a, F_SETFL, 0); }), 0);
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
  });
}

// FM-15, FM-21: the child's duplicate keeps the kernel's registration alive when we close ours, which must disturb nobody.
TEST(Fork, ACloseInTheParentEndsItsWaitsWhileTheChildKeepsTheFile) {
  const Pair go = pipePair();
  const Ends old = makeUnix(hookedCalls(), SOCK_STREAM);
  inFiber([&] {
    const auto waiter = std::make_shared<Fiber>([&] {
      char byte;
      EXPECT_EQ(::read(old[0], &byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
    IOManager::GetThis()->schedule(waiter);
    while (stateOf(*waiter) != FiberState::kParked) Fiber::YieldToReady();
    const pid_t child = ::fork();
    if (child == 0) {
      char byte;
      ::alarm(30);
      const bool told = ::read(go.a, &byte, 1) == 1;
      ::_exit(told && ::write(old[1], "late", 4) == 4 && ::read(old[0], &byte, 1) == 1 && byte == 'l' ? 0 : 1);
    }
    EXPECT_EQ(::close(old[0]), 0);
    waiter->join();
    const Pair next = unixPair();  // has the number
    EXPECT_EQ(next.a, old[0]);
    EXPECT_EQ(::write(go.b, "g", 1), 1);
    EXPECT_EQ(exitOf(child), 0);  // its bytes were events of the old file
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(next.b, "x", 1), 1); });
    char byte = 0;
    EXPECT_EQ(::read(next.a, &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(::close(old[1]), 0);
  });
}

std::atomic<pid_t> g_forked{0};

// FM-21. Cause: the child went back to the loop that the handler had interrupted, and took events from the parent's epoll.
TEST(Fork, InAHandlerThatInterruptsTheLoopEndsTheChild) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "ThreadSanitizer may keep the signal back while the loop sleeps";
#endif
  constexpr int kBytes = 200;
  struct sigaction action {
  }, before{};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) {
    const pid_t child = ::fork();
    if (child == 0) ::alarm(30);
    g_forked.store(child);
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const Pair pipe = pipePair();
  IOManager iom(1, false, "forks");
  std::atomic<pid_t> worker{0};
  const auto reader = std::make_shared<Fiber>([&] {
    worker.store(threadId());
    char byte;
    for (int i = 0; i < kBytes; ++i) EXPECT_EQ(::read(pipe.a, &byte, 1), 1);
  });
  const auto untilItReads = [&] {
    while (stateOf(*reader) != FiberState::kParked) std::this_thread::yield();
  };
  iom.schedule(reader);
  untilItReads();
  sys::call(SYS_tgkill, ::getpid(), worker.load(), SIGUSR1);
  while (g_forked.load() == 0) std::this_thread::yield();
  for (int i = 0; i < kBytes; ++i) {
    untilItReads();
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  }
  reader->join();
  EXPECT_EQ(exitOf(g_forked.load()), 0);
  ::sigaction(SIGUSR1, &before, nullptr);
}

// A lock of the table that another thread holds at the fork would never be released in the child. No workers here, so the child
// is a process like any other.
TEST(Fork, FindsNoLockHeldInTheChild) {
  if (sys::hasWorkers()) GTEST_SKIP() << "run alone";
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!done.load()) {
        const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
        ::dup2(ends[0], ends[1]);
        for (const int fd : ends) ::close(fd);
      }
    });
  }
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    EXPECT_EQ(exitOfOrKilled([] {
                for (int fd = 3; fd < 20; ++fd) ::close(fd);
                const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
                return ::dup2(ends[0], ends[1]) == ends[1] && ::close(ends[0]) == 0 ? 0 : 1;
              }),
              0);
  }
  done.store(true);
  for (std::thread& thread : busy) thread.join();
}

// Cause: their workers had one wake-up descriptor, made with the scheduler, and one process read what was meant for the other.
// And the child's thread, which has another id, was not taken for the one that made the scheduler.
TEST(Fork, BothSidesStartASchedulerThatWasMadeBefore) {
  if (sys::hasWorkers()) GTEST_SKIP() << "run alone";
  Scheduler scheduler(2, true, "before");  // the calling thread and another one
  const Pair sides = unixPair();
  const auto works = [&](int other_side) {
    scheduler.start();
    char byte = 's';
    if (::write(other_side, &byte, 1) != 1 || ::read(other_side, &byte, 1) != 1) return 1;  // both have started
    for (int i = 0; i < 1000; ++i) {
      std::binary_semaphore ran{0};
      scheduler.schedule([&ran] { ran.release(); });
      if (!ran.try_acquire_for(std::chrono::seconds(20))) return 2;
    }
    bool here = false;
    scheduler.schedule([&here] { here = true; }, sys::threadId());
    scheduler.stop();
    return here ? 0 : 3;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(works(sides.b));
  }
  EXPECT_EQ(works(sides.a), 0);
  EXPECT_EQ(exitOf(child), 0);
}

// It would not see what the parent's threads held, and its first fiber would end the process.
TEST(Fork, NoSchedulerStartsInTheChildOfAProcessThatHasRunOne) {
  inFiber([] {});
  const std::function<void()> starts[] = {
      [] { const IOManager iom(1, false, "child"); },
      [] { Scheduler(1, false, "child").start(); },
  };
  for (const auto& start : starts) {
    EXPECT_EQ(exitOfOrKilled([&start] {
                try {
                  start();
                } catch (const std::logic_error&) {
                  return 7;
                }
                return 0;
              }),
              7);
  }
  EXPECT_EQ(exitOfOrKilled([] {
              Scheduler scheduler(1, false, "child");
              const bool refused = !scheduler.trySchedule([] {});
              scheduler.stop();
              return refused ? 7 : 0;
            }),
            7);
}

// The child of a fiber may let go of its parent's scheduler: from then on its fiber is a plain thread's, which has none.
// Cause: what the worker had of the scheduler was read after it had been freed.
TEST(Fork, AChildThatDestroysItsParentsSchedulerHasNone) {
  auto iom = std::make_unique<IOManager>(1, false, "parent");
  int status = -1;
  iom->schedule([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      iom.reset();
      if (Scheduler::GetThis() != nullptr || IOManager::GetThis() != nullptr) ::_exit(1);
      try {
        const IOManager own(1, false, "child");
      } catch (const std::logic_error&) {
        ::_exit(Scheduler::GetThis() == nullptr ? 7 : 2);
      }
      ::_exit(3);
    }
    status = exitOf(child);
  });
  iom->stop();
  EXPECT_EQ(status, 7);
}

// FM-21: many forks of fibers while others wait, read, open and close.
TEST(Fork, ManyUnderLoad) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  constexpr int kForks = 50;
#else
  constexpr int kForks = 300;
#endif
  const LeakCheck leaks;
  std::atomic<bool> done{false};
  std::atomic<int> rounds{0};
  inFiber(
      [&] {
        for (int i = 0; i < 4; ++i) {
          IOManager::GetThis()->schedule([&] {
            do {
              const Pair pair = unixPair();
              IOManager::GetThis()->schedule([fd = pair.b] { EXPECT_EQ(::write(fd, "x", 1), 1); }, threadId());
              char byte;
              EXPECT_EQ(::read(pair.a, &byte, 1), 1);
              rounds.fetch_add(1);
            } while (!done.load());
          });
        }
        for (int i = 0; i < kForks && !testing::Test::HasFailure(); ++i) {
          EXPECT_EQ(exitOfOrKilled([] {
                      int fds[2];
                      char byte;
                      if (::pipe(fds) != 0 || ::write(fds[1], "c", 1) != 1) return 1;
                      return ::read(fds[0], &byte, 1) == 1 && ::close_range(3, ~0U, 0) == 0 ? 0 : 2;
                    }),
                    0);
        }
        done.store(true);
      },
      2);
  EXPECT_GT(rounds.load(), 0);
}

// The child is the forking fiber alone; where that ends, it ends.
TEST(Fork, TheChildEndsWithItsFiber) {
  const LeakCheck leaks;
  for (const bool throws : {false, true}) {
    std::atomic<pid_t> child{-1};
    bool other_ran = false;
    inFiber([&] {
      const pid_t parent = ::getpid();
      IOManager::GetThis()->schedule([&other_ran, parent] {
        EXPECT_EQ(::getpid(), parent);
        other_ran = true;
      });
      const pid_t forked = ::fork();
      if (forked == 0) {
        for (int i = 0; i < 3; ++i) Fiber::YieldToReady();  // nobody else runs here
        if (throws) throw 1;
        return;
      }
      child.store(forked);
      EXPECT_EQ(exitOf(forked), throws ? 1 : 0);
    });
    EXPECT_TRUE(other_ran);
    EXPECT_GT(child.load(), 0);
  }
}

// FM-21: a wait of the library's own blocks the child's only thread until its deadline.
TEST(Fork, AParkInTheChildBlocksTheThread) {
  inFiber([] {
    EXPECT_EQ(exitOfOrKilled([] {
                const auto begin = std::chrono::steady_clock::now();
                const WakeReason reason = parkUntil(Deadline::after(std::chrono::milliseconds(20), waitClock()));
                const auto took = std::chrono::steady_clock::now() - begin;
                return reason == WakeReason::kTimeout && took >= std::chrono::milliseconds(20) ? 0 : 1;
              }),
              0);
  });
}

}  // namespace
}  // namespace sylar::test
