// What happens when a driver fires a timer: it is claimed, and its callback runs.
#include <cxxabi.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/check.h"
#include "sylar/timer/timer_core.h"

namespace sylar {
namespace {

constexpr uint32_t kManyRuns = 100;  // of one timer at once
constexpr size_t kAhead = 4;         // timers that are fetched while one runs

}  // namespace

void Timer::fire() {
  auto& timer = ArmedTimer::of(*this);
  TimerCore& core = *timer.m_core;
  if (core.isParents()) return;
  if (&timer == &core.m_runner) return core.runPooled();
  if (const auto action = core.claimDispatched(timer)) core.run(timer, action);
}

namespace detail {

void runLogged(const std::function<void()>& callable) {
  try {
    callable();
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended, which is not ours to stop
  } catch (const std::exception& error) {
    log::error("a timer's callback threw: {}", error.what());
  } catch (...) {
    log::error("a timer's callback threw something that is no std::exception");
  }
}

// A timer that is Done and dead has nothing to run. The last of its captures is destroyed where callbacks run. Without the timer's
// own share that may be happening now.
ActionShare TimerCore::claimDispatched(ArmedTimer& timer) {
  Lock lock(m_mutex);
  if (m_closed) return {};
  if (timer.m_state == State::kDone && timer.m_action.own && timer.m_action.dead()) return ActionShare::ownOf(timer.m_action);
  if (timer.m_repeat != Repeat::kNo) {
    const bool pending = std::exchange(timer.m_run_pending, false);
    return pending && timer.m_state == State::kArmed ? ActionShare(timer.m_action) : ActionShare();
  }
  if (timer.m_state != State::kQueued) return {};
  setState(timer, State::kDone);
  return ActionShare::ownOf(timer.m_action);
}

ActionShare TimerCore::claimListed(ArmedTimer& timer) {
  SYLAR_DCHECK(timer.m_repeat != Repeat::kNo);
  Lock lock(m_mutex);
  return timer.m_state == State::kArmed ? ActionShare(timer.m_action) : ActionShare();
}

// Each run of a recurring timer has a share in its action, and the timer has one of its own.
void TimerCore::run(ArmedTimer& timer, const ActionShare& action) {
  SYLAR_DCHECK(action);
  if (timer.m_repeat != Repeat::kNo && action.count() > kManyRuns) [[unlikely]]
    warnOfOverlap(timer);
  action.run();
}

void TimerCore::warnOfOverlap(ArmedTimer& timer) {
  SYLAR_DCHECK(timer.m_repeat != Repeat::kNo);
  uint64_t period_ms = 0;
  {
    Lock lock(m_mutex);
    if (std::exchange(timer.m_overlap_told, true)) return;
    period_ms = timer.m_ms;
  }
  log::warn("{} runs of a recurring timer are under way, because its callback takes longer than its period of {} ms", kManyRuns,
            period_ms);
}

void ActionShare::run() const {
  SYLAR_DCHECK(m_action != nullptr);
  const auto alive = m_action->condition.lock();
  if (!m_action->cb || (m_action->conditional && alive == nullptr)) return;
  runLogged(m_action->cb);
}

void TimerCore::runPooled() {
  TimerRuns<>::Run run{.flow = m_waits.here(), .task = {}};
  bool once = false;
  {
    Lock lock(m_mutex);
    if (m_closed || m_ready_begin == m_ready.size()) return;
    SYLAR_DCHECK(m_ready_begin < m_ready.size());
    PoolTimer* const timer = m_ready[m_ready_begin++];
    if (m_ready_begin + kAhead < m_ready.size()) __builtin_prefetch(m_ready[m_ready_begin + kAhead], 1);
    if (m_ready_begin == m_ready.size()) m_ready.clear(), m_ready_begin = 0;
    if (!m_runs.begin(run, *timer)) return;
    once = timer->period_ns == 0;
  }
  struct End {
    TimerRuns<>& runs;
    TimerRuns<>::Run& run;
    bool once;
    ~End() {
      if (once) run.task = nullptr;
      runs.end(run);
    }
  } end{m_runs, run, once};
  runLogged(std::ref(run.task));
}

}  // namespace detail
}  // namespace sylar
