#include "sylar/fiber/fiber_core.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "sylar/sched/waker.h"

namespace sylar {
namespace {

TEST(FiberCore, FitsInTwoCacheLines) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "a sanitizer keeps notes in it";
#endif
  EXPECT_LE(sizeof(FiberCore), 128u);
  EXPECT_EQ(alignof(FiberCore), 64u);
}

TEST(FiberCore, IsFoundFromItsTimer) {
  CorePool pool;
  FiberCore* const core = pool.take();
  ASSERT_NE(core, nullptr);
  EXPECT_EQ(&FiberCore::ofTimer(core->timer), core);
  pool.put(core);
}

TEST(CorePool, HandsOutAlignedCoresThatDiffer) {
  CorePool pool;
  std::set<FiberCore*> cores;
  for (int i = 0; i < 2000; ++i) {  // more than one slab
    FiberCore* const core = pool.take();
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(core) % 64, 0u);
    EXPECT_TRUE(cores.insert(core).second);
  }
  for (FiberCore* const core : cores) pool.put(core);
}

TEST(CorePool, LastInIsFirstOut) {
  CorePool pool;
  FiberCore* const first = pool.take();
  FiberCore* const second = pool.take();
  pool.put(first);
  pool.put(second);
  EXPECT_EQ(pool.take(), second);
  EXPECT_EQ(pool.take(), first);
  pool.put(second);
  pool.put(first);
}

// P1: epoch restarted at reuse is an error that the model found.
TEST(CorePool, EpochGoesOnWhenASlotIsUsedAgain) {
  CorePool pool;
  FiberCore* const core = pool.take();
  const Waker late{core, core->wait.prepare()};
  ASSERT_TRUE(core->wait.withdraw(late.epoch));
  pool.put(core);

  ASSERT_EQ(pool.take(), core);
  EXPECT_FALSE(late.wake(WakeReason::kReady));
  EXPECT_EQ(core->wait.prepare(), late.epoch + 1);
  EXPECT_FALSE(late.wake(WakeReason::kReady));
  EXPECT_TRUE(core->wait.isOpen());
  ASSERT_TRUE(core->wait.withdraw(late.epoch + 1));
  pool.put(core);
}

// P1: the memory of a core is never given back, not even with its thread.
TEST(CorePool, LateWakerMayLookAfterTheEndOfTheThread) {
  Waker late;
  std::thread([&late] {
    CorePool pool;
    FiberCore* const core = pool.take();
    late = {core, core->wait.prepare()};
    ASSERT_TRUE(core->wait.withdraw(late.epoch));
    pool.put(core);
  }).join();
  EXPECT_FALSE(late.wake(WakeReason::kReady));

  // The next thread goes on with the same cores.
  CorePool pool;
  std::vector<FiberCore*> cores;
  bool found = false;
  for (int i = 0; i < 2000 && !found; ++i) {
    cores.push_back(pool.take());
    found = cores.back() == late.core;
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(late.core->wait.epoch(), late.epoch);
  for (FiberCore* const core : cores) pool.put(core);
}

// A fiber that was moved ends on another thread than it began on: what one thread gives, the other takes.
TEST(CorePool, FibersThatEndOnAnotherThreadNeedNoNewCores) {
  constexpr size_t kKept = 2 * 2 * 512;  // two chunks for each pool
  CorePool begins;
  CorePool ends;
  std::set<FiberCore*> cores;
  for (size_t i = 0; i < 10 * kKept; ++i) {
    FiberCore* const core = begins.take();
    ASSERT_NE(core, nullptr);
    cores.insert(core);
    ends.put(core);
  }
  EXPECT_LE(cores.size(), kKept + 512);
}

// All that a burst has needed is passed on, whichever thread takes it next.
TEST(CorePool, CoresOfABurstServeOtherThreads) {
  constexpr size_t kBurst = 10 * 512;
  std::set<FiberCore*> cores;
  CorePool first;
  CorePool second;
  for (CorePool* const pool : {&first, &second, &first}) {
    std::vector<FiberCore*> alive;
    for (size_t i = 0; i < kBurst; ++i) alive.push_back(pool->take());
    cores.insert(alive.begin(), alive.end());
    for (FiberCore* const core : alive) pool->put(core);
  }
  EXPECT_LE(cores.size(), kBurst + 2 * 2 * 512);
}

}  // namespace
}  // namespace sylar
