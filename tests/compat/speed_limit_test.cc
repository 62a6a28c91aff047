#include "sylar/compat/speed_limit.h"

#include <gtest/gtest.h>

#include "sylar/iomanager.h"

namespace sylar {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(SpeedLimit, AmountsTakeTheirTime) {
  ManualClock clock;
  SpeedLimit limit(1000, clock);
  EXPECT_EQ(limit.take(0), nanoseconds(0));
  EXPECT_EQ(limit.take(100), milliseconds(100));
  EXPECT_EQ(limit.take(50), milliseconds(150)) << "one after the other";
  clock.advance(milliseconds(150));
  EXPECT_EQ(limit.take(50), milliseconds(50));
}

TEST(SpeedLimit, PausesAreNotMadeUpFor) {
  ManualClock clock;
  SpeedLimit limit(1000, clock);
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(limit.take(2000), milliseconds(2000));
}

TEST(SpeedLimit, LargestAmountsAndNone) {
  ManualClock clock;
  EXPECT_EQ(SpeedLimit(1, clock).take(UINT32_MAX), std::chrono::seconds(UINT32_MAX));
  EXPECT_EQ(SpeedLimit(UINT32_MAX, clock).take(UINT32_MAX), std::chrono::seconds(1));
  EXPECT_EQ(SpeedLimit(0, clock).take(UINT32_MAX), nanoseconds(0)) << "no limit";
}

// One worker: while a fiber sleeps in add(), others run.
TEST(SpeedLimit, AddSuspendsAFiber) {
  bool other_ran = false;
  {
    IOManager iom(1, false, "limit");
    iom.schedule([&] {
      iom.schedule([&] { other_ran = true; });
      SpeedLimit limit(1000);
      while (!other_ran) limit.add(1);
    });
  }
  EXPECT_TRUE(other_ran);
}

}  // namespace
}  // namespace sylar
