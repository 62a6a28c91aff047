// Requests of other threads to a fiber. Tests who must send a message, and to whom.
#include "sylar/fiber/fiber_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

namespace sylar {
namespace {

struct Home {
  std::atomic<uint64_t> owner{0};
};

TEST(FiberRequests, TheFirstAskerSendsUntilAllIsTaken) {
  FiberRequests<Home> requests;
  EXPECT_TRUE(requests.post(1));
  EXPECT_FALSE(requests.post(1));
  EXPECT_FALSE(requests.post(2));
  EXPECT_EQ(requests.pending(), 3);
  EXPECT_EQ(requests.take(), 3);
  EXPECT_EQ(requests.take(), 0);
  EXPECT_TRUE(requests.post(2));
}

TEST(FiberRequests, ANewHomeGetsWhatWasAskedOnTheWay) {
  Home home{7};
  FiberRequests<Home> requests;
  EXPECT_TRUE(requests.post(2));
  EXPECT_EQ(requests.home(), nullptr);
  EXPECT_EQ(requests.moveIn(&home), 2);
  EXPECT_EQ(requests.home(), &home);
  EXPECT_TRUE(requests.at(&home));
  EXPECT_FALSE(requests.byHand());
  requests.moveOut();
  EXPECT_EQ(requests.home(), nullptr);
  EXPECT_EQ(requests.moveIn(&home), 0);
}

TEST(FiberRequests, AHomeThatHasAnotherOwnerIsNone) {
  Home home{7};
  FiberRequests<Home> requests;
  EXPECT_EQ(requests.moveIn(&home), 0);
  for (const uint64_t owner : {8, 0}) {
    home.owner = owner;
    EXPECT_EQ(requests.home(), nullptr);
    EXPECT_FALSE(requests.at(&home));
  }
  EXPECT_EQ(requests.moveIn(&home), 0);  // without an owner it is a plain thread's
  EXPECT_EQ(requests.home(), nullptr);
  EXPECT_TRUE(requests.byHand());
}

TEST(FiberRequests, ClearedItIsNobodysAndNothingWasAsked) {
  Home home{7};
  FiberRequests<Home> requests;
  EXPECT_EQ(requests.moveIn(&home), 0);
  EXPECT_TRUE(requests.post(1));
  requests.clear();
  EXPECT_EQ(requests.home(), nullptr);
  EXPECT_EQ(requests.pending(), 0);
  EXPECT_TRUE(requests.byHand());
}

}  // namespace
}  // namespace sylar
