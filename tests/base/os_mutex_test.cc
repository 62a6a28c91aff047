#include "sylar/base/os_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>

#include "sylar/base/memory.h"

namespace sylar {
namespace {

static_assert(sizeof(OsMutex) == 4 && std::is_trivially_destructible_v<OsMutex>);
static_assert(std::is_same_v<StdMemory::Mutex, OsMutex> && std::is_same_v<StdMemory::Spinlock, Spinlock>);

constinit OsMutex g_mutex;

/// One attempt, undone if it succeeds.
template <class Mutex>
bool canLock(Mutex& mutex) {
  if (!mutex.tryLock()) return false;
  mutex.unlock();
  return true;
}

template <class Mutex>
bool canLockElsewhere(Mutex& mutex) {
  bool locked = false;
  std::thread([&] { locked = canLock(mutex); }).join();
  return locked;
}

template <class Mutex>
class AnyMutex : public testing::Test {};
using Mutexes = testing::Types<OsMutex, Spinlock>;
TYPED_TEST_SUITE(AnyMutex, Mutexes);

TYPED_TEST(AnyMutex, LockExcludesOtherThreads) {
  TypeParam mutex;
  mutex.lock();
  EXPECT_FALSE(canLockElsewhere(mutex));
  mutex.unlock();
  EXPECT_TRUE(canLockElsewhere(mutex));
}

TYPED_TEST(AnyMutex, TryLockOfAHeldLockFails) {
  TypeParam mutex;
  EXPECT_TRUE(canLock(mutex));
  mutex.lock();
  EXPECT_FALSE(canLock(mutex));
  mutex.unlock();
}

TYPED_TEST(AnyMutex, ScopedLockReleasesAtTheEndOrEarly) {
  TypeParam mutex;
  {
    Lock lock(mutex);
    EXPECT_FALSE(canLockElsewhere(mutex));
  }
  EXPECT_TRUE(canLock(mutex));
  Lock lock(mutex);
  lock.unlock();
  EXPECT_TRUE(canLock(mutex));
}

TEST(OsMutex, KnowsItsOwner) {
  EXPECT_FALSE(g_mutex.heldByThisThread());
  g_mutex.lock();
  EXPECT_TRUE(g_mutex.heldByThisThread());
  bool held_elsewhere = true;
  std::thread([&] { held_elsewhere = g_mutex.heldByThisThread(); }).join();
  EXPECT_FALSE(held_elsewhere);
  g_mutex.unlock();
  EXPECT_FALSE(g_mutex.heldByThisThread());
}

TEST(OsMutex, OwnerIsKnownWhileOthersWait) {
  OsMutex mutex;
  mutex.lock();
  std::atomic<bool> started{false};
  std::thread waiter([&] {
    started = true;
    Lock lock(mutex);
  });
  while (!started) std::this_thread::yield();
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_TRUE(mutex.heldByThisThread());
    std::this_thread::yield();
  }
  mutex.unlock();
  waiter.join();
}

TEST(OsMutexDeathTest, LockingTwiceOnOneThreadAborts) {
  auto lockTwice = []() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    OsMutex mutex;
    mutex.lock();
    mutex.lock();
  };
  EXPECT_DEATH(lockTwice(), "check failed");
}

}  // namespace
}  // namespace sylar
