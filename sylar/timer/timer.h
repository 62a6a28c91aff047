// Timers with sylar's interface: a callback that runs once, or again and again, after a delay in milliseconds.
//
// A `TimerManager` knows what is due when; it neither sleeps nor runs anything. A driver does: IOManager, or a program's own
// loop, which sleeps for getNextTimer(), asks for what is due with listExpiredCb() and runs it.
//
// Inside, time is nanoseconds on a monotonic clock: a timer never fires early, and wall-clock changes do not concern it.
// Delays saturate: a deadline beyond 292 years is never reached.
//
// Thread safety: all calls on both classes from any thread, also from callbacks and from the destructors of what callbacks
// capture. No call suspends but Timer::fire(), whose callback may; none holds a lock while it runs foreign code.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/timer/timer_node.h"
#include "sylar/timer/timer_stats.h"
#include "sylar/timer/timer_task.h"

namespace sylar {

class TimerCore;

/// The structure that keeps the deadlines in order. What they cost, and when to choose which: docs/design/timer.md.
///
/// kHeap            4-ary heap: exact to the nanosecond, O(log n)
/// kBinaryHeap      the same with two children, as design 000 had it
/// kSet             red-black tree: what the others are compared with
/// kWheel           hierarchical wheel: O(1), for very many timeouts that are nearly all cancelled; a timer is up to 1 ms late
/// kPublishedWheel  the same with design 001's tick of 10 ms
enum class TimerQueueKind : uint8_t { kHeap, kBinaryHeap, kSet, kWheel, kPublishedWheel };
inline constexpr TimerQueueKind kDefaultTimerQueue = TimerQueueKind::kHeap;

/// Whether a timer is armed anew when it has been due, at time `now` for deadline `d`, with period `p`.
///
/// kNo     it is not
/// kDelay  for now + p: it never bursts, and drifts by its lateness (sylar's recurring timers)
/// kSkip   for the first d + k * p after now: it keeps its phase, and leaves out what it missed
enum class Repeat : uint8_t { kNo, kDelay, kSkip };

/// Names a timer made by startTimer(). May be copied and may outlive its timer: then it names nothing, for 2^42 timers to come.
/// 0 never names one.
using TimerId = uint64_t;

/// What stopTimer() found.
///
/// kCancelled  the callback has not begun and will not begin (recurring: not again); its captures are destroyed
/// kRunning    the callback is running (recurring: for the last time)
/// kDone       stopTimerSync() only: it was running and has ended
/// kGone       no such timer any more: it has run, was stopped, or never was
enum class TimerStop : uint8_t { kCancelled, kRunning, kDone, kGone };

/// Internal: what a manager's queue holds. `pooled`: a PoolTimer, else a Timer.
struct ManagedTimer : TimerNode {
  explicit ManagedTimer(bool is_pooled) : pooled(is_pooled) {}
  bool pooled;
};

/// Internal: what a timer does when it is due. Lies in the timer, so that both are one allocation; emptied when nobody has a
/// share in it any more (ActionShare).
struct TimerAction {
  std::function<void()> cb;
  std::weak_ptr<void> condition;
  const bool conditional;
  bool own = true;                  ///< the timer has not given its own share away; guarded like Timer::m_self
  std::atomic<uint32_t> shares{1};  ///< the timer's own, and one for each run of it that is under way

  /// The condition is gone, for good.
  bool dead() const { return conditional && condition.expired(); }
  /// Runs the callback, holding the condition, if it is not gone; logs what it throws.
  void run();
};

/// A handle on one armed callback. Made by TimerManager::addTimer; dropping it does not cancel the timer.
///
/// A one-shot timer has fired once listExpiredCb() has handed out its callback, or once a driver begins to run it; from then
/// on, and after cancel() or the end of its manager, every call returns false and changes nothing.
class Timer final : private ManagedTimer {
 public:
  using ptr = std::shared_ptr<Timer>;

  /// Stops the timer. True: the callback has not begun and will not begin (recurring: not again), also if it was already
  /// collected, and its captures are destroyed before the call returns, or, while it is running, when it ends.
  bool cancel();

  /// Starts the delay anew: due `ms` from now. Counts as arming anew among equal deadlines. False for a one-shot timer that is
  /// about to run.
  bool refresh();

  /// Changes the delay, for a recurring timer of all later rounds, too. Counted from now, or, without `from_now`, from when it
  /// was last armed: then it may be due at once. The delay that it has already, without `from_now`, changes nothing.
  /// Recurring: 0 becomes 1 ms. False for a one-shot timer that is about to run.
  bool reset(uint64_t ms, bool from_now);

  /// For the driver. Runs the callback that collectDue() handed out, at most once for each time it did; does nothing if the
  /// timer was cancelled since, or if its condition is gone. The condition is held during the callback. An exception is logged.
  /// The caller keeps the timer alive during the call. May suspend: yes, if the callback does.
  void fire();

  /// For the driver, instead of fire(): it found no memory to run the callback in. collectDue() hands the timer out again a
  /// millisecond later, unless it is cancelled. Never throws; a second call does nothing.
  static void giveBack(Timer::ptr timer) noexcept;

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  friend class TimerCore;
  friend class TimerManager;
  struct Key {};

  /// Armed     linked in the queue. A recurring timer stays Armed while its runs are under way
  /// Queued    one-shot, handed out by collectDue(), not begun
  /// Done      one-shot that began or that listExpiredCb() handed out; recurring whose condition died
  /// Cancelled by cancel(), or by the end of the manager
  ///
  /// (new) -> Armed -> Queued | Done | Cancelled; Queued -> Done | Cancelled. Changed by TimerCore::setState only.
  enum class State : uint8_t { kNew, kArmed, kQueued, kDone, kCancelled };

 public:
  /// Internal: only TimerManager has the key.
  Timer(Key, std::shared_ptr<TimerCore> core, uint64_t ms, Repeat repeat, std::function<void()> cb, std::weak_ptr<void> condition,
        bool conditional);

 private:
  const std::shared_ptr<TimerCore> m_core;  ///< outlives the manager
  const Repeat m_repeat;

  // Guarded by the core's lock; m_self and m_action.own of a timer that has just left the queue belong to whoever took it out.
  State m_state = State::kNew;
  bool m_run_pending = false;  ///< recurring: handed out by collectDue(), not begun
  uint64_t m_ms;
  int64_t m_start_ns = 0;  ///< when it was last armed: where the delay starts
  Timer::ptr m_self;       ///< while Armed: an armed timer needs no other owner
  TimerAction m_action;
};

/// A set of timers. To be derived from: the driver that sleeps until the next deadline is told when that moves nearer.
class TimerManager {
 public:
  /// `clock` must outlive the manager. May throw std::bad_alloc.
  explicit TimerManager(const Clock& clock = steadyClock(), TimerQueueKind queue = kDefaultTimerQueue);
  /// Cancels what is armed; see close().
  virtual ~TimerManager();
  TimerManager(const TimerManager&) = delete;
  TimerManager& operator=(const TimerManager&) = delete;

  /// Arms `cb` to run once, `ms` from now, or every `ms` (recurring; 0 becomes 1 ms). A recurring timer is due anew `ms` after
  /// it was collected: it never bursts, and drifts by its lateness. It does not wait for its last run: a callback that takes
  /// longer than `ms` may run on several threads at once. An empty `cb` expires silently.
  /// May throw std::bad_alloc, then nothing is armed. Source: sylar.
  Timer::ptr addTimer(uint64_t ms, std::function<void()> cb, bool recurring = false);

  /// The same, with a choice of what recurring means.
  Timer::ptr addTimer(uint64_t ms, std::function<void()> cb, Repeat repeat);

  /// As addTimer, but the callback runs only if `weak_cond` can be locked when it is about to begin, and holds it while it runs.
  /// A recurring timer whose condition died is removed when it is next due. Source: sylar.
  Timer::ptr addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool recurring = false);
  Timer::ptr addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, Repeat repeat);

  /// Arms `task` to run once, `after` from now (negative counts as 0), or every `after` (recurring; less than 1 ms becomes that).
  /// The cheap kind of timer: no shared ownership, and no allocation beyond pages of 63 timers if the callable fits into a word
  /// (see TimerTask). A recurring one never runs twice at once: what is due while it runs is left out. An empty `task` expires
  /// silently. 0 if the manager has ended or has 16.5 million of them. May throw std::bad_alloc, then nothing is armed.
  TimerId startTimer(std::chrono::nanoseconds after, TimerTask task, Repeat repeat = Repeat::kNo);

  /// Stops the timer. kCancelled also if it was handed out and has not begun. Never waits; any id is allowed.
  TimerStop stopTimer(TimerId id);

  /// Stops the timer; if its callback is running on another thread, blocks the thread until it has ended: kDone. When it returns,
  /// the callback is not running and will not run. On the thread that runs the callback it returns kRunning at once. Not to be
  /// called while holding what the callback waits for, nor in a callback that was moved to another thread since it began.
  TimerStop stopTimerSync(TimerId id);

  /// Milliseconds until the next timer is due, rounded up; 0 if one is due; ~0ull if there is none. From this call on,
  /// onTimerInsertedAtFront() reports again. Source: sylar.
  uint64_t getNextTimer();

  /// Appends a callback for each timer that is due, in the order (deadline, arming), for the caller to run: they contain the
  /// exceptions of the user's callback and look after its condition. Each recurring timer appears once and is armed anew.
  /// A one-shot timer can no longer be cancelled; a recurring one can, then its callback here does nothing.
  /// May throw std::bad_alloc: what is not in `cbs` is still armed. Source: sylar.
  void listExpiredCb(std::vector<std::function<void()>>& cbs);

  /// True iff a timer is armed. Source: sylar.
  bool hasTimer();

  /// True once after the clock went back by more than an hour, which makes every timer that was armed before due at once.
  /// A smaller step back is no event: time stands on the step and goes on at its true rate. Source: sylar.
  bool detectClockRollover();

  /// What it has counted since it was made, all of one moment. Takes the lock: for a report, not for each request. Also after
  /// close().
  TimerStats getStats() const;
  /// The clock of its deadlines.
  const Clock& timerClock() const;

  // For the driver that serves this manager.

  /// When the next timer is due, on the clock's own scale (not shifted by steps back; may be 0 or less); kNever if none will
  /// be. A hint, without a lock: one relaxed load.
  int64_t nextDueNs() const;

  /// The same, exactly, under the lock; counts as getNextTimer() for onTimerInsertedAtFront(). To be called for every sleep.
  int64_t observeNextDue();

  /// Hands out at most `budget` timers that are due, in the order (deadline, arming); appended to `out`, for the caller to
  /// fire(), each. Until then cancel() still prevents the run. Recurring ones are armed anew; one whose last run was handed out
  /// but has not begun is not handed out again. True iff due timers remain.
  /// May throw std::bad_alloc: what is not in `out` is still armed.
  bool collectDue(size_t budget, std::vector<Timer::ptr>& out);

  /// The same, but does nothing and returns false if another thread is at the timers.
  bool tryCollectDue(size_t budget, std::vector<Timer::ptr>& out);

 protected:
  /// A timer was armed, reset or refreshed to be due strictly before all others (or is the only one) and earlier than the
  /// sleeper knows; not again until the next getNextTimer() or observeNextDue(). Called without any lock, by the thread that
  /// did it; may call back into the manager.
  virtual void onTimerInsertedAtFront() = 0;

  /// cancel() removed the last armed timer. Called like onTimerInsertedAtFront().
  virtual void onLastTimerGone() {}

  /// Ends the service: cancels what is armed, waits until no Timer's call is inside one of the two functions above, and makes
  /// every Timer return false; addTimer returns a dead timer. A derived class whose timers outlive it calls this first in its
  /// destructor, while its overrides can still be called. Idempotent; not from within the two functions. Blocks the thread.
  void close();

 private:
  friend class IdleCore;
  friend class TimerCore;
  friend class ScopedTimer;
  Timer::ptr add(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool conditional, Repeat repeat);

  const std::shared_ptr<TimerCore> m_core;
};

/// A timer of startTimer() that is stopped when it goes out of scope. May outlive the manager. Thread safety: as a value.
class ScopedTimer {
 public:
  ScopedTimer() = default;
  /// As TimerManager::startTimer().
  ScopedTimer(TimerManager& manager, std::chrono::nanoseconds after, TimerTask task, Repeat repeat = Repeat::kNo);
  ~ScopedTimer() { stop(); }
  ScopedTimer(ScopedTimer&& other) noexcept;
  ScopedTimer& operator=(ScopedTimer&& other) noexcept;

  /// As TimerManager::stopTimer(): does not wait for a callback that is running.
  TimerStop stop();

 private:
  std::shared_ptr<TimerCore> m_core;
  TimerId m_id = 0;
};

}  // namespace sylar
