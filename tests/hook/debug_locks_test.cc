// A debug aid: fibers that are suspended while they hold a pthread mutex are reported.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/fibers.h"

namespace {
thread_local size_t t_allocations = 0;
}
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  ++t_allocations;
  return __libc_malloc(size);
}

namespace sylar {
namespace {

using namespace std::chrono_literals;

/// What `body`, in a fiber of a name on one worker, makes the library print.
std::string reportOf(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  {
    IOManager iom(1, false, "locks");
    const auto fiber = std::make_shared<Fiber>(body);
    fiber->setName("holder");
    iom.schedule(fiber);
    fiber->join();
  }
  return testing::internal::GetCapturedStderr();
}

size_t reportsIn(const std::string& text) {
  static const std::regex head("is suspended while it holds the mutex");
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), head), std::sregex_iterator()));
}

// Each has a place of its own, which is reported once in a process: so each test has its waits in its own code.

TEST(DebugLocks, SuspendedHolderIsReportedWithBothPlaces) {
  std::mutex mutex;
  const std::string report = reportOf([&] {
    const std::lock_guard lock(mutex);
    usleep(1);
  });
  const std::regex expected(
      "sylar: fiber [1-9][0-9]* \"holder\" is suspended while it holds the mutex 0x[0-9a-f]+, locked at\n"
      "([^\n]*\\[0x[0-9a-f]+\\]\n)+suspended at\n([^\n]*\\[0x[0-9a-f]+\\]\n)+");
  EXPECT_TRUE(std::regex_match(report, expected)) << report;
}

TEST(DebugLocks, PlaceIsReportedOnce) {
  std::mutex mutex;
  std::string report = reportOf([&] {
    for (int i = 0; i < 3; ++i) {
      const std::lock_guard lock(mutex);
      Fiber::YieldToReady();
    }
    for (int i = 0; i < 3; ++i) {  // another place
      const std::lock_guard lock(mutex);
      Fiber::YieldToReady();
    }
  });
  EXPECT_EQ(reportsIn(report), 2u) << report;
}

TEST(DebugLocks, WhatWasUnlockedBeforeIsNotReported) {
  std::mutex mutex;
  EXPECT_EQ(reportOf([&] {
              { const std::lock_guard lock(mutex); }
              usleep(1);
              Fiber::YieldToReady();
            }),
            "");
}

TEST(DebugLocks, EveryWayToLockCounts) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 60;
  const std::function<int()> ways[] = {
      [&] { return pthread_mutex_trylock(&mutex); },
      [&] { return pthread_mutex_timedlock(&mutex, &soon); },
      [&] { return pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &soon); },
  };
  const std::string report = reportOf([&] {
    for (const auto& way : ways) {
      ASSERT_EQ(way(), 0);
      Fiber::YieldToReady();
      pthread_mutex_unlock(&mutex);
      Fiber::YieldToReady();
    }
  });
  EXPECT_EQ(reportsIn(report), 3u) << report;
}

TEST(DebugLocks, FailedLockDoesNotCount) {
  std::mutex mutex;
  mutex.lock();  // on the thread's own stack: nobody's
  EXPECT_EQ(reportOf([&] {
              EXPECT_FALSE(mutex.try_lock());
              Fiber::YieldToReady();
            }),
            "");
  mutex.unlock();
}

TEST(DebugLocks, RecursiveMutexIsHeldUntilTheLastUnlock) {
  std::recursive_mutex mutex;
  const std::string report = reportOf([&] {
    mutex.lock();
    mutex.lock();
    mutex.unlock();
    Fiber::YieldToReady();
    mutex.unlock();
    Fiber::YieldToReady();
  });
  EXPECT_EQ(reportsIn(report), 1u) << report;
}

TEST(DebugLocks, UnlockByAnotherFiberEndsTheHold) {
  std::mutex mutex;
  const std::string report = reportOf([&] {
    mutex.lock();
    const auto other = std::make_shared<Fiber>([&] {
      mutex.unlock();
      Fiber::YieldToHold();
      mutex.lock();
      mutex.unlock();
    });
    other->resume();  // no suspension of this one
    Fiber::YieldToReady();
    other->resume();
    Fiber::YieldToReady();
  });
  EXPECT_EQ(reportsIn(report), 0u) << report;
}

TEST(DebugLocks, UnlockOutsideFibersEndsTheHold) {
  std::mutex mutex;
  const std::string report = reportOf([&] {
    mutex.lock();
    std::thread([&] { mutex.unlock(); }).join();
    Fiber::YieldToReady();
  });
  EXPECT_EQ(reportsIn(report), 0u) << report;
}

TEST(DebugLocks, HolderThatEndedLeavesNoBlameToLaterFibers) {
  std::mutex mutex;
  EXPECT_EQ(reportOf([&] { mutex.lock(); }), "");
  EXPECT_EQ(reportOf([&] { Fiber::YieldToReady(); }), "");
  mutex.unlock();
}

TEST(DebugLocks, NothingIsAllocated) {
  std::mutex mutex;
  size_t allocated = 1;
  reportOf([&] {
    const auto round = [&] {
      for (int i = 0; i < 3; ++i) {
        const std::lock_guard lock(mutex);
        Fiber::YieldToReady();
      }
    };
    round();
    const size_t before = t_allocations;
    round();
    allocated = t_allocations - before;
  });
  EXPECT_EQ(allocated, 0u);
}

}  // namespace
}  // namespace sylar
