#include "sylar/testing/virtual_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

namespace sylar {
namespace {

using namespace std::chrono_literals;

TEST(VirtualTime, AnHourOfSleepIsAnHourOnItsClock) {
  VirtualTime time;
  time.run([] { EXPECT_EQ(sleep(3600), 0U); });
  EXPECT_EQ(time.elapsed(), 1h);
}

}  // namespace
}  // namespace sylar
