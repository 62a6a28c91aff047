// What other threads ask of a fiber: who must send a question, and to whom.
#include "sylar/fiber/asks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

namespace sylar {
namespace {

struct Home {
  std::atomic<uint64_t> owner{0};
};

TEST(Asks, TheFirstAskerSendsUntilAllIsTaken) {
  Asks<Home> asks;
  EXPECT_TRUE(asks.ask(1));
  EXPECT_FALSE(asks.ask(1));
  EXPECT_FALSE(asks.ask(2));
  EXPECT_EQ(asks.asked(), 3);
  EXPECT_EQ(asks.take(), 3);
  EXPECT_EQ(asks.take(), 0);
  EXPECT_TRUE(asks.ask(2));
}

TEST(Asks, ANewHomeGetsWhatWasAskedOnTheWay) {
  Home home{7};
  Asks<Home> asks;
  EXPECT_TRUE(asks.ask(2));
  EXPECT_EQ(asks.home(), nullptr);
  EXPECT_EQ(asks.settle(&home), 2);
  EXPECT_EQ(asks.home(), &home);
  EXPECT_TRUE(asks.at(&home));
  EXPECT_FALSE(asks.byHand());
  asks.leave();
  EXPECT_EQ(asks.home(), nullptr);
  EXPECT_EQ(asks.settle(&home), 0);
}

TEST(Asks, AHomeThatHasAnotherOwnerIsNone) {
  Home home{7};
  Asks<Home> asks;
  EXPECT_EQ(asks.settle(&home), 0);
  for (const uint64_t owner : {8, 0}) {
    home.owner = owner;
    EXPECT_EQ(asks.home(), nullptr);
    EXPECT_FALSE(asks.at(&home));
  }
  EXPECT_EQ(asks.settle(&home), 0);  // without an owner it is a plain thread's
  EXPECT_EQ(asks.home(), nullptr);
  EXPECT_TRUE(asks.byHand());
}

TEST(Asks, ClearedItIsNobodysAndNothingWasAsked) {
  Home home{7};
  Asks<Home> asks;
  EXPECT_EQ(asks.settle(&home), 0);
  EXPECT_TRUE(asks.ask(1));
  asks.clear();
  EXPECT_EQ(asks.home(), nullptr);
  EXPECT_EQ(asks.asked(), 0);
  EXPECT_TRUE(asks.byHand());
}

}  // namespace
}  // namespace sylar
