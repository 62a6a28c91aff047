// Protocol P2: the mailbox and the sleep flag in one word, on one thread.
#include "sylar/sched/mailbox.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace sylar {
namespace {

struct Letter : QueueNode {
  explicit Letter(int what) : QueueNode(Kind::kMessage), value(what) {}
  const int value;
};

std::vector<int> read(NodeList mail) {
  std::vector<int> values;
  while (QueueNode* node = mail.pop()) values.push_back(static_cast<Letter*>(node)->value);
  return values;
}

class MailboxTest : public testing::Test {
 protected:
  Mailbox<> box;
  Letter a{1}, b{2}, c{3};
};

TEST_F(MailboxTest, BeginsAwakeAndEmpty) {
  EXPECT_FALSE(box.sleeping());
  EXPECT_TRUE(box.drain().empty());
}

TEST_F(MailboxTest, DrainGivesTheOrderInWhichItWasPutIn) {
  for (Letter* letter : {&a, &b, &c}) EXPECT_FALSE(box.push(letter));
  EXPECT_EQ(read(box.drain()), (std::vector{1, 2, 3}));
  EXPECT_TRUE(box.drain().empty());
}

TEST_F(MailboxTest, WhatWasDrainedMayBePutInAgain) {
  EXPECT_FALSE(box.push(&a));
  EXPECT_FALSE(box.push(&b));
  EXPECT_EQ(read(box.drain()), (std::vector{1, 2}));
  EXPECT_FALSE(box.push(&b));
  EXPECT_FALSE(box.push(&a));
  EXPECT_EQ(read(box.drain()), (std::vector{2, 1}));
}

TEST_F(MailboxTest, SleepIsRefusedWhileThereIsMail) {
  EXPECT_FALSE(box.push(&a));
  EXPECT_FALSE(box.trySleep());
  EXPECT_FALSE(box.sleeping());
  EXPECT_EQ(read(box.drain()), std::vector{1});
  EXPECT_TRUE(box.trySleep());
  EXPECT_TRUE(box.sleeping());
}

// RT-7.2: the first letter wakes, the others find the owner woken.
TEST_F(MailboxTest, OnlyTheFirstLetterToASleeperNotifies) {
  ASSERT_TRUE(box.trySleep());
  EXPECT_TRUE(box.push(&a));
  EXPECT_FALSE(box.sleeping());
  EXPECT_FALSE(box.push(&b));
  box.wakeUp();
  EXPECT_EQ(read(box.drain()), (std::vector{1, 2}));
}

TEST_F(MailboxTest, ASleepIsEndedByOneWakerOnly) {
  ASSERT_TRUE(box.trySleep());
  EXPECT_TRUE(box.tryWake());
  EXPECT_FALSE(box.tryWake());
  EXPECT_FALSE(box.push(&a)) << "it has been notified already";
}

TEST_F(MailboxTest, TryWakeOfOneThatIsAwakeDoesNothing) {
  EXPECT_FALSE(box.tryWake());
  EXPECT_FALSE(box.push(&a));
  EXPECT_FALSE(box.tryWake());
  EXPECT_EQ(read(box.drain()), std::vector{1});
}

TEST_F(MailboxTest, TheOwnerEndsItsSleepItself) {
  ASSERT_TRUE(box.trySleep());
  box.wakeUp();
  EXPECT_FALSE(box.sleeping());
  EXPECT_FALSE(box.push(&a));
}

TEST_F(MailboxTest, DrainEndsASleepToo) {
  ASSERT_TRUE(box.trySleep());
  EXPECT_TRUE(box.drain().empty());
  EXPECT_FALSE(box.sleeping());
  EXPECT_TRUE(box.trySleep());
}

TEST_F(MailboxTest, EverySleepMayBeNotifiedAnew) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(box.trySleep());
    EXPECT_TRUE(box.push(&a));
    EXPECT_EQ(read(box.drain()), std::vector{1});
  }
}

}  // namespace
}  // namespace sylar
