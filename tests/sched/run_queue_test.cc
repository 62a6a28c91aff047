// A worker's run queue: its order, and to whom it belongs.
#include "sylar/sched/run_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace sylar {
namespace {

struct Node : QueueNode {
  explicit Node(Kind what = Kind::kCore) : QueueNode(what) {}
};

std::vector<QueueNode*> all(NodeList list) {
  std::vector<QueueNode*> nodes;
  while (QueueNode* const node = list.pop()) nodes.push_back(node);
  return nodes;
}

TEST(NodeList, AppendKeepsTheOrderAndEmptiesTheOther) {
  Node a, b, c;
  NodeList first, second, none;
  first.append(none);
  EXPECT_TRUE(first.empty());
  second.push(&a);
  first.append(second);
  EXPECT_TRUE(second.empty());
  second.push(&b);
  second.push(&c);
  first.append(second);
  first.append(none);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(all(first), (std::vector<QueueNode*>{&a, &b, &c}));
}

TEST(RunQueue, WhatAFiberMakesRunnableComesBehindWhatWasThere) {
  RunQueue<> queue;
  Node before, first, second, after;
  queue.push(&before);
  queue.leaveLoop();
  queue.push(&first);
  queue.push(&second);
  ASSERT_TRUE(queue.comeBack());
  queue.push(&after);
  for (Node* node : {&before, &first, &second, &after}) EXPECT_EQ(queue.pop(), node);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(RunQueue, HoldsThoseWhoseBudgetIsSpentApart) {
  RunQueue<> queue;
  Node spent, other;
  queue.pushSpent(&spent);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  queue.push(&other);
  EXPECT_EQ(queue.pop(), &other);
  EXPECT_EQ(queue.popSpent(), &spent);
  EXPECT_EQ(queue.popSpent(), nullptr);
  EXPECT_TRUE(queue.empty());
}

TEST(RunQueue, OnlyAWorkerInAFiberIsDetachedAndOnlyOnce) {
  RunQueue<> queue;
  EXPECT_FALSE(queue.detach());
  EXPECT_FALSE(queue.detached());
  queue.leaveLoop();
  EXPECT_TRUE(queue.detach());
  EXPECT_TRUE(queue.detached());
  EXPECT_FALSE(queue.detach());
  EXPECT_FALSE(queue.comeBack());
}

TEST(RunQueue, WhatADetachedWorkerHadIsLeftAndItsFiberTouchesNothingOfThat) {
  RunQueue<> queue;
  Node left, spent, later;
  queue.push(&left);
  queue.pushSpent(&spent);
  queue.leaveLoop();
  ASSERT_TRUE(queue.detach());
  queue.push(&later);
  EXPECT_EQ(all(queue.takeLeft()), (std::vector<QueueNode*>{&left, &spent}));
}

TEST(SortLeft, OpensMessagesAndCollectsWhatHasNotRun) {
  Node fiber(QueueNode::Kind::kFiber), message(QueueNode::Kind::kMessage), core, another(QueueNode::Kind::kFiber);
  NodeList left, unrun;
  for (Node* node : {&fiber, &message, &core, &another}) left.push(node);
  std::vector<QueueNode*> opened;
  sortLeft(
      left, [&](QueueNode* node) { opened.push_back(node); }, unrun);
  EXPECT_EQ(opened, (std::vector<QueueNode*>{&message}));
  EXPECT_EQ(all(unrun), (std::vector<QueueNode*>{&fiber, &another}));
}

}  // namespace
}  // namespace sylar
