// pthread_kill and pthread_cancel of a thread that is a fiber, from wherever they are called. Source: pthread_kill(3), signal(7).
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "sylar/fiber.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "sylar/util.h"
#include "tests/hook/support.h"
#include "tests/support/thread_state.h"

namespace sylar::test {
namespace {

/// From where the signal is sent.
enum class From { kPlainThread, kFiber, kFiberOfAnotherScheduler, kTimer };

constexpr const char* kNamesOfFrom[] = {"PlainThread", "Fiber", "FiberOfAnotherScheduler", "Timer"};

std::atomic<pthread_t> g_taken_by{0};
std::atomic<int> g_taken{0};

sigset_t usr1Only() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  return set;
}

class SentSignals : public testing::TestWithParam<From> {
 protected:
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
    g_taken_by = 0;
    g_taken = 0;
    struct sigaction action {};
    action.sa_handler = [](int) {
      g_taken_by = ::pthread_self();
      g_taken.fetch_add(1);
    };
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &m_before), 0);
    setHookEintr(HookEintr::kPosix);
  }
  void TearDown() override {
    setHookEintr(HookEintr::kRestart);
    if (ThreadsAreFibers::supported()) ::sigaction(SIGUSR1, &m_before, nullptr);
    BlockingPool::process().endAll();
  }

  /// Runs `target` in a fiber, and `send(thread)` with its thread where the parameter says, once the fiber waits.
  static void run(const std::function<void()>& target, const std::function<void(pthread_t)>& send) {
    IOManager iom(SchedulerOptions{.threads = 1, .use_caller = false, .name = "target"});
    std::promise<pthread_t> self;
    const auto fiber = std::make_shared<Fiber>([&] {
      self.set_value(::pthread_self());
      target();
    });
    iom.schedule(fiber);
    const pthread_t thread = self.get_future().get();
    const auto sendOnceItWaits = [&] {
      while (stateOf(*fiber) != FiberState::kParked) ::usleep(100);
      send(thread);
    };
    switch (GetParam()) {
      case From::kPlainThread: sendOnceItWaits(); break;
      case From::kFiber: iom.schedule(sendOnceItWaits); break;
      case From::kTimer: iom.addTimer(1, sendOnceItWaits); break;
      case From::kFiberOfAnotherScheduler: {
        IOManager other(SchedulerOptions{.threads = 1, .use_caller = false, .name = "sender"});
        other.schedule(sendOnceItWaits);
        other.stop();
        break;
      }
    }
    fiber->join();
    iom.stop();
  }

 private:
  struct sigaction m_before {};
};
INSTANTIATE_TEST_SUITE_P(From, SentSignals,
                         testing::Values(From::kPlainThread, From::kFiber, From::kFiberOfAnotherScheduler, From::kTimer),
                         [](const auto& from) { return kNamesOfFrom[static_cast<int>(from.param)]; });

// Cause: outside fibers libc was asked, to which the kernel thread of such a thread is gone. The signal was lost.
TEST_P(SentSignals, AreHandledByTheThreadAndEndItsWait) {
  pthread_t target{};
  run(
      [&] {
        target = ::pthread_self();
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        char byte;
        EXPECT_EQ(::read(ends[0], &byte, 1), -1);
        EXPECT_EQ(errno, EINTR);
        for (const int fd : ends) ::close(fd);
      },
      [](pthread_t thread) { EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0); });
  EXPECT_EQ(g_taken, 1);
  EXPECT_EQ(g_taken_by, target);
}

TEST_P(SentSignals, AreTakenBySigwaitWhereOnlyTheThreadBlocksThem) {
  run(
      [] {
        const sigset_t usr1 = usr1Only();
        ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
        int taken = 0;
        EXPECT_EQ(::sigwait(&usr1, &taken), 0);
        EXPECT_EQ(taken, SIGUSR1);
      },
      [](pthread_t thread) { EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0); });
  EXPECT_EQ(g_taken, 0);
}

TEST_P(SentSignals, AreLetThroughByTheMaskOfAWait) {
  run(
      [] {
        const sigset_t usr1 = usr1Only();
        sigset_t before;
        ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
        EXPECT_EQ(::sigsuspend(&before), -1);
        EXPECT_EQ(errno, EINTR);
        EXPECT_EQ(g_taken, 1);
      },
      [](pthread_t thread) { EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0); });
  EXPECT_EQ(g_taken, 1);
}

// A call that holds the worker, because hooks are off, is interrupted. A fiber of the same worker cannot send meanwhile.
TEST_P(SentSignals, InterruptACallThatHoldsTheWorker) {
  if (GetParam() != From::kPlainThread) return;
  IOManager iom(1, false, "target");
  std::promise<void> begun;
  pthread_t thread{};
  pid_t worker = 0;
  iom.schedule([&] {
    set_hook_enable(false);
    thread = ::pthread_self();
    worker = static_cast<pid_t>(GetThreadId());
    begun.set_value();
    EXPECT_EQ(::pause(), -1);
    EXPECT_EQ(errno, EINTR);
  });
  begun.get_future().wait();
  ASSERT_TRUE(eventually([worker] { return sleepsInCall(worker); }));
  EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
  iom.stop();
  EXPECT_EQ(g_taken, 1);
  EXPECT_EQ(g_taken_by, thread);
}

// Cause: all signals of the set were made pending for the kernel, of which sigwait took one. The next fiber got the other.
TEST_P(SentSignals, AreTakenOneByOne) {
  run(
      [] {
        sigset_t both = usr1Only();
        ::sigaddset(&both, SIGUSR2);
        ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
        for (const int expected : {SIGUSR1, SIGUSR2}) {
          siginfo_t info{};
          EXPECT_EQ(::sigwaitinfo(&both, &info), expected);
          EXPECT_EQ(info.si_signo, expected);
          EXPECT_EQ(info.si_pid, ::getpid());
          ::usleep(100);  // SIGUSR2 would end the process here
        }
        const timespec none{};
        EXPECT_EQ(::sigtimedwait(&both, nullptr, &none), -1);
        EXPECT_EQ(errno, EAGAIN);
      },
      [](pthread_t thread) {
        EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
        EXPECT_EQ(::pthread_kill(thread, SIGUSR2), 0);
      });
}

// Cause: a wait looked at the kernel's signals alone before it suspended the fiber.
TEST_P(SentSignals, ThatCameBeforeEndTheWaitThatLetsThemThrough) {
  if (GetParam() != From::kPlainThread) return;
  IOManager iom(1, false, "target");
  iom.schedule([] {
    const sigset_t usr1 = usr1Only();
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
    constexpr timespec kNoTime{};
    const std::function<int()> waits[] = {
        [&] { return ::sigsuspend(&before); },
        [&] { return ::ppoll(nullptr, 0, nullptr, &before); },
        [&] { return ::pselect(0, nullptr, nullptr, nullptr, nullptr, &before); },
        [&] { return ::ppoll(nullptr, 0, &kNoTime, &before); },
    };
    int rounds = 0;
    for (const auto& wait : waits) {
      ::raise(SIGUSR1);
      EXPECT_EQ(g_taken, rounds);
      EXPECT_EQ(wait(), -1);
      EXPECT_EQ(errno, EINTR);
      EXPECT_EQ(g_taken, ++rounds);
    }
    ::raise(SIGUSR1);
    constexpr timespec kNone{};
    EXPECT_EQ(::sigtimedwait(&usr1, nullptr, &kNone), SIGUSR1);
  });
  iom.stop();
}

// Cause: the handler's return was told to the worker, and the wait of another fiber ended.
TEST_P(SentSignals, EndNoWaitOfAnotherFiber) {
  if (GetParam() != From::kPlainThread) return;
  IOManager iom(1, false, "target");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  iom.schedule([&] {
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  });
  iom.schedule([&] {
    const sigset_t usr1 = usr1Only();
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
    ::raise(SIGUSR1);
    EXPECT_EQ(::sigsuspend(&before), -1);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  });
  iom.stop();
  for (const int fd : ends) ::close(fd);
}

// A handler that sends the signal on to the thread that is to have it.
TEST_P(SentSignals, MayBeSentOnByAHandler) {
  static std::atomic<pthread_t> s_target{0};
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    if (::pthread_self() != s_target) {
      ::pthread_kill(s_target, signal);
    } else {
      g_taken.fetch_add(1);
    }
  };
  ::sigaction(SIGUSR1, &action, nullptr);
  run(
      [] {
        s_target = ::pthread_self();
        EXPECT_EQ(::pause(), -1);
        EXPECT_EQ(g_taken, 1);
      },
      [](pthread_t) { ::raise(SIGUSR1); });
}

TEST_P(SentSignals, StayPendingUntilTheThreadUnblocksThem) {
  std::atomic<bool> sent{false};
  run(
      [&] {
        const sigset_t usr1 = usr1Only();
        ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
        while (!sent) ::usleep(100);
        sigset_t pending;
        ::sigpending(&pending);
        EXPECT_EQ(::sigismember(&pending, SIGUSR1), 1);
        EXPECT_EQ(g_taken, 0);
        ::pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
        EXPECT_EQ(g_taken, 1);
      },
      [&](pthread_t thread) {
        EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
        sent = true;
      });
}

TEST_P(SentSignals, OfZeroOrAWrongNumberAreOnlyChecked) {
  std::atomic<bool> asked{false};
  run(
      [&] {
        while (!asked) ::usleep(100);
      },
      [&](pthread_t thread) {
        EXPECT_EQ(::pthread_kill(thread, 0), 0);
        EXPECT_EQ(::pthread_kill(thread, NSIG), EINVAL);
        asked = true;
      });
  EXPECT_EQ(g_taken, 0);
}

TEST_P(SentSignals, MayBeCancels) {
  run(
      [] {
        const struct Unwound {
          ~Unwound() { g_taken.fetch_add(1); }
        } unwound;
        for (;;) ::pause();
      },
      [](pthread_t thread) { EXPECT_EQ(::pthread_cancel(thread), 0); });
  EXPECT_EQ(g_taken, 1);
}

// Threads end while a plain thread sends to them. Each is joined when nobody sends to it any more, as POSIX asks.
TEST(SentSignalsRace, AThreadMayEndMeanwhile) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  constexpr int kRounds = 3000;
  const pthread_t over = ::pthread_self();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { g_taken.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<pthread_t> target{0};
  std::thread sender([&] {
    for (pthread_t thread = 0; thread != over; thread = target.load()) {
      if (thread == 0) continue;
      EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
      target = 0;
    }
  });
  IOManager iom(2, false, "targets");
  int rounds = 0;
  iom.schedule([&] {
    const ThreadsAreFibers threads_are_fibers;
    const auto ends = [](void*) -> void* {
      ::sched_yield();
      return nullptr;
    };
    for (pthread_t thread; rounds < kRounds && ::pthread_create(&thread, nullptr, ends, nullptr) == 0; ++rounds) {
      target = thread;
      while (target != 0) ::sched_yield();
      EXPECT_EQ(::pthread_join(thread, nullptr), 0);
    }
    target = over;
  });
  iom.stop();
  sender.join();
  EXPECT_EQ(rounds, kRounds);
  ::sigaction(SIGUSR1, &before, nullptr);
}

// The same with threads that go back to the pool, and serve others.
TEST(SentSignalsRace, AFiberMayEndMeanwhile) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  constexpr int kRounds = 20000;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { g_taken.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  IOManager iom(2, false, "targets");
  std::atomic<pthread_t> target{0};
  std::atomic<bool> over{false};
  std::thread sender([&] {
    while (!over) {
      const pthread_t thread = target;
      if (thread != 0) {
        EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
      }
    }
  });
  std::atomic<int> ended{0};
  iom.schedule([&] {
    for (int i = 0; i < kRounds; ++i) {
      iom.schedule([&] {
        target = ::pthread_self();
        Fiber::YieldToReady();
        ++ended;
      });
      if (i % 16 == 0) Fiber::YieldToReady();
    }
  });
  while (ended < kRounds) std::this_thread::yield();
  over = true;  // the threads of the pool last until the end of the scheduler, at least
  sender.join();
  iom.stop();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace sylar::test
