// HA-4: the locks of libc between fibers of one worker, of two, and with threads outside fibers: all who wait get on, and never two
// are inside. Each case hangs, or lets two in, where the hook is missing.
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "sylar/hook/lock/parking_lot.h"
#include "sylar/testing/virtual_time.h"
#include "sylar/thread.h"
#include "tests/hook/lock/lock_support.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"
#include "tests/support/sanitized.h"
#include "tests/sync/waiter.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

class Locks : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, Locks, testing::Values(1, 2));

/// Counts who is inside, and how many have been.
struct Inside {
  void visit() {
    EXPECT_EQ(now.fetch_add(1), 0);
    usleep(1);  // a fiber that merely yields goes on before those that have not begun
    EXPECT_EQ(now.fetch_sub(1), 1);
    ++visits;
  }
  std::atomic<int> now{0};
  int visits = 0;
};

/// A mutex of a type, and how it is locked and unlocked.
struct AnyMutex {
  explicit AnyMutex(int type, bool robust = false, bool shared = false) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    EXPECT_EQ(pthread_mutexattr_settype(&attributes, type), 0);
    if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (shared) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    EXPECT_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
  }
  ~AnyMutex() { EXPECT_EQ(pthread_mutex_destroy(&mutex), 0); }
  AnyMutex(const AnyMutex&) = delete;
  AnyMutex& operator=(const AnyMutex&) = delete;
  int lock() { return pthread_mutex_lock(&mutex); }
  int unlock() { return pthread_mutex_unlock(&mutex); }
  pthread_mutex_t mutex;
};

/// Expects that an unlock by one who does not own the mutex is refused. ThreadSanitizer takes it for an error of the program.
void expectRefused(AnyMutex& mutex) {
#ifndef SYLAR_TSAN
  EXPECT_EQ(mutex.unlock(), EPERM);
#else
  (void)mutex;
#endif
}

constexpr int kTypes[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};

TEST_P(Locks, AThousandFibersHoldAMutexOverASuspension) {
  for (const int type : kTypes) {
    AnyMutex mutex(type);
    Inside inside;
    IOManager iom(workers(), false, "locks");
    for (int i = 0; i < 1000; ++i) {
      iom.schedule([&] {
        EXPECT_EQ(mutex.lock(), 0);
        inside.visit();
        EXPECT_EQ(mutex.unlock(), 0);
      });
    }
    iom.stop();
    EXPECT_EQ(inside.visits, 1000);
  }
}

TEST_P(Locks, AMutexIsHeldOverASleepByAThousandFibers) {
  std::mutex mutex;
  Inside inside;
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < 1000; ++i) {
    iom.schedule([&] {
      const std::lock_guard lock(mutex);
      inside.visit();
    });
  }
  iom.stop();
  EXPECT_EQ(inside.visits, 1000);
}

TEST_P(Locks, FibersAndThreadsShareAMutex) {
  for (const int type : kTypes) {
    AnyMutex mutex(type);
    std::atomic<int> now{0};
    int visits = 0;
    const auto visit = [&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(mutex.lock(), 0);
        EXPECT_EQ(now.fetch_add(1), 0);
        if (!(Fiber::GetFiberId() == 0)) Fiber::YieldToReady();
        EXPECT_EQ(now.fetch_sub(1), 1);
        ++visits;
        EXPECT_EQ(mutex.unlock(), 0);
      }
    };
    std::vector<std::thread> threads;
    IOManager iom(workers(), false, "locks");
    for (int i = 0; i < 10; ++i) iom.schedule(visit);
    for (int i = 0; i < 2; ++i) threads.emplace_back(visit);
    for (std::thread& thread : threads) thread.join();
    iom.stop();
    EXPECT_EQ(visits, 1200);
  }
}

// The waiters get it in their order, so nobody starves.
TEST(LocksOfOneWorker, AMutexIsHandedOverInTheOrderOfArrival) {
  std::mutex mutex;
  std::vector<int> order;
  inFiber([&] {
    mutex.lock();
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < 100; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    mutex.unlock();
    mutex.lock();  // behind all of them
    order.push_back(100);
    mutex.unlock();
  });
  ASSERT_EQ(order.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// libc would let it in, as the same thread, and a wait would keep the owner from running.
TEST(LocksOfOneWorker, AFiberWithHooksOffIsToldThatItWouldWaitForOneOfItsThread) {
  IOManager iom({.threads = 1, .use_caller = false, .name = "locks", .identity = FiberIdentity::kWorker});
  iom.schedule([] {
    AnyMutex mutex(PTHREAD_MUTEX_RECURSIVE);
    EXPECT_EQ(mutex.lock(), 0);
    const auto other = std::make_shared<Fiber>([&] {
      set_hook_enable(false);
      EXPECT_EQ(mutex.lock(), EDEADLK);
    });
    IOManager::GetThis()->schedule(other);
    other->join();
    EXPECT_EQ(mutex.unlock(), 0);
    EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), 0);
    EXPECT_EQ(mutex.unlock(), 0);
  });
  iom.stop();
}

// libc unlocks the mutex during the wait, and another fiber may have it until libc locks it again.
TEST(LocksOfTwoWorkers, AFiberOwnsItsMutexAfterAWaitOfLibcs) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_cond_t told;
  pthread_cond_init(&told, &attributes);
  pthread_condattr_destroy(&attributes);
  AnyMutex mutex(PTHREAD_MUTEX_RECURSIVE);
  bool go = false;
  std::atomic<bool> waits{false};
  {
    IOManager iom(2, false, "locks");
    iom.schedule([&] {
      EXPECT_EQ(mutex.lock(), 0);
      waits = true;
      while (!go) EXPECT_EQ(pthread_cond_wait(&told, &mutex.mutex), 0);  // keeps this worker
      const auto other = std::make_shared<Fiber>([&] { EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), EBUSY); });
      IOManager::GetThis()->schedule(other, sys::threadId());
      other->join();
      EXPECT_EQ(mutex.unlock(), 0);
    });
    busyUntil([&] { return waits.load(); });
    iom.schedule([&] {
      EXPECT_EQ(mutex.lock(), 0);
      go = true;
      EXPECT_EQ(pthread_cond_signal(&told), 0);
      EXPECT_EQ(mutex.unlock(), 0);
    });
  }
  pthread_cond_destroy(&told);
}

TEST(LocksOfOneWorker, TheOwnerOfARecursiveMutexIsTheFiber) {
  inFiber([] {
    AnyMutex mutex(PTHREAD_MUTEX_RECURSIVE);
    EXPECT_EQ(mutex.lock(), 0);
    EXPECT_EQ(mutex.lock(), 0);
    EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), 0);
    int others = 0;
    const auto other = std::make_shared<Fiber>([&] {
      EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), EBUSY);
      expectRefused(mutex);
      EXPECT_EQ(mutex.lock(), 0);
      ++others;
      EXPECT_EQ(mutex.lock(), 0);
      EXPECT_EQ(mutex.unlock(), 0);
      EXPECT_EQ(mutex.unlock(), 0);
      expectRefused(mutex);
    });
    IOManager::GetThis()->schedule(other);
    untilParked(*other);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(others, 0);
      EXPECT_EQ(mutex.unlock(), 0);
    }
    expectRefused(mutex);
    // It was handed over: it is not this fiber's, although it is this thread's.
    EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), EBUSY);
    other->join();
    EXPECT_EQ(others, 1);
  });
}

TEST(LocksOfOneWorker, AnErrorCheckingMutexKnowsItsFiber) {
  inFiber([] {
    AnyMutex mutex(PTHREAD_MUTEX_ERRORCHECK);
    expectRefused(mutex);
    EXPECT_EQ(mutex.lock(), 0);
    EXPECT_EQ(mutex.lock(), EDEADLK);
    const timespec time = realTimeIn(1h);
    EXPECT_EQ(pthread_mutex_timedlock(&mutex.mutex, &time), EDEADLK);
    EXPECT_EQ(pthread_mutex_trylock(&mutex.mutex), EBUSY);
    const auto other = std::make_shared<Fiber>([&] {
      expectRefused(mutex);
      EXPECT_EQ(mutex.lock(), 0);
      EXPECT_EQ(mutex.unlock(), 0);
    });
    IOManager::GetThis()->schedule(other);
    untilParked(*other);
    EXPECT_EQ(mutex.unlock(), 0);
    other->join();
  });
}

// Of locks that others may release without a word, each is tried again from time to time.
TEST_P(Locks, RobustAndSharedMutexesAreFibersAsWell) {
  for (const bool robust : {false, true}) {
    AnyMutex mutex(PTHREAD_MUTEX_NORMAL, robust, !robust);
    Inside inside;
    IOManager iom(workers(), false, "locks");
    for (int i = 0; i < 20; ++i) {
      iom.schedule([&] {
        EXPECT_EQ(mutex.lock(), 0);
        inside.visit();
        EXPECT_EQ(mutex.unlock(), 0);
      });
    }
    iom.stop();
    EXPECT_EQ(inside.visits, 20);
  }
}

TEST(LocksOfOneWorker, AFiberLearnsThatTheOwnerOfARobustMutexHasDied) {
  AnyMutex mutex(PTHREAD_MUTEX_NORMAL, true);
  std::atomic<int> stage{0};
  std::thread owner([&] {
    EXPECT_EQ(mutex.lock(), 0);
    stage.store(1, std::memory_order_release);
    spinUntil(stage, 2);
  });
  spinUntil(stage, 1);
  IOManager iom(1, false, "locks");
  const Fiber::ptr waiter = waiterOn(iom, [&] {
    EXPECT_EQ(mutex.lock(), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_consistent(&mutex.mutex), 0);
    EXPECT_EQ(mutex.unlock(), 0);
  });
  stage.store(2, std::memory_order_release);
  owner.join();
  waiter->join();
}

TEST(LocksOfOneWorker, ATimedLockEndsAtItsTime) {
  inFiber([] {
    AnyMutex mutex(PTHREAD_MUTEX_NORMAL);
    EXPECT_EQ(mutex.lock(), 0);
    const auto other = std::make_shared<Fiber>([&] {
      timespec time = realTimeIn(2ms);
      EXPECT_EQ(pthread_mutex_timedlock(&mutex.mutex, &time), ETIMEDOUT);
      ::clock_gettime(CLOCK_MONOTONIC, &time);
      EXPECT_EQ(pthread_mutex_clocklock(&mutex.mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
      time.tv_nsec = 1'000'000'000;
      EXPECT_EQ(pthread_mutex_timedlock(&mutex.mutex, &time), EINVAL);
    });
    IOManager::GetThis()->schedule(other);
    other->join();
    EXPECT_EQ(mutex.unlock(), 0);
    const timespec time = realTimeIn(1h);
    EXPECT_EQ(pthread_mutex_timedlock(&mutex.mutex, &time), 0);
    EXPECT_EQ(mutex.unlock(), 0);
  });
}

// A cancelled fiber gets what is there. A plain lock waits nevertheless, because its callers cannot be told.
TEST(LocksOfOneWorker, ACancelEndsATimedLockOnly) {
  inFiber([] {
    std::timed_mutex mutex;
    mutex.lock();
    bool timed = true;
    const auto waiter = std::make_shared<Fiber>([&] {
      timed = mutex.try_lock_for(1h);
      mutex.lock();
      mutex.unlock();
      EXPECT_TRUE(mutex.try_lock_for(1h));
      mutex.unlock();
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    waiter->cancel();
    while (timed) Fiber::YieldToReady();
    untilParked(*waiter);
    mutex.unlock();
    waiter->join();
  });
}

TEST_P(Locks, ACondition) {
  std::mutex mutex;
  std::condition_variable condition;
  int turn = 0;
  IOManager iom(workers(), false, "locks");
  const auto play = [&](int me) {
    for (int i = 0; i < 200; ++i) {
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return turn % 3 == me; });
      ++turn;
      condition.notify_all();
    }
  };
  iom.schedule([&] { play(0); });
  iom.schedule([&] { play(1); });
  std::thread(play, 2).join();
  iom.stop();
  EXPECT_EQ(turn, 600);
}

TEST(LocksOfOneWorker, ASignalWakesTheOldestAndABroadcastAll) {
  inFiber([] {
    std::mutex mutex;
    std::condition_variable_any condition;
    std::condition_variable plain;
    std::vector<int> order;
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < 6; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] {
        std::unique_lock lock(mutex);
        plain.wait(lock);
        order.push_back(i);
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    plain.notify_one();
    fibers[0]->join();
    plain.notify_one();
    fibers[1]->join();
    EXPECT_EQ(order, (std::vector{0, 1}));
    plain.notify_all();
    for (const Fiber::ptr& fiber : fibers) fiber->join();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
  });
}

TEST(LocksOfOneWorker, ATimedConditionEndsAtItsTimeWithTheMutexLocked) {
  inFiber([] {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    AnyMutex mutex(PTHREAD_MUTEX_ERRORCHECK);
    timespec time = realTimeIn(1ms);
#ifndef SYLAR_TSAN
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex.mutex, &time), EPERM);
#endif
    EXPECT_EQ(mutex.lock(), 0);
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex.mutex, &time), ETIMEDOUT);
    EXPECT_EQ(mutex.lock(), EDEADLK);
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    EXPECT_EQ(pthread_cond_clockwait(&condition, &mutex.mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
    time.tv_nsec = -1;
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex.mutex, &time), EINVAL);
    EXPECT_EQ(mutex.unlock(), 0);
    EXPECT_EQ(pthread_cond_destroy(&condition), 0);
  });
}

// A cancel ends one wait, as if somebody had signalled, and no later one, which a loop around it would make without end.
TEST(LocksOfOneWorker, ACancelEndsOneWaitAtACondition) {
  inFiber([] {
    std::mutex mutex;
    std::condition_variable condition;
    int looks = 0;
    bool done = false;
    const auto waiter = std::make_shared<Fiber>([&] {
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] {
        ++looks;
        return done;
      });
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(looks, 1);
    waiter->cancel();
    while (looks == 1) Fiber::YieldToReady();
    for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
    EXPECT_EQ(looks, 2);
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    condition.notify_one();
    waiter->join();
    EXPECT_EQ(looks, 3);
  });
}

// FM-31: a thread is cancelled in its wait. It unlocks the mutex in its clean-up, so it must have it.
TEST(LocksOfThreads, AConditionIsACancellationPoint) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers do not follow a thread that is cancelled";
  struct Shared {
    AnyMutex mutex{PTHREAD_MUTEX_ERRORCHECK};
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    std::atomic<bool> waits{false};
    std::atomic<int> unlocked{-1};
  } shared;
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto& its = *static_cast<Shared*>(argument);
    its.mutex.lock();
    its.waits = true;
    pthread_cleanup_push(
        [](void* of) {
          auto& back = *static_cast<Shared*>(of);
          back.unlocked = back.mutex.unlock();
        },
        argument);
    for (;;) pthread_cond_wait(&its.condition, &its.mutex.mutex);
    pthread_cleanup_pop(0);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &shared), 0);
  spinUntil(shared.waits, true);
  busyUntil([&] { return ParkingLot::mayWait(&shared.condition); });
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(shared.unlocked.load(), 0);
  EXPECT_EQ(shared.mutex.lock(), 0);
  EXPECT_EQ(shared.mutex.unlock(), 0);
}

TEST_P(Locks, AReaderWriterLock) {
  std::shared_mutex lock;
  std::atomic<int> readers{0}, writers{0}, together{0};
  int visits = 0;
  const auto use = [&](bool writes) {
    for (int i = 0; i < 50; ++i) {
      if (writes) {
        const std::unique_lock guard(lock);
        EXPECT_EQ(writers.fetch_add(1), 0);
        EXPECT_EQ(readers.load(), 0);
        if (!(Fiber::GetFiberId() == 0)) Fiber::YieldToReady();
        ++visits;
        writers.fetch_sub(1);
      } else {
        const std::shared_lock guard(lock);
        EXPECT_EQ(writers.load(), 0);
        if (readers.fetch_add(1) > 0) ++together;
        if (!(Fiber::GetFiberId() == 0)) Fiber::YieldToReady();
        readers.fetch_sub(1);
      }
    }
  };
  IOManager iom(workers(), false, "locks");
  constexpr int kFibers = 12;
  std::atomic<int> begun{0};
  for (int i = 0; i < kFibers; ++i) {
    iom.schedule([&, i] {
      ++begun;
      while (begun < kFibers) Fiber::YieldToReady();  // some may have to wait for their threads
      use(i % 3 == 0);
    });
  }
  std::thread(use, true).join();
  iom.stop();
  EXPECT_EQ(visits, 250);
  EXPECT_GT(together.load(), 0);
}

TEST(LocksOfOneWorker, AReaderWriterLockIsHandedOverInOrder) {
  inFiber([] {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    std::string order;
    EXPECT_EQ(pthread_rwlock_wrlock(&lock), 0);
    EXPECT_EQ(pthread_rwlock_wrlock(&lock), EDEADLK);
    EXPECT_EQ(pthread_rwlock_rdlock(&lock), EDEADLK);
    std::vector<Fiber::ptr> fibers;
    for (const char mode : std::string("rrwr")) {
      fibers.push_back(std::make_shared<Fiber>([&, mode] {
        EXPECT_EQ(mode == 'w' ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock), 0);
        order += mode;
        Fiber::YieldToReady();
        order += '.';
        EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    const timespec time = realTimeIn(1ms);
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(pthread_rwlock_timedwrlock(&lock, &time), ETIMEDOUT);
      EXPECT_EQ(pthread_rwlock_timedrdlock(&lock, &time), ETIMEDOUT);
      EXPECT_EQ(pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, &time), ETIMEDOUT);
      EXPECT_EQ(pthread_rwlock_clockrdlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &time), EINVAL);
      order += 't';
    });
    while (order.empty()) Fiber::YieldToReady();
    EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
    for (const Fiber::ptr& fiber : fibers) fiber->join();
    EXPECT_EQ(order, "trr..w.r.");
    EXPECT_EQ(pthread_rwlock_destroy(&lock), 0);
  });
}

// Where writers come first, a reader stands back behind a writer that waits. Otherwise a fiber may read twice.
TEST(LocksOfOneWorker, AReaderStandsBackWhereWritersComeFirst) {
  for (const int kind : {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP}) {
    inFiber([kind] {
      pthread_rwlockattr_t attributes;
      pthread_rwlockattr_init(&attributes);
      pthread_rwlockattr_setkind_np(&attributes, kind);
      pthread_rwlock_t lock;
      ASSERT_EQ(pthread_rwlock_init(&lock, &attributes), 0);
      std::string order;
      const auto start = [&](char mode) {
        auto fiber = std::make_shared<Fiber>([&, mode] {
          EXPECT_EQ(mode == 'w' ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock), 0);
          order += mode;
          EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
        });
        IOManager::GetThis()->schedule(fiber);
        return fiber;
      };
      EXPECT_EQ(pthread_rwlock_rdlock(&lock), 0);
      const Fiber::ptr writer = start('w');
      untilParked(*writer);
      const Fiber::ptr reader = start('r');
      if (kind == PTHREAD_RWLOCK_PREFER_READER_NP) {
        reader->join();
      } else {
        untilParked(*reader);
      }
      EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
      writer->join();
      reader->join();
      EXPECT_EQ(order, kind == PTHREAD_RWLOCK_PREFER_READER_NP ? "rw" : "wr");
      EXPECT_EQ(pthread_rwlock_destroy(&lock), 0);
    });
  }
}

// A thread that waits to write keeps readers out, and when its time is over it has to let them in.
TEST(LocksOfOneWorker, AThreadThatGivesUpToWriteLetsAFiberRead) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_t lock;
  ASSERT_EQ(pthread_rwlock_init(&lock, &attributes), 0);
  ASSERT_EQ(pthread_rwlock_rdlock(&lock), 0);
  IOManager iom(1, false, "locks");
  bool waited = false;
  for (auto patience = 1ms; !waited && !HasFailure(); patience *= 2) {  // until the fiber comes while the thread still waits
    std::atomic<bool> gave_up{false};
    std::thread writer([&] {
      const timespec time = realTimeIn(patience);
      EXPECT_EQ(pthread_rwlock_timedwrlock(&lock, &time), ETIMEDOUT);
      gave_up = true;
    });
    while (!gave_up && pthread_rwlock_tryrdlock(&lock) == 0) EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
    const auto reader = std::make_shared<Fiber>([&] {
      EXPECT_EQ(pthread_rwlock_rdlock(&lock), 0);
      EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
    });
    iom.schedule(reader);
    EXPECT_TRUE(eventually([&] { return (waited = stateOf(*reader) == FiberState::kParked) || isOver(stateOf(*reader)); }));
    writer.join();
    EXPECT_TRUE(eventually([&] { return isOver(stateOf(*reader)); }));
  }
  EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
  iom.stop();
  EXPECT_EQ(pthread_rwlock_destroy(&lock), 0);
}

// Two fibers always write. A thread that sleeps in libc's lock gets it nevertheless.
TEST(LocksOfOneWorker, WritingFibersLetAThreadIn) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  std::atomic<bool> had{false};
  IOManager iom(1, false, "locks");
  for (int i = 0; i < 2; ++i) {
    iom.schedule([&] {
      while (!had.load()) {
        EXPECT_EQ(pthread_rwlock_wrlock(&lock), 0);
        Fiber::YieldToReady();
        EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
      }
    });
  }
  std::thread([&] {
    EXPECT_EQ(pthread_rwlock_wrlock(&lock), 0);
    had = true;
    EXPECT_EQ(pthread_rwlock_unlock(&lock), 0);
  }).join();
  iom.stop();
  EXPECT_TRUE(had.load());
}

// A lock that is tried again from time to time is so until its own time, also on a clock that is driven by hand.
TEST(LocksOfOneWorker, ALockThatIsTriedAgainKeepsItsTimeOnVirtualTime) {
  AnyMutex mutex(PTHREAD_MUTEX_NORMAL, false, true);
  VirtualTime time;
  std::chrono::nanoseconds waited{0};
  time.run([&] {
    EXPECT_EQ(mutex.lock(), 0);
    const auto other = std::make_shared<Fiber>([&] {
      const auto before = time.elapsed();
      const timespec until = realTimeIn(10s);
      EXPECT_EQ(pthread_mutex_timedlock(&mutex.mutex, &until), ETIMEDOUT);
      waited = time.elapsed() - before;
    });
    IOManager::GetThis()->schedule(other);
    other->join();
    EXPECT_EQ(mutex.unlock(), 0);
  });
  EXPECT_GT(waited, 9s);
}

// A fiber that was abandoned in a lock leaves its place in the lot. Its lock may be gone, and be something else.
TEST(LocksOfOneWorker, AnAbandonedWaiterIsPassedOver) {
  static union Memory {
    Memory() {}
    pthread_rwlock_t lock;
    sem_t semaphore;
  } memory;
  ASSERT_EQ(pthread_rwlock_init(&memory.lock, nullptr), 0);
  ASSERT_EQ(pthread_rwlock_wrlock(&memory.lock), 0);
  {
    IOManager iom(1, false, "locks");
    waiterOn(iom, [&] { pthread_rwlock_wrlock(&memory.lock); });
    iom.stop(Deadline::after(1ms));
    if (lateWorkersOf(iom) > 0)
      GTEST_SKIP() << "the machine gave the worker no processor, so the fiber may still be on its way out";
  }
  EXPECT_TRUE(ParkingLot::mayWait(&memory.lock));
  ASSERT_EQ(pthread_rwlock_unlock(&memory.lock), 0);
  EXPECT_FALSE(ParkingLot::mayWait(&memory.lock));
  EXPECT_EQ(pthread_rwlock_trywrlock(&memory.lock), 0);  // it was not given to the one that is no more
  {
    IOManager iom(1, false, "locks");
    waiterOn(iom, [&] { pthread_rwlock_wrlock(&memory.lock); });
    iom.stop(Deadline::after(1ms));
    if (lateWorkersOf(iom) > 0)
      GTEST_SKIP() << "the machine gave the worker no processor, so the fiber may still be on its way out";
  }
  ASSERT_EQ(sem_init(&memory.semaphore, 0, 0), 0);
  ASSERT_EQ(sem_post(&memory.semaphore), 0);
  int value = 0;
  EXPECT_EQ(sem_getvalue(&memory.semaphore, &value), 0);
  EXPECT_EQ(value, 1);
}

TEST_P(Locks, C11Locks) {
  mtx_t mutex;
  cnd_t condition;
  ASSERT_EQ(mtx_init(&mutex, mtx_timed), thrd_success);
  ASSERT_EQ(cnd_init(&condition), thrd_success);
  int turn = 0;
  const auto play = [&](int me) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(mtx_lock(&mutex), thrd_success);
      while (turn % 2 != me) EXPECT_EQ(cnd_wait(&condition, &mutex), thrd_success);
      ++turn;
      EXPECT_EQ(cnd_broadcast(&condition), thrd_success);
      EXPECT_EQ(mtx_unlock(&mutex), thrd_success);
    }
  };
  IOManager iom(workers(), false, "locks");
  iom.schedule([&] { play(0); });
  iom.schedule([&] { play(1); });
  iom.stop();
  EXPECT_EQ(turn, 200);
  inFiber([&] {
    EXPECT_EQ(mtx_lock(&mutex), thrd_success);
    const timespec time = realTimeIn(1ms);
    EXPECT_EQ(cnd_timedwait(&condition, &mutex, &time), thrd_timedout);
    const auto other = std::make_shared<Fiber>([&] {
      EXPECT_EQ(mtx_trylock(&mutex), thrd_busy);
      EXPECT_EQ(mtx_timedlock(&mutex, &time), thrd_timedout);
    });
    IOManager::GetThis()->schedule(other);
    other->join();
    EXPECT_EQ(mtx_unlock(&mutex), thrd_success);
  });
  cnd_destroy(&condition);
  mtx_destroy(&mutex);
}

TEST_P(Locks, ASpinlock) {
  pthread_spinlock_t lock;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  Inside inside;
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < 20; ++i) {
    iom.schedule([&] {
      EXPECT_EQ(pthread_spin_lock(&lock), 0);
      inside.visit();
      EXPECT_EQ(pthread_spin_unlock(&lock), 0);
    });
  }
  iom.stop();
  EXPECT_EQ(inside.visits, 20);
}

// With hooks off, and with setHookLocks(false), a lock is libc's: the fiber blocks its worker.
TEST(LocksOfOneWorker, AreLibcsWhereTheHooksAreOff) {
  for (const bool fiber_only : {false, true}) {
    std::mutex mutex;
    std::atomic<int> stage{0};
    std::thread holder([&] {
      const std::lock_guard lock(mutex);
      stage.store(1, std::memory_order_release);
      int& word = mutex.native_handle()->__data.__lock;  // 2 as soon as a thread sleeps on it
      busyUntil([&] { return std::atomic_ref(word).load() == 2; });
    });
    spinUntil(stage, 1);
    std::atomic<bool> other_ran{false};
    {
      IOManager iom(1, false, "locks");
      if (!fiber_only) setHookLocks(false);
      iom.schedule([&] {
        if (fiber_only) set_hook_enable(false);
        IOManager::GetThis()->schedule([&] { other_ran = true; });
        mutex.lock();  // nobody else of this worker runs until it is this fiber's
        EXPECT_FALSE(other_ran.load());
        mutex.unlock();
      });
      iom.stop();
    }
    setHookLocks(true);
    EXPECT_TRUE(other_ran.load());
    holder.join();
  }
}

// sylar's threads are joined as others are.
TEST(Joins, OfASylarThreadSuspendTheFiber) {
  Gate ends;
  Thread thread([&] { EXPECT_TRUE(ends.wait()); }, "joined");
  bool joined = false;
  IOManager iom(1, false, "test");
  iom.schedule([&] {
    thread.join();
    joined = true;
  });
  iom.schedule([&] {
    EXPECT_FALSE(joined);
    ends.open();
  });
  iom.stop();
  EXPECT_TRUE(joined);
}

}  // namespace
}  // namespace sylar::test
