// Many threads on one lock, for a bounded number of rounds. Made for ThreadSanitizer: the data is plain.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 20'000;

template <class Work>
void onManyThreads(Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
}

template <class Mutex>
struct Counters {
  Mutex mutex;
  uint64_t first SYLAR_GUARDED_BY(mutex) = 0;
  uint64_t second SYLAR_GUARDED_BY(mutex) = 0;

  void count() SYLAR_EXCLUDES(mutex) {
    Lock lock(mutex);
    ++first;
    ++second;
  }
  bool tryCount() SYLAR_EXCLUDES(mutex) {
    if (!mutex.tryLock()) return false;
    ++first;
    ++second;
    mutex.unlock();
    return true;
  }
  void expect(uint64_t value) SYLAR_EXCLUDES(mutex) {
    Lock lock(mutex);
    EXPECT_EQ(first, value);
    EXPECT_EQ(second, value);
  }
};

template <class Mutex>
class MutexRace : public testing::Test {};
using Mutexes = testing::Types<OsMutex, Spinlock>;
TYPED_TEST_SUITE(MutexRace, Mutexes);

TYPED_TEST(MutexRace, NoIncrementIsLost) {
  Counters<TypeParam> counters;
  onManyThreads([&] {
    for (int i = 0; i < kRounds; ++i) counters.count();
  });
  counters.expect(uint64_t{kThreads} * kRounds);
}

TYPED_TEST(MutexRace, TryLockMixesWithLock) {
  Counters<TypeParam> counters;
  onManyThreads([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (i % 2 == 0 || !counters.tryCount()) counters.count();
    }
  });
  counters.expect(uint64_t{kThreads} * kRounds);
}

// The holder gives up its processor, so that the others go to sleep and a lost wake-up would hang the test.
TEST(OsMutexRace, SleepersAreAllWokenInTheEnd) {
  Counters<OsMutex> counters;
  onManyThreads([&] {
    for (int i = 0; i < 500; ++i) {
      Lock lock(counters.mutex);
      ++counters.first;
      for (int turn = 0; turn < 3; ++turn) sys::call(SYS_sched_yield);
      ++counters.second;
    }
  });
  counters.expect(uint64_t{kThreads} * 500);
}

}  // namespace
}  // namespace sylar
