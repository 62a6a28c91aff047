// HA-4: what else blocks a thread in libc and libstdc++, between fibers of one worker, of two, and with threads outside fibers:
// semaphores, barriers, pthread_once, static variables, joins, and all that waits by futex(2).
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <threads.h>

#include <algorithm>
#include <barrier>
#include <csignal>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stdexcept>

#include "sylar/base/sanitizers.h"
#include "sylar/hook/lock/parking_lot.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/hook/lock/lock_support.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"
#include "tests/sync/waiter.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// A join leaves an idle helper thread behind.
class LockWaits : public OverWorkers {
 protected:
  ~LockWaits() override { BlockingPool::process().endAll(); }
};
class LockWaitsOfOneWorker : public testing::Test {
 protected:
  ~LockWaitsOfOneWorker() override { BlockingPool::process().endAll(); }
};
INSTANTIATE_TEST_SUITE_P(Workers, LockWaits, testing::Values(1, 2));

// ---- Semaphores. -------------------------------------------------------------------------------------------------------------

TEST_P(LockWaits, PermitsPassBetweenFibersAndThreads) {
  for (const int shared : {0, 1}) {
    sem_t ping, pong;
    ASSERT_EQ(sem_init(&ping, shared, 0), 0);
    ASSERT_EQ(sem_init(&pong, shared, 0), 0);
    constexpr int kRounds = 50;
    const auto serve = [&] {
      for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(sem_wait(&ping), 0);
        EXPECT_EQ(sem_post(&pong), 0);
      }
    };
    const auto call = [&] {
      for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(sem_post(&ping), 0);
        EXPECT_EQ(sem_wait(&pong), 0);
      }
    };
    IOManager iom(workers(), false, "locks");
    iom.schedule(serve);
    iom.schedule(call);
    iom.schedule(serve);
    std::thread(call).join();
    iom.stop();
    int value = -1;
    EXPECT_EQ(sem_getvalue(&ping, &value), 0);
    EXPECT_EQ(value, 0);
    sem_destroy(&ping);
    sem_destroy(&pong);
  }
}

TEST_F(LockWaitsOfOneWorker, APermitIsHandedToTheOldest) {
  inFiber([] {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    std::vector<int> order;
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] {
        EXPECT_EQ(sem_wait(&semaphore), 0);
        order.push_back(i);
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    sem_post(&semaphore);
    EXPECT_EQ(sem_trywait(&semaphore), -1);  // it is the oldest waiter's
    EXPECT_EQ(errno, EAGAIN);
    sem_post(&semaphore);
    sem_post(&semaphore);
    for (const Fiber::ptr& fiber : fibers) fiber->join();
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    sem_destroy(&semaphore);
  });
}

TEST_F(LockWaitsOfOneWorker, ATimedSemaphoreEndsAtItsTime) {
  inFiber([] {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    timespec time = realTimeIn(1ms);
    EXPECT_EQ(sem_timedwait(&semaphore, &time), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(sem_clockwait(&semaphore, CLOCK_REALTIME, &time), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    time.tv_nsec = 1'000'000'000;
    EXPECT_EQ(sem_timedwait(&semaphore, &time), -1);
    EXPECT_EQ(errno, EINVAL);
    sem_destroy(&semaphore);
  });
}

TEST_F(LockWaitsOfOneWorker, ACancelEndsTheWaitForAPermit) {
  inFiber([] {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    bool ended = false;
    const auto waiter = std::make_shared<Fiber>([&] {
      EXPECT_EQ(sem_wait(&semaphore), -1);
      EXPECT_EQ(errno, ECANCELED);
      ended = true;
      sem_post(&semaphore);
      EXPECT_EQ(sem_wait(&semaphore), 0);  // a cancelled fiber gets what is there
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    waiter->cancel();
    waiter->join();
    EXPECT_TRUE(ended);
    sem_destroy(&semaphore);
  });
}

sem_t g_posted;

// sem_post is async-signal-safe.
TEST_F(LockWaitsOfOneWorker, AHandlerPosts) {
  sem_init(&g_posted, 0, 0);
  struct sigaction action {};
  action.sa_handler = [](int) { sem_post(&g_posted); };
  action.sa_flags = SA_RESTART;
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  inFiber([] {
    for (int i = 0; i < 1000; ++i) {
      const auto waiter = std::make_shared<Fiber>([] { EXPECT_EQ(sem_wait(&g_posted), 0); });
      IOManager::GetThis()->schedule(waiter);
      if (i % 2 == 0) untilParked(*waiter);
      ::raise(SIGUSR1);
      waiter->join();
    }
  });
  sigaction(SIGUSR1, &before, nullptr);
  int value = -1;
  EXPECT_EQ(sem_getvalue(&g_posted, &value), 0);
  EXPECT_EQ(value, 0);
  sem_destroy(&g_posted);
}

std::atomic<uint32_t> g_word{0};

// A handler that posts, or wakes by futex, while its thread is at the very queue leaves that to the section that it has
// interrupted.
TEST_F(LockWaitsOfOneWorker, AHandlerInASectionOfTheQueueWakesAtItsEnd) {
  sem_init(&g_posted, 0, 0);
  g_word = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    sem_post(&g_posted);
    g_word = 1;
    ::syscall(SYS_futex, &g_word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
  };
  action.sa_flags = SA_RESTART;
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  inFiber([] {
    const Fiber::ptr fibers[] = {std::make_shared<Fiber>([] { EXPECT_EQ(sem_wait(&g_posted), 0); }), std::make_shared<Fiber>([] {
                                   while (g_word == 0)
                                     ::syscall(SYS_futex, &g_word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, nullptr, nullptr, 0);
                                 })};
    for (const Fiber::ptr& fiber : fibers) {
      IOManager::GetThis()->schedule(fiber);
      untilParked(*fiber);
    }
    const auto sameQueue = [](const void* object, const void* other) {
      return &ParkingLot::bucketOf(object) == &ParkingLot::bucketOf(other);
    };
    // Objects of the same two queues, whose first look is made in the section.
    constexpr LotKind kKind{detail::SyncKind::kPthreadMutex};
    for (const void* const other : {static_cast<void*>(&g_posted), static_cast<void*>(&g_word)}) {
      std::vector<char> objects(1 << 20);
      const auto object = std::find_if(objects.begin(), objects.end(), [&](const char& one) { return sameQueue(&one, other); });
      ASSERT_NE(object, objects.end());
      LotWait wait(&*object, kKind, true);
      EXPECT_FALSE(wait.enterUnless([] { return ::raise(SIGUSR1) == 0; }));
    }
    for (const Fiber::ptr& fiber : fibers) fiber->join();
  });
  sigaction(SIGUSR1, &before, nullptr);
  sem_destroy(&g_posted);
}

// ---- Barriers. ---------------------------------------------------------------------------------------------------------------

TEST_P(LockWaits, ABarrierOfFibersAndAThread) {
  constexpr int kRounds = 100, kFibers = 5;
  pthread_barrier_t barrier;
  ASSERT_EQ(pthread_barrier_init(&barrier, nullptr, kFibers + 1), 0);
  std::atomic<int> last{0}, arrived{0};
  const auto run = [&] {
    for (int i = 0; i < kRounds; ++i) {
      arrived.fetch_add(1);
      const int result = pthread_barrier_wait(&barrier);
      EXPECT_GE(arrived.load(), (i + 1) * (kFibers + 1));
      if (result == PTHREAD_BARRIER_SERIAL_THREAD) {
        ++last;
      } else {
        EXPECT_EQ(result, 0);
      }
    }
  };
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < kFibers; ++i) iom.schedule(run);
  std::thread(run).join();
  iom.stop();
  EXPECT_EQ(last.load(), kRounds);
  EXPECT_EQ(pthread_barrier_destroy(&barrier), 0);
}

// ---- Once. -------------------------------------------------------------------------------------------------------------------

std::atomic<int> g_routine_runs{0};

TEST_P(LockWaits, OnceWaitsForAFiberThatIsSuspendedInTheRoutine) {
  for (int round = 0; round < 20; ++round) {
    pthread_once_t once = PTHREAD_ONCE_INIT;
    g_routine_runs = 0;
    std::atomic<int> seen{0};
    const auto run = [&] {
      const auto routine = [] {
        usleep(1);
        ++g_routine_runs;
      };
      EXPECT_EQ(pthread_once(&once, routine), 0);
      EXPECT_EQ(g_routine_runs.load(), 1);
      ++seen;
    };
    IOManager iom(workers(), false, "locks");
    for (int i = 0; i < 10; ++i) iom.schedule(run);
    std::thread(run).join();
    iom.stop();
    EXPECT_EQ(seen.load(), 11);
  }
}

TEST_P(LockWaits, CallOnceTriesAgainAfterAnException) {
  std::once_flag once;
  std::atomic<int> tries{0}, failures{0};
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < 10; ++i) {
    iom.schedule([&] {
      try {
        std::call_once(once, [&] {
          usleep(1);
          if (++tries < 4) throw std::runtime_error("not yet");
        });
        EXPECT_EQ(tries.load(), 4);
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
  }
  iom.stop();
  EXPECT_EQ(tries.load(), 4);
  EXPECT_EQ(failures.load(), 3);
}

// std::call_once hands its function to the routine in variables of the thread. Those who wait find their own again.
TEST_F(LockWaitsOfOneWorker, CallOnceRunsTheFunctionOfTheFiberThatTriesAgain) {
  inFiber([] {
    std::once_flag first, second;
    std::string order;
    bool go = false;
    const auto start = [&](std::once_flag& once, char name, bool fails) {
      auto fiber = std::make_shared<Fiber>([&, name, fails] {
        try {
          std::call_once(once, [&] {
            order += name;
            while (fails && !go) Fiber::YieldToReady();
            if (fails) throw std::runtime_error("not yet");
          });
        } catch (const std::runtime_error&) {
        }
      });
      IOManager::GetThis()->schedule(fiber);
      return fiber;
    };
    const Fiber::ptr fails = start(first, 'a', true);
    while (order.empty()) Fiber::YieldToReady();
    const Fiber::ptr tries_again = start(first, 'b', false);
    untilParked(*tries_again);
    const Fiber::ptr other_fails = start(second, 'c', true);
    while (order.size() < 2) Fiber::YieldToReady();
    const Fiber::ptr other_tries_again = start(second, 'd', false);
    untilParked(*other_tries_again);
    go = true;
    for (const Fiber::ptr& fiber : {fails, tries_again, other_fails, other_tries_again}) fiber->join();
    EXPECT_EQ(order.substr(0, 2), "ac");
    EXPECT_NE(order.find('b'), order.npos);
    EXPECT_NE(order.find('d'), order.npos);
    EXPECT_EQ(order.size(), 4u);
  });
}

int g_c11_runs = 0;
TEST_F(LockWaitsOfOneWorker, C11CallOnce) {
  once_flag once = ONCE_FLAG_INIT;
  inFiber([&] {
    for (int i = 0; i < 3; ++i) {
      IOManager::GetThis()->schedule([&] {
        ::call_once(&once, [] {
          usleep(1);
          ++g_c11_runs;
        });
        EXPECT_EQ(g_c11_runs, 1);
      });
    }
  });
  EXPECT_EQ(g_c11_runs, 1);
}

// ---- Static variables. -------------------------------------------------------------------------------------------------------

std::atomic<int> g_constructed{0};
template <int kId>
struct Slow {
  Slow() {
    Fiber::YieldToReady();
    usleep(1);
    ++g_constructed;
  }
};
template <int kId>
void useStatic() {
  static Slow<kId> slow;
  EXPECT_GE(g_constructed.load(), 1);
}

// In a process that has had one thread only, libstdc++ would take the second fiber for a recursion, and end the program.
TEST_P(LockWaits, AStaticVariableWhoseConstructorIsSuspended) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "the sanitizer's own guard blocks the thread";
#endif
  g_constructed = 0;
  const auto use = workers() == 1 ? &useStatic<1> : &useStatic<2>;
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < 10; ++i) iom.schedule(use);
  std::thread(use).join();
  iom.stop();
  EXPECT_EQ(g_constructed.load(), 1);
}

TEST_F(LockWaitsOfOneWorker, AStaticVariableInAProcessOfOneThread) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "the sanitizer's own guard blocks the thread";
#endif
  g_constructed = 0;
  IOManager iom(1, true, "locks");
  iom.schedule(&useStatic<3>);
  iom.schedule(&useStatic<3>);
  iom.stop();
  EXPECT_EQ(g_constructed.load(), 1);
}

// ---- Joins. ------------------------------------------------------------------------------------------------------------------

TEST_P(LockWaits, AJoinOfAThreadThatWaitsForAFiberOfTheSameWorker) {
  std::mutex mutex;
  std::condition_variable condition;
  bool told = false;
  IOManager iom(workers(), false, "locks");
  iom.schedule([&] {
    std::thread thread([&] {
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return told; });
    });
    iom.schedule([&] {
      const std::lock_guard lock(mutex);
      told = true;
      condition.notify_one();
    });
    thread.join();
    EXPECT_TRUE(told);
  });
  iom.stop();
}

TEST_F(LockWaitsOfOneWorker, JoinsGiveWhatLibcGives) {
  inFiber([] {
    pthread_t thread;
    void* result = nullptr;
#ifndef SYLAR_TSAN  // which takes the thread for joined
    pthread_attr_t attributes;
    int detached = 0;
    ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    EXPECT_EQ(pthread_attr_getdetachstate(&attributes, &detached), 0);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(pthread_join(pthread_self(), nullptr), detached == PTHREAD_CREATE_DETACHED ? EINVAL : EDEADLK);
#endif
    ASSERT_EQ(pthread_create(
                  &thread, nullptr, [](void* of) { return of; }, &result),
              0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &result);

    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    const auto wait = [](void* of) -> void* {
      sem_wait(static_cast<sem_t*>(of));
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, wait, &semaphore), 0);
    const timespec time = realTimeIn(1ms);
    EXPECT_EQ(pthread_timedjoin_np(thread, nullptr, &time), ETIMEDOUT);
    EXPECT_EQ(pthread_clockjoin_np(thread, nullptr, CLOCK_REALTIME, &time), ETIMEDOUT);
    sem_post(&semaphore);
    EXPECT_EQ(pthread_join(thread, nullptr), 0);
    sem_destroy(&semaphore);

#ifndef SYLAR_TSAN  // which does not know threads of C11
    thrd_t c11;
    int value = 0;
    ASSERT_EQ(thrd_create(
                  &c11, [](void*) { return -7; }, nullptr),
              thrd_success);
    EXPECT_EQ(thrd_join(c11, &value), thrd_success);
    EXPECT_EQ(value, -7);
#endif
  });
}

// ---- What waits by futex(2). -------------------------------------------------------------------------------------------------

TEST_P(LockWaits, AFuture) {
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < 20; ++i) {
    iom.schedule([&, i] {
      std::promise<int> promise;
      auto future = promise.get_future();
      EXPECT_EQ(future.wait_for(1us), std::future_status::timeout);
      iom.schedule([&] { promise.set_value(i); });
      EXPECT_EQ(future.get(), i);
      EXPECT_EQ(std::async(std::launch::async, [i] { return i; }).get(), i);
    });
  }
  iom.stop();
}

TEST_P(LockWaits, ALatchABarrierASemaphoreAndAnAtomicOfCpp20) {
  constexpr int kFibers = 8;
  std::latch latch(kFibers + 1);
  std::barrier barrier(kFibers + 1);
  std::counting_semaphore<> semaphore(0);
  std::atomic<int> stage{0};
  std::atomic<int> done{0};
  const auto run = [&](bool first) {
    latch.arrive_and_wait();
    for (int i = 0; i < 20; ++i) barrier.arrive_and_wait();
    if (first) {
      semaphore.release(kFibers);
      stage.store(1);
      stage.notify_all();
    } else {
      semaphore.acquire();
      stage.wait(0);
    }
    ++done;
  };
  IOManager iom(workers(), false, "locks");
  for (int i = 0; i < kFibers; ++i) iom.schedule([&] { run(false); });
  std::thread(run, true).join();
  iom.stop();
  EXPECT_EQ(done.load(), kFibers + 1);
}

// The waiters are parked before a thread, which has no hooks of its own, wakes them.
TEST(FutexOfThreads, AThreadWakesFibers) {
  std::promise<int> promise;
  std::shared_future<int> future = promise.get_future().share();
  std::atomic<int> word{0};
  std::latch latch(1);
  std::counting_semaphore<> semaphore(0);
  IOManager iom(1, false, "locks");
  const Fiber::ptr fibers[] = {
      waiterOn(iom, [&] { EXPECT_EQ(future.get(), 5); }),
      waiterOn(iom, [&] { word.wait(0); }),
      waiterOn(iom, [&] { latch.wait(); }),
      waiterOn(iom, [&] { semaphore.acquire(); }),
  };
  promise.set_value(5);
  word.store(1);
  word.notify_all();
  latch.count_down();
  semaphore.release();
  for (const Fiber::ptr& fiber : fibers) fiber->join();
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const void* time = nullptr, void* word2 = nullptr,
           uint32_t value3 = 0) {
  return ::syscall(SYS_futex, &word, operation, value, time, word2, value3);
}
constexpr int kWait = 0, kWake = 1, kRequeue = 3, kCmpRequeue = 4, kWakeOp = 5, kWaitBitset = 9, kWakeBitset = 10, kPrivate = 128;

TEST_F(LockWaitsOfOneWorker, AFutexGivesWhatTheKernelGives) {
  inFiber([] {
    std::atomic<uint32_t> word{7};
    EXPECT_EQ(futex(word, kWait, 6), -1);
    EXPECT_EQ(errno, EAGAIN);
    const timespec none{0, 0}, wrong{0, -1}, negative{-1, 0}, past{1, 0};
    EXPECT_EQ(futex(word, kWait, 7, &none), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(futex(word, kWaitBitset, 7, &past, nullptr, 1), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    for (const timespec* const time : {&wrong, &negative}) {
      EXPECT_EQ(futex(word, kWait, 7, time), -1);
      EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(futex(word, kWait, 7, reinterpret_cast<void*>(8)), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(futex(word, kWaitBitset, 7, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(futex(word, kWakeBitset, 7, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(::syscall(SYS_futex, reinterpret_cast<char*>(&word) + 1, kWait, 7, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(::syscall(SYS_futex, nullptr, kWait, 7, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(futex(word, kWake, 1), 0);
    EXPECT_EQ(futex(word, kCmpRequeue, 1, reinterpret_cast<void*>(1), &word, 6), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

TEST_F(LockWaitsOfOneWorker, AFutexWakesByBitsAndInOrder) {
  inFiber([] {
    std::atomic<uint32_t> word{0};
    std::string order;
    std::vector<Fiber::ptr> fibers;
    for (const uint32_t bits : {1u, 2u, 3u, 4u}) {
      fibers.push_back(std::make_shared<Fiber>([&, bits] {
        EXPECT_EQ(futex(word, kWaitBitset | kPrivate, 0, nullptr, nullptr, bits), 0);
        order += static_cast<char>('0' + bits);
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    EXPECT_EQ(futex(word, kWakeBitset | kPrivate, 1, nullptr, nullptr, 2), 1);
    fibers[1]->join();
    EXPECT_EQ(futex(word, kWakeBitset | kPrivate, 9, nullptr, nullptr, 3), 2);
    fibers[0]->join();
    fibers[2]->join();
    EXPECT_EQ(futex(word, kWake | kPrivate, 9), 1);
    fibers[3]->join();
    EXPECT_EQ(order, "2134");
  });
}

TEST_F(LockWaitsOfOneWorker, AFutexRequeues) {
  inFiber([] {
    std::atomic<uint32_t> from{0}, to{0};
    int woken = 0;
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&] {
        const timespec hour{3600, 0};
        EXPECT_EQ(futex(from, kWait | kPrivate, 0, &hour), 0);
        ++woken;
      }));
      IOManager::GetThis()->schedule(fibers.back());
      untilParked(*fibers.back());
    }
    EXPECT_EQ(futex(from, kCmpRequeue | kPrivate, 1, reinterpret_cast<void*>(2), &to, 0), 3);
    fibers[0]->join();
    EXPECT_EQ(woken, 1);
    fibers[1]->cancel();  // at its new place; a cancel looks as if somebody had woken it
    fibers[1]->join();
    EXPECT_EQ(futex(from, kWake | kPrivate, 9), 1);
    fibers[3]->join();
    EXPECT_EQ(futex(to, kWake | kPrivate, 9), 1);
    fibers[2]->join();
    EXPECT_EQ(woken, 4);
    EXPECT_EQ(futex(from, kRequeue | kPrivate, 1, reinterpret_cast<void*>(2), &to), 0);
    EXPECT_EQ(futex(from, kWakeOp | kPrivate, 1, reinterpret_cast<void*>(1), &to, 0), 0);
  });
}

// A word in memory that processes share may be changed and woken by one that has no hooks.
TEST_F(LockWaitsOfOneWorker, AFutexInSharedMemoryIsWokenByAnotherProcess) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& word = *new (memory) std::atomic<uint32_t>(0);
  auto& go = *new (static_cast<char*>(memory) + 64) std::atomic<uint32_t>(0);
  const pid_t child = ::fork();
  if (child == 0) {
    while (go.load() == 0) libcCalls().usleep(100);
    word.store(1);
    libcCalls().syscall(SYS_futex, &word, kWake, 1, nullptr, nullptr, 0);
    ::_exit(0);
  }
  IOManager iom(1, false, "locks");
  const Fiber::ptr waiter = waiterOn(iom, [&] {
    while (word.load() == 0) futex(word, kWait, 0);
  });
  go.store(1);
  waiter->join();
  iom.stop();
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(memory, 4096);
}

// The child's lot is empty, and all locks there are libc's.
TEST_F(LockWaitsOfOneWorker, AForkedChildHasLibcsLocks) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "the sanitizer lets a forked child have no threads";
#endif
  inFiber([] {
    std::mutex mutex;
    std::condition_variable condition;
    const auto waiter = std::make_shared<Fiber>([&] {
      std::unique_lock lock(mutex);
      condition.wait(lock);
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      std::mutex own;
      std::condition_variable told;
      bool done = false;
      condition.notify_all();
      std::thread thread([&] {
        const std::lock_guard lock(own);
        done = true;
        told.notify_one();
      });
      {
        std::unique_lock lock(own);
        told.wait(lock, [&] { return done; });
      }
      thread.join();
      std::promise<int> promise;
      std::thread([&] { promise.set_value(1); }).detach();
      ::_exit(promise.get_future().get() == 1 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    condition.notify_one();
    waiter->join();
  });
}

}  // namespace
}  // namespace sylar::test
