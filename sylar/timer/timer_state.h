// Internal. The life of a timer with an id from when it is handed out until it is freed, the waiters for the end of its run, and
// the wait for the end of a manager's calls: stop against fire (RT-7.4). `docs/design/timer-protocol.md` has the states' meaning,
// PoolTimer their order.
//
// Thread safety: as said at each function; "locked" means that the caller holds the owner's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/timer/run_waits.h"
#include "sylar/timer/timer_pool.h"

namespace sylar::detail {

/// The runs of pooled timers that are under way.
template <class Memory = StdMemory>
class TimerRuns {
  using Mutex = typename Memory::Spinlock;
  using State = PoolTimer::State;

 public:
  /// A callback that is running. It lies on the stack of the flow that runs it. It has the timer's task while that runs, and the
  /// timer has a note of it. No run knows of another, so the cost of one does not depend on how many there are.
  struct Run {
    Flow flow;  ///< the thread or fiber that runs it
    PoolTimer* timer = nullptr;
    TimerTask task;
    RunWaiter* waiters = nullptr;
  };

  /// `mutex` is the owner's, and guards `pool` and every Run.
  TimerRuns(Mutex& mutex, TimerPool<>& pool) : m_mutex(mutex), m_pool(pool) {}
  TimerRuns(const TimerRuns&) = delete;
  TimerRuns& operator=(const TimerRuns&) = delete;

  /// Locked. Stops a timer that was found by its id and is in no queue any more. If the result is kCancelled, it will not run,
  /// and its captures are in `dropped`.
  TimerStop stop(PoolTimer& timer, TimerTask& dropped) {
    SYLAR_DCHECK(timer.state != State::kFree && !dropped);
    if (timer.state == State::kStopped) return TimerStop::kGone;
    if (timer.state == State::kRunning) return TimerStop::kRunning;
    dropped = std::move(timer.task);
    if (timer.state == State::kQueued) {
      timer.state = State::kStopped;  // the receiver that it was handed out to frees it
    } else {
      m_pool.free(timer);
    }
    return TimerStop::kCancelled;
  }

  /// Locked. Begins the run of a timer that was handed out. Returns false if it was stopped in between; it is freed now.
  bool begin(Run& run, PoolTimer& timer) {
    SYLAR_DCHECK(timer.state != State::kFree && timer.state != State::kRunning);
    SYLAR_DCHECK(run.timer == nullptr && !run.task);
    if (timer.state == State::kStopped) {
      m_pool.free(timer);
      return false;
    }
    timer.state = State::kRunning;
    run.timer = &timer;
    run.task = std::move(timer.task);
    timer.task.setNote(&run);
    return true;
  }

  /// Not locked. Called when the callback has returned. A timer that will not run again is freed when its captures are
  /// destroyed, so that await() waits for that as well. For a one-shot the caller has destroyed them.
  void end(Run& run) SYLAR_EXCLUDES(m_mutex) {
    RunWaiter* waiters = nullptr;
    for (bool ended = false; !ended;) {
      TimerTask last;  // destroyed after the lock is released
      Lock lock(m_mutex);
      PoolTimer& timer = *run.timer;
      SYLAR_DCHECK(timer.state == State::kRunning && timer.task.note() == &run);
      if (timer.period_ns == 0) last = std::move(run.task);
      ended = !last;
      if (!ended) continue;
      timer.task = std::move(run.task);
      timer.period_ns != 0 ? void(timer.state = State::kArmed) : m_pool.free(timer);
      waiters = run.waiters;
    }
    while (waiters != nullptr) std::exchange(waiters, waiters->next)->wake();
  }

  /// Not locked. For a timer that was stopped. Returns kDone when its callback is not running, or kRunning at once if the
  /// callback is the caller's own. May suspend: as `waits` does.
  TimerStop await(TimerId id, const RunWaits& waits) SYLAR_EXCLUDES(m_mutex) {
    TimerStop result = TimerStop::kDone;
    waits.wait([&](RunWaiter& waiter) -> std::optional<Flow> {
      Lock lock(m_mutex);
      Run* const run = runOf(m_pool.find(id));
      if (run == nullptr) return std::nullopt;
      if (waits.isHere(run->flow)) {
        result = TimerStop::kRunning;
        return std::nullopt;
      }
      waiter.next = std::exchange(run->waiters, &waiter);
      return run->flow;
    });
    return result;
  }

 private:
  static Run* runOf(const PoolTimer* timer) {
    return timer != nullptr && timer->state == State::kRunning ? static_cast<Run*>(timer->task.note()) : nullptr;
  }

  Mutex& m_mutex;
  TimerPool<>& m_pool;
};

/// Calls that are counted under their owner's lock and made after it. When the owner ends, it waits for the last of them.
template <class Memory = StdMemory>
class CallGate {
 public:
  /// Locked, and not after the owner has ended. Notes that a call is about to be made.
  void enter() { m_calls.fetch_add(1, std::memory_order_relaxed); }

  /// Notes that the call has been made. Everything it did happens before the return of close().
  void leave() {
    if (m_calls.fetch_sub(1, std::memory_order_release) == (kClosing | 1)) Memory::futexWakeAll(m_calls);
  }

  /// Blocks until all calls have left. Not locked; no call enters any more.
  void close() {
    m_calls.fetch_or(kClosing, std::memory_order_relaxed);
    for (uint32_t calls; (calls = m_calls.load(std::memory_order_acquire)) != kClosing;) Memory::futexWait(m_calls, calls);
  }

 private:
  static constexpr uint32_t kClosing = 0x8000'0000;  ///< somebody is in close(); the bits below count the calls under way
  typename Memory::template Atomic<uint32_t> m_calls{0};
};

}  // namespace sylar::detail
