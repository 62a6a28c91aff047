// What is particular to the wheel: its levels and their edges, its bound of the next deadline, its resumable cascades.
#include "sylar/timer/wheel_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace sylar {
namespace {

constexpr size_t kAmple = ~size_t{0};

template <class Queue>
class EveryWheel : public testing::Test {
 protected:
  static constexpr int64_t s_tick = Queue::granularityNs();

  /// Moves an empty queue's present to that tick.
  static void startAt(Queue& queue, int64_t tick) {
    TimerList none;
    queue.expire(tick * s_tick, 1, none);
  }
};
using Wheels = testing::Types<WheelQueue, WheelQueue10Ms>;
TYPED_TEST_SUITE(EveryWheel, Wheels);

/// 0, 1, 2 and around each level's edge and beyond.
std::vector<int64_t> edges() {
  std::vector<int64_t> ticks{0, 1, 2};
  for (const int bits : {8, 14, 20, 26, 32, 33}) {
    for (const int64_t off : {-1, 0, 1}) ticks.push_back((int64_t{1} << bits) + off);
  }
  return ticks;
}

// Q-7, TD-14: from every range, started anywhere near an edge, each timer falls due on its tick and not before.
TYPED_TEST(EveryWheel, EveryRangeFallsDueOnItsTick) {
  for (const int bits : {0, 8, 14, 20, 26, 32}) {
    for (int64_t offset = -25; offset < 25; ++offset) {
      const int64_t start = std::max<int64_t>(0, (int64_t{1} << bits) + offset);
      for (const int64_t delay : edges()) {
        TypeParam queue;
        TestFixture::startAt(queue, start);
        TimerNode node;
        queue.insert(node, (start + delay) * TestFixture::s_tick);
        ASSERT_EQ(queue.nextDue(), (start + delay) * TestFixture::s_tick);
        TimerList due;
        if (delay > 0) {
          ASSERT_FALSE(queue.expire((start + delay) * TestFixture::s_tick - 1, kAmple, due));
        }
        ASSERT_TRUE(due.empty());
        ASSERT_FALSE(queue.expire((start + delay) * TestFixture::s_tick, kAmple, due));
        ASSERT_EQ(due.pop(), &node);
        queue.verify();
      }
    }
  }
}

// the same with all ranges in the wheel at once, time going from edge to edge.
TYPED_TEST(EveryWheel, AllRangesAtOnceFallDueOnTheirTicks) {
  for (int64_t start = 0; start < 300; ++start) {
    TypeParam queue;
    TestFixture::startAt(queue, start);
    const auto delays = edges();
    std::vector<TimerNode> nodes(delays.size());
    for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], (start + delays[i]) * TestFixture::s_tick);
    for (size_t i = 0; i < nodes.size(); ++i) {
      TimerList due;
      if (i > 0) queue.expire((start + delays[i]) * TestFixture::s_tick - 1, kAmple, due);
      ASSERT_TRUE(due.empty()) << delays[i];
      queue.expire((start + delays[i]) * TestFixture::s_tick, kAmple, due);
      ASSERT_EQ(due.pop(), &nodes[i]) << delays[i];
      ASSERT_TRUE(due.empty());
    }
    queue.verify();
  }
}

// TD-14: what the published wheel did wrong from 164 s on. 1799 timers of 170 to 600 s during an hour, none late.
TYPED_TEST(EveryWheel, RandomTimersOverAnHourAreNeverLate) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::mt19937_64 random(test::seed());
  std::vector<TimerNode> nodes(1'799);
  TypeParam queue;
  size_t armed = 0;
  size_t fired = 0;
  for (int64_t now = TestFixture::s_tick; armed < nodes.size() || !queue.empty(); now += TestFixture::s_tick) {
    if (armed < nodes.size() && now / (2 * kSecond) > static_cast<int64_t>(armed)) {
      queue.insert(nodes[armed++], now + 170 * kSecond + static_cast<int64_t>(random() % 430) * kSecond);
    }
    TimerList due;
    queue.expire(now, kAmple, due);
    while (const TimerNode* node = due.pop()) {
      ++fired;
      ASSERT_LE(node->deadline_ns, now);
      ASSERT_GT(node->deadline_ns, now - TestFixture::s_tick);
    }
  }
  EXPECT_EQ(fired, nodes.size());
}

// A deadline between two ticks counts as the next one: never early.
TYPED_TEST(EveryWheel, BrokenDeadlinesAreRoundedUp) {
  TypeParam queue;
  TimerNode node;
  queue.insert(node, 5 * TestFixture::s_tick + 1);
  EXPECT_EQ(queue.nextDue(), 6 * TestFixture::s_tick);
  TimerList due;
  EXPECT_FALSE(queue.expire(6 * TestFixture::s_tick - 1, kAmple, due));
  EXPECT_TRUE(due.empty());
  queue.expire(6 * TestFixture::s_tick, kAmple, due);
  EXPECT_EQ(due.pop(), &node);
}

// a loop that sleeps exactly until nextDue() wakes at most once a level for an isolated timer, and once to serve it.
TYPED_TEST(EveryWheel, IsolatedTimerNeedsFewWakeUps) {
  for (const size_t crowd : {size_t{1}, TypeParam::kFew + 1}) {  // beyond kFew in one slot the next deadline is only a bound
    for (const int64_t delay : edges()) {
      TypeParam queue;
      TestFixture::startAt(queue, 12'345);
      std::vector<TimerNode> nodes(crowd);
      for (auto& node : nodes) queue.insert(node, (12'345 + delay) * TestFixture::s_tick);
      int wake_ups = 0;
      for (TimerList due; !queue.empty(); ++wake_ups) queue.expire(queue.nextDue(), kAmple, due);
      EXPECT_LE(wake_ups, 6) << delay;
      if (crowd == 1) {
        EXPECT_EQ(wake_ups, 1) << delay;
      }
    }
  }
}

// the bound is that of the crowd, not its slot's beginning, when the crowd has moved down: who slept until then need not
// look.
TYPED_TEST(EveryWheel, BoundOfACrowdStaysWhenItMovesDown) {
  constexpr int64_t kEdge = 1 << 14;
  TypeParam queue;
  std::array<TimerNode, TypeParam::kFew + 2> crowd;
  for (auto& node : crowd) queue.insert(node, (kEdge + 300) * TestFixture::s_tick);
  EXPECT_EQ(queue.nextDue(), (kEdge + 300) * TestFixture::s_tick);
  TimerNode early;
  EXPECT_TRUE(queue.insert(early, TestFixture::s_tick));
  TimerList due;
  queue.expire(TestFixture::s_tick, kAmple, due);
  EXPECT_EQ(due.pop(), &early);
  EXPECT_FALSE(queue.expire(kEdge * TestFixture::s_tick, kAmple, due));
  EXPECT_EQ(queue.nextDue(), (kEdge + 300) * TestFixture::s_tick);
  TimerNode earlier;
  EXPECT_TRUE(queue.insert(earlier, (kEdge + 299) * TestFixture::s_tick));
}

// a crowd that moves down a level does so in pieces; what is armed meanwhile finds its place behind it.
TYPED_TEST(EveryWheel, CascadeCanBeCutAnywhere) {
  for (size_t budget = 1; budget < 40; ++budget) {
    TypeParam queue;
    std::array<TimerNode, 30> nodes;
    for (auto& node : nodes) queue.insert(node, 600 * TestFixture::s_tick);
    TimerList due;
    TimerNode meanwhile;
    EXPECT_TRUE(queue.expire(600 * TestFixture::s_tick, budget, due));
    queue.insert(meanwhile, 600 * TestFixture::s_tick);
    queue.verify();
    size_t calls = 1;
    for (; queue.expire(600 * TestFixture::s_tick, budget, due); ++calls) queue.verify();
    EXPECT_LE(calls, (2 * nodes.size() + 2) / budget + 2);
    for (auto& node : nodes) ASSERT_EQ(due.pop(), &node);
    ASSERT_EQ(due.pop(), &meanwhile);
  }
}

// Erasing the last of a crowd that is on its way down leaves nothing behind.
TYPED_TEST(EveryWheel, CrowdMayBeErasedWhileItMovesDown) {
  for (const int64_t distance : {int64_t{600}, int64_t{1} << 33}) {
    TypeParam queue;
    std::array<TimerNode, 10> nodes;
    for (auto& node : nodes) queue.insert(node, distance * TestFixture::s_tick);
    TimerList due;
    EXPECT_TRUE(queue.expire(distance * TestFixture::s_tick, 3, due));
    EXPECT_TRUE(due.empty());
    for (auto& node : nodes) {
      queue.erase(node);
      queue.verify();
    }
    EXPECT_EQ(queue.nextDue(), kNever);
    queue.insert(nodes[0], (distance + 1) * TestFixture::s_tick);
    EXPECT_EQ(queue.nextDue(), (distance + 1) * TestFixture::s_tick);
  }
}

// What is beyond all levels and is erased does not pull time back later.
TYPED_TEST(EveryWheel, FarTimersThatWereErasedLeaveNoTrace) {
  constexpr int64_t kTurn = int64_t{1} << 32;
  TypeParam queue;
  std::array<TimerNode, 2> nodes;
  queue.insert(nodes[0], kTurn * TestFixture::s_tick);
  queue.erase(nodes[0]);
  TestFixture::startAt(queue, 5 * kTurn);
  queue.insert(nodes[0], 7 * kTurn * TestFixture::s_tick);
  queue.insert(nodes[1], 9 * kTurn * TestFixture::s_tick);
  queue.verify();
  TimerList due;
  EXPECT_FALSE(queue.expire(7 * kTurn * TestFixture::s_tick, kAmple, due));
  EXPECT_EQ(due.pop(), &nodes[0]);
  EXPECT_EQ(queue.nextDue(), 9 * kTurn * TestFixture::s_tick);
}

}  // namespace
}  // namespace sylar
