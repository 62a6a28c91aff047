#include "sylar/timer/timer_core.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/log.h"

namespace sylar {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kRolloverNs = 3'600'000 * kNsPerMs;
constexpr int64_t kAgainNs = kNsPerMs;  // what was given back is due again after that
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
constexpr size_t kMovesPerRun = 16;  // what a wheel moves inside costs a fraction of a run
constexpr size_t kBatch = 32;        // taken out of the queue at once

/// Room for `count` more items. May throw std::bad_alloc.
template <class Item>
void makeRoom(std::vector<Item>& items, size_t count) {
  if (items.capacity() - items.size() < count) items.reserve(std::max(2 * items.size(), items.size() + count));
}

/// Owns a lock that was taken by tryLock() or lock().
class SYLAR_SCOPED_CAPABILITY Adopted {
 public:
  explicit Adopted(Spinlock& mutex) SYLAR_REQUIRES(mutex) : m_mutex(mutex) {}
  ~Adopted() SYLAR_RELEASE() { m_mutex.unlock(); }
  Adopted(const Adopted&) = delete;
  Adopted& operator=(const Adopted&) = delete;

 private:
  Spinlock& m_mutex;
};

}  // namespace

/// Timers that left the queue for good. Lets go of them, and of what they capture, in its destructor: declared before the lock,
/// it outlives it.
class TimerCore::Leavers {
 public:
  Leavers() = default;
  ~Leavers() {
    while (TimerNode* node = m_timers.pop()) {
      if (static_cast<ManagedTimer*>(node)->pooled) {
        static_cast<PoolTimer*>(node)->task = nullptr;
        continue;
      }
      auto& timer = static_cast<Timer&>(*node);
      const auto self = std::move(timer.m_self);
      const auto action = ActionShare::ownOf(timer.m_action);
    }
  }
  Leavers(const Leavers&) = delete;
  Leavers& operator=(const Leavers&) = delete;

  void push(ManagedTimer& timer) { m_timers.push(&timer); }

 private:
  TimerList m_timers;
};

TimerCore::TimerCore(TimerManager& manager, const Clock& clock, TimerQueueKind queue)
    : m_manager(manager),
      m_clock(clock),
      m_queue(queue),
      m_last_raw_ns(clock.nowNs()),
      m_runner(Timer::Key{}, {std::shared_ptr<TimerCore>(), this}, 0, Repeat::kNo, nullptr, {}, false) {
  TimerList none;
  m_queue.expire(m_last_raw_ns, 0, none);  // its time begins now
}

void TimerCore::setState(Timer& timer, State to) {
  const State from = timer.m_state;
  const bool leaves_queue = to == State::kQueued || to == State::kDone || to == State::kCancelled;
  SYLAR_CHECK((from == State::kNew && (to == State::kArmed || to == State::kCancelled)) ||
              (from == State::kArmed && leaves_queue) ||
              (from == State::kQueued && (to == State::kDone || to == State::kCancelled)));
  timer.m_state = to;
}

void TimerCore::stepBack(int64_t step_ns) {
  const bool rollover = step_ns > kRolloverNs;
  ++(rollover ? m_stats.rollovers : m_stats.clamps);
  m_offset_ns = saturatingAdd(m_offset_ns, step_ns);
  m_stepped = true;
  if (rollover) {
    m_queue.setAll(saturatingAdd(m_last_raw_ns, m_offset_ns) - (m_queue.granularityNs() - 1));  // due now, also if rounded up
    m_rolled_over = true;
  }
  publish();
  if (rollover) log::warn("the clock went back by {} s: all timers are due", step_ns / (1000 * kNsPerMs));
}

int64_t TimerCore::firstDue() const { return anyReturned() ? std::min(m_queue.nextDue(), m_again_ns) : m_queue.nextDue(); }

void TimerCore::publish() {
  m_front_ns = firstDue();
  m_next_due_ns.store(m_front_ns == kNever ? kNever : m_front_ns - m_offset_ns, std::memory_order_relaxed);
}

void TimerCore::observed() {
  m_tickled = false;
  m_stepped = false;
}

// A front timer that only moves later is no news: the sleeper wakes once too early and looks again.
TimerCore::Event TimerCore::arm(Timer& timer, int64_t start_ns) {
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
  return (front && !later) || m_stepped ? newFront() : Event::kNone;
}

TimerCore::Event TimerCore::newFront() { return std::exchange(m_tickled, true) ? Event::kNone : pin(Event::kNewFront); }

void TimerCore::add(const Timer::ptr& timer) {
  ActionShare refused;
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    if (m_closed) {
      setState(*timer, State::kCancelled);
      refused = ActionShare::ownOf(timer->m_action);
      return;
    }
    event = arm(*timer, now());
    setState(*timer, State::kArmed);
    timer->m_self = timer;
  }
  tell(event);
}

bool TimerCore::cancel(Timer& timer) {
  Timer::ptr self;  // outlives the rest: it may be the last
  ActionShare action;
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    const bool armed = timer.m_state == State::kArmed;
    if (m_closed || !(armed || timer.m_state == State::kQueued)) return false;
    if (armed) {
      m_queue.erase(timer);
      publishWithout(timer.deadline_ns);
      self = std::move(timer.m_self);
      if (tookLast()) event = pin(Event::kLastGone);
    }
    m_stats.cancelled += armed;
    m_stats.recalled += !armed || timer.m_run_pending;
    setState(timer, State::kCancelled);
    action = ActionShare::ownOf(timer.m_action);
  }
  action = {};
  tell(event);
  return true;
}

bool TimerCore::refresh(Timer& timer) {
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    if (timer.m_state != State::kArmed) return false;
    event = arm(timer, now());
  }
  tell(event);
  return true;
}

bool TimerCore::reset(Timer& timer, uint64_t ms, bool from_now) {
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    if (timer.m_state != State::kArmed) return false;
    if (ms == timer.m_ms && !from_now) return true;
    const int64_t start_ns = from_now ? now() : timer.m_start_ns;
    timer.m_ms = ms;
    event = arm(timer, start_ns);
  }
  tell(event);
  return true;
}

// Of a recurring timer the next round comes sooner. A one-shot stays Queued and can be cancelled as before.
void TimerCore::giveBack(Timer::ptr timer) noexcept {
  const std::shared_ptr<TimerCore> keep = timer->m_core;
  Event event = Event::kNone;
  {
    Lock lock(m_mutex);
    if (m_closed) return;
    const int64_t again_ns = saturatingAdd(now(), kAgainNs);
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
    event = newFront();
  }
  tell(event);
}

ActionShare TimerCore::claimDispatched(Timer& timer) {
  Lock lock(m_mutex);
  if (m_closed) return {};
  if (timer.m_repeat != Repeat::kNo) {
    const bool pending = std::exchange(timer.m_run_pending, false);
    return pending && timer.m_state == State::kArmed ? ActionShare(timer.m_action) : ActionShare();
  }
  if (timer.m_state != State::kQueued) return {};
  setState(timer, State::kDone);
  return ActionShare::ownOf(timer.m_action);
}

ActionShare TimerCore::claimListed(Timer& timer) {
  Lock lock(m_mutex);
  return timer.m_state == State::kArmed ? ActionShare(timer.m_action) : ActionShare();
}

uint64_t TimerCore::nextTimerMs() {
  Lock lock(m_mutex);
  if (m_closed) return ~0ull;
  const int64_t now_ns = now();
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

bool TimerCore::hasTimer() {
  Lock lock(m_mutex);
  return !noneArmed();
}

bool TimerCore::takeRollover() {
  Lock lock(m_mutex);
  if (!m_closed) now();
  return std::exchange(m_rolled_over, false);
}

/// Takes timers that are due out of the queue, at most `budget`, and passes those that are to run to `handOut`, or, if they are
/// pooled, to `handOutPooled`. handOut leaves a recurring one Armed and gives a one-shot its next state; false: it had a reason
/// not to hand it out. `prepare(n)` comes before at most n of them, and says how many to take out at once: one, if handing out
/// may throw. Who throws has changed nothing. True iff due timers remain.
template <class Prepare, class HandOut, class HandOutPooled>
bool TimerCore::expire(size_t budget, Leavers& leavers, Prepare prepare, HandOut handOut, HandOutPooled handOutPooled) {
  if (m_closed) return false;
  const int64_t now_ns = now();
  TimerList due;
  size_t moves = budget > kNoLimit / kMovesPerRun ? kNoLimit : budget * kMovesPerRun;
  ManagedTimer* timer = nullptr;
  try {
    for (bool more = true; more && budget > 0 && moves > 0;) {
      const size_t batch = prepare(std::min({budget, moves, kBatch}));
      if (m_ready_begin > m_ready.size() / 2) {  // what was run
        m_ready.erase(m_ready.begin(), m_ready.begin() + static_cast<ptrdiff_t>(m_ready_begin));
        m_ready_begin = 0;
      }
      makeRoom(m_ready, batch);
      more = m_queue.expire(now_ns, batch, due);
      size_t taken = 0;
      for (; (timer = static_cast<ManagedTimer*>(due.pop())) != nullptr; ++taken) {
        timer->pooled ? expirePooled(static_cast<PoolTimer&>(*timer), now_ns, handOutPooled)
                      : expireTimer(static_cast<Timer&>(*timer), now_ns, leavers, handOut);
      }
      budget -= taken;
      moves -= batch - taken;  // the rest the queue moved inside, or there was none
    }
  } catch (...) {
    if (timer != nullptr) m_queue.insert(*timer, timer->deadline_ns);  // has room for what was just taken out
    publish();
    throw;
  }
  publish();
  const bool more_due = m_queue.expire(now_ns, 0, due);
  m_stats.budget_exhausted += more_due;
  return more_due;
}

template <class HandOut>
void TimerCore::expireTimer(Timer& timer, int64_t now_ns, Leavers& leavers, HandOut& handOut) {
  bool handed_out = false;
  timer.m_action.dead() ? setState(timer, State::kDone) : void(handed_out = handOut(timer));
  count(handed_out, now_ns - timer.deadline_ns);
  if (timer.m_state == State::kDone) leavers.push(timer);
  if (timer.m_state != State::kArmed) return;
  const int64_t period_ns = msToNs(timer.m_ms);
  // kSkip: the last multiple of the period that is not after now
  timer.m_start_ns =
      timer.m_repeat == Repeat::kSkip ? timer.m_start_ns + (now_ns - timer.m_start_ns) / period_ns * period_ns : now_ns;
  m_queue.insert(timer, saturatingAdd(timer.m_start_ns, period_ns));
  ++m_stats.armed;
}

template <class HandOut>
void TimerCore::expirePooled(PoolTimer& timer, int64_t now_ns, HandOut& handOut) {
  const bool handed_out = timer.state == PoolTimer::State::kArmed;
  if (handed_out) {
    handOut();
    m_ready.push_back(&timer);
    timer.state = PoolTimer::State::kQueued;
  }
  count(handed_out, now_ns - timer.deadline_ns);
  m_stats.armed += timer.period_ns != 0;
  if (timer.period_ns > 0) m_queue.insert(timer, saturatingAdd(now_ns, timer.period_ns));
  if (timer.period_ns < 0) {
    const int64_t missed = std::max<int64_t>(0, now_ns - timer.deadline_ns) / -timer.period_ns;
    m_queue.insert(timer, saturatingAdd(timer.deadline_ns + missed * -timer.period_ns, -timer.period_ns));
  }
}

// A timer left the queue because it was due.
void TimerCore::count(bool handed_out, int64_t late_ns) {
  ++(handed_out ? m_stats.fired : m_stats.dropped);
  if (handed_out) m_stats.lateness.add(std::max<int64_t>(0, late_ns));  // a published wheel's rollover is up to a tick early
}

TimerStats TimerCore::stats() {
  Lock lock(m_mutex);
  TimerStats stats = m_stats;
  stats.resident = m_queue.size();
  stats.cascaded = m_queue.cascaded();
  return stats;
}

/// A one-shot that was listed. Members in this order: the share goes first.
struct TimerCore::Listed {
  Timer::ptr timer;
  ActionShare share;
  void operator()() const { share.run(); }
};

void TimerCore::listExpired(std::vector<std::function<void()>>& cbs) {
  Leavers leavers;
  Lock lock(m_mutex);
  expire(
      kNoLimit, leavers, [](size_t) { return size_t{1}; },
      [&cbs](Timer& timer) {
        if (timer.m_repeat != Repeat::kNo) {
          cbs.emplace_back([self = timer.m_self] {
            if (const auto action = self->m_core->claimListed(*self)) action.run();
          });
        } else {
          cbs.emplace_back(Listed{timer.m_self, ActionShare(timer.m_action)});
          setState(timer, State::kDone);
        }
        return true;
      },
      [&cbs, this] { cbs.emplace_back([core = shared_from_this()] { core->runPooled(); }); });
}

/// What is left of the budget.
size_t TimerCore::collectReturned(size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) {
  if (!anyReturned() || m_closed || now() < m_again_ns) return budget;
  for (; budget > 0 && anyReturned(); --budget) {
    makeRoom(out, 1);
    if (m_owed > 0) {
      out.push_back(runner());
      --m_owed;
      continue;
    }
    auto& timer = static_cast<Timer&>(*m_returned.pop());
    timer.m_state == State::kQueued ? out.push_back(std::move(timer.m_self)) : leavers.push(timer);
  }
  return budget;
}

bool TimerCore::collectLocked(size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) {
  budget = collectReturned(budget, leavers, out);
  return expire(
      budget, leavers,
      [&out](size_t count) {
        makeRoom(out, count);
        return count;
      },
      [&out](Timer& timer) {
        if (timer.m_repeat == Repeat::kNo) {
          out.push_back(std::move(timer.m_self));
          setState(timer, State::kQueued);
        } else if (!timer.m_run_pending) {
          out.push_back(timer.m_self);
          timer.m_run_pending = true;
        } else {
          return false;
        }
        return true;
      },
      [&out, this, one = Timer::ptr()]() mutable {
        if (one == nullptr) one = runner();  // made once: that costs more than a copy
        out.push_back(one);
      });
}

bool TimerCore::collect(size_t budget, std::vector<Timer::ptr>& out) {
  Leavers leavers;
  Lock lock(m_mutex);
  return collectLocked(budget, leavers, out);
}

bool TimerCore::tryCollect(size_t budget, std::vector<Timer::ptr>& out) {
  Leavers leavers;
  if (!m_mutex.tryLock()) return false;
  Adopted lock(m_mutex);
  return collectLocked(budget, leavers, out);
}

// Counts a call that is about to be made after the lock is released.
TimerCore::Event TimerCore::pin(Event event) {
  m_calls.enter();
  return event;
}

void TimerCore::call(Event event) {
  struct Unpin {
    CallGate<>& calls;
    ~Unpin() { calls.leave(); }
  } unpin{m_calls};
  event == Event::kNewFront ? m_manager.onTimerInsertedAtFront() : m_manager.onLastTimerGone();
}

void TimerCore::close() {
  Leavers leavers;
  {
    Lock lock(m_mutex);
    m_closed = true;
    TimerList armed;
    m_stats.cancelled += m_queue.size();
    m_queue.drain(armed);
    while (TimerNode* node = armed.pop()) {
      if (static_cast<ManagedTimer*>(node)->pooled) {
        auto& pooled = static_cast<PoolTimer&>(*node);
        pooled.period_ns = 0;  // one that is running is freed when it ends, and its task with it
        if (pooled.state == PoolTimer::State::kRunning) continue;
        pooled.state = PoolTimer::State::kStopped;
        leavers.push(pooled);
        continue;
      }
      auto& timer = static_cast<Timer&>(*node);
      setState(timer, State::kCancelled);
      leavers.push(timer);
    }
    while (TimerNode* node = m_returned.pop()) {
      auto& timer = static_cast<Timer&>(*node);
      if (timer.m_state == State::kQueued) setState(timer, State::kCancelled);
      leavers.push(timer);
    }
    for (size_t i = m_ready_begin; i < m_ready.size(); ++i) {
      if (m_ready[i]->state != PoolTimer::State::kQueued) continue;
      m_ready[i]->state = PoolTimer::State::kStopped;
      leavers.push(*m_ready[i]);
    }
    m_owed = 0;
    publish();
  }
  m_calls.close();
}

}  // namespace sylar
