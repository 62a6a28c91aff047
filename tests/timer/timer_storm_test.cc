// A million timers that are due at once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"
#include "tests/support/sanitized.h"

namespace sylar {
namespace {

constexpr size_t kTimers = test::kSanitized ? 100'000 : 1'000'000;
constexpr size_t kBudget = 2'000;
constexpr size_t kMovesPerRun = 16;  // what a wheel may move inside for each run of the budget

/// Counts runs, and those out of turn.
struct Storm {
  struct Timer {
    Storm* storm;
    size_t number;
    void run() const {
      storm->out_of_turn += storm->runs == number ? 0 : 1;
      ++storm->runs;
    }
  };
  size_t runs = 0;
  size_t out_of_turn = 0;
};

// C-46, CD-T10, TD-20: each runs once, in the order of arming, and no pass runs more than its budget. Every eighth is a Timer,
// the others have ids.
TEST(TimerStorm, AMillionDueAtOnceRunOnceEachInOrderInBoundedPasses) {
  test::ManualTimers timers;
  Storm storm;
  std::vector<Storm::Timer> all(kTimers);
  for (size_t i = 0; i < kTimers; ++i) {
    all[i] = {&storm, i};
    const auto run = [timer = &all[i]] { timer->run(); };
    if (i % 8 == 0) {
      timers.addTimer(1'000, run);
    } else {
      ASSERT_NE(timers.startTimer(std::chrono::seconds(1), run), 0u);
    }
  }
  timers.advanceMs(1'000);
  size_t passes = 0;
  for (; storm.runs < kTimers && passes < kTimers; ++passes) {
    ASSERT_EQ(timers.getNextTimer(), 0u) << "due until empty";
    ASSERT_LE(timers.dispatchDue(kBudget), kBudget);
    ASSERT_LE(storm.runs, (passes + 1) * kBudget);
  }
  EXPECT_EQ(storm.runs, kTimers);
  EXPECT_EQ(storm.out_of_turn, 0u);
  EXPECT_GE(passes, kTimers / kBudget);
  EXPECT_LE(passes, kTimers / kBudget + kTimers / kBudget / kMovesPerRun + 8);
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(timers.dispatchDue(kBudget), 0u);
}

}  // namespace
}  // namespace sylar
