// The part of TimerCore that concerns timers with an id: how they start, stop and run.
#include <algorithm>
#include <climits>
#include <thread>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
#include "sylar/timer/timer_core.h"

namespace sylar {
namespace {

constexpr int64_t kShortestPeriodNs = 1'000'000;
constexpr size_t kAhead = 4;  // timers that are fetched while one runs

}  // namespace

/// A callback that is running, on the stack of who runs it.
struct TimerCore::Run {
  PoolTimer* timer;
  std::thread::id thread;
  Run* next = nullptr;
};

TimerId TimerCore::start(int64_t after_ns, TimerTask task, Repeat repeat) {
  TimerId id = 0;
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    PoolTimer* const timer = m_closed ? nullptr : m_pool.allocate();
    if (timer == nullptr) return 0;
    const int64_t delay_ns = std::max(after_ns, repeat == Repeat::kNo ? int64_t{0} : kShortestPeriodNs);
    timer->period_ns = repeat == Repeat::kNo ? 0 : repeat == Repeat::kSkip ? -delay_ns : delay_ns;
    bool front = false;
    try {
      front = m_queue.insert(*timer, saturatingAdd(now(), delay_ns));
    } catch (...) {
      m_pool.free(*timer);
      throw;
    }
    ++m_stats.armed;
    timer->task = std::move(task);
    id = m_pool.idOf(*timer);
    if (front) publish();
    if (front || m_stepped) event = newFront();
  }
  tell(event);
  return id;
}

TimerStop TimerCore::stop(TimerId id) {
  prefetch(id);
  TimerTask dropped;  // destroyed before we return, outside the lock
  Event event = Event::kNone;
  TimerStop result;
  {
    Lock lock(m_mutex);
    result = stopLocked(id, dropped, event);
  }
  dropped = nullptr;
  tell(event);
  return result;
}

TimerStop TimerCore::stopLocked(TimerId id, TimerTask& dropped, Event& event) {
  PoolTimer* const timer = m_pool.find(id);
  if (timer == nullptr) return TimerStop::kGone;
  const auto state = timer->state;
  if (state == PoolTimer::State::kStopped) return TimerStop::kGone;
  if (state == PoolTimer::State::kArmed || timer->period_ns != 0) {
    m_queue.erase(*timer);
    ++m_stats.cancelled;
    timer->period_ns = 0;
    publishWithout(timer->deadline_ns);
    if (tookLast()) event = pin(Event::kLastGone);
  }
  if (state == PoolTimer::State::kRunning) return TimerStop::kRunning;
  dropped = std::move(timer->task);
  if (state == PoolTimer::State::kQueued) {
    ++m_stats.recalled;
    timer->state = PoolTimer::State::kStopped;
  } else {
    m_pool.free(*timer);
  }
  return TimerStop::kCancelled;
}

TimerStop TimerCore::stopSync(TimerId id) {
  TimerStop result = stop(id);
  while (result == TimerStop::kRunning || result == TimerStop::kDone) {
    uint32_t ended = 0;
    {
      Lock lock(m_mutex);
      const PoolTimer* const timer = m_pool.find(id);
      if (timer == nullptr) return TimerStop::kDone;
      const Run* const run = runOf(*timer);
      if (run == nullptr) return TimerStop::kDone;
      if (run->thread == std::this_thread::get_id()) return TimerStop::kRunning;
      ++m_waiters;
      ended = m_ended.load(std::memory_order_relaxed);
    }
    sys::futexWait(m_ended, ended, kNever);
    Lock lock(m_mutex);
    --m_waiters;
    result = TimerStop::kDone;
  }
  return result;
}

const TimerCore::Run* TimerCore::runOf(const PoolTimer& timer) const {
  const Run* run = m_runs;
  while (run != nullptr && run->timer != &timer) run = run->next;
  return run;
}

void TimerCore::fire(Timer& timer) {
  if (&timer == &m_runner) return runPooled();
  if (const auto action = claimDispatched(timer)) action.run();
}

void TimerCore::runPooled() {
  Run run{nullptr, std::this_thread::get_id()};
  TimerTask once;
  {
    Lock lock(m_mutex);
    if (m_closed || m_ready_begin == m_ready.size()) return;
    PoolTimer* const timer = m_ready[m_ready_begin++];
    if (m_ready_begin + kAhead < m_ready.size()) __builtin_prefetch(m_ready[m_ready_begin + kAhead], 1);
    if (m_ready_begin == m_ready.size()) m_ready.clear(), m_ready_begin = 0;
    if (timer->state == PoolTimer::State::kStopped) return m_pool.free(*timer);
    timer->state = PoolTimer::State::kRunning;
    if (timer->period_ns == 0) once = std::move(timer->task);
    run.timer = timer;
    run.next = std::exchange(m_runs, &run);
  }
  struct End {
    TimerCore& core;
    Run& run;
    ~End() { core.endRun(run); }
  } end{*this, run};
  TimerTask task = std::move(once);  // destroyed before `end`
  runLogged(task ? task : run.timer->task);
}

/// A timer that will not run again is freed when its captures are destroyed: a thread in stopSync() waits for that, too.
void TimerCore::endRun(Run& run) {
  PoolTimer& timer = *run.timer;
  bool waited = false;
  TimerTask last;
  for (bool ended = false; !ended;) {
    last = nullptr;
    Lock lock(m_mutex);
    if (timer.period_ns == 0) last = std::move(timer.task);
    ended = !last;
    if (!ended) continue;
    Run** link = &m_runs;
    while (*link != &run) link = &(*link)->next;
    *link = run.next;
    timer.period_ns != 0 ? void(timer.state = PoolTimer::State::kArmed) : m_pool.free(timer);
    waited = m_waiters > 0;
    if (waited) m_ended.fetch_add(1, std::memory_order_relaxed);
  }
  if (waited) sys::futexWake(m_ended, INT_MAX);
}

}  // namespace sylar
