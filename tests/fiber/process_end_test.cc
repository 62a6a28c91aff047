// Fibers at the end of a process, at its forks, and under its signals.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/base/memory.h"
#include "sylar/base/sanitizers.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/iomanager.h"
#include "sylar/scheduler.h"
#include "tests/fiber/make.h"
#include "tests/support/coroutine.h"

namespace sylar {
namespace {

using test::byHand;

#ifdef SYLAR_ASAN
constexpr bool kLeaksAreJudged = true;
#else
constexpr bool kLeaksAreJudged = false;
#endif
constexpr const char* kWrongJudge =
    "LeakSanitizer looks at the stack that calls exit() only, and takes what others hold for leaked";

class ProcessEndDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }  // a new program: a mere fork of one with workers is no other
};

template <class Pool>
void inAWorker(std::function<void()> body) {
  Pool pool(2, false, "end");
  pool.schedule(std::move(body));
  pool.stop();
}

/// How `child` of this process ends, or 128 and a signal's number if by that. It has 30 s.
int endOfAFork(const std::function<void()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(30);
    child();
    ::_exit(1);
  }
  int status = -1;
  if (::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// FM-33: exit() works from any fiber.
TEST_F(ProcessEndDeathTest, ExitInAFiberEndsTheProcessWithItsCode) {
  if (kLeaksAreJudged) GTEST_SKIP() << kWrongJudge;
  for (const auto& run : {&byHand, &inAWorker<Scheduler>, &inAWorker<IOManager>}) {
    EXPECT_EXIT(run([] { std::exit(7); }), testing::ExitedWithCode(7), "^$");
    EXPECT_EXIT(run([] { byHand([] { std::exit(7); }); }), testing::ExitedWithCode(7), "^$");
#ifndef SYLAR_TSAN  // it takes another stack for deep calls
    EXPECT_EXIT(run([] { test::inCoroutine([] { std::exit(7); }); }), testing::ExitedWithCode(7), "^$");
#endif
  }
}

// FM-33
TEST_F(ProcessEndDeathTest, ExitInTheForkedChildOfAFiberEndsItWithItsCode) {
  if (kLeaksAreJudged) GTEST_SKIP() << kWrongJudge;
  for (const auto& run : {&byHand, &inAWorker<Scheduler>, &inAWorker<IOManager>}) {
    const auto forks = [&] { run([] { std::_Exit(endOfAFork([] { std::exit(7); })); }); };
    EXPECT_EXIT(forks(), testing::ExitedWithCode(7), "^$");
  }
}

/// More than a thread's first slab, so that threads meet at what they leave behind.
void takeAndGiveCores() {
  CorePool pool;
  pool.put(pool.take());
}

// FM-21: other threads count fibers, begin, and end, wherever they are at the fork.
TEST_F(ProcessEndDeathTest, ForkedChildUsesAndCountsFibersWhateverOtherThreadsDid) {
  const auto forks = [] {
    byHand([] {});  // the first fiber has the test below
    std::atomic<bool> end{false};
    const auto over_and_over = [&end](void (*what)()) {
      return std::thread([&end, what] {
        while (!end.load(std::memory_order_relaxed)) what();
      });
    };
    std::vector<std::thread> threads;
    threads.push_back(over_and_over([] { (void)Fiber::TotalFibers(); }));
    threads.push_back(over_and_over(&takeAndGiveCores));
    threads.push_back(over_and_over([] { std::thread([] { byHand([] {}); }).join(); }));
    int code = 7;
    for (int i = 0; i < 300 && code == 7; ++i) {
      code = endOfAFork([] {
        byHand([] {});
        std::_Exit(Fiber::TotalFibers() < 100 ? 7 : 2);
      });
    }
    end.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    std::_Exit(code);
  };
  EXPECT_EXIT(forks(), testing::ExitedWithCode(7), "^$");
}

// FM-21: another thread uses the first fiber of the process, at all moments around the fork.
TEST_F(ProcessEndDeathTest, ForkedChildUsesTheFirstFiberThoughAnotherThreadWasAboutTo) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "a fork does not follow the locks of the sanitizers, which have an allocator and a pthread_once of their own";
#endif
  const auto forks = [] {
    int code = 7;
    for (int i = 0; i < 300 && code == 7; ++i) {
      code = endOfAFork([i] {
        std::atomic<bool> begins{false};
        std::thread other([&begins] {
          begins.store(true, std::memory_order_release);
          byHand([] {});
        });
        while (!begins.load(std::memory_order_acquire)) StdMemory::relax();
        for (int spin = 0; spin < i * 4; ++spin) StdMemory::relax();
        const int inner = endOfAFork([] {
          byHand([] {});
          std::_Exit(7);
        });
        other.join();
        std::_Exit(inner);
      });
    }
    std::_Exit(code);
  };
  EXPECT_EXIT(forks(), testing::ExitedWithCode(7), "^$");
}

std::atomic<int> g_signals{0};

TEST_F(ProcessEndDeathTest, SignalHandlerMayCountFibersWhileItsThreadDoes) {
  const auto counts = [] {
    constexpr int kSignals = 1000;
    ::signal(SIGUSR1, [](int) {
      (void)Fiber::TotalFibers();
      g_signals.fetch_add(1);
    });
    std::thread counter([] {
      while (g_signals.load() < kSignals) (void)Fiber::TotalFibers();
    });
    for (int sent = 0; sent < kSignals; ++sent) {
      ::pthread_kill(counter.native_handle(), SIGUSR1);
      while (g_signals.load() == sent) std::this_thread::yield();
    }
    counter.join();
    std::_Exit(7);
  };
  EXPECT_EXIT(counts(), testing::ExitedWithCode(7), "^$");
}

TEST(FiberCount, IsExactWhenThreadsHaveEnded) {
  const uint64_t before = Fiber::TotalFibers();
  std::vector<Fiber::ptr> kept;
  for (int round = 0; round < 3; ++round) {  // later threads take over what earlier ones counted with
    std::vector<Fiber::ptr> made(8);
    std::vector<std::thread> threads;
    for (Fiber::ptr& fiber : made) {
      threads.emplace_back([&fiber] {
        byHand([] {});
        fiber = std::make_shared<Fiber>([] {});
        EXPECT_EQ(Fiber::GetThis()->getId(), 0u);  // the thread's own stack is counted, too, while the thread lives
      });
    }
    for (std::thread& thread : threads) thread.join();
    kept.insert(kept.end(), made.begin(), made.end());
    EXPECT_EQ(Fiber::TotalFibers(), before + kept.size());
  }
  std::thread([&kept] {
    byHand([] {});
    kept.clear();
  }).join();
  EXPECT_EQ(Fiber::TotalFibers(), before);
}

}  // namespace
}  // namespace sylar
