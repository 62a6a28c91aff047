#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/future.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class RWMutexTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, RWMutexTest, test::kWorkerCounts);

TEST(RWMutex, ManyReadOrOneWrites) {
  RWMutex mutex;
  {
    const RWMutex::ReadLock one(mutex);
    const std::shared_lock two(mutex);
    EXPECT_TRUE(mutex.try_lock_shared());
    mutex.unlock_shared();
    EXPECT_FALSE(mutex.try_lock());
  }
  {
    const RWMutex::WriteLock lock(mutex);
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock());
  }
  const std::unique_lock lock(mutex, std::try_to_lock);
  EXPECT_TRUE(lock.owns_lock());
}

// A reader that comes behind a writer waits behind it, and readers that stand together go in together.
TEST_P(RWMutexTest, ReadersAndWritersFormOneQueue) {
  RWMutex mutex;
  std::atomic<int> readers{0};
  std::vector<int> writes;
  IOManager iom(workers(), false, "queue");
  const auto write = [&](int what) {
    return [&, what] {
      const RWMutex::WriteLock lock(mutex);
      EXPECT_EQ(readers % 3, 0);
      writes.push_back(what);
    };
  };
  const auto read = [&] {
    const RWMutex::ReadLock lock(mutex);
    ++readers;
    const int all_three = (readers + 2) / 3 * 3;
    while (readers < all_three) Fiber::YieldToReady();  // no end unless they are in together
  };
  mutex.rdlock();
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 2; ++i) {
    fibers.push_back(waiterOn(iom, write(i)));
    for (int k = 0; k < 3; ++k) fibers.push_back(waiterOn(iom, read));
  }
  EXPECT_FALSE(mutex.try_lock_shared());
  EXPECT_EQ(readers, 0);
  mutex.unlock();
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  EXPECT_EQ(readers, 6);
  EXPECT_EQ(writes, (std::vector<int>{0, 1}));
}

// A writer that gives up lets those in who waited behind it only.
TEST_P(RWMutexTest, AWriterThatLeavesLetsTheReadersBehindItIn) {
  RWMutex mutex;
  IOManager iom(workers(), false, "leave");
  mutex.rdlock();
  const Fiber::ptr writer = waiterOn(iom, [&] { EXPECT_FALSE(mutex.wrlock(Deadline::never())); });
  const Fiber::ptr reader = waiterOn(iom, [&] { const RWMutex::ReadLock lock(mutex); });
  writer->cancel();
  writer->join();
  reader->join();
  mutex.unlock();
}

TEST_P(RWMutexTest, AWaitEndsAtItsDeadline) {
  RWMutex mutex;
  const RWMutex::WriteLock held(mutex);
  test::inFiber(
      [&] {
        EXPECT_FALSE(mutex.rdlock(Deadline::after(1ms)));
        EXPECT_FALSE(mutex.wrlock(Deadline::after(1ms)));
      },
      workers());
}

TEST_P(RWMutexTest, WithoutADeadlineACancelDoesNotEndTheWait) {
  RWMutex mutex;
  IOManager iom(workers(), false, "cancel");
  mutex.wrlock();
  const Fiber::ptr reader = waiterOn(iom, [&] { const RWMutex::ReadLock lock(mutex); });
  const Fiber::ptr writer = waiterOn(iom, [&] { const RWMutex::WriteLock lock(mutex); });
  reader->cancel();
  writer->cancel();
  mutex.unlock();
  reader->join();
  writer->join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST_P(RWMutexTest, FibersAndThreadsExcludeOneAnother) {
  RWMutex mutex;
  int a = 0, b = 0;
  const auto work = [&] {
    for (int i = 0; i < 500; ++i) {
      {
        const RWMutex::WriteLock lock(mutex);
        ++a;
        ++b;
      }
      const RWMutex::ReadLock lock(mutex);
      EXPECT_EQ(a, b);
    }
  };
  {
    IOManager iom(workers(), false, "mixed");
    for (int i = 0; i < 4; ++i) iom.schedule(work);
    std::thread(work).join();
  }
  EXPECT_EQ(a, 2'500);
}

TEST(RWMutexDeathTest, WhatIsWrongIsNamed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  RWMutex mutex;
  EXPECT_DEATH(mutex.unlock(), "thread [0-9]+ unlocks a sylar::RWMutex that nobody holds");
  mutex.wrlock();
  EXPECT_DEATH(mutex.rdlock(), "thread [0-9]+ locks a sylar::RWMutex that it holds already");
  EXPECT_DEATH(mutex.wrlock(), "thread [0-9]+ locks a sylar::RWMutex that it holds already");
  EXPECT_DEATH(test::inFiber([&] { mutex.unlock(); }), "fiber [0-9]+ unlocks a sylar::RWMutex that thread [0-9]+ holds");
  mutex.unlock();
}

TEST(RWMutexDeathTest, WhatFibersReadIsKnown) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto upgrade = [] {
    RWMutex mutex;
    const RWMutex::ReadLock lock(mutex);
    (void)mutex.wrlock(Deadline::after(1ms));
  };
  EXPECT_DEATH(test::inFiber(upgrade), "fiber [0-9]+ locks for writing a sylar::RWMutex that it holds for reading");
  const auto unlockAnothers = [] {
    RWMutex mutex;
    const RWMutex::ReadLock lock(mutex);
    go([&] { mutex.unlock(); }).get();
  };
  EXPECT_DEATH(test::inFiber(unlockAnothers), "fiber [0-9]+ unlocks a sylar::RWMutex that others hold for reading");
}

// Some locks of a fiber that holds many are only counted.
TEST(RWMutex, AFiberMayReadMany) {
  test::inFiber([] {
    std::vector<RWMutex> many(10);
    for (RWMutex& one : many) one.rdlock();
    for (RWMutex& one : many) EXPECT_FALSE(one.try_lock());
    for (RWMutex& one : many) one.unlock();
    for (RWMutex& one : many) {
      EXPECT_TRUE(one.try_lock());
      one.unlock();
    }
  });
}

}  // namespace
}  // namespace sylar
