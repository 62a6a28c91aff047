// A TimerManager on a clock that the test moves, with the two kinds of driver that serve one: the vector API and dispatch.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar::test {

struct OwnedClock {
  ManualClock clock;
};

/// Starts at ten hours, so that even a large step back stays above the clock's zero.
class ManualTimers : private OwnedClock, public TimerManager {
 public:
  explicit ManualTimers(std::chrono::nanoseconds start = std::chrono::hours{10}, TimerQueueKind queue = queueKind())
      : OwnedClock{ManualClock{start}}, TimerManager(OwnedClock::clock, queue) {}
  ~ManualTimers() override { close(); }

  using TimerManager::close;
  ManualClock& time() { return OwnedClock::clock; }
  void advanceMs(int64_t ms) { time().advance(std::chrono::milliseconds{ms}); }

  /// The callbacks that are due, not yet run.
  std::vector<std::function<void()>> listDue() {
    std::vector<std::function<void()>> cbs;
    listExpiredCb(cbs);
    return cbs;
  }
  /// A driver's pass with the vector API; the number of callbacks run.
  size_t runDue() {
    const auto cbs = listDue();
    for (const auto& cb : cbs) cb();
    return cbs.size();
  }

  /// The timers that are due, handed out, not yet fired.
  std::vector<Timer::ptr> collect(size_t budget = ~size_t{0}) {
    std::vector<Timer::ptr> timers;
    collectDue(budget, timers);
    return timers;
  }
  /// A driver's pass with dispatch; the number of timers fired.
  size_t dispatchDue(size_t budget = ~size_t{0}) {
    const auto timers = collect(budget);
    for (const auto& timer : timers) timer->fire();
    return timers.size();
  }

  using TimerManager::anyWillFallDue;

  int tickles = 0;                  ///< calls of onTimerInsertedAtFront()
  int gone = 0;                     ///< calls of onLastTimerGone()
  std::function<void()> on_tickle;  ///< run by onTimerInsertedAtFront(), if set
  std::function<void()> on_gone;

 protected:
  void onTimerInsertedAtFront() override {
    ++tickles;
    if (on_tickle) on_tickle();
  }
  void onLastTimerGone() override {
    ++gone;
    if (on_gone) on_gone();
  }
};

}  // namespace sylar::test
