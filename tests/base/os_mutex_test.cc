#include "sylar/base/os_mutex.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "sylar/base/memory.h"
#include "tests/support/thread_state.h"

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

// ---- Whoever holds a lock gets the processor of who waits for it, whatever their classes are. ---------------------------------

/// Sets the class of the calling thread; false: that is not permitted here.
bool enter(int policy, int priority) {
  const sched_param param{.sched_priority = priority};
  return ::pthread_setschedparam(::pthread_self(), policy, &param) == 0;
}

/// Both threads on one processor.
void stayOn(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

/// A holder in one class, a waiter in another, both on one processor. The waiter must be seen asleep, and get the lock after all.
/// False: such a class is not permitted here.
template <class Mutex>
bool waiterSleeps(int holders, int waiters, int waiters_priority) {
  Mutex mutex;
  const int cpu = ::sched_getcpu();
  std::atomic<bool> held{false}, refused{false}, seen_asleep{false}, got{false};
  std::atomic<pid_t> waiter_id{0};
  std::thread holder([&] {
    stayOn(cpu);
    if (holders != SCHED_OTHER && !enter(holders, 0)) refused = true;
    Lock lock(mutex);
    held = true;
    while (!seen_asleep && !refused) std::this_thread::yield();
  });
  std::thread waiter([&] {
    while (!held && !refused) std::this_thread::yield();
    stayOn(cpu);
    if (waiters != SCHED_OTHER && !enter(waiters, waiters_priority)) refused = true;
    waiter_id = static_cast<pid_t>(::gettid());
    Lock lock(mutex);
    got = true;
  });
  while (waiter_id == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!refused && !seen_asleep && std::chrono::steady_clock::now() < end) seen_asleep = test::stateOfThread(waiter_id) == 'S';
  EXPECT_TRUE(seen_asleep || refused) << "it wants the processor all the time";
  seen_asleep = true;
  holder.join();
  waiter.join();
  EXPECT_TRUE(got);
  return !refused;
}

TEST(LocksOfClasses, AWaiterSleeps) {
  EXPECT_TRUE(waiterSleeps<Spinlock>(SCHED_OTHER, SCHED_OTHER, 0));
  EXPECT_TRUE(waiterSleeps<OsMutex>(SCHED_OTHER, SCHED_OTHER, 0));
}

TEST(LocksOfClasses, AWaiterSleepsForAnIdleHolder) {
  EXPECT_TRUE(waiterSleeps<Spinlock>(SCHED_IDLE, SCHED_OTHER, 0));
  EXPECT_TRUE(waiterSleeps<OsMutex>(SCHED_IDLE, SCHED_OTHER, 0));
}

// That a waiter sleeps in any class follows from AWaiterSleeps, where this is not permitted.
TEST(LocksOfClasses, ARealTimeWaiterSleepsForANormalHolder) {
  if (!waiterSleeps<Spinlock>(SCHED_OTHER, SCHED_FIFO, 1)) GTEST_SKIP() << "no SCHED_FIFO here";
  EXPECT_TRUE(waiterSleeps<OsMutex>(SCHED_OTHER, SCHED_FIFO, 1));
}

}  // namespace
}  // namespace sylar
