// Timers with sylar's interface: a callback runs once, or again and again, after a delay in milliseconds.
//
// A `TimerManager` knows which timers are due when; it neither sleeps nor runs anything. That is the task of a driver, either
// an IOManager or a program's own loop, which sleeps for getNextTimer(), collects the due callbacks with listExpiredCb() and
// runs them.
//
// Due timers are handed out in the order (deadline, arming). An IOManager with several workers keeps that order for the timers that
// one worker has armed. Its workers do not wait for each other when they arm timers, and stop those that they have armed.
//
// Internally, time is in nanoseconds on a monotonic clock, so a timer never fires early and wall-clock changes do not affect
// it. Delays saturate: a deadline beyond 292 years is never reached.
//
// In a forked child of a process that has started a scheduler, the parent's managers and timers are dead: no timer is armed
// (addTimer returns a dead one, startTimer 0), and the other calls find none. A manager that is made in the child works.
//
// Thread safety: all calls on both classes from any thread, also from callbacks and from the destructors of their captures.
// Only stopTimerSync() and Timer::fire() may suspend, the latter if its callback does. No call holds a lock while it runs
// foreign code, except the clock's nowNs().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer_task.h"

namespace sylar {

namespace detail {
class ArmedTimer;
class RunWaits;
class TimerCore;
class TimerSets;
}  // namespace detail

/// The structure that keeps the deadlines in order. The kinds stand at the end of this header, because the default is right for
/// nearly all programs.
enum class TimerQueueKind : uint8_t;
inline constexpr TimerQueueKind kDefaultTimerQueue{0};  ///< kFourAryHeap

/// Whether, and for when, a timer is armed again once it was due, at time `now` for deadline `d`, with period `p`.
///
/// kNo     not at all
/// kDelay  for now + p: it never bursts, and drifts by its lateness (sylar's recurring timers)
/// kSkip   for the first d + k * p after now: it keeps its phase, and skips the rounds it missed
enum class Repeat : uint8_t { kNo, kDelay, kSkip };

/// Identifies a timer made by startTimer(). An id may be copied and may outlive its timer; it then identifies no timer, for the
/// next 2^42 timers. 0 never identifies one.
using TimerId = uint64_t;

/// The state in which stopTimer() found a timer.
///
/// kCancelled  the callback has not begun and will not begin (recurring: not again); its captures are destroyed
/// kRunning    the callback is running (recurring: for the last time)
/// kDone       stopTimerSync() only: it was running and has ended
/// kGone       no such timer: it has run, was stopped, or never existed
enum class TimerStop : uint8_t { kCancelled, kRunning, kDone, kGone };

/// A handle on one armed callback, made by TimerManager::addTimer. Dropping it does not cancel the timer.
///
/// A one-shot timer has fired once listExpiredCb() has handed out its callback, or once a driver begins to run it. From then
/// on, and after cancel() or the end of its manager, every call returns false and changes nothing.
class Timer {
 public:
  using ptr = std::shared_ptr<Timer>;

  /// Stops the timer. Returns true if the callback has not begun and will not begin (recurring: not again), even if it was
  /// already collected. The callback's captures are destroyed before the call returns or, if it is running, when it ends.
  bool cancel();

  /// Restarts the delay, so that the timer is due its full delay from now. Among equal deadlines it counts as newly armed.
  /// Returns false for a one-shot timer that is about to run.
  bool refresh();

  /// Changes the delay, for a recurring timer also that of all later rounds. The delay counts from now if `from_now` is true,
  /// otherwise from when the timer was last armed, so that it may be due at once. Without `from_now`, setting the delay that
  /// the timer already has changes nothing. For a recurring timer 0 becomes 1 ms. Returns false for a one-shot timer that is
  /// about to run. Throws std::invalid_argument as addTimer does.
  bool reset(uint64_t ms, bool from_now);

  /// For a program's own loop: runs the callback that collectDue() handed out, at most once for each time it was handed out.
  /// Does nothing if the timer was cancelled since, or if its condition is gone. The condition is held during the callback. An
  /// exception is logged. The caller must keep the timer alive during the call. May suspend: yes, if the callback does.
  void fire();

  /// For a program's own loop that has no memory to run the callback in: gives the timer back to its manager, instead of
  /// fire(). collectDue() hands the timer out again a millisecond later, unless it is cancelled. Never throws; a second call
  /// does nothing.
  static void rearm(Timer::ptr timer) noexcept;

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  friend class detail::ArmedTimer;  // the actual class of every Timer
  Timer() = default;
  ~Timer() = default;
};

struct TimerStats;

/// A set of timers, to be derived from: the derived driver, which sleeps until the next deadline, is told when that deadline
/// moves nearer.
class TimerManager {
 public:
  /// `clock` must outlive the manager. May throw std::bad_alloc.
  explicit TimerManager(const Clock& clock = steadyClock(), TimerQueueKind queue = kDefaultTimerQueue);
  /// Cancels all armed timers; see close().
  virtual ~TimerManager();
  TimerManager(const TimerManager&) = delete;
  TimerManager& operator=(const TimerManager&) = delete;

  /// Arms `cb` to run once, `ms` from now, or every `ms` (recurring; 0 becomes 1 ms). A recurring timer is due again `ms` after
  /// it was collected: it never bursts, and drifts by its lateness. It does not wait for its last run. A callback that takes
  /// longer than `ms` may therefore run on several threads at once, and one that always waits for longer adds a fiber in each
  /// period, without bound. When 100 runs of one timer are under way, a log line warns of it, once for that timer. Timers of
  /// startTimer() never overlap.
  ///
  /// An empty `cb` expires silently. An `ms` beyond 292 years, or ~0ull, is never due; an IOManager's stop() does not wait for
  /// such a timer. Throws std::invalid_argument for more than 2^63 other than ~0ull (a negative number that was converted), and
  /// std::bad_alloc; then nothing is armed. Source: sylar.
  Timer::ptr addTimer(uint64_t ms, std::function<void()> cb, bool recurring = false);

  /// Arms a timer as above, with a choice of what recurring means.
  Timer::ptr addTimer(uint64_t ms, std::function<void()> cb, Repeat repeat);

  /// Arms a timer as addTimer does, but the callback runs only if `weak_cond` can be locked when it is about to begin, and the
  /// lock is held while it runs. A recurring timer whose condition has died is removed when it is next due. Source: sylar.
  Timer::ptr addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool recurring = false);
  Timer::ptr addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, Repeat repeat);

  /// Arms `task` to run once, `after` from now (a negative value counts as 0), or every `after` (recurring; less than 1 ms
  /// becomes 1 ms). This is the cheap kind of timer: it has no shared ownership, and if the callable fits into a word (see
  /// TimerTask) it allocates nothing but pages of 63 timers. A recurring task never runs twice at once; rounds that are due
  /// while it runs are skipped. An empty `task` expires silently. Returns 0 if the manager has ended or has 16.5 million of
  /// these timers, in an IOManager for each worker. May throw std::bad_alloc; then nothing is armed.
  TimerId startTimer(std::chrono::nanoseconds after, TimerTask task, Repeat repeat = Repeat::kNo);

  /// Stops the timer. Returns kCancelled also if the timer was handed out and has not begun. Never waits; any id is allowed.
  TimerStop stopTimer(TimerId id);

  /// Stops the timer. If its callback is running, waits until it has ended and its captures are destroyed, and returns kDone.
  /// When this returns, the callback is not running and will not run. The exceptions are places that cannot wait, where it
  /// returns kRunning at once: the callback itself, fibers that the callback resumes by hand, and code outside fibers on a
  /// worker of its IOManager (an exception handler or a destructor there). The caller must not hold anything that the callback
  /// waits for.
  ///
  /// The callbacks of an IOManager are fibers, and a fiber that calls this is suspended until the callback ends; there is no
  /// timeout, and cancel() does not end the wait. Outside fibers the call blocks the thread. With any other kind of manager it
  /// always blocks the thread, and a callback counts as running on the thread that runs it. A callback that stop(deadline) has
  /// abandoned never ends. May suspend: yes.
  TimerStop stopTimerSync(TimerId id);

  /// Returns the milliseconds until the next timer is due, rounded up; 0 if one is due; ~0ull if there is none. From this call
  /// on, onTimerInsertedAtFront() reports again. Source: sylar.
  uint64_t getNextTimer();

  /// Appends a callback for each due timer, in the order (deadline, arming), for the caller to run. These callbacks catch the
  /// exceptions of the user's callback and check its condition. Each recurring timer appears once and is armed again; timers
  /// that fall due during the call are left for the next one. From now on a one-shot timer cannot be cancelled; a recurring one
  /// can, and its callback in `cbs` then does nothing. May throw std::bad_alloc; timers that are not in `cbs` are still armed.
  /// Source: sylar.
  void listExpiredCb(std::vector<std::function<void()>>& cbs);

  /// Returns true if and only if a timer is armed. Source: sylar.
  bool hasTimer();

  /// Returns true once after the clock went back by more than an hour, which makes every timer that was armed before due at
  /// once. A smaller step back is not reported: the timers' time does not go back, and continues at its true rate. Source:
  /// sylar.
  bool detectClockRollover();

  /// Returns the counts since the manager was made; sylar/timer_stats.h has their type. Those of one thread's timers are all of one
  /// moment. Takes the lock, so use it for a report and not for each request. Works after close() as well.
  TimerStats getStats() const;
  /// Returns the clock of the deadlines.
  const Clock& timerClock() const;

  // A program's own loop calls observeNextDue() before each sleep, then collectDue(), and fire() for each timer.

  /// Returns when the next timer is due, on the clock's own scale (not shifted by steps back, so it may be 0 or less), or
  /// kNever if none will be. The result is a hint, read without a lock, for an IOManager by one load for each worker.
  int64_t nextDueNs() const;

  /// Returns the same exactly, under the lock. Counts as getNextTimer() for onTimerInsertedAtFront(). Must be called before
  /// every sleep.
  int64_t observeNextDue();

  /// Appends at most `budget` due timers to `out`, in the order (deadline, arming). The caller must fire() each of them,
  /// including those whose condition is gone, because that releases their captures. Until then cancel() still prevents the run.
  /// Recurring timers are armed again; one whose last run was handed out but has not begun is not handed out again. Returns
  /// true if and only if due timers remain. May throw std::bad_alloc; timers that are not in `out` are still armed.
  bool collectDue(size_t budget, std::vector<Timer::ptr>& out);

  /// Works as collectDue() does, but does nothing and returns false if another thread holds the lock of the timers. A worker of an
  /// IOManager leaves timers that another worker has armed to that one until they are 0.1 ms late.
  bool tryCollectDue(size_t budget, std::vector<Timer::ptr>& out);

 protected:
  /// Returns true if a timer is armed that will fall due, which excludes those whose delay means never. Then onLastTimerGone()
  /// tells when the last of them is removed; one that is handed out is not told of.
  bool anyWillFallDue();

  /// For IOManager, whose callbacks run in fibers. `waits` must never be destroyed. Each of `threads` threads gets a set of timers
  /// of its own.
  TimerManager(const Clock& clock, TimerQueueKind queue, const detail::RunWaits& waits, size_t threads);

  /// Called when a timer was armed, reset or refreshed, and one is now due earlier than the sleeper knows. After a call has
  /// returned, no other follows until the next getNextTimer() or observeNextDue(), in an IOManager none for timers that the same
  /// worker arms; while one is in progress, other threads may make more. Called without any lock, by the thread that armed the
  /// timer; it may call back into the manager.
  virtual void onTimerInsertedAtFront() = 0;

  /// Called when the last armed timer that would have fallen due was removed, if anyWillFallDue() has returned true since the last
  /// such call. An IOManager is told of the last one of each worker, so it asks again. The rules of onTimerInsertedAtFront() apply.
  virtual void onLastTimerGone() {}

  /// Ends the service: cancels all armed timers, waits until no Timer's call is inside one of the two functions above, and
  /// makes every Timer return false; addTimer then returns a dead timer. A derived class whose timers outlive it must call this
  /// first in its destructor, while its overrides can still be called. Idempotent. Must not be called from within the two
  /// functions. Blocks the thread.
  void close();

 private:
  friend class detail::TimerCore;
  friend class detail::TimerSets;
  friend class ScopedTimer;
  Timer::ptr add(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool conditional, Repeat repeat);

  const std::unique_ptr<detail::TimerSets> m_sets;
};

/// Starts a timer and stops it when it goes out of scope. May outlive the manager. Thread safety: as a plain value.
class ScopedTimer {
 public:
  ScopedTimer() = default;
  /// Starts the timer, as TimerManager::startTimer() does.
  ScopedTimer(TimerManager& manager, std::chrono::nanoseconds after, TimerTask task, Repeat repeat = Repeat::kNo);
  ~ScopedTimer() { stop(); }
  ScopedTimer(ScopedTimer&& other) noexcept;
  ScopedTimer& operator=(ScopedTimer&& other) noexcept;

  /// Stops the timer, as TimerManager::stopTimer() does, without waiting for a callback that is running.
  TimerStop stop();

 private:
  std::shared_ptr<detail::TimerCore> m_core;
  TimerId m_id = 0;
};

/// Their costs, and when to choose which: docs/design/timer.md.
///
/// kFourAryHeap  exact to the nanosecond, O(log n); the default
/// kWheel        hierarchical wheel, O(1); for very many timeouts that are nearly all cancelled. A timer is up to 1 ms late
/// kWheel10Ms    the same with a tick of 10 ms; for timers that may be up to 10 ms late and are then collected together
///
/// To compare with:
///
/// kBinaryHeap   exact, O(log n); the heap of most libraries
/// kOrderedSet   exact, O(log n); a red-black tree, as sylar has it, with a node of its own for each timer
enum class TimerQueueKind : uint8_t { kFourAryHeap, kBinaryHeap, kOrderedSet, kWheel, kWheel10Ms };
static_assert(kDefaultTimerQueue == TimerQueueKind::kFourAryHeap);

}  // namespace sylar
