// Nodes, ids and generations.
#include "sylar/timer/timer_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/seed.h"

namespace sylar {
namespace {

TEST(TimerPool, IdNamesItsNodeUntilThatIsFreed) {
  TimerPool<> pool;
  EXPECT_EQ(pool.find(0), nullptr);
  PoolTimer* const timer = pool.allocate();
  const TimerId id = pool.idOf(*timer);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(pool.find(id), timer);
  EXPECT_EQ(pool.find(id + (TimerId{1} << 32)), nullptr);
  pool.free(*timer);
  EXPECT_EQ(pool.find(id), nullptr);
}

TEST(TimerPool, IdsThatNeverWereNameNothing) {
  TimerPool<> pool;
  pool.allocate();
  for (const TimerId id : {TimerId{0}, TimerId{64}, TimerId{63}, ~TimerId{0}, TimerId{0xffff'ffff}, TimerId{1} << 32}) {
    EXPECT_EQ(pool.find(id), nullptr) << id;
  }
}

// TD-18: the generation goes up when a node is freed, so a stale id is stale at once, and stays so when the node is in use again.
TEST(TimerPool, StaleIdDoesNotFindTheNextUser) {
  TimerPool<> pool(1);  // one page: its nodes are soon used again
  std::set<TimerId> stale;
  for (int i = 0; i < 1'000; ++i) {
    PoolTimer* const timer = pool.allocate();
    const TimerId id = pool.idOf(*timer);
    EXPECT_TRUE(stale.insert(id).second);
    pool.free(*timer);
    for (const TimerId old : stale) ASSERT_EQ(pool.find(old), nullptr);
  }
}

// With 4-bit generations an id comes back exactly at the 16th reuse of its node, not before.
TEST(TimerPool, GenerationsWrapWhenTheyAreUsedUp) {
  TimerPool<4> pool(1);
  std::vector<TimerId> first_round;
  for (int reuse = 0; reuse <= 16; ++reuse) {
    std::vector<PoolTimer*> all;
    while (PoolTimer* timer = pool.allocate()) all.push_back(timer);
    ASSERT_EQ(all.size(), TimerPool<4>::kNodesPerPage);
    for (size_t i = 0; i < all.size(); ++i) {
      const TimerId id = pool.idOf(*all[i]);
      if (reuse == 0) first_round.push_back(id);
      EXPECT_EQ(id == first_round[i], reuse == 0 || reuse == 16);
      EXPECT_EQ(pool.find(first_round[i]) == all[i], reuse == 0 || reuse == 16);
    }
    for (PoolTimer* timer : all) pool.free(*timer);
  }
}

// Reuse is spread: a node comes back only after all others that were free, and there are at least kSpread.
TEST(TimerPool, OldestFreeNodeIsReusedFirst) {
  TimerPool<> pool;
  std::set<PoolTimer*> seen;
  for (uint32_t i = 0; i < TimerPool<>::kSpread; ++i) {
    PoolTimer* const timer = pool.allocate();
    EXPECT_TRUE(seen.insert(timer).second);
    pool.free(*timer);
  }
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST(TimerPool, LimitIsHeldAndMemoryIsReused) {
  TimerPool<> pool(2);
  std::vector<PoolTimer*> all;
  while (PoolTimer* timer = pool.allocate()) all.push_back(timer);
  EXPECT_EQ(all.size(), 2 * TimerPool<>::kNodesPerPage);
  EXPECT_EQ(pool.inUse(), all.size());
  pool.free(*all[70]);
  EXPECT_EQ(pool.allocate(), all[70]);
  EXPECT_EQ(pool.allocate(), nullptr);
}

// at random, an id finds its node while that is in use, and never any other.
TEST(TimerPool, StaleIdsNeverTouchALiveTimer) {
  std::mt19937_64 random(test::seed());
  TimerPool<> pool(3);
  std::vector<std::pair<TimerId, PoolTimer*>> live;
  std::vector<TimerId> stale;
  for (int i = 0; i < 100'000; ++i) {
    if (random() % 2 == 0) {
      if (PoolTimer* timer = pool.allocate()) live.emplace_back(pool.idOf(*timer), timer);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      pool.free(*live.back().second);
      stale.push_back(live.back().first);
      live.pop_back();
    }
    ASSERT_EQ(pool.inUse(), live.size());
    if (!stale.empty()) {
      ASSERT_EQ(pool.find(stale[random() % stale.size()]), nullptr);
    }
    if (live.empty()) continue;
    const auto& [id, timer] = live[random() % live.size()];
    ASSERT_EQ(pool.find(id), timer);
  }
}

}  // namespace
}  // namespace sylar
