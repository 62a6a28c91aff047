// Requests of other threads to a fiber. Tests who must send a message, and to whom.
#include "sylar/fiber/fiber_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "sylar/fiber/fiber_control.h"

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

// FM-04
TEST(FiberRequest, ToAnotherThreadIsTheFibersOwnIfThatIsAtHome) {
  const auto fiber = std::make_shared<Fiber>([] {});
  const auto is_own = [&fiber](const FiberRequest* request) {
    return reinterpret_cast<uintptr_t>(request) - reinterpret_cast<uintptr_t>(fiber.get()) < sizeof(Fiber);
  };
  FiberRequest* const own = FiberRequest::make(fiber, true);
  FiberRequest* const second = FiberRequest::make(fiber, true);
  FiberRequest* const local = FiberRequest::make(fiber, false);
  EXPECT_TRUE(is_own(own));
  EXPECT_FALSE(is_own(second));
  EXPECT_FALSE(is_own(local));
  for (FiberRequest* request : {second, own, local}) EXPECT_EQ(FiberRequest::open(request), fiber);
  FiberRequest* const again = FiberRequest::make(fiber, true);
  EXPECT_EQ(again, own);
  EXPECT_EQ(FiberRequest::open(again), fiber);
  EXPECT_EQ(fiber.use_count(), 1);
}

}  // namespace
}  // namespace sylar
