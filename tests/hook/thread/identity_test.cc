// SchedulerOptions::identity: to a library each fiber is a thread of its own.
#include "sylar/hook/thread/identity.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/borrowed_thread.h"
#include "sylar/fiber_local.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/sync/event.h"
#include "sylar/testing/virtual_time.h"
#include "sylar/thread.h"
#include "sylar/threads_are_fibers.h"
#include "sylar/util.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"

namespace sylar::test {
namespace {

SchedulerOptions own(size_t workers) {
  return {.threads = workers, .use_caller = false, .name = "own", .identity = FiberIdentity::kOwn};
}

class Identity : public OverWorkers {
 protected:
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  }
  void TearDown() override { BlockingPool::process().endAll(); }
  /// Runs `count` fibers that call `body(number)` beside one another.
  template <class Body>
  void runAll(int count, Body body) {
    IOManager iom(own(workers()));
    for (int i = 0; i < count; ++i) {
      iom.schedule([=] { body(i); });
    }
    iom.stop();
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, Identity, testing::Values(1, 2));

thread_local int t_value = 0;

/// Waits in all ways in which a fiber gives its worker to others.
void letOthersRun() {
  Fiber::YieldToReady();
  ::usleep(100);
}

// A library finds again behind each wait what it keeps for its thread.
TEST_P(Identity, ThreadLocalVariablesAreTheFibersWhileItRuns) {
  runAll(20, [](int i) {
    t_value = i;
    for (int round = 0; round < 3; ++round) {
      letOthersRun();
      EXPECT_EQ(t_value, i);
    }
  });
}

TEST_P(Identity, SelfIsTheSameBehindEachWaitAndAnotherInEachFiber) {
  std::mutex mutex;
  std::set<pthread_t> seen;
  std::atomic<int> here{0};
  runAll(10, [&](int) {
    const pthread_t self = ::pthread_self();
    {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(seen.insert(self).second);
    }
    ++here;
    while (here < 10) letOthersRun();
    EXPECT_NE(::pthread_equal(self, ::pthread_self()), 0);
  });
}

TEST_P(Identity, LibcsStateOfAThreadIsTheFibers) {
  const locale_t comma = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  ASSERT_NE(comma, nullptr);
  runAll(10, [comma](int i) {
    if (i % 2 == 0) ::uselocale(comma);
    sigset_t usr1, mask;
    ::sigemptyset(&usr1);
    ::sigaddset(&usr1, SIGUSR1);
    if (i % 3 == 0) ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    h_errno = i;
    errno = i;
    Fiber::YieldToReady();
    EXPECT_EQ(errno, i);
    ::usleep(100);
    EXPECT_EQ(h_errno, i);
    EXPECT_EQ(::uselocale(nullptr) == comma, i % 2 == 0);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(::sigismember(&mask, SIGUSR1), i % 3 == 0 ? 1 : 0);
  });
  ::freelocale(comma);
}

TEST_P(Identity, KeysAreTheFibers) {
  pthread_key_t key;
  ASSERT_EQ(::pthread_key_create(&key, nullptr), 0);
  runAll(10, [key](int i) {
    ::pthread_setspecific(key, reinterpret_cast<void*>(static_cast<intptr_t>(i) + 1));
    letOthersRun();
    EXPECT_EQ(::pthread_getspecific(key), reinterpret_cast<void*>(static_cast<intptr_t>(i) + 1));
  });
  ::pthread_key_delete(key);
}

// libc notes the writer by its thread's id.
TEST_P(Identity, ReadWriteLocksAreHandedOn) {
  std::shared_mutex mutex;
  int writes = 0;
  runAll(10, [&](int i) {
    for (int round = 0; round < 20; ++round) {
      if (i % 2 == 0) {
        const std::unique_lock lock(mutex);
        const int before = ++writes;
        letOthersRun();
        EXPECT_EQ(writes, before);
      } else {
        const std::shared_lock lock(mutex);
        letOthersRun();
      }
    }
  });
  EXPECT_EQ(writes, 100);
}

// Garbage collectors and checks of stack overflows rely on it.
TEST_P(Identity, TheBoundsOfTheStackAreTold) {
  runAll(5, [](int) {
    pthread_attr_t attributes;
    ASSERT_EQ(::pthread_getattr_np(::pthread_self(), &attributes), 0);
    void* base;
    size_t size;
    ::pthread_attr_getstack(&attributes, &base, &size);
    ::pthread_attr_destroy(&attributes);
    const char local = 0;
    EXPECT_GE(&local, static_cast<const char*>(base));
    EXPECT_LT(&local, static_cast<const char*>(base) + size);
    EXPECT_GE(size, size_t{128} << 10);
  });
}

// A pool of threads: what belongs to the task is set back, what a library keeps is not.
TEST_P(Identity, WhatATaskHasSetIsSetBackForTheNext) {
  if (workers() != 1) return;
  const locale_t other = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  IOManager iom(own(1));
  std::atomic<pthread_t> first{0};
  auto one = std::make_shared<Fiber>([&] {
    first = ::pthread_self();
    t_value = 77;
    ::uselocale(other);
    sigset_t usr1;
    ::sigemptyset(&usr1);
    ::sigaddset(&usr1, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    ::pthread_setname_np(::pthread_self(), "task");
  });
  iom.schedule(one);
  one->join();
  auto two = std::make_shared<Fiber>([&] {
    EXPECT_EQ(::pthread_self(), first);
    EXPECT_EQ(t_value, 77);
    EXPECT_EQ(::uselocale(nullptr), LC_GLOBAL_LOCALE);
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(::sigismember(&mask, SIGUSR1), 0);
    int state;
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
    char name[16];
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    EXPECT_STRNE(name, "task");
  });
  iom.schedule(two);
  two->join();
  iom.stop();
  ::freelocale(other);
}

TEST_P(Identity, ExceptionsReachTheJoinerAndAreTheFibersMeanwhile) {
  IOManager iom(own(workers()));
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 8; ++i) {
    fibers.push_back(std::make_shared<Fiber>([i] {
      try {
        throw std::runtime_error(std::to_string(i));
      } catch (const std::runtime_error& error) {
        letOthersRun();
        EXPECT_EQ(error.what(), std::to_string(i));
        letOthersRun();
        throw;
      }
    }));
    iom.schedule(fibers.back());
  }
  for (int i = 0; i < 8; ++i) {
    try {
      fibers[static_cast<size_t>(i)]->join();
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(i));
    }
  }
  iom.stop();
}

TEST_P(Identity, PthreadExitEndsTheFiber) {
  struct AtEnd {
    ~AtEnd() { ++count; }
    std::atomic<int>& count;
  };
  static FiberLocal<std::shared_ptr<AtEnd>> local;
  std::atomic<int> ended{0}, unwound{0};
  runAll(6, [&](int i) {
    const AtEnd at_end{unwound};
    letOthersRun();
    *local = std::shared_ptr<AtEnd>(new AtEnd{unwound});
    if (i % 2 == 0) ::pthread_exit(nullptr);
    ++ended;
  });
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(unwound, 12);
}

// Its stack is used again, so many leave no memory behind.
TEST_P(Identity, PthreadExitGivesTheStackBack) {
  const auto mapped = [] {
    std::ifstream pages("/proc/self/statm");
    size_t count = 0;
    pages >> count;
    return count * 4096;
  };
  const auto exitAll = [this] { runAll(50, [](int) { ::pthread_exit(nullptr); }); };
  exitAll();
  const size_t before = mapped();
  for (int i = 0; i < 20; ++i) exitAll();
  constexpr size_t kOfOneFiber = size_t{1} << 20;
  EXPECT_LT(mapped(), before + 300 * kOfOneFiber);
}

thread_local struct EndsWithItsThread {
  bool used = false;
  ~EndsWithItsThread() { s_ended += used; }
  static inline std::atomic<int> s_ended{0};
} t_ends;

// Many that have been needed once are not kept for ever, and the destructors of their variables run.
TEST_P(Identity, FreeThreadsThatNobodyNeedsEnd) {
  constexpr int kFibers = 2000;
  EndsWithItsThread::s_ended = 0;
  IOManager iom(own(workers()));
  Event gate;
  std::atomic<int> waiting{0};
  for (int i = 0; i < kFibers; ++i) {
    iom.schedule([&] {
      t_ends.used = true;
      ++waiting;
      EXPECT_TRUE(gate.wait());
    });
  }
  EXPECT_TRUE(eventually([&] { return waiting == kFibers; }));
  gate.set();
  const auto fewAreFree = [] {
    detail::endUnusedThreads();
    return detail::g_threads.count() <= detail::g_threads.kKept;
  };
  EXPECT_TRUE(eventually(fewAreFree));
  constexpr int kKept = static_cast<int>(detail::g_threads.kKept) + 2 * 64;
  EXPECT_TRUE(eventually([&] { return EndsWithItsThread::s_ended >= kFibers - kKept - 2 * 8; }));
  std::atomic<int> again{0};
  for (int i = 0; i < kFibers; ++i) iom.schedule([&] { ++again; });
  iom.stop();
  EXPECT_EQ(again, kFibers);
}

TEST_P(Identity, AMoveTakesTheThreadAlong) {
  IOManager a(own(workers())), b(own(workers()));
  auto fiber = std::make_shared<Fiber>([&] {
    const pthread_t self = ::pthread_self();
    t_value = 5;
    for (int i = 0; i < 50; ++i) {
      IOManager& to = i % 2 == 0 ? b : a;
      ASSERT_TRUE(to.switchTo());
      EXPECT_EQ(Scheduler::GetThis(), &to);
      EXPECT_NE(::pthread_equal(self, ::pthread_self()), 0);
      EXPECT_EQ(t_value, 5);
      ::usleep(10);
    }
  });
  a.schedule(fiber);
  fiber->join();
  a.stop();
  b.stop();
}

// One that is resumed by hand may outlive its resumer's function, and so has none of what that has borrowed.
TEST_P(Identity, AFiberThatIsResumedByHandRunsAsTheWorker) {
  runAll(8, [](int i) {
    t_value = 100 + i;
    const pthread_t self = ::pthread_self();
    std::vector<int> given;
    const auto generator = std::make_shared<Fiber>([&] {
      for (int n = 0; n < 3; ++n) {
        EXPECT_EQ(::pthread_equal(self, ::pthread_self()), 0);
        given.push_back(n);
        ::usleep(50);
        Fiber::YieldToHold();
      }
    });
    for (int n = 0; n < 4; ++n) {
      generator->resume();
      EXPECT_NE(::pthread_equal(self, ::pthread_self()), 0);
      EXPECT_EQ(t_value, 100 + i);
      EXPECT_EQ(Fiber::GetThis()->getId(), Fiber::GetFiberId());
      letOthersRun();
    }
    EXPECT_EQ(given, (std::vector<int>{0, 1, 2}));
  });
}

TEST_P(Identity, ACancelEndsAWait) {
  IOManager iom(own(workers()));
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 4; ++i) {
    fibers.push_back(std::make_shared<Fiber>([i] {
      t_value = i;
      errno = 0;
      EXPECT_NE(::sleep(1000), 0u);
      EXPECT_EQ(t_value, i);
    }));
    iom.schedule(fibers.back());
  }
  for (const Fiber::ptr& fiber : fibers) {
    fiber->cancel();
    fiber->join();
  }
  iom.stop();
}

TEST_P(Identity, AForkedChildGoesOnAsTheThread) {
  runAll(3, [](int i) {
    t_value = i;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(t_value == i && ::usleep(10) == 0 ? 40 + i : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 40 + i);
    EXPECT_EQ(t_value, i);
  });
}

// Destructors of thread_local variables run in exit(), as for the thread that calls it.
TEST_P(Identity, ExitInAFiberEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const size_t count = workers();
  EXPECT_EXIT(
      {
        IOManager iom(own(count));
        iom.schedule([] { ::exit(9); });
        iom.stop();
      },
      testing::ExitedWithCode(9), "");
}

// A fiber that is dropped while it is suspended leaves its thread behind, and nobody else gets it.
TEST_P(Identity, AFiberThatIsAbandonedKeepsItsThread) {
  IOManager iom(own(workers()));
  std::atomic<bool> holds{false};
  std::atomic<pthread_t> its_thread{0};
  auto held = std::make_shared<Fiber>([&] {
    its_thread = ::pthread_self();
    holds = true;
    Fiber::YieldToHold();
  });
  iom.schedule(held);
  while (!holds || held->getState() != Fiber::HOLD) ::sched_yield();
  held.reset();
  for (int i = 0; i < 20; ++i)
    iom.schedule([i, &its_thread] {
      t_value = i;
      EXPECT_NE(::pthread_self(), its_thread);
      letOthersRun();
      EXPECT_EQ(t_value, i);
    });
  iom.stop();
}

// The mask of the worker, to which its fibers come back, is the program's.
TEST_P(Identity, SignalsThatTheProgramBlocksStayBlocked) {
  sigset_t usr1, before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
  runAll(6, [](int) {
    const auto blocked = [] {
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      return ::sigismember(&mask, SIGUSR1) == 1;
    };
    EXPECT_TRUE(blocked());
    letOthersRun();
    EXPECT_TRUE(blocked());
    ::kill(::getpid(), SIGUSR1);  // would end the process where it is not blocked
    letOthersRun();
  });
  siginfo_t info;
  const timespec none{};
  EXPECT_EQ(::sigtimedwait(&usr1, &info, &none), SIGUSR1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_P(Identity, ToTheLibraryTheThreadIsTheWorker) {
  IOManager iom(own(workers()));
  auto fiber = std::make_shared<Fiber>([&] {
    const int worker = static_cast<int>(GetThreadId());
    EXPECT_NE(::gettid(), worker);
    auto there = std::make_shared<Fiber>([worker] { EXPECT_EQ(static_cast<int>(GetThreadId()), worker); });
    iom.schedule(there, worker);
    there->join();
  });
  iom.schedule(fiber);
  fiber->join();
  iom.stop();
}

// What the library keeps for a worker is one for all fibers of the worker, though each has a copy of each thread_local variable.
TEST_P(Identity, TheLibrarysVariablesAreTheWorkers) {
  if (workers() != 1) return;
  IOManager iom(own(1));
  std::vector<uint64_t> ids;
  std::set<std::string> names;
  std::set<Thread*> threads;
  for (int i = 0; i < 4; ++i) {
    iom.schedule([&] {
      for (int round = 0; round < 3; ++round) {
        ids.push_back(Fiber([] {}).getId());
        names.insert(Thread::GetName());
        threads.insert(Thread::GetThis());
        letOthersRun();
      }
    });
  }
  iom.stop();
  ASSERT_EQ(ids.size(), 12u);
  EXPECT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), 12u);
  EXPECT_EQ(ids.back() - ids.front(), 11u) << "the fibers take ids from blocks of their own";
  EXPECT_EQ(names, (std::set<std::string>{"own_0"}));
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads.count(nullptr), 0u);
}

TEST_P(Identity, AFiberThatIsResumedByHandMayHaveSeveralResumers) {
  if (workers() != 1) return;
  IOManager iom(own(1));
  std::vector<int> given;
  const auto generator = std::make_shared<Fiber>([&] {
    for (int n = 0; n < 4; ++n) {
      given.push_back(n);
      Fiber::YieldToHold();
    }
  });
  for (int i = 0; i < 5; ++i) iom.schedule([&] { generator->resume(); });
  iom.stop();
  EXPECT_EQ(given, (std::vector<int>{0, 1, 2, 3}));
}

// libc visits all threads, and its handler marks the worker's own record, also behind a move.
TEST_P(Identity, RightsAreChangedWhileFibersMove) {
  IOManager a(own(workers())), b(own(workers()));
  std::atomic<bool> end{false};
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 4; ++i) {
    fibers.push_back(std::make_shared<Fiber>([&] {
      for (bool in_a = true; !end; in_a = !in_a) {
        EXPECT_TRUE((in_a ? b : a).switchTo());
        for (int k = 0; k < 1000 && !end; ++k) (void)::pthread_self();
      }
    }));
    a.schedule(fibers.back());
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ(::setresgid(static_cast<gid_t>(-1), static_cast<gid_t>(-1), static_cast<gid_t>(-1)), 0);
  end = true;
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  a.stop();
  b.stop();
}

TEST_P(Identity, AForkedChildMayMakeThreadsAndEnd) {
  runAll(2, [](int) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 4; ++i) {
        pthread_t thread;
        const auto nothing = [](void*) -> void* { return nullptr; };
        if (::pthread_create(&thread, nullptr, nothing, nullptr) != 0 || ::pthread_join(thread, nullptr) != 0) ::_exit(1);
      }
      return;  // the child ends with its only fiber
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

// A handler of the process's signal may run under any thread pointer, and ends the wait that has lasted longest.
TEST_P(Identity, AHandlerEndsTheWaitOfAnotherFiber) {
  if (workers() != 1) return;
  const struct Posix {
    Posix() { setHookEintr(HookEintr::kPosix); }
    ~Posix() { setHookEintr(HookEintr::kRestart); }
  } posix;
  sigset_t usr1, before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, &old);
  IOManager iom(own(1));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  bool begun = false;
  auto waits = std::make_shared<Fiber>([&] {
    char byte;
    begun = true;  // from here on its next park is that of the read
    EXPECT_EQ(::read(ends[0], &byte, 1), -1);
    EXPECT_EQ(errno, EINTR);
  });
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);  // so that the worker gets it
  iom.schedule(waits);
  iom.schedule([&] {
    while (!begun || stateOf(*waits) != FiberState::kParked) Fiber::YieldToReady();
    ::kill(::getpid(), SIGUSR1);
  });
  waits->join();
  iom.stop();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::sigaction(SIGUSR1, &old, nullptr);
  for (const int fd : ends) ::close(fd);
}

TEST_P(Identity, ManyComeAndGo) {
  std::atomic<int> sum{0};
  runAll(2000, [&](int) {
    const int before = ++t_value;
    letOthersRun();
    EXPECT_EQ(t_value, before);
    ++sum;
  });
  EXPECT_EQ(sum, 2000);
}

/// A mark in each thread: of whom it is, and who borrows it.
struct Canary {
  pthread_t self = 0;
  int borrower = 0;
  int borrowed = 0;
};
thread_local Canary t_canary;

// Each thread has one borrower at a time, which finds it as the last one has left it, on whatever worker. SYLAR_BORROWINGS sets how
// often (scripts/nightly.sh).
TEST_P(Identity, AThreadHasOneBorrowerAtATime) {
  constexpr int kAtOnce = 100;
  const char* const set = std::getenv("SYLAR_BORROWINGS");
  const int rounds = (set != nullptr ? std::atoi(set) : 100'000) / kAtOnce;
  std::atomic<int> wrong{0};
  std::atomic<int> sum{0};
  IOManager iom(own(set != nullptr ? 4 : workers()));
  const auto borrow = [&](int number) {
    Canary& canary = t_canary;
    if (canary.self == 0) canary.self = ::pthread_self();
    wrong += canary.self != ::pthread_self() || canary.borrower != 0;
    canary.borrower = number;
    const int before = ++canary.borrowed;
    if (number % 3 == 0) Fiber::YieldToReady();
    if (number % 1000 == 0) iom.switchTo();
    wrong += &canary != &t_canary || canary.borrower != number || canary.borrowed != before;
    canary.borrower = 0;
    ++sum;
  };
  iom.schedule([&] {
    for (int round = 0; round < rounds; ++round) {
      std::vector<Fiber::ptr> fibers;
      for (int i = 0; i < kAtOnce; ++i) {
        fibers.push_back(std::make_shared<Fiber>([&borrow, number = round * kAtOnce + i + 1] { borrow(number); }));
        iom.schedule(fibers.back());
      }
      for (const Fiber::ptr& fiber : fibers) fiber->join();
    }
  });
  iom.stop();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(sum, rounds * kAtOnce);
}

// A fiber for which there is no thread yet is not pinned to its worker, which may be computing.
TEST_P(Identity, WhoWaitsForAThreadBeginsOnAnyIdleWorker) {
  if (workers() != 2) return;
  constexpr int kFibers = 40;
  constexpr size_t kOddSize = 512 * 1024;  // of which no thread is made ahead
  IOManager iom(own(2));
  std::atomic<int> ended{0};
  std::atomic<bool> all{false};
  iom.schedule([&] {
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule(std::make_shared<Fiber>(
          [&] {
            if (++ended == kFibers) all = true;
          },
          kOddSize));
    }
    while (!all) sys::sleepFor(1000);  // computes, as far as the worker can tell
  });
  iom.stop();
  EXPECT_EQ(ended, kFibers);
}

TEST_P(Identity, AStopEndsWhatWaitsForAThread) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    IOManager iom(own(workers()));
    for (int k = 0; k < 50; ++k) iom.schedule(std::make_shared<Fiber>([&] { ++ran; }, size_t{64 * 1024} << (k % 4)));
    if (i % 2 == 0) {
      iom.stop();
    } else {
      iom.stop(Deadline::after(std::chrono::milliseconds(0)));
    }
  }
  EXPECT_GE(ran, 10 * 50);
}

// Cause: the clock was not told when the last of those who had waited for a thread was counted out, though that may already sleep.
// On one processor the maker comes to it late.
TEST_P(Identity, VirtualTimeGoesOnBehindAWaitForAThread) {
  constexpr int kFibers = 100;
  constexpr size_t kOddSize = 512 * 1024;  // of which no thread is made ahead
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  VirtualTime time;
  SchedulerOptions options = own(workers());
  options.clock = &time;
  IOManager iom(options);
  std::atomic<int> awake{0};
  Event all;
  for (int i = 0; i < kFibers && awake == i; ++i) {
    iom.schedule(std::make_shared<Fiber>(
        [&] {
          ::sleep(1);
          ++awake;
          all.wait();  // keeps its thread
        },
        kOddSize));
    EXPECT_TRUE(eventually([&] { return awake == i + 1; }));
  }
  all.set();
  iom.stop();
  ::sched_setaffinity(0, sizeof before, &before);
}

TEST_P(Identity, DumpTellsTheThread) {
  IOManager iom(own(workers()));
  std::atomic<pid_t> id{0};
  auto fiber = std::make_shared<Fiber>([&] {
    id = ::gettid();
    Fiber::YieldToHold();
  });
  iom.schedule(fiber);
  EXPECT_TRUE(eventually([&] { return fiber->getState() == Fiber::HOLD; }));
  std::ostringstream out;
  iom.dump(out);
  EXPECT_NE(out.str().find("(thread " + std::to_string(id) + ")"), std::string::npos) << out.str();
  iom.schedule(fiber);
  iom.stop();
}

/// Lets the kernel refuse to tell where libc has the id of a thread, as some containers do. Source: seccomp(2).
void hideIdOfThreads() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_TID_ADDRESS, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  EXPECT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  EXPECT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(IdentityWithoutThreads, FibersRunAsTheirWorkerAndALineSaysSo) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    hideIdOfThreads();
    const pthread_t thread = ::pthread_self();
    bool same = false;
    IOManager iom(1, true, "one");
    iom.schedule([&] { same = ::pthread_equal(::pthread_self(), thread) != 0; });
    iom.stop();
    ::_exit(same ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "fibers cannot be threads here");
}

}  // namespace
}  // namespace sylar::test
