#include "sylar/thread_mutex.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sylar {
namespace {

template <class M>
class Locks : public testing::Test {};
using Exclusive = testing::Types<ThreadMutex, CASLock, Spinlock>;
TYPED_TEST_SUITE(Locks, Exclusive);

TYPED_TEST(Locks, OneThreadAtATime) {
  TypeParam mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        typename TypeParam::Lock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

// Locks it if it can: then no guard held it.
template <class Guard, class M>
bool isFree(M& mutex) {
  std::atomic<bool> taken{false};
  std::thread other([&] {
    Guard guard(mutex);
    taken = true;
  });
  other.join();
  return taken;
}

TYPED_TEST(Locks, GuardMayBeUnlockedAndLockedAgainMoreThanOnce) {
  TypeParam mutex;
  typename TypeParam::Lock lock(mutex);
  lock.lock();
  lock.unlock();
  lock.unlock();
  EXPECT_TRUE(isFree<typename TypeParam::Lock>(mutex));
  lock.lock();
  lock.unlock();
  EXPECT_TRUE(isFree<typename TypeParam::Lock>(mutex));
}

TEST(RWMutexTest, ReadersShareAndAWriterIsAlone) {
  ThreadRWMutex mutex;
  {
    ThreadRWMutex::ReadLock one(mutex);
    EXPECT_TRUE(isFree<ThreadRWMutex::ReadLock>(mutex));
  }
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 5'000; ++n) {
        if (i < 2) {
          ThreadRWMutex::WriteLock lock(mutex);
          ++count;
          ++count;
        } else {
          ThreadRWMutex::ReadLock lock(mutex);
          EXPECT_EQ(count % 2, 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20'000);
}

TEST(NullLocks, TheirGuardsCanBeUsed) {
  NullMutex mutex;
  NullRWMutex rw_mutex;
  NullMutex::Lock lock(mutex), again(mutex);
  NullRWMutex::WriteLock writes(rw_mutex);
  NullRWMutex::ReadLock reads(rw_mutex);
  writes.unlock();
  writes.lock();
}

TEST(SemaphoreTest, CountsAndHandsOver) {
  ThreadSemaphore full(2), empty;
  full.wait();
  full.wait();
  int value = 0;
  std::thread other([&] {
    for (int i = 0; i < 1'000; ++i) {
      empty.wait();
      ++value;
      full.notify();
    }
  });
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(value, i);
    empty.notify();
    full.wait();
  }
  other.join();
}

// CD-S10
TEST(SemaphoreTest, SignalsDoNotEndAWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);  // without SA_RESTART
  ThreadSemaphore semaphore;
  std::atomic<bool> through{false};
  std::thread waiter([&] {
    semaphore.wait();
    through = true;
  });
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(::pthread_kill(waiter.native_handle(), SIGUSR1), 0);
    std::this_thread::yield();
  }
  EXPECT_FALSE(through);
  semaphore.notify();
  waiter.join();
  EXPECT_TRUE(through);
}

// Two threads take the same two mutexes in opposite orders.
TEST(ThreadMutex, SeveralCanBeTakenAtOnce) {
  ThreadMutex first, second;
  int count = 0;
  const auto work = [&count](ThreadMutex& a, ThreadMutex& b) {
    for (int n = 0; n < 10'000; ++n) {
      std::scoped_lock both(a, b);
      ++count;
    }
  };
  std::thread other(work, std::ref(second), std::ref(first));
  work(first, second);
  other.join();
  EXPECT_EQ(count, 20'000);
}

TEST(ThreadMutex, TryLockSaysWhetherItIsLockedNow) {
  ThreadMutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace sylar
