#include "sylar/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace sylar {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

const int64_t g_before_main_ns = steadyClock().nowNs();

TEST(Clock, SteadyClockWorksBeforeMainAndNeverGoesBack) {
  EXPECT_GT(g_before_main_ns, 0);
  int64_t last_ns = g_before_main_ns;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t now_ns = steadyClock().nowNs();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
  EXPECT_GT(last_ns, g_before_main_ns);
}

TEST(Clock, SteadyClockIsTheMonotonicClock) {
  const auto now_ns = [] {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  };
  const int64_t before_ns = now_ns();
  const int64_t ns = steadyClock().nowNs();
  EXPECT_LE(before_ns, ns);
  EXPECT_LE(ns, now_ns());
}

TEST(Clock, ManualClockStandsStillUntilMoved) {
  ManualClock clock(5s);
  EXPECT_EQ(clock.nowNs(), 5'000'000'000);
  EXPECT_EQ(clock.nowNs(), 5'000'000'000);
  clock.advance(1ns);
  EXPECT_EQ(clock.nowNs(), 5'000'000'001);
  clock.advance(-2s);
  EXPECT_EQ(clock.nowNs(), 3'000'000'001);
  clock.set(7ms);
  EXPECT_EQ(clock.nowNs(), 7'000'000);
  EXPECT_EQ(ManualClock().nowNs(), 0);
}

TEST(Clock, AdditionSaturatesAtNever) {
  static_assert(kNever == kMax);
  EXPECT_EQ(saturatingAdd(1, 2), 3);
  EXPECT_EQ(saturatingAdd(0, 0), 0);
  EXPECT_EQ(saturatingAdd(kMax - 1, 1), kNever);
  EXPECT_EQ(saturatingAdd(kMax - 2, 1), kMax - 1);
  EXPECT_EQ(saturatingAdd(kMax - 1, 2), kNever);
  EXPECT_EQ(saturatingAdd(kNever, 1), kNever);
  EXPECT_EQ(saturatingAdd(1, kNever), kNever);
  EXPECT_EQ(saturatingAdd(kNever, kNever), kNever);
}

TEST(Clock, MillisecondsSaturateAtNever) {
  EXPECT_EQ(msToNs(0), 0);
  EXPECT_EQ(msToNs(1), 1'000'000);
  EXPECT_EQ(msToNs(1ull << 32), 4'294'967'296'000'000);
  constexpr uint64_t kLast = static_cast<uint64_t>(kMax) / 1'000'000;
  EXPECT_EQ(msToNs(kLast), static_cast<int64_t>(kLast * 1'000'000));
  EXPECT_EQ(msToNs(kLast + 1), kNever);
  EXPECT_EQ(msToNs(1ull << 63), kNever);
  EXPECT_EQ(msToNs(~0ull), kNever);
}

TEST(Deadline, CountsFromTheClockItIsGiven) {
  ManualClock clock(10s);
  EXPECT_EQ(Deadline::after(5ms, clock).ns(), 10'005'000'000);
  EXPECT_EQ(Deadline::after(0ns, clock), Deadline::at(10'000'000'000));
  const int64_t before_ns = steadyClock().nowNs();
  EXPECT_GE(Deadline::after(1h).ns(), before_ns + std::chrono::nanoseconds(1h).count());
}

TEST(Deadline, NegativeDelayIsNow) {
  ManualClock clock(10s);
  EXPECT_EQ(Deadline::after(-1ns, clock).ns(), 10'000'000'000);
  EXPECT_EQ(Deadline::after(std::chrono::nanoseconds::min(), clock).ns(), 10'000'000'000);
}

TEST(Deadline, SaturatesToNever) {
  ManualClock clock(10s);
  EXPECT_TRUE(Deadline::after(std::chrono::nanoseconds::max(), clock).isNever());
  EXPECT_TRUE(Deadline::after(std::chrono::nanoseconds(kMax - 10'000'000'000), clock).isNever());
  EXPECT_FALSE(Deadline::after(std::chrono::nanoseconds(kMax - 10'000'000'001), clock).isNever());
  EXPECT_EQ(Deadline::never().ns(), kNever);
}

TEST(Deadline, IsOrdered) {
  EXPECT_LT(Deadline::at(1), Deadline::at(2));
  EXPECT_LT(Deadline::at(kMax - 1), Deadline::never());
  EXPECT_EQ(Deadline::at(kMax), Deadline::never());
}

}  // namespace
}  // namespace sylar
