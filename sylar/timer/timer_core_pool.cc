// The part of TimerCore that concerns timers with an id: how they start and stop.
#include <algorithm>
#include <utility>

#include "sylar/check.h"
#include "sylar/timer/timer_core.h"

namespace sylar::detail {
namespace {

constexpr int64_t kShortestPeriodNs = 1'000'000;

}  // namespace

TimerId TimerCore::start(int64_t after_ns, TimerTask task, Repeat repeat) {
  TimerId id = 0;
  Rollover rollover;
  Event event;
  {
    Lock lock(m_mutex);
    PoolTimer* const timer = m_closed ? nullptr : m_pool.allocate();
    if (timer == nullptr) return 0;
    const int64_t delay_ns = std::max(after_ns, repeat == Repeat::kNo ? int64_t{0} : kShortestPeriodNs);
    timer->period_ns = repeat == Repeat::kNo ? 0 : repeat == Repeat::kSkip ? -delay_ns : delay_ns;
    bool front = false;
    try {
      front = m_queue.insert(*timer, saturatingAdd(now(rollover), delay_ns));
    } catch (...) {
      m_pool.free(*timer);
      throw;
    }
    ++m_stats.armed;
    timer->task = std::move(task);
    id = inPool(m_pool.idOf(*timer));
    if (front) publish();
    event = newFront(front);
  }
  tell(event);
  return id;
}

TimerStop TimerCore::stop(TimerId id) {
  prefetch(id);
  TimerTask dropped;  // destroyed before we return, outside the lock
  Event event;
  TimerStop result;
  {
    Lock lock(m_mutex);
    result = stopLocked(id, dropped, event);
  }
  tell(event);  // before the captures are destroyed, which may take long
  return result;
}

TimerStop TimerCore::stopLocked(TimerId id, TimerTask& dropped, Event& event) {
  PoolTimer* const timer = m_pool.find(inPool(id));
  if (timer == nullptr) return TimerStop::kGone;
  SYLAR_DCHECK(m_pool.idOf(*timer) == inPool(id));
  if (timer->state == PoolTimer::State::kArmed || timer->period_ns != 0) {
    m_queue.erase(*timer);
    ++m_stats.cancelled;
    timer->period_ns = 0;
    publishWithout(timer->deadline_ns);
    event = tookOut(timer->deadline_ns);
  }
  if (timer->state == PoolTimer::State::kQueued) ++m_stats.recalled;
  return m_runs.stop(*timer, dropped);
}

TimerStop TimerCore::stopSync(TimerId id) {
  const TimerStop result = stop(id);
  return result == TimerStop::kRunning ? m_runs.await(inPool(id), m_waits) : result;
}

}  // namespace sylar::detail
