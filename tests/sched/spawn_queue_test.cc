// Protocol P2: the queue of unstarted work, on one thread.
#include "sylar/sched/spawn_queue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <vector>

namespace sylar {
namespace {

struct Item : SpawnNode {
  explicit Item(int what) : value(what) {}
  const int value;
};

class SpawnQueueTest : public testing::Test {
 protected:
  Pushed push(int value) { return queue.push(&items.emplace_back(value)); }
  void fill(int count) {
    for (int i = 1; i <= count; ++i) ASSERT_NE(push(i), Pushed::kRejected);
  }
  /// All that is left, from the head.
  std::vector<int> takeAll() {
    std::vector<int> values;
    while (QueueNode* node = queue.take()) values.push_back(static_cast<Item*>(node)->value);
    return values;
  }
  std::vector<int> steal() {
    NodeList loot;
    const size_t share = queue.steal(&loot);
    std::vector<int> values;
    while (QueueNode* node = loot.pop()) values.push_back(static_cast<Item*>(node)->value);
    EXPECT_EQ(values.size(), share);
    return values;
  }

  SpawnQueue<> queue;
  std::deque<Item> items;
};

TEST_F(SpawnQueueTest, TakesFromTheHead) {
  fill(3);
  EXPECT_EQ(queue.count(), 3u);
  for (size_t i = 1; i <= 3; ++i) {
    QueueNode* const node = queue.take();
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(static_cast<Item*>(node)->value, static_cast<int>(i));
    EXPECT_EQ(queue.count(), 3 - i);
  }
  EXPECT_EQ(queue.take(), nullptr);
  EXPECT_EQ(queue.count(), 0u);
}

// The one who makes it non-empty wakes a sleeper; nobody else does.
TEST_F(SpawnQueueTest, OnlyAPushIntoTheEmptyQueueIsTheFirst) {
  EXPECT_EQ(push(1), Pushed::kFirst);
  EXPECT_EQ(push(2), Pushed::kMore);
  EXPECT_EQ(takeAll(), (std::vector{1, 2}));
  EXPECT_EQ(push(3), Pushed::kFirst);
  EXPECT_EQ(steal(), std::vector{3});
  EXPECT_EQ(push(4), Pushed::kFirst);
}

// RT-7.5
TEST_F(SpawnQueueTest, AThiefTakesTheOlderHalfRoundedUp) {
  struct Case {
    int count;
    std::vector<int> stolen, left;
  };
  const std::vector<Case> cases = {
      {0, {}, {}}, {1, {1}, {}}, {2, {1}, {2}}, {3, {1, 2}, {3}}, {4, {1, 2}, {3, 4}}, {7, {1, 2, 3, 4}, {5, 6, 7}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.count);
    fill(c.count);
    EXPECT_EQ(steal(), c.stolen);
    EXPECT_EQ(queue.count(), c.left.size());
    EXPECT_EQ(takeAll(), c.left);
  }
}

// P-12
TEST_F(SpawnQueueTest, OneMayBeTakenOutWhereverItStands) {
  for (const int out : {1, 2, 3}) {
    SCOPED_TRACE(out);
    items.clear();
    fill(3);
    Item& one = items[static_cast<size_t>(out) - 1];
    EXPECT_TRUE(queue.takeOut(one));
    EXPECT_EQ(queue.count(), 2u);
    EXPECT_FALSE(queue.takeOut(one));
    EXPECT_NE(push(4), Pushed::kRejected);
    EXPECT_NE(queue.push(&one), Pushed::kRejected);
    std::vector<int> expected{1, 2, 3};
    std::erase(expected, out);
    expected.push_back(4);
    expected.push_back(out);
    EXPECT_EQ(takeAll(), expected);
  }
}

TEST_F(SpawnQueueTest, OneOfAnotherQueueIsNotTakenOut) {
  fill(1);
  SpawnQueue<> other;
  EXPECT_FALSE(other.takeOut(items[0]));
  steal();
  EXPECT_FALSE(queue.takeOut(items[0]));
  EXPECT_EQ(other.push(&items[0]), Pushed::kFirst);
  EXPECT_FALSE(queue.takeOut(items[0]));
  EXPECT_TRUE(other.takeOut(items[0]));
}

TEST_F(SpawnQueueTest, WhatIsPushedAfterATheftStandsBehindTheRest) {
  fill(4);
  steal();
  push(5);
  EXPECT_EQ(takeAll(), (std::vector{3, 4, 5}));
}

// CD-S12
TEST_F(SpawnQueueTest, ClosedItRefusesEverything) {
  ASSERT_TRUE(queue.closeIfEmpty([] { return true; }));
  EXPECT_EQ(push(1), Pushed::kRejected);
  EXPECT_EQ(queue.count(), 0u);
  EXPECT_TRUE(takeAll().empty());
  bool ran = false;
  EXPECT_FALSE(queue.admit([&] { ran = true; }));
  EXPECT_FALSE(ran);
}

TEST_F(SpawnQueueTest, ItIsNotClosedOverWork) {
  push(1);
  EXPECT_FALSE(queue.closeIfEmpty([] { return true; }));
  EXPECT_EQ(push(2), Pushed::kMore);
  EXPECT_EQ(takeAll(), (std::vector{1, 2}));
}

TEST_F(SpawnQueueTest, ItIsNotClosedAgainstTheLastLook) {
  EXPECT_FALSE(queue.closeIfEmpty([] { return false; }));
  EXPECT_EQ(push(1), Pushed::kFirst);
  bool ran = false;
  EXPECT_TRUE(queue.admit([&] { ran = true; }));
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sylar
