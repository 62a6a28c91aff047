#include "sylar/timer/timer_core.h"

#include <algorithm>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/check.h"

namespace sylar::detail {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kRolloverNs = 3'600'000 * kNsPerMs;
constexpr int64_t kAgainNs = kNsPerMs;  // a timer that was given back is due again after that

}  // namespace

TimerCore::TimerCore(TimerManager& manager, const Clock& clock, TimerQueueKind queue, const RunWaits& waits, TimerId id_bits)
    : m_manager(manager),
      m_clock(clock),
      m_waits(waits),
      m_id_bits(id_bits),
      m_queue(queue),
      m_last_raw_ns(clock.nowNs()),
      m_runner({std::shared_ptr<TimerCore>(), this}, 0, Repeat::kNo, nullptr, {}, false) {
  TimerList none;
  m_queue.expire(m_last_raw_ns, 0, none);  // its time begins now
}

void TimerCore::setState(ArmedTimer& timer, State to) {
  const State from = timer.m_state;
  const bool leaves_queue = to == State::kQueued || to == State::kDone || to == State::kCancelled;
  SYLAR_CHECK((from == State::kNew && (to == State::kArmed || to == State::kCancelled)) ||
              (from == State::kArmed && leaves_queue) ||
              (from == State::kQueued && (to == State::kDone || to == State::kCancelled)));
  timer.m_state = to;
}

void TimerCore::warnOf(const Rollover& rollover) {
  SYLAR_DCHECK(rollover.step_ns > kRolloverNs);
  log::warn("the clock went back by {} s: all timers are due", rollover.step_ns / (1000 * kNsPerMs));
}

void TimerCore::stepBack(int64_t step_ns, Rollover& rollover) {
  SYLAR_DCHECK(step_ns > 0);
  const bool rolled_over = step_ns > kRolloverNs;
  ++(rolled_over ? m_stats.rollovers : m_stats.clamps);
  m_offset_ns = saturatingAdd(m_offset_ns, step_ns);
  if (rolled_over) {
    m_queue.setAll(saturatingAdd(m_last_raw_ns, m_offset_ns) - (m_queue.granularityNs() - 1));  // due now, also if rounded up
    m_rolled_over = true;
    rollover.step_ns = step_ns;
  }
  publish();
}

int64_t TimerCore::firstDue() const { return anyReturned() ? std::min(m_queue.nextDue(), m_again_ns) : m_queue.nextDue(); }

void TimerCore::publish() {
  m_front_ns = firstDue();
  m_next_due_ns.store(m_front_ns == kNever ? kNever : m_front_ns - m_offset_ns, std::memory_order_relaxed);
}

// A front timer that only moves later is no news, because the sleeper wakes once too early and looks again.
TimerCore::Event TimerCore::arm(ArmedTimer& timer, int64_t start_ns) {
  SYLAR_DCHECK(!m_closed);
  SYLAR_DCHECK(timer.m_state == State::kNew || timer.m_state == State::kArmed);
  const int64_t deadline_ns = saturatingAdd(start_ns, msToNs(timer.m_ms));
  const bool armed = timer.m_state == State::kArmed;
  const int64_t old_ns = timer.deadline_ns;
  const bool later = armed && deadline_ns >= old_ns;
  const bool front = armed ? m_queue.update(timer, deadline_ns) : m_queue.insert(timer, deadline_ns);
  timer.m_start_ns = start_ns;
  ++(armed ? m_stats.relinked : m_stats.armed);
  m_stats.pushed += later;
  if (front) publish();
  if (armed) publishWithout(old_ns);
  const Event gone = armed ? tookOut(old_ns) : Event{};
  return gone.kind != Event::Kind::kNone ? gone : newFront(front && !later);
}

TimerCore::Event TimerCore::newFront(bool earlier) {
  const FrontNews<>::Ticket ticket = m_news.owed(nextDueNs(), earlier);
  return ticket == 0 ? Event{} : pin({.kind = Event::Kind::kNewFront, .ticket = ticket});
}

void TimerCore::add(const ArmedTimer::ptr& timer) {
  Rollover rollover;
  ActionShare refused;
  Event event;
  {
    Lock lock(m_mutex);
    if (m_closed) {
      setState(*timer, State::kCancelled);
      refused = ActionShare::ownOf(timer->m_action);
      return;
    }
    SYLAR_DCHECK(timer->m_state == State::kNew && timer->m_self == nullptr);
    event = arm(*timer, now(rollover));
    setState(*timer, State::kArmed);
    timer->m_self = timer;
  }
  tell(event);
}

bool TimerCore::cancel(ArmedTimer& timer) {
  ArmedTimer::ptr self;  // outlives the rest, because it may be the last
  ActionShare action;
  Event event;
  {
    Lock lock(m_mutex);
    const bool armed = timer.m_state == State::kArmed;
    if (m_closed || !(armed || timer.m_state == State::kQueued)) return false;
    if (armed) {
      m_queue.erase(timer);
      publishWithout(timer.deadline_ns);
      self = std::move(timer.m_self);
      event = tookOut(timer.deadline_ns);
    }
    m_stats.cancelled += armed;
    m_stats.recalled += !armed || timer.m_run_pending;
    setState(timer, State::kCancelled);
    action = ActionShare::ownOf(timer.m_action);
  }
  tell(event);  // before the captures are destroyed, which may take long
  return true;
}

bool TimerCore::refresh(ArmedTimer& timer) {
  Rollover rollover;
  Event event;
  {
    Lock lock(m_mutex);
    if (m_closed || timer.m_state != State::kArmed) return false;
    event = arm(timer, now(rollover));
  }
  tell(event);
  return true;
}

bool TimerCore::reset(ArmedTimer& timer, uint64_t ms, bool from_now) {
  Rollover rollover;
  Event event;
  {
    Lock lock(m_mutex);
    if (m_closed || timer.m_state != State::kArmed) return false;
    if (ms == timer.m_ms && !from_now) return true;
    const int64_t start_ns = from_now ? now(rollover) : timer.m_start_ns;
    timer.m_ms = ms;
    event = arm(timer, start_ns);
  }
  tell(event);
  return true;
}

// The next round of a recurring timer comes sooner. A one-shot stays Queued and can be cancelled as before.
void TimerCore::rearm(ArmedTimer::ptr timer) noexcept {  // NOLINT(bugprone-exception-escape)
  const std::shared_ptr<TimerCore> keep = timer->m_core;
  Rollover rollover;
  Event event;
  {
    Lock lock(m_mutex);
    if (m_closed) return;
    const int64_t again_ns = saturatingAdd(now(rollover), kAgainNs);
    if (timer.get() == &m_runner) {
      if (!anyReturned()) m_again_ns = again_ns;
      ++m_owed;
    } else if (timer->m_repeat != Repeat::kNo) {
      timer->m_run_pending = false;
      if (timer->m_state != State::kArmed || timer->deadline_ns <= again_ns) return;
      m_queue.update(*timer, again_ns);
      ++m_stats.relinked;
    } else {
      if (timer->m_state != State::kQueued || timer->m_self != nullptr) return;
      if (!anyReturned()) m_again_ns = again_ns;
      m_returned.push(timer.get());
      timer->m_self = std::move(timer);
    }
    publish();
    event = newFront(true);
  }
  tell(event);
}

uint64_t TimerCore::nextTimerMs() {
  Rollover rollover;
  Lock lock(m_mutex);
  if (m_closed) return ~0ull;
  const int64_t now_ns = now(rollover);
  observed();
  if (noneArmed()) return ~0ull;
  const int64_t left_ns = firstDue() - now_ns;
  return left_ns <= 0 ? 0 : static_cast<uint64_t>(left_ns / kNsPerMs + (left_ns % kNsPerMs != 0 ? 1 : 0));
}

int64_t TimerCore::observeNextDue() {
  Lock lock(m_mutex);
  observed();
  return nextDueNs();
}

void TimerCore::wakesBy(int64_t due_ns) {
  Lock lock(m_mutex);
  m_news.wakesBy(due_ns);
}

bool TimerCore::hasTimer() {
  Lock lock(m_mutex);
  return !noneArmed();
}

bool TimerCore::takeRollover() {
  Rollover rollover;
  Lock lock(m_mutex);
  if (!m_closed) now(rollover);
  return std::exchange(m_rolled_over, false);
}

TimerStats TimerCore::stats() {
  Lock lock(m_mutex);
  TimerStats stats = m_stats;
  stats.resident = m_queue.size();
  stats.cascaded = m_queue.cascaded();
  return stats;
}

// Counts a call that is about to be made after the lock is released.
TimerCore::Event TimerCore::pin(Event event) {
  SYLAR_DCHECK(!m_closed && event.kind != Event::Kind::kNone);
  m_calls.enter();
  return event;
}

void TimerCore::call(Event event) {
  SYLAR_DCHECK(event.kind != Event::Kind::kNone);
  struct Unpin {
    CallGate<>& calls;
    ~Unpin() { calls.leave(); }
  } unpin{m_calls};
  if (event.kind == Event::Kind::kLastGone) return m_manager.onLastTimerGone();
  m_manager.onTimerInsertedAtFront();
  SYLAR_DCHECK(event.ticket != 0);
  m_news.told(event.ticket);
}

void TimerCore::close() {
  Leavers leavers;
  for (bool more = true; more;) {
    Lock lock(m_mutex);
    m_closed = true;
    more = drainSome(leavers);
  }
  {
    Lock lock(m_mutex);
    while (TimerNode* node = m_returned.pop()) {
      auto& timer = static_cast<ArmedTimer&>(*node);
      if (timer.m_state == State::kQueued) setState(timer, State::kCancelled);
      leavers.push(timer);
    }
    for (size_t i = m_ready_begin; i < m_ready.size(); ++i) {
      PoolTimer& pooled = *m_ready[i];
      if (pooled.state != PoolTimer::State::kQueued) continue;
      pooled.state = PoolTimer::State::kStopped;
      leavers.push(pooled);
    }
    m_owed = 0;
    publish();
  }
  m_calls.close();
}

/// Takes a bounded number of timers out of the queue of a manager that is closed. Returns true if there may be more.
bool TimerCore::drainSome(Leavers& leavers) {
  SYLAR_DCHECK(m_closed);
  TimerList armed;
  m_queue.drain(kBatch, armed);
  while (auto* const managed = static_cast<ManagedTimer*>(armed.pop())) {
    ++m_stats.cancelled;
    if (managed->pooled) {
      auto& pooled = static_cast<PoolTimer&>(*managed);
      pooled.period_ns = 0;  // one that is running is freed when it ends, and its task with it
      if (pooled.state == PoolTimer::State::kRunning) continue;
      pooled.state = PoolTimer::State::kStopped;
    } else {
      setState(static_cast<ArmedTimer&>(*managed), State::kCancelled);
    }
    leavers.push(*managed);
  }
  publish();
  return !m_queue.empty();
}

}  // namespace sylar::detail
