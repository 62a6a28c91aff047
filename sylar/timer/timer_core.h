// Internal. The state that a TimerManager and its Timers share: the queue, its lock and its clock. A manager has one of them, or
// several (timer_sets.h). It outlives the manager as long as there are Timers, so that their calls have something to ask.
// `m_closed` tells them that the manager is gone.
//
// Thread safety: all public functions from any thread. No foreign code (callbacks, their captures' destructors, conditions, the
// manager's virtual functions, a sink of log lines) runs under the lock, with one exception: the clock's nowNs().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/any_timer_queue.h"
#include "sylar/timer/armed_timer.h"
#include "sylar/timer/front_news.h"
#include "sylar/timer/timer_pool.h"
#include "sylar/timer/timer_state.h"
#include "sylar/timer_stats.h"

namespace sylar::detail {

/// A share in a timer's action, or none. Destroying the last share destroys the callback and its captures, which is foreign code
/// and must never happen under the lock. A share does not keep the timer alive.
///
/// Thread safety: as a value.
class ActionShare {
 public:
  ActionShare() = default;
  /// Adds a share.
  explicit ActionShare(TimerAction& action) : m_action(&action) { action.shares.fetch_add(1, std::memory_order_relaxed); }
  /// Takes the timer's own share, if it still has that.
  static ActionShare ownOf(TimerAction& action) {
    ActionShare share;
    if (std::exchange(action.own, false)) share.m_action = &action;
    return share;
  }
  ActionShare(const ActionShare& other) : m_action(other.m_action) {
    if (m_action != nullptr) m_action->shares.fetch_add(1, std::memory_order_relaxed);
  }
  ActionShare(ActionShare&& other) noexcept : m_action(std::exchange(other.m_action, nullptr)) {}
  ActionShare& operator=(ActionShare other) noexcept {
    std::swap(m_action, other.m_action);
    return *this;
  }
  ~ActionShare() {
    if (m_action == nullptr || m_action->shares.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const auto condition = std::exchange(m_action->condition, {});
    const auto cb = std::exchange(m_action->cb, nullptr);  // it may own the timer, which nothing touches from here on
  }

  explicit operator bool() const { return m_action != nullptr; }
  /// Returns how many shares of this action there are, at some moment of the call. This share must not be empty.
  uint32_t count() const {
    SYLAR_DCHECK(m_action != nullptr);
    return m_action->shares.load(std::memory_order_relaxed);
  }
  /// Runs the callback while holding the condition, unless that is gone. Logs what the callback throws.
  void run() const;

 private:
  TimerAction* m_action = nullptr;
};

/// Runs foreign code and logs what it throws.
void runLogged(const std::function<void()>& callable);

class TimerCore : public std::enable_shared_from_this<TimerCore> {
 public:
  /// `id_bits` are set in all its ids, so that each tells its set.
  TimerCore(TimerManager& manager, const Clock& clock, TimerQueueKind queue, const RunWaits& waits, TimerId id_bits);
  TimerCore(const TimerCore&) = delete;
  TimerCore& operator=(const TimerCore&) = delete;

  /// Returns true in a forked child if the timers are its parent's. Then the lock may be held permanently, and the driver is not
  /// here.
  bool isParents() const { return sys::inForkedChild() && !m_of_child; }

  void add(const ArmedTimer::ptr& timer) SYLAR_EXCLUDES(m_mutex);
  bool cancel(ArmedTimer& timer) SYLAR_EXCLUDES(m_mutex);
  bool refresh(ArmedTimer& timer) SYLAR_EXCLUDES(m_mutex);
  bool reset(ArmedTimer& timer, uint64_t ms, bool from_now) SYLAR_EXCLUDES(m_mutex);

  TimerId start(int64_t after_ns, TimerTask task, Repeat repeat) SYLAR_EXCLUDES(m_mutex);
  TimerStop stop(TimerId id) SYLAR_EXCLUDES(m_mutex);
  TimerStop stopSync(TimerId id) SYLAR_EXCLUDES(m_mutex);

  void rearm(ArmedTimer::ptr timer) noexcept SYLAR_EXCLUDES(m_mutex);  // NOLINT(bugprone-exception-escape): nothing throws

  const Clock& clock() const { return m_clock; }
  uint64_t nextTimerMs() SYLAR_EXCLUDES(m_mutex);
  int64_t observeNextDue() SYLAR_EXCLUDES(m_mutex);
  /// For lookAtAll().
  void wakesBy(int64_t due_ns) SYLAR_EXCLUDES(m_mutex);
  int64_t nextDueNs() const { return m_next_due_ns.load(std::memory_order_relaxed); }
  bool hasTimer() SYLAR_EXCLUDES(m_mutex);
  /// Returns true if a timer is armed that will fall due; then onLastTimerGone() is called when the last of them is removed.
  bool awaitLast() SYLAR_REQUIRES(m_mutex) { return m_last_awaited = m_front_ns != kNever; }
  /// For those who look at several sets at one moment. They take the locks in the order of the sets.
  Spinlock& mutex() { return m_mutex; }
  bool takeRollover() SYLAR_EXCLUDES(m_mutex);
  TimerStats stats() SYLAR_EXCLUDES(m_mutex);
  void listExpired(std::vector<std::function<void()>>& cbs) SYLAR_EXCLUDES(m_mutex);
  bool collect(size_t budget, std::vector<Timer::ptr>& out) SYLAR_EXCLUDES(m_mutex);
  /// Does nothing and returns false if another thread holds the lock. Otherwise `more` is what collect() returns.
  bool tryCollect(size_t budget, std::vector<Timer::ptr>& out, bool* more) SYLAR_EXCLUDES(m_mutex);
  void close() SYLAR_EXCLUDES(m_mutex);

 private:
  friend Timer;  // for fire()
  using State = ArmedTimer::State;
  /// A call to the manager that is due when the lock is released.
  struct Event {
    enum class Kind : uint8_t { kNone, kNewFront, kLastGone } kind = Kind::kNone;
    FrontNews<>::Ticket ticket = 0;
  };
  /// A rollover that was noticed under the lock. The destructor writes the log line, so declare it before the lock, to outlive
  /// it.
  struct Rollover {
    Rollover() = default;
    Rollover(const Rollover&) = delete;
    Rollover& operator=(const Rollover&) = delete;
    ~Rollover() {
      if (step_ns > 0) [[unlikely]]
        warnOf(*this);
    }
    int64_t step_ns = 0;
  };
  static void warnOf(const Rollover& rollover);
  class Leavers;
  static constexpr size_t kBatch = 32;  ///< how many are taken out of the queue at once
  struct Listed;

  /// Runs an action that was claimed. Warns if many runs of the timer are under way.
  void run(ArmedTimer& timer, const ActionShare& action) SYLAR_EXCLUDES(m_mutex);
  void warnOfOverlap(ArmedTimer& timer) SYLAR_EXCLUDES(m_mutex);
  /// Returns the action of a timer that collect() handed out, for one run, or none if there is nothing to run any more.
  ActionShare claimDispatched(ArmedTimer& timer) SYLAR_EXCLUDES(m_mutex);
  /// Returns the action of a recurring timer that listExpired() handed out, likewise.
  ActionShare claimListed(ArmedTimer& timer) SYLAR_EXCLUDES(m_mutex);
  /// Runs the pooled timer that was handed out first.
  void runPooled() SYLAR_EXCLUDES(m_mutex);
  void prefetch(TimerId id) const SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_pool.prefetch(inPool(id)); }  // needs no lock
  /// Returns the id that a timer has in the pool. That of another set's timer is none there.
  TimerId inPool(TimerId id) const { return id ^ m_id_bits; }
  TimerStop stopLocked(TimerId id, TimerTask& dropped, Event& event) SYLAR_REQUIRES(m_mutex);

  static void setState(ArmedTimer& timer, State to);

  /// Returns our time: the clock's plus all its steps back. So it never goes back itself and goes on at its true rate. Read
  /// under the lock, because samples taken before it would arrive out of order and look like steps.
  int64_t now(Rollover& rollover) SYLAR_REQUIRES(m_mutex) {
    const int64_t raw = m_clock.nowNs();
    const int64_t step = std::exchange(m_last_raw_ns, raw) - raw;
    if (step > 0) stepBack(step, rollover);
    return saturatingAdd(raw, m_offset_ns);
  }
  void stepBack(int64_t step_ns, Rollover& rollover) SYLAR_REQUIRES(m_mutex);
  void publish() SYLAR_REQUIRES(m_mutex);
  /// Republishes only if the removed timer was the earliest, or the last that would have fallen due.
  void publishWithout(int64_t deadline_ns) SYLAR_REQUIRES(m_mutex) {
    if (deadline_ns <= m_front_ns || !m_queue.anyFinite()) publish();
  }
  int64_t firstDue() const SYLAR_REQUIRES(m_mutex);
  bool noneArmed() const SYLAR_REQUIRES(m_mutex) { return m_queue.empty() && !anyReturned(); }
  bool drainSome(Leavers& leavers) SYLAR_REQUIRES(m_mutex);
  /// Returns the call that is due after a timer of this deadline was taken out, and the rest published.
  Event tookOut(int64_t deadline_ns) SYLAR_REQUIRES(m_mutex) {
    if (!m_last_awaited || deadline_ns == kNever || m_front_ns != kNever) return {};
    m_last_awaited = false;
    return pin({.kind = Event::Kind::kLastGone});
  }
  bool anyReturned() const SYLAR_REQUIRES(m_mutex) { return !m_returned.empty() || m_owed > 0; }
  [[nodiscard]] Event newFront(bool earlier) SYLAR_REQUIRES(m_mutex);
  void observed() SYLAR_REQUIRES(m_mutex) { m_news.look(nextDueNs()); }
  [[nodiscard]] Event arm(ArmedTimer& timer, int64_t start_ns) SYLAR_REQUIRES(m_mutex);

  template <class Prepare, class HandOut, class HandOutPooled>
  bool expire(int64_t now_ns, size_t budget, Prepare prepare, HandOut handOut, HandOutPooled handOutPooled)
      SYLAR_REQUIRES(m_mutex);
  template <class HandOut>
  void expireTimer(ArmedTimer& timer, int64_t now_ns, HandOut& handOut) SYLAR_REQUIRES(m_mutex);
  template <class HandOut>
  void expirePooled(PoolTimer& timer, int64_t now_ns, HandOut& handOut) SYLAR_REQUIRES(m_mutex);
  void count(bool handed_out, int64_t late_ns) SYLAR_REQUIRES(m_mutex);
  ArmedTimer::ptr runner() { return {shared_from_this(), &m_runner}; }
  size_t collectReturned(int64_t now_ns, size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) SYLAR_REQUIRES(m_mutex);
  bool collectLocked(size_t budget, Rollover& rollover, Leavers& leavers, std::vector<Timer::ptr>& out) SYLAR_REQUIRES(m_mutex);

  Event pin(Event event) SYLAR_REQUIRES(m_mutex);
  void tell(Event event) SYLAR_EXCLUDES(m_mutex) {
    if (event.kind != Event::Kind::kNone) call(event);
  }
  void call(Event event) SYLAR_EXCLUDES(m_mutex);

  const bool m_of_child = sys::inForkedChild();  ///< made in a forked child
  TimerManager& m_manager;                       ///< used only between pin() and the end of tell()
  const Clock& m_clock;                          ///< used only while not closed
  const RunWaits& m_waits;
  const TimerId m_id_bits;

  mutable Spinlock m_mutex;
  AnyTimerQueue m_queue SYLAR_GUARDED_BY(m_mutex);
  TimerList m_returned SYLAR_GUARDED_BY(m_mutex);         ///< one-shots that were given back, also cancelled ones
  size_t m_owed SYLAR_GUARDED_BY(m_mutex) = 0;            ///< runners that were given back
  int64_t m_front_ns SYLAR_GUARDED_BY(m_mutex) = kNever;  ///< firstDue() when it was last published
  int64_t m_again_ns SYLAR_GUARDED_BY(m_mutex) = 0;       ///< when the returned ones are handed out
  int64_t m_last_raw_ns SYLAR_GUARDED_BY(m_mutex);        ///< what the clock said last
  int64_t m_offset_ns SYLAR_GUARDED_BY(m_mutex) = 0;      ///< sum of the clock's steps back: our time is the clock's plus this
  bool m_rolled_over SYLAR_GUARDED_BY(m_mutex) = false;
  bool m_last_awaited SYLAR_GUARDED_BY(m_mutex) = false;  ///< awaitLast() has returned true, and nobody was told since
  bool m_closed SYLAR_GUARDED_BY(m_mutex) = false;
  TimerStats m_stats SYLAR_GUARDED_BY(m_mutex);  ///< except what the queue itself knows

  /// Pooled timers have no Timer that could be handed out. Each time one is due, this one is handed out instead. Firing it runs
  /// the timer that has waited in m_ready longest. It owns nothing; a pointer to it owns the core.
  ArmedTimer m_runner;
  TimerPool<> m_pool SYLAR_GUARDED_BY(m_mutex);
  std::vector<PoolTimer*> m_ready SYLAR_GUARDED_BY(m_mutex);  ///< from m_ready_begin on: kQueued or kStopped, each once
  size_t m_ready_begin SYLAR_GUARDED_BY(m_mutex) = 0;
  TimerRuns<> m_runs{m_mutex, m_pool};

  /// firstDue() on the clock's scale. Written under the lock. Workers read it that arm their own timers elsewhere.
  alignas(64) std::atomic<int64_t> m_next_due_ns{kNever};

  alignas(64) FrontNews<> m_news;  ///< on the clock's scale

  /// Counts the calls of the manager's virtual functions, under the lock while not closed, so that close() sees all of them.
  CallGate<> m_calls;
};

/// Timers that left the queue for good. The destructor lets go of them and of their captures, so declare it before the lock, to
/// outlive it.
class TimerCore::Leavers {
 public:
  Leavers() = default;
  ~Leavers() {
    while (TimerNode* node = m_timers.pop()) {
      if (static_cast<ManagedTimer*>(node)->pooled) {
        static_cast<PoolTimer*>(node)->task = nullptr;
        continue;
      }
      auto& timer = static_cast<ArmedTimer&>(*node);
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

}  // namespace sylar::detail
