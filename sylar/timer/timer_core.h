// Internal. What a TimerManager and its Timers share: the queue, its lock and its clock. It outlives the manager as long as
// there are Timers, so that their calls have something to ask; `m_closed` tells them that the manager is gone.
//
// Thread safety: all public functions from any thread. No foreign code (callbacks, their captures' destructors, conditions,
// the manager's virtual functions) runs under the lock.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/timer/any_timer_queue.h"
#include "sylar/timer/timer.h"
#include "sylar/timer/timer_pool.h"
#include "sylar/timer/timer_state.h"

namespace sylar {

/// A share in what a timer does, or none. Who lets go of the last one destroys the callback and what it captures: foreign code,
/// so never under the lock. Does not keep the timer alive. Thread safety: as a value.
class ActionShare {
 public:
  ActionShare() = default;
  /// One more.
  explicit ActionShare(TimerAction& action) : m_action(&action) { action.shares.fetch_add(1, std::memory_order_relaxed); }
  /// The timer's own, if it still has that.
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
    const auto cb = std::exchange(m_action->cb, nullptr);  // it may own the timer: nothing touches that from here on
  }

  explicit operator bool() const { return m_action != nullptr; }
  void run() const { m_action->run(); }

 private:
  TimerAction* m_action = nullptr;
};

/// Runs foreign code and logs what it throws.
template <class Callable>
void runLogged(Callable& callable) {
  try {
    callable();
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended: not ours to stop
  } catch (const std::exception& error) {
    log::error("a timer's callback threw: {}", error.what());
  } catch (...) {
    log::error("a timer's callback threw something that is no std::exception");
  }
}

class TimerCore : public std::enable_shared_from_this<TimerCore> {
 public:
  TimerCore(TimerManager& manager, const Clock& clock, TimerQueueKind queue);
  TimerCore(const TimerCore&) = delete;
  TimerCore& operator=(const TimerCore&) = delete;

  void add(const Timer::ptr& timer) SYLAR_EXCLUDES(m_mutex);
  bool cancel(Timer& timer) SYLAR_EXCLUDES(m_mutex);
  bool refresh(Timer& timer) SYLAR_EXCLUDES(m_mutex);
  bool reset(Timer& timer, uint64_t ms, bool from_now) SYLAR_EXCLUDES(m_mutex);

  TimerId start(int64_t after_ns, TimerTask task, Repeat repeat) SYLAR_EXCLUDES(m_mutex);
  TimerStop stop(TimerId id) SYLAR_EXCLUDES(m_mutex);
  TimerStop stopSync(TimerId id) SYLAR_EXCLUDES(m_mutex);

  void fire(Timer& timer) SYLAR_EXCLUDES(m_mutex);
  void giveBack(Timer::ptr timer) noexcept SYLAR_EXCLUDES(m_mutex);

  const Clock& clock() const { return m_clock; }
  uint64_t nextTimerMs() SYLAR_EXCLUDES(m_mutex);
  int64_t observeNextDue() SYLAR_EXCLUDES(m_mutex);
  int64_t nextDueNs() const { return m_next_due_ns.load(std::memory_order_relaxed); }
  bool hasTimer() SYLAR_EXCLUDES(m_mutex);
  bool takeRollover() SYLAR_EXCLUDES(m_mutex);
  TimerStats stats() SYLAR_EXCLUDES(m_mutex);
  void listExpired(std::vector<std::function<void()>>& cbs) SYLAR_EXCLUDES(m_mutex);
  bool collect(size_t budget, std::vector<Timer::ptr>& out) SYLAR_EXCLUDES(m_mutex);
  bool tryCollect(size_t budget, std::vector<Timer::ptr>& out) SYLAR_EXCLUDES(m_mutex);
  void close() SYLAR_EXCLUDES(m_mutex);

 private:
  using State = Timer::State;
  enum class Event : uint8_t { kNone, kNewFront, kLastGone };
  class Leavers;
  struct Listed;

  /// The action of a timer that collect() handed out, for one run; none if there is nothing to run any more.
  ActionShare claimDispatched(Timer& timer) SYLAR_EXCLUDES(m_mutex);
  /// The same for a recurring timer that listExpired() handed out.
  ActionShare claimListed(Timer& timer) SYLAR_EXCLUDES(m_mutex);
  /// Runs the pooled timer that was handed out first.
  void runPooled() SYLAR_EXCLUDES(m_mutex);
  void prefetch(TimerId id) const SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_pool.prefetch(id); }  // needs no lock
  TimerStop stopLocked(TimerId id, TimerTask& dropped, Event& event) SYLAR_REQUIRES(m_mutex);

  static void setState(Timer& timer, State to);

  /// Our time: the clock's plus all its steps back, so it never goes back itself and goes on at its true rate. Asked for under
  /// the lock: samples taken before it would arrive out of order and look like steps.
  int64_t now() SYLAR_REQUIRES(m_mutex) {
    const int64_t raw = m_clock.nowNs();
    const int64_t step = std::exchange(m_last_raw_ns, raw) - raw;
    if (step > 0) stepBack(step);
    return saturatingAdd(raw, m_offset_ns);
  }
  void stepBack(int64_t step_ns) SYLAR_REQUIRES(m_mutex);
  void publish() SYLAR_REQUIRES(m_mutex);
  /// Whoever was not in front leaves the front as it is.
  void publishWithout(int64_t deadline_ns) SYLAR_REQUIRES(m_mutex) {
    if (deadline_ns <= m_front_ns) publish();
  }
  int64_t firstDue() const SYLAR_REQUIRES(m_mutex);
  bool noneArmed() const SYLAR_REQUIRES(m_mutex) { return m_queue.empty() && !anyReturned(); }
  /// For who just took out a timer and published: cheap while others are due.
  bool tookLast() const SYLAR_REQUIRES(m_mutex) { return m_front_ns == kNever && noneArmed(); }
  bool anyReturned() const SYLAR_REQUIRES(m_mutex) { return !m_returned.empty() || m_owed > 0; }
  [[nodiscard]] Event newFront() SYLAR_REQUIRES(m_mutex);
  void observed() SYLAR_REQUIRES(m_mutex);
  [[nodiscard]] Event arm(Timer& timer, int64_t start_ns) SYLAR_REQUIRES(m_mutex);

  template <class Prepare, class HandOut, class HandOutPooled>
  bool expire(size_t budget, Leavers& leavers, Prepare prepare, HandOut handOut, HandOutPooled handOutPooled)
      SYLAR_REQUIRES(m_mutex);
  template <class HandOut>
  void expireTimer(Timer& timer, int64_t now_ns, Leavers& leavers, HandOut& handOut) SYLAR_REQUIRES(m_mutex);
  template <class HandOut>
  void expirePooled(PoolTimer& timer, int64_t now_ns, HandOut& handOut) SYLAR_REQUIRES(m_mutex);
  void count(bool handed_out, int64_t late_ns) SYLAR_REQUIRES(m_mutex);
  Timer::ptr runner() { return {shared_from_this(), &m_runner}; }
  size_t collectReturned(size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) SYLAR_REQUIRES(m_mutex);
  bool collectLocked(size_t budget, Leavers& leavers, std::vector<Timer::ptr>& out) SYLAR_REQUIRES(m_mutex);

  Event pin(Event event) SYLAR_REQUIRES(m_mutex);
  void tell(Event event) SYLAR_EXCLUDES(m_mutex) {
    if (event != Event::kNone) call(event);
  }
  void call(Event event) SYLAR_EXCLUDES(m_mutex);

  TimerManager& m_manager;  ///< used only between pin() and the end of tell()
  const Clock& m_clock;     ///< used only while not closed

  mutable Spinlock m_mutex;
  AnyTimerQueue m_queue SYLAR_GUARDED_BY(m_mutex);
  TimerList m_returned SYLAR_GUARDED_BY(m_mutex);         ///< one-shots that were given back; the cancelled ones, too
  size_t m_owed SYLAR_GUARDED_BY(m_mutex) = 0;            ///< runners that were given back
  int64_t m_front_ns SYLAR_GUARDED_BY(m_mutex) = kNever;  ///< firstDue() when it was last published
  int64_t m_again_ns SYLAR_GUARDED_BY(m_mutex) = 0;       ///< when those are handed out
  int64_t m_last_raw_ns SYLAR_GUARDED_BY(m_mutex);        ///< what the clock said last
  int64_t m_offset_ns SYLAR_GUARDED_BY(m_mutex) = 0;      ///< sum of the clock's steps back: our time is the clock's plus this
  bool m_rolled_over SYLAR_GUARDED_BY(m_mutex) = false;
  bool m_tickled SYLAR_GUARDED_BY(m_mutex) = false;  ///< the sleeper was told of a new front and has not looked since
  bool m_stepped SYLAR_GUARDED_BY(m_mutex) = false;  ///< on the clock's scale the front came nearer; the sleeper does not know
  bool m_closed SYLAR_GUARDED_BY(m_mutex) = false;
  TimerStats m_stats SYLAR_GUARDED_BY(m_mutex);  ///< but for what the queue itself knows

  /// Pooled timers have no Timer that could be handed out. Instead each time one is due this is: firing it runs the one of
  /// m_ready that waits there longest. It owns nothing; a pointer to it owns the core.
  Timer m_runner;
  TimerPool<> m_pool SYLAR_GUARDED_BY(m_mutex);
  std::vector<PoolTimer*> m_ready SYLAR_GUARDED_BY(m_mutex);  ///< from m_ready_begin on: kQueued or kStopped, each once
  size_t m_ready_begin SYLAR_GUARDED_BY(m_mutex) = 0;
  TimerRuns<> m_runs{m_mutex, m_pool};

  /// firstDue() on the clock's scale. Written under the lock.
  std::atomic<int64_t> m_next_due_ns{kNever};

  /// Calls of the manager's virtual functions. Counted in under the lock while not closed, so that close() sees all of them.
  CallGate<> m_calls;
};

}  // namespace sylar
