// The part of TimerCore that hands out what is due.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "sylar/check.h"
#include "sylar/timer/timer_core.h"

namespace sylar::detail {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
constexpr size_t kMovesPerRun = 16;  // what a wheel moves inside costs a fraction of a run

/// Makes room for `count` more items. May throw std::bad_alloc.
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

/// Takes at most `budget` timers that are due at `now_ns` out of the queue. Passes those that are to run to `handOut`, or to
/// `handOutPooled` if they are pooled. handOut leaves a recurring timer Armed and gives a one-shot its next state. It returns
/// false if it had a reason not to hand the timer out. It also gets timers whose condition is gone, which are Done, so that
/// their captures can be let go of. `prepare(n)` makes room for n timers, and may throw; handing out must not. To be called
/// while not closed. Returns true iff due timers remain.
template <class Prepare, class HandOut, class HandOutPooled>
bool TimerCore::expire(int64_t now_ns, size_t budget, Prepare prepare, HandOut handOut, HandOutPooled handOutPooled) {
  SYLAR_DCHECK(!m_closed && m_ready_begin <= m_ready.size());
  TimerList due;
  size_t moves = budget > kNoLimit / kMovesPerRun ? kNoLimit : budget * kMovesPerRun;
  for (bool more = true; more && budget > 0 && moves > 0;) {
    const size_t batch = std::min({budget, moves, kBatch});
    prepare(batch);
    if (m_ready_begin > m_ready.size() / 2) {  // drops those that were run
      m_ready.erase(m_ready.begin(), m_ready.begin() + static_cast<ptrdiff_t>(m_ready_begin));
      m_ready_begin = 0;
    }
    makeRoom(m_ready, batch);
    more = m_queue.expire(now_ns, batch, due);
    size_t taken = 0;
    for (; auto* const timer = static_cast<ManagedTimer*>(due.pop()); ++taken) {
      timer->pooled ? expirePooled(static_cast<PoolTimer&>(*timer), now_ns, handOutPooled)
                    : expireTimer(static_cast<ArmedTimer&>(*timer), now_ns, handOut);
    }
    publish();
    budget -= taken;
    moves -= batch - taken;  // the queue moved the rest inside, or there was none
  }
  return m_queue.expire(now_ns, 0, due);
}

template <class HandOut>
void TimerCore::expireTimer(ArmedTimer& timer, int64_t now_ns, HandOut& handOut) {
  SYLAR_DCHECK(timer.m_state == State::kArmed && timer.m_self != nullptr);
  const bool dead = timer.m_action.dead();
  if (dead) setState(timer, State::kDone);
  const bool handed_out = handOut(timer);
  count(handed_out && !dead, now_ns - timer.deadline_ns);
  if (timer.m_state != State::kArmed) return;
  const int64_t period_ns = msToNs(timer.m_ms);
  SYLAR_DCHECK(timer.m_repeat != Repeat::kNo && period_ns > 0);
  // kSkip: the last multiple of the period that is not after now
  timer.m_start_ns =
      timer.m_repeat == Repeat::kSkip ? timer.m_start_ns + (now_ns - timer.m_start_ns) / period_ns * period_ns : now_ns;
  m_queue.insert(timer, saturatingAdd(timer.m_start_ns, period_ns));
  ++m_stats.armed;
}

template <class HandOut>
void TimerCore::expirePooled(PoolTimer& timer, int64_t now_ns, HandOut& handOut) {
  SYLAR_DCHECK(timer.state != PoolTimer::State::kFree && timer.state != PoolTimer::State::kStopped);
  const bool handed_out = timer.state == PoolTimer::State::kArmed;
  SYLAR_DCHECK(handed_out || timer.period_ns != 0);
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

// Counts a timer that left the queue because it was due.
void TimerCore::count(bool handed_out, int64_t late_ns) {
  ++(handed_out ? m_stats.fired : m_stats.dropped);
  if (handed_out) m_stats.lateness.add(std::max<int64_t>(0, late_ns));  // a published wheel's rollover is up to a tick early
}

/// A timer that was listed: a one-shot with a share in its action, or a recurring one, or the runner. The members have this
/// order so that the share is destroyed first.
struct TimerCore::Listed {
  ArmedTimer::ptr timer;
  ActionShare share;

  void operator()() const {
    TimerCore& core = *timer->m_core;
    if (share) return share.run();
    if (timer.get() == &core.m_runner) return core.runPooled();
    if (const auto action = core.claimListed(*timer)) core.run(*timer, action);
  }
};

// Closures are made before the lock, a few at a time, and filled under it. Timers that fall due in between are left for the next
// call, so no recurring timer appears twice.
void TimerCore::listExpired(std::vector<std::function<void()>>& cbs) {
  Leavers leavers;
  Rollover rollover;
  int64_t now_ns = 0;
  bool more = false;
  {
    Lock lock(m_mutex);
    if (m_closed) return;
    now_ns = now(rollover);
    TimerList none;
    more = m_queue.expire(now_ns, 0, none);
  }
  for (size_t batch = 1; more; batch = std::min(2 * batch, kBatch)) {
    std::vector<std::function<void()>> closures(batch, Listed{});
    makeRoom(cbs, batch);
    size_t listed = 0;
    const auto list = [&](ArmedTimer::ptr timer, ActionShare share) {
      *closures[listed++].target<Listed>() = {std::move(timer), std::move(share)};
    };
    {
      Lock lock(m_mutex);
      more = !m_closed && expire(
                              now_ns, batch, [](size_t) {},
                              [&](ArmedTimer& timer) {
                                if (timer.m_state != State::kDone) {
                                  const bool once = timer.m_repeat == Repeat::kNo;
                                  list(timer.m_self, once ? ActionShare(timer.m_action) : ActionShare());
                                  if (!once) return true;
                                  setState(timer, State::kDone);
                                }
                                leavers.push(timer);
                                return true;
                              },
                              [&] { list(runner(), {}); });
    }
    std::move(closures.begin(), closures.begin() + static_cast<ptrdiff_t>(listed), std::back_inserter(cbs));
  }
}

/// Hands out what was given back. Returns what is left of the budget.
size_t TimerCore::collectReturned(int64_t now_ns, size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) {
  if (!anyReturned() || now_ns < m_again_ns) return budget;
  for (; budget > 0 && anyReturned(); --budget) {
    makeRoom(out, 1);
    if (m_owed > 0) {
      out.push_back(runner());
      --m_owed;
      continue;
    }
    SYLAR_DCHECK(!m_returned.empty());
    auto& timer = static_cast<ArmedTimer&>(*m_returned.pop());
    SYLAR_DCHECK(timer.m_state == State::kQueued || timer.m_state == State::kCancelled);
    timer.m_state == State::kQueued ? out.push_back(std::move(timer.m_self)) : leavers.push(timer);
  }
  publish();
  return budget;
}

bool TimerCore::collectLocked(size_t budget, Rollover& rollover, Leavers& leavers, std::vector<Timer::ptr>& out) {
  if (m_closed) return false;
  const int64_t now_ns = now(rollover);
  budget = collectReturned(now_ns, budget, leavers, out);
  const bool more = expire(
      now_ns, budget, [&out](size_t count) { makeRoom(out, count); },
      [&out](ArmedTimer& timer) {
        if (timer.m_state == State::kDone) {
          out.push_back(std::move(timer.m_self));
        } else if (timer.m_repeat == Repeat::kNo) {
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
      [&out, this, one = ArmedTimer::ptr()]() mutable {
        if (one == nullptr) one = runner();  // made once, because that costs more than a copy
        out.push_back(one);
      });
  m_stats.budget_exhausted += more;
  return more;
}

bool TimerCore::collect(size_t budget, std::vector<Timer::ptr>& out) {
  Leavers leavers;
  Rollover rollover;
  Lock lock(m_mutex);
  return collectLocked(budget, rollover, leavers, out);
}

bool TimerCore::tryCollect(size_t budget, std::vector<Timer::ptr>& out, bool* more) {
  Leavers leavers;
  Rollover rollover;
  if (!m_mutex.tryLock()) return false;
  Adopted lock(m_mutex);
  *more = collectLocked(budget, rollover, leavers, out);
  return true;
}

}  // namespace sylar::detail
