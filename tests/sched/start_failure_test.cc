// FM-35, FM-23: what is left of a start that fails. This program has its own pthread_create.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/scheduler.h"
#include "tests/support/fibers.h"

namespace {
std::atomic<int> g_allowed{1'000'000};
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (g_allowed.fetch_sub(1) <= 0) {
    for (int i = 0; i < 10; ++i) sched_yield();  // those that were made before may show what they do
    return EAGAIN;
  }
  return real(thread, attributes, start, argument);
}

namespace sylar {
namespace {

/// The n-th thread from now cannot be made.
struct FailingThread {
  explicit FailingThread(int n) { g_allowed = n; }
  ~FailingThread() { g_allowed = 1'000'000; }
};

class StartFailureTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, StartFailureTest, testing::Range(0, 4));

// The threads that were made before are joined, whatever they are about: asleep, or just falling asleep.
TEST_P(StartFailureTest, ASchedulerWhoseThreadCannotBeMadeLeavesNothing) {
  const test::LeakCheck leaks;
  for (int round = 0; round < 100; ++round) {
    const auto capture = std::make_shared<int>(0);
    {
      Scheduler scheduler(4, false, "fail");
      scheduler.schedule([capture] {});
      const FailingThread failing(GetParam());
      EXPECT_THROW(scheduler.start(), std::system_error);
      scheduler.stop();
    }
    EXPECT_EQ(capture.use_count(), 1);
  }
}

// Cause: the threads that had been made ran at once; a fiber that had begun was held when its worker ended, and a check failed.
TEST_P(StartFailureTest, NothingBeginsBeforeAllThreadsAreThere) {
  const test::LeakCheck leaks;
  for (int round = 0; round < 100; ++round) {
    const auto capture = std::make_shared<int>(0);
    std::atomic<int> begun{0};
    {
      Scheduler scheduler(4, false, "fail");
      for (int i = 0; i < 8; ++i) {
        scheduler.schedule([&begun, capture] {
          ++begun;
          Fiber::YieldToHold();
        });
      }
      const FailingThread failing(GetParam());
      EXPECT_THROW(scheduler.start(), std::system_error);
      EXPECT_EQ(capture.use_count(), 1) << "what was offered is destroyed";
      EXPECT_FALSE(scheduler.trySchedule([] {}));
    }
    EXPECT_EQ(begun, 0);
  }
}

TEST_P(StartFailureTest, AnIOManagerWhoseThreadCannotBeMadeLeavesNothing) {
  const test::LeakCheck leaks;
  for (int round = 0; round < 100; ++round) {
    const FailingThread failing(GetParam());
    EXPECT_THROW(IOManager(4, false, "fail"), std::system_error);
  }
}

// Cause: only the injector was looked through, and work for the calling thread waits in that one's mailbox.
TEST(StartFailure, WhatIsPinnedToTheCallerIsAbandoned) {
  Scheduler scheduler(2, true, "fail");
  const auto capture = std::make_shared<int>(0);
  const auto pinned = std::make_shared<Fiber>([capture] { FAIL(); });
  scheduler.schedule(pinned, sys::threadId());
  {
    const FailingThread failing(0);
    EXPECT_THROW(scheduler.start(), std::system_error);
  }
  EXPECT_EQ(capture.use_count(), 1);
  ASSERT_EQ(stateOf(*pinned), FiberState::kAbandoned);  // else join() would wait without end
  EXPECT_THROW(pinned->join(), std::runtime_error);
}

// Cause: it was dropped like work that had not begun: the function in which it was suspended was destroyed.
TEST(StartFailure, AFiberThatMovedToTheCallerKeepsTheFunctionThatItIsIn) {
  const auto capture = std::make_shared<int>(0);
  Fiber::ptr mover;
  {
    Scheduler scheduler(2, true, "fail");
    Scheduler other(1, false, "other");
    other.start();
    mover = std::make_shared<Fiber>([capture, &scheduler, caller = sys::threadId()] {
      (void)scheduler.switchTo(caller);
      FAIL();
    });
    other.schedule(mover);
    other.stop();  // it has gone for good
    const FailingThread failing(0);
    EXPECT_THROW(scheduler.start(), std::system_error);
  }
  EXPECT_EQ(stateOf(*mover), FiberState::kAbandoned);
  EXPECT_EQ(capture.use_count(), 2);
}

// Cause of the fallback: a destructor that stops cannot say that there is no thread to do it.
TEST(StartFailure, AFiberStopsAnotherSchedulerByItselfWithoutAThread) {
  const test::LeakCheck leaks;
  Scheduler scheduler(1, false, "stopping");
  scheduler.schedule([] {
    Scheduler other(2, false, "other");
    bool ran = false;
    other.start();
    other.schedule([&] { ran = true; });
    const FailingThread failing(0);
    other.stop();
    EXPECT_TRUE(ran);
  });
  scheduler.stop();
}

// Every descriptor of the start in turn is the one that cannot be had: epolls, wake-up descriptors, the timer's.
TEST(StartFailure, WithoutDescriptorsAnIOManagerCannotBeMadeAndLeavesNothing) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const test::LeakCheck leaks;
  // The limit is on the number itself; whoever started this program may have left it some high ones.
  const int first = dup(STDERR_FILENO);
  ASSERT_GE(first, 0);
  close(first);
  int failures = 0;
  for (rlim_t end = static_cast<rlim_t>(first); end < before.rlim_cur; ++end) {
    rlimit low = before;
    low.rlim_cur = end;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    bool made = true;
    try {
      IOManager iom(2, false, "fail");
      iom.schedule([] {});
    } catch (const std::system_error& error) {
      made = false;
      EXPECT_EQ(error.code().value(), EMFILE);
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (made) break;
    ++failures;
  }
  EXPECT_GE(failures, 1);
}

}  // namespace
}  // namespace sylar
