#include "sylar/sync/condition_variable.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "tests/support/fibers.h"
#include "tests/sync/error_of.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class ConditionVariableTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, ConditionVariableTest, test::kWorkerCounts);

TEST_P(ConditionVariableTest, WaitersAreWokenInTheOrderOfTheirArrival) {
  Mutex mutex;
  ConditionVariable changed;
  std::vector<int> order;
  IOManager iom(workers(), false, "order");
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 20; ++i) {
    fibers.push_back(waiterOn(iom, [&, i] {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait(lock));
      EXPECT_TRUE(lock.owns_lock());
      order.push_back(i);
    }));
  }
  for (size_t i = 0; i < 10; ++i) {
    changed.notify_one();
    fibers[i]->join();
    const Mutex::Lock lock(mutex);
    ASSERT_EQ(order.size(), i + 1);
    EXPECT_EQ(order.back(), static_cast<int>(i));
  }
  changed.notify_all();
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  EXPECT_EQ(order.size(), 20u);
}

TEST_P(ConditionVariableTest, NobodyIsWokenByANotificationOfBefore) {
  Mutex mutex;
  ConditionVariable changed;
  changed.notify_one();
  changed.notify_all();
  test::inFiber(
      [&] {
        Mutex::Lock lock(mutex);
        EXPECT_FALSE(changed.wait(lock, Deadline::after(1ms)));
        EXPECT_FALSE(mutex.try_lock()) << "it is locked again";
      },
      workers());
}

TEST_P(ConditionVariableTest, APredicateSaysWhetherItIsDone) {
  Mutex mutex;
  ConditionVariable changed;
  int value = 0;
  IOManager iom(workers(), false, "predicate");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait(lock, [&] { return value == 2; }));
    EXPECT_FALSE(changed.wait(
        lock, [&] { return value == 3; }, Deadline::after(1ms)));
    EXPECT_TRUE(changed.wait(
        lock, [&] { return value == 2; }, Deadline::after(0ns)));
  });
  for (int i = 1; i <= 2; ++i) {
    const Mutex::Lock lock(mutex);
    value = i;
    changed.notify_all();
  }
  fiber->join();
}

TEST_P(ConditionVariableTest, ACancelEndsTheWaitWithTheLockHeld) {
  Mutex mutex;
  ConditionVariable changed;
  IOManager iom(workers(), false, "cancel");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    std::unique_lock lock(mutex);
    EXPECT_FALSE(changed.wait(lock, [] { return false; }));
    EXPECT_TRUE(lock.owns_lock());
  });
  fiber->cancel();
  fiber->join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// A guard that holds nothing is refused, as the standard's refuses to unlock. Nothing is kept locked by that.
TEST(ConditionVariable, ALockThatIsNotHeldIsRefused) {
  Mutex mutex;
  ConditionVariable changed;
  std::unique_lock lock(mutex, std::defer_lock);
  EXPECT_THROW(changed.wait(lock), std::system_error);
  Mutex::Lock own(mutex);
  own.unlock();
  EXPECT_EQ(test::errorOf([&] { changed.wait(own, Deadline::after(1ms)); }), EPERM);
  EXPECT_TRUE(mutex.try_lock()) << "it was not locked either";
  mutex.unlock();
  std::thread([&] { changed.notify_all(); }).join();
}

TEST(ConditionVariableDeathTest, AMutexThatIsNotHeldIsAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex mutex;
  ConditionVariable changed;
  EXPECT_DEATH(changed.wait(mutex), "thread [0-9]+ unlocks a sylar::Mutex that nobody holds");
  mutex.lock();
  EXPECT_DEATH(test::inFiber([&] { changed.wait(mutex); }), "fiber [0-9]+ unlocks a sylar::Mutex that thread [0-9]+ holds");
  mutex.unlock();
}

TEST_P(ConditionVariableTest, AFiberAndAThreadTakeTurns) {
  Mutex mutex;
  ConditionVariable changed;
  int turn = 0;
  const auto play = [&](int mine) {
    for (int i = 0; i < 500; ++i) {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait(lock, [&] { return turn % 2 == mine; }));
      ++turn;
      changed.notify_all();
    }
  };
  IOManager iom(workers(), false, "turns");
  iom.schedule([&] { play(0); });
  std::thread([&] { play(1); }).join();
  EXPECT_EQ(turn, 1'000);
}

}  // namespace
}  // namespace sylar
