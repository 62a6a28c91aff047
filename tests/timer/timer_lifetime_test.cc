// Who outlives whom: timers, managers, callbacks and what they capture.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/timer.h"
#include "tests/support/manual_timers.h"

namespace sylar {
namespace {

using test::ManualTimers;

/// Runs a function when its last copy is destroyed.
std::shared_ptr<void> atEnd(std::function<void()> cb) {
  return {nullptr, [cb = std::move(cb)](void*) { cb(); }};
}

// C-24
TEST(TimerLifetime, EveryCallAfterTheManagersEndReturnsFalse) {
  std::optional<ManualTimers> timers(std::in_place);
  const auto armed = timers->addTimer(10, [] { FAIL(); });
  const auto recurring = timers->addTimer(
      10, [] { FAIL(); }, true);
  const auto collected = timers->addTimer(0, [] { FAIL(); });
  ASSERT_EQ(timers->collect().size(), 1u);
  timers.reset();
  for (const auto& timer : {armed, recurring, collected}) {
    EXPECT_FALSE(timer->cancel());
    EXPECT_FALSE(timer->refresh());
    EXPECT_FALSE(timer->reset(5, true));
    EXPECT_FALSE(timer->reset(10, false));
    timer->fire();
  }
}

// C-24
TEST(TimerLifetime, ManagersEndDestroysTheCapturesOfArmedTimers) {
  std::optional<ManualTimers> timers(std::in_place);
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  const auto kept = timers->addTimer(10, [captured] {});
  timers->addTimer(
      10, [captured] {}, true);
  captured.reset();
  timers.reset();
  EXPECT_TRUE(watch.expired());
}

// C-24
TEST(TimerLifetime, ManagersEndDestroysTimersThatCaptureThemselves) {
  std::weak_ptr<Timer> watch;
  {
    ManualTimers timers;
    auto self = std::make_shared<Timer::ptr>();
    *self = timers.addTimer(
        10, [self] {}, true);
    watch = *self;
  }
  EXPECT_TRUE(watch.expired());
}

// C-24
TEST(TimerLifetime, ListedRunsOutliveTheirManagerAsFarAsTheyWerePromised) {
  std::optional<ManualTimers> timers(std::in_place);
  int runs = 0;
  timers->addTimer(1, [&] { ++runs; });
  timers->addTimer(
      1, [] { FAIL(); }, true);
  timers->advanceMs(1);
  const auto cbs = timers->listDue();
  timers.reset();
  for (const auto& cb : cbs) cb();
  EXPECT_EQ(runs, 1);
}

TEST(TimerLifetime, CallbackMayDestroyTheManager) {
  for (const bool recurring : {false, true}) {
    std::optional<ManualTimers> timers(std::in_place);
    timers->addTimer(
        1, [&] { timers.reset(); }, recurring);
    timers->advanceMs(1);
    const auto due = timers->collect();
    ASSERT_EQ(due.size(), 1u);
    due[0]->fire();
    EXPECT_FALSE(timers.has_value());
    EXPECT_FALSE(due[0]->cancel());
  }
}

TEST(TimerLifetime, ClosedManagerHandsOutDeadTimers) {
  ManualTimers timers;
  timers.addTimer(10, [] {});
  timers.close();
  timers.close();
  auto captured = std::make_shared<int>();
  const std::weak_ptr<int> watch = captured;
  const auto timer = timers.addTimer(0, [captured = std::move(captured)] { FAIL(); });
  EXPECT_TRUE(watch.expired());
  EXPECT_FALSE(timer->refresh());
  EXPECT_FALSE(timer->cancel());
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(timers.getNextTimer(), ~0ull);
  EXPECT_EQ(timers.nextDueNs(), kNever);
  EXPECT_EQ(timers.runDue() + timers.dispatchDue(), 0u);
  EXPECT_EQ(timers.tickles, 1);
}

// C-24: close() lets no call into the derived class begin, and waits for those that have begun.
TEST(TimerLifetime, CloseWaitsForATickleUnderWay) {
  ManualTimers timers;
  const auto probe = timers.addTimer(1000, [] {});
  timers.getNextTimer();
  std::atomic<bool> inside{false};
  bool left = false;
  timers.on_tickle = [&] {
    inside = true;
    while (probe->refresh()) std::this_thread::yield();
    left = true;
  };
  const auto timer = timers.addTimer(2000, [] {});
  std::thread other([&] { timer->reset(1, true); });
  while (!inside) std::this_thread::yield();
  timers.close();
  EXPECT_TRUE(left);
  other.join();
}

/// What a destructor of captured data may do to the manager.
void useAll(ManualTimers& timers, const Timer::ptr& other, int& uses) {
  ++uses;
  timers.hasTimer();
  timers.getNextTimer();
  timers.addTimer(1'000, [] {})->cancel();
  other->refresh();
  other->reset(2'000, true);
  timers.listDue();
  timers.collect();
}

// C-31, TD-10
TEST(TimerLifetime, DestructorOfACaptureMayUseTheManager) {
  int uses = 0;
  std::optional<ManualTimers> timers(std::in_place);
  const auto other = timers->addTimer(10'000, [] {});
  const auto capture = [&] { return atEnd([&] { useAll(*timers, other, uses); }); };

  for (const bool recurring : {false, true}) {
    const auto cancelled = timers->addTimer(
        10, [captured = capture()] {}, recurring);
    EXPECT_TRUE(cancelled->cancel());
  }
  EXPECT_EQ(uses, 2);

  timers->addTimer(1, [captured = capture()] {});
  timers->advanceMs(1);
  timers->runDue();
  timers->addTimer(1, [captured = capture()] {});
  timers->advanceMs(1);
  timers->dispatchDue();
  EXPECT_EQ(uses, 4);

  for (const bool recurring : {false, true}) {
    timers->addConditionTimer(
        1, [captured = capture()] {}, std::weak_ptr<void>{}, recurring);
    timers->advanceMs(1);
    recurring ? timers->runDue() : timers->dispatchDue();
  }
  EXPECT_EQ(uses, 6);

  timers->addTimer(10, [captured = capture()] {});
  timers->close();
  EXPECT_EQ(uses, 7);
}

}  // namespace
}  // namespace sylar
