// The small parts of examples/jobs: what is known of the clock of a store, pauses that grow, lags.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>

#include "examples/jobs/backoff.h"
#include "examples/jobs/lags.h"
#include "examples/jobs/store_clock.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMs = 1'000'000;

// J-1
TEST(StoreClock, NoTimeIsTakenForReachedBeforeItIs) {
  StoreClock clock;
  clock.observe(100 * kMs, Time(5s), 140 * kMs);  // the store's 5 s lie between 100 ms and 140 ms here
  EXPECT_EQ(clock.localNs(Time(5s)), 140 * kMs);
  EXPECT_EQ(clock.storeTime(140 * kMs), Time(5s));
  EXPECT_EQ(clock.uncertainty(), 40ms);
}

TEST(StoreClock, QuickCallsNarrowItDown) {
  StoreClock clock;
  clock.observe(100 * kMs, Time(5s), 140 * kMs);
  clock.observe(200 * kMs, Time(5s + 80ms), 202 * kMs);
  EXPECT_EQ(clock.localNs(Time(5s)), 122 * kMs);
  EXPECT_EQ(clock.uncertainty(), 2ms);
  clock.observe(300 * kMs, Time(5s + 190ms), 390 * kMs);  // a slow one takes nothing away
  EXPECT_EQ(clock.localNs(Time(5s)), 122 * kMs);
}

TEST(StoreClock, WhatIsOldCountsNoLonger) {
  StoreClock clock;
  clock.observe(0, Time(5s), 1 * kMs);
  clock.observe(60'000 * kMs, Time(65s), 60'008 * kMs);
  EXPECT_EQ(clock.uncertainty(), 8ms);
}

TEST(StoreClock, AStepOfTheStoresClockIsFollowed) {
  StoreClock clock;
  clock.observe(0, Time(50s), 1 * kMs);
  clock.observe(10 * kMs, Time(20s), 12 * kMs);
  EXPECT_EQ(clock.localNs(Time(20s)), 12 * kMs);
  EXPECT_EQ(clock.localNs(kNoTime), std::numeric_limits<int64_t>::max());
}

// J-4
TEST(Backoff, DoublesUpToItsLimitAndVariesByHalf) {
  std::mt19937_64 random(1);
  const Backoff backoff{1s, 60s};
  for (const auto& [failures, whole] : std::vector<std::pair<uint32_t, Micros>>{
           {1, 1s}, {2, 2s}, {3, 4s}, {6, 32s}, {7, 60s}, {8, 60s}, {1000, 60s}, {std::numeric_limits<uint32_t>::max(), 60s}}) {
    Micros least = 1h;
    Micros most{0};
    for (int i = 0; i < 1000; ++i) {
      const Micros pause = backoff.after(failures, random);
      least = std::min(least, pause);
      most = std::max(most, pause);
    }
    EXPECT_GE(least, whole / 2) << failures;
    EXPECT_LE(most, whole) << failures;
    EXPECT_GT(most - least, whole / 3) << failures;
  }
}

TEST(Lags, QuantilesAreThoseOfTheLatest) {
  Lags lags;
  EXPECT_EQ(lags.quantile(0.99), 0us);
  for (int i = 0; i < 5000; ++i) lags.add(1h);
  for (int i = 4096; i > 0; --i) lags.add(Micros(i));
  EXPECT_EQ(lags.quantile(0), 1us);
  EXPECT_EQ(lags.quantile(0.5), 2048us);
  EXPECT_EQ(lags.quantile(1), 4096us);
}

}  // namespace
}  // namespace jobs
