// What every timer queue promises, in small examples. Times are in units of a tick of the coarsest queue.
#include "sylar/timer/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/timer/queues.h"

namespace sylar {
namespace {

using test::popAll;

constexpr int64_t kUnit = 10'000'000;

template <class Queue>
class EveryQueue : public testing::Test {};
TYPED_TEST_SUITE(EveryQueue, test::Queues, test::QueueNames);

template <class Queue>
class EveryQueueDeathTest : public testing::Test {};
TYPED_TEST_SUITE(EveryQueueDeathTest, test::Queues, test::QueueNames);

TYPED_TEST(EveryQueue, EmptyQueueNeverFallsDue) {
  TypeParam queue;
  TimerList due;
  EXPECT_EQ(queue.nextDue(), kNever);
  EXPECT_FALSE(queue.expire(kNever, 10, due));
  EXPECT_TRUE(due.empty());
  EXPECT_TRUE(queue.empty());
}

TYPED_TEST(EveryQueue, InsertSaysWhetherTheNodeIsStrictlyTheEarliest) {
  TypeParam queue;
  std::array<TimerNode, 4> nodes;
  EXPECT_TRUE(queue.insert(nodes[0], 100 * kUnit));
  EXPECT_FALSE(queue.insert(nodes[1], 200 * kUnit));
  EXPECT_FALSE(queue.insert(nodes[2], 100 * kUnit));
  EXPECT_TRUE(queue.insert(nodes[3], 99 * kUnit));
  EXPECT_EQ(queue.nextDue(), 99 * kUnit);
}

TYPED_TEST(EveryQueue, UpdateSaysWhetherTheNodeIsStrictlyTheEarliest) {
  TypeParam queue;
  std::array<TimerNode, 3> nodes;
  queue.insert(nodes[0], 100 * kUnit);
  queue.insert(nodes[1], 200 * kUnit);
  queue.insert(nodes[2], 300 * kUnit);
  EXPECT_TRUE(queue.update(nodes[2], 50 * kUnit));
  EXPECT_TRUE(queue.update(nodes[2], 60 * kUnit));
  EXPECT_FALSE(queue.update(nodes[1], 60 * kUnit));
  EXPECT_FALSE(queue.update(nodes[2], 400 * kUnit));
  EXPECT_EQ(queue.nextDue(), 60 * kUnit);
}

TYPED_TEST(EveryQueue, EqualDeadlinesComeOutInArmingOrder) {
  TypeParam queue;
  std::array<TimerNode, 4> nodes;
  for (auto& node : nodes) queue.insert(node, 7 * kUnit);
  queue.update(nodes[1], 7 * kUnit);
  TimerList due;
  EXPECT_FALSE(queue.expire(7 * kUnit, 10, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[0], &nodes[2], &nodes[3], &nodes[1]}));
}

TYPED_TEST(EveryQueue, ExpiryResumesWhereTheBudgetCutIt) {
  TypeParam queue;
  std::array<TimerNode, 5> nodes;
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], static_cast<int64_t>(10 - i) * kUnit);
  TimerList due;
  EXPECT_TRUE(queue.expire(10 * kUnit, 0, due));
  EXPECT_TRUE(due.empty());
  EXPECT_TRUE(queue.expire(10 * kUnit, 2, due));
  EXPECT_FALSE(queue.expire(10 * kUnit, 3, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[4], &nodes[3], &nodes[2], &nodes[1], &nodes[0]}));
}

TYPED_TEST(EveryQueue, NeverIsNeverDueButDrained) {
  TypeParam queue;
  TimerNode never;
  EXPECT_TRUE(queue.insert(never, kNever));
  TimerList out;
  EXPECT_FALSE(queue.expire(kNever, 1, out));
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(queue.size(), 1u);
  queue.drain(1, out);
  EXPECT_EQ(out.pop(), &never);
  EXPECT_TRUE(queue.empty());
}

TYPED_TEST(EveryQueue, DrainHandsOutEachOnceAndNoMoreThanItsBudget) {
  TypeParam queue;
  std::array<TimerNode, 100> nodes;
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], i % 10 == 0 ? kNever : static_cast<int64_t>(i * i) * kUnit);
  std::set<TimerNode*> drained;
  for (size_t left = nodes.size(); left > 0;) {
    TimerList out;
    queue.drain(7, out);
    const auto some = popAll(out);
    EXPECT_EQ(some.size(), std::min<size_t>(left, 7));
    left -= some.size();
    EXPECT_EQ(queue.size(), left);
    drained.insert(some.begin(), some.end());
    queue.verify();
    if (left == 0) break;
    auto& other = *std::ranges::find_if(nodes, [&](TimerNode& node) { return !drained.contains(&node); });
    queue.erase(other);  // what is still linked can be erased, and moved
    queue.insert(other, kUnit);
    queue.verify();
  }
  EXPECT_EQ(drained.size(), nodes.size());
}

// Of several threads that expire, the last may have looked at the clock first.
TYPED_TEST(EveryQueue, ExpiryAtAnEarlierTimeHandsOutNothingThatWasNotDueThen) {
  TypeParam queue;
  std::array<TimerNode, 3> nodes;
  queue.insert(nodes[0], 10 * kUnit);
  queue.insert(nodes[1], 20 * kUnit);
  TimerList due;
  EXPECT_FALSE(queue.expire(15 * kUnit, 10, due));
  EXPECT_EQ(popAll(due), std::vector{&nodes[0]});
  queue.insert(nodes[2], 17 * kUnit);
  EXPECT_FALSE(queue.expire(12 * kUnit, 10, due));
  EXPECT_TRUE(due.empty());
  queue.verify();
  EXPECT_FALSE(queue.expire(20 * kUnit, 10, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[2], &nodes[1]}));
}

TYPED_TEST(EveryQueue, SetAllKeepsTheOrder) {
  TypeParam queue;
  std::array<TimerNode, 5> nodes;
  const std::array<int64_t, 5> deadlines{kNever, 30 * kUnit, 7 * kUnit, 30 * kUnit, 50 * kUnit};
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], deadlines[i]);
  queue.setAll(40 * kUnit);
  queue.verify();
  EXPECT_EQ(queue.nextDue(), 40 * kUnit);
  TimerNode later;
  EXPECT_FALSE(queue.insert(later, 40 * kUnit));
  TimerList due;
  EXPECT_FALSE(queue.expire(40 * kUnit, 20, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[2], &nodes[1], &nodes[3], &nodes[4], &nodes[0], &later}));
}

TYPED_TEST(EveryQueueDeathTest, EraseOfANodeThatIsNotLinkedAborts) {
  TypeParam queue;
  TimerNode node;
  queue.insert(node, kUnit);
  queue.erase(node);
  EXPECT_DEATH(queue.erase(node), "check failed");
}

// TD-15, Q-9: what was handed out is not linked any more, either.
TYPED_TEST(EveryQueueDeathTest, EraseOfANodeThatWasHandedOutAborts) {
  TypeParam queue;
  std::array<TimerNode, 2> nodes;
  for (auto& node : nodes) queue.insert(node, kUnit);
  TimerList due;
  queue.expire(kUnit, 1, due);
  EXPECT_DEATH(queue.erase(*due.pop()), "check failed");
}

// TD-19, Q-4: equal deadlines fire in the order in which they were armed, also if many do and whatever was between.
TYPED_TEST(EveryQueue, EqualDeadlinesAreFifoAcrossLevels) {
  TypeParam queue;
  constexpr int64_t kDeadline = 70'000 * kUnit;
  std::array<TimerNode, 300> nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    queue.insert(nodes[i], kDeadline);
    TimerList due;
    EXPECT_FALSE(queue.expire(static_cast<int64_t>(i) * 230 * kUnit, 1'000, due));
    EXPECT_TRUE(due.empty());
  }
  TimerList due;
  while (queue.expire(kDeadline, 7, due)) queue.verify();
  for (auto& node : nodes) EXPECT_EQ(due.pop(), &node);
}

// TD-16, Q-8: what is armed while the due ones are being run, even for the past, does not disturb them.
TYPED_TEST(EveryQueue, ArmingAndErasingInsideTheExpiryLoopTouchesNobodyElse) {
  TypeParam queue;
  std::array<TimerNode, 6> nodes;
  for (size_t i = 0; i < 4; ++i) queue.insert(nodes[i], static_cast<int64_t>(10 + i) * kUnit);
  queue.insert(nodes[4], 100 * kUnit);
  std::vector<TimerNode*> order;
  for (TimerList due; queue.expire(20 * kUnit, 1, due) || !due.empty();) {
    TimerNode* const node = due.pop();
    if (node == nullptr) continue;  // the queue moved something inside
    order.push_back(node);
    if (node == &nodes[0]) queue.insert(nodes[5], kUnit);  // earlier than all that are left
    if (node == &nodes[1]) queue.erase(nodes[2]);
    queue.verify();
  }
  EXPECT_EQ(order.size(), 4u);
  EXPECT_EQ(std::count(order.begin(), order.end(), &nodes[5]), 1);
  EXPECT_EQ(std::count(order.begin(), order.end(), &nodes[2]), 0);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.nextDue(), 100 * kUnit);
}

// TD-17, Q-5: a deadline is absolute, so to update twice to the same one changes nothing but the order.
TYPED_TEST(EveryQueue, UpdateTwiceDoesNotAddUp) {
  TypeParam queue;
  TimerNode node;
  queue.insert(node, 10 * kUnit);
  queue.update(node, 50 * kUnit);
  queue.update(node, 50 * kUnit);
  EXPECT_EQ(queue.nextDue(), 50 * kUnit);
  TimerList due;
  EXPECT_FALSE(queue.expire(49 * kUnit, 5, due));
  EXPECT_TRUE(due.empty());
  EXPECT_FALSE(queue.expire(50 * kUnit, 5, due));
  EXPECT_EQ(due.pop(), &node);
}

}  // namespace
}  // namespace sylar
