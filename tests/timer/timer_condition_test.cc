// Timers with a condition: they run only while something else is alive.
#include <gtest/gtest.h>

#include <memory>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using test::ManualTimers;

// C-25
TEST(ConditionTimer, ConditionIsHeldDuringTheCallbackOnly) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    auto condition = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = condition;
    int runs = 0;
    timers.addConditionTimer(
        10,
        [&] {
          condition.reset();
          EXPECT_FALSE(watch.expired());
          ++runs;
        },
        condition);
    timers.advanceMs(10);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_EQ(runs, 1);
    EXPECT_TRUE(watch.expired());
  }
}

// C-25
TEST(ConditionTimer, ConditionIsAskedWhenTheCallbackIsAboutToRunAndNotAtCollection) {
  ManualTimers timers;
  auto condition = std::make_shared<int>(0);
  timers.addConditionTimer(
      10, [] { FAIL(); }, condition);
  timers.addConditionTimer(
      10, [] { FAIL(); }, condition, true);
  timers.advanceMs(10);
  const auto cbs = timers.listDue();
  EXPECT_EQ(cbs.size(), 2u);
  condition.reset();
  for (const auto& cb : cbs) cb();

  condition = std::make_shared<int>(0);
  timers.addConditionTimer(
      10, [] { FAIL(); }, condition);
  timers.advanceMs(10);
  const auto due = timers.collect();
  EXPECT_EQ(due.size(), 2u);  // this one, and one whose condition is gone: fire() lets go of its captures
  condition.reset();
  for (const auto& timer : due) timer->fire();
}

// C-26
TEST(ConditionTimer, OneShotWithADeadConditionDisappears) {
  ManualTimers timers;
  auto condition = std::make_shared<int>(0);
  const auto timer = timers.addConditionTimer(
      10, [] { FAIL(); }, condition);
  condition.reset();
  timers.advanceMs(10);
  timers.runDue();
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_FALSE(timer->cancel());
}

// C-26: a condition that never was is dead.
TEST(ConditionTimer, EmptyConditionIsDead) {
  ManualTimers timers;
  timers.addConditionTimer(
      10, [] { FAIL(); }, std::weak_ptr<void>{});
  timers.advanceMs(10);
  timers.dispatchDue();
  EXPECT_FALSE(timers.hasTimer());
}

// C-27
TEST(ConditionTimer, TimerDoesNotKeepItsConditionAlive) {
  ManualTimers timers;
  auto condition = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = condition;
  const auto timer = timers.addConditionTimer(
      10, [] {}, condition, true);
  condition.reset();
  EXPECT_TRUE(watch.expired());
}

// C-28, TD-7
TEST(ConditionTimer, RecurringWithADeadConditionIsRemovedWithItsCapturesWhenNextDue) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    auto condition = std::make_shared<int>(0);
    auto captured = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = captured;
    int runs = 0;
    const auto timer = timers.addConditionTimer(
        10, [&runs, captured = std::move(captured)] { ++runs; }, condition, true);
    timers.advanceMs(10);
    dispatch ? timers.dispatchDue() : timers.runDue();
    EXPECT_EQ(runs, 1);
    condition.reset();
    EXPECT_TRUE(timers.hasTimer());
    timers.advanceMs(10);
    EXPECT_EQ(dispatch ? timers.dispatchDue() : timers.runDue(), dispatch ? 1u : 0u)
        << "handed out so that fire() lets go of its captures";
    EXPECT_FALSE(timers.hasTimer());
    EXPECT_TRUE(watch.expired());
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(timer->refresh());
  }
}

}  // namespace
}  // namespace sylar
