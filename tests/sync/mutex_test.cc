#include "sylar/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class MutexTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, MutexTest, test::kWorkerCounts);

/// Returns whether another thread could lock it now.
bool isFree(Mutex& mutex) {
  bool free = false;
  std::thread([&] {
    free = mutex.try_lock();
    if (free) mutex.unlock();
  }).join();
  return free;
}

TEST(Mutex, WorksWithEveryGuard) {
  Mutex first, second;
  {
    const std::scoped_lock both(first, second);
    EXPECT_FALSE(isFree(first));
    EXPECT_FALSE(isFree(second));
  }
  {
    std::unique_lock lock(first, std::try_to_lock);
    EXPECT_TRUE(lock.owns_lock());
    lock.unlock();
    EXPECT_TRUE(isFree(first));
  }
  {
    Mutex::Lock lock(first);
    EXPECT_FALSE(isFree(first));
    lock.unlock();
    EXPECT_TRUE(isFree(first));
    lock.lock();
    EXPECT_FALSE(isFree(first));
  }
  EXPECT_TRUE(isFree(first));
  EXPECT_TRUE(isFree(second));
}

// It is held over a call that suspends, and what else the worker has to do goes on.
TEST_P(MutexTest, AFiberThatWaitsDoesNotHoldItsWorkerUp) {
  Mutex mutex;
  int count = 0;
  IOManager iom(workers(), false, "lock");
  mutex.lock();
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 100; ++i) {
    fibers.push_back(waiterOn(iom, [&] {
      const std::lock_guard lock(mutex);
      const int seen = count;
      Fiber::YieldToReady();
      count = seen + 1;
    }));
  }
  mutex.unlock();
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  EXPECT_EQ(count, 100);
}

TEST_P(MutexTest, AHundredWaitersAreServedInTheOrderOfTheirArrival) {
  Mutex mutex;
  std::vector<int> order;
  {
    IOManager iom(workers(), false, "order");
    mutex.lock();
    for (int i = 0; i < 100; ++i) {
      waiterOn(iom, [&, i] {
        const Mutex::Lock lock(mutex);
        order.push_back(i);
      });
    }
    mutex.unlock();
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// An unlock that finds a waiter makes it the holder, before it runs.
TEST_P(MutexTest, NobodyOvertakesAWaiter) {
  Mutex mutex;
  IOManager iom(workers(), false, "fair");
  mutex.lock();
  std::atomic<bool> go_on{false};
  const Fiber::ptr waiter = waiterOn(iom, [&] {
    mutex.lock();
    while (!go_on) Fiber::YieldToReady();
    mutex.unlock();
  });
  mutex.unlock();
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.lock(Deadline::after(0ns)));
  go_on = true;
  waiter->join();
  EXPECT_TRUE(mutex.lock(Deadline::after(0ns)));
  mutex.unlock();
}

TEST_P(MutexTest, AWaitEndsAtItsDeadlineOrWhenCancelled) {
  Mutex mutex;
  const std::lock_guard held(mutex);
  IOManager iom(workers(), false, "end");
  const auto late = std::make_shared<Fiber>([&] { EXPECT_FALSE(mutex.lock(Deadline::after(1ms))); });
  iom.schedule(late);
  late->join();
  const Fiber::ptr cancelled = waiterOn(iom, [&] { EXPECT_FALSE(mutex.lock(Deadline::never())); });
  cancelled->cancel();
  cancelled->join();
}

// A guard cannot fail, so a cancelled fiber waits for its lock like any other.
TEST_P(MutexTest, WithoutADeadlineACancelDoesNotEndTheWait) {
  Mutex mutex;
  bool locked = false;
  IOManager iom(workers(), false, "cancel");
  mutex.lock();
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    const std::lock_guard lock(mutex);
    locked = this_fiber::cancelled();
  });
  fiber->cancel();
  const Fiber::ptr behind = waiterOn(iom, [&] { const std::lock_guard lock(mutex); });
  mutex.unlock();
  fiber->join();
  behind->join();
  EXPECT_TRUE(locked);
}

TEST_P(MutexTest, OneThatLeavesTheQueueDoesNotDisturbIt) {
  Mutex mutex;
  std::vector<int> order;
  IOManager iom(workers(), false, "leave");
  mutex.lock();
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(waiterOn(iom, [&, i] {
      if (!mutex.lock(Deadline::never())) return;
      order.push_back(i);
      mutex.unlock();
    }));
  }
  fibers[1]->cancel();
  fibers[1]->join();
  mutex.unlock();
  fibers[0]->join();
  fibers[2]->join();
  EXPECT_EQ(order, (std::vector<int>{0, 2}));
}

TEST_P(MutexTest, FibersOfTwoManagersAndThreadsExcludeOneAnother) {
  Mutex mutex;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 1'000; ++i) {
      const std::lock_guard lock(mutex);
      ++count;
    }
  };
  {
    IOManager one(workers(), false, "one"), two(1, false, "two");
    one.schedule(work);
    one.schedule(work);
    two.schedule(work);
    std::thread(work).join();
  }
  EXPECT_EQ(count, 4'000);
}

// A fiber that waits forever is abandoned by a stop with a deadline, and the mutex does not remember it.
TEST_P(MutexTest, AStopWithADeadlineAbandonsThoseWhoWait) {
  auto mutex = std::make_unique<Mutex>();
  IOManager iom(workers(), false, "stop");
  mutex->lock();
  const Fiber::ptr waiter = waiterOn(iom, [held = mutex.get()] { held->lock(); });
  const StopResult result = iom.stop(Deadline::after(1ms));
  leaks().excuseLateWorkersOf(iom);
  ASSERT_EQ(result.abandoned.size(), 1u);
  EXPECT_EQ(result.abandoned[0].id, waiter->getId());
  if (test::lateWorkersOf(iom) > 0) {
    [[maybe_unused]] static const Mutex* const s_kept = mutex.release();  // the late worker's fiber is about to wait once more
    return;
  }
  mutex->unlock();
  EXPECT_TRUE(mutex->try_lock());
}

TEST(MutexDeathTest, LockingTwiceNamesTheHolder) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex mutex;
  const auto lockTwice = [&] {
    Fiber::GetThis()->setName("greedy");
    mutex.lock();
    mutex.lock();
  };
  EXPECT_DEATH(test::inFiber(lockTwice), "fiber [0-9]+ greedy locks a sylar::Mutex that it holds already");
  EXPECT_DEATH(
      {
        mutex.lock();
        (void)mutex.lock(Deadline::after(1ms));
      },
      "thread [0-9]+ locks a sylar::Mutex that it holds already");
}

TEST(MutexDeathTest, UnlockingWhatAnotherHoldsNamesBoth) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex mutex;
  EXPECT_DEATH(mutex.unlock(), "thread [0-9]+ unlocks a sylar::Mutex that nobody holds");
  const auto steal = [&] {
    Fiber::GetThis()->setName("owner");
    mutex.lock();
    IOManager::GetThis()->schedule([&] {
      Fiber::GetThis()->setName("thief");
      mutex.unlock();
    });
    for (;;) Fiber::YieldToReady();
  };
  EXPECT_DEATH(test::inFiber(steal), "fiber [0-9]+ thief unlocks a sylar::Mutex that fiber [0-9]+ owner holds");
}

}  // namespace
}  // namespace sylar
