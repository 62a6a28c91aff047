// Internal. What a timer with an id does from when it is handed out until it is freed, who waits for the end of its run, and who
// for the end of a manager's calls: stop against fire (RT-7.4). `docs/design/timer.md` has the states' meaning, PoolTimer their
// order.
//
// Thread safety: as said at each function; "locked" means that the caller holds the owner's lock.
#pragma once

#include <cstdint>
#include <utility>

#include "sylar/base/memory.h"
#include "sylar/timer/timer_pool.h"

namespace sylar {

/// The runs of pooled timers that are under way.
template <class Memory = StdMemory>
class TimerRuns {
  using Mutex = typename Memory::Spinlock;
  using State = PoolTimer::State;

 public:
  /// A callback that is running, on the stack of who runs it.
  struct Run {
    PoolTimer* timer = nullptr;
    uint32_t thread = Memory::self();
    Run* next = nullptr;
  };

  /// `mutex`: the owner's, which guards `pool` and everything here but the word that waiters sleep on.
  TimerRuns(Mutex& mutex, TimerPool<>& pool) : m_mutex(mutex), m_pool(pool) {}
  TimerRuns(const TimerRuns&) = delete;
  TimerRuns& operator=(const TimerRuns&) = delete;

  /// Locked. For a timer that was found by its id and is in no queue any more. kCancelled: it will not run, and its captures are
  /// in `dropped`.
  TimerStop stop(PoolTimer& timer, TimerTask& dropped) {
    if (timer.state == State::kStopped) return TimerStop::kGone;
    if (timer.state == State::kRunning) return TimerStop::kRunning;
    dropped = std::move(timer.task);
    if (timer.state == State::kQueued) {
      timer.state = State::kStopped;  // who it was handed out to frees it
    } else {
      m_pool.free(timer);
    }
    return TimerStop::kCancelled;
  }

  /// Locked. Begins the run of a timer that was handed out. False: it was stopped meanwhile, and now is freed. Inlined, GCC 12
  /// takes the list of runs for a dangling pointer.
  [[gnu::noinline]] bool begin(Run& run, PoolTimer& timer) {
    if (timer.state == State::kStopped) {
      m_pool.free(timer);
      return false;
    }
    timer.state = State::kRunning;
    run.timer = &timer;
    run.next = std::exchange(m_runs, &run);
    return true;
  }

  /// Not locked. The callback has returned. A timer that will not run again is freed when its captures are destroyed: a thread in
  /// await() waits for that, too.
  void end(Run& run) SYLAR_EXCLUDES(m_mutex) {
    bool waited = false;
    TimerTask last;
    for (bool ended = false; !ended;) {
      last = nullptr;
      Lock lock(m_mutex);
      if (run.timer->period_ns == 0) last = std::move(run.timer->task);
      ended = !last;
      if (!ended) continue;
      unlink(run);
      waited = m_waiters > 0;
      if (waited) m_ended.fetch_add(1, std::memory_order_relaxed);
    }
    if (waited) Memory::futexWakeAll(m_ended);
  }

  /// Not locked. Blocks until the callback of `id` is not running: kDone. At once, with kRunning, if it is the caller's own.
  TimerStop await(TimerId id) SYLAR_EXCLUDES(m_mutex) {
    for (;;) {
      uint32_t ended = 0;
      {
        Lock lock(m_mutex);
        const Run* const run = runOf(m_pool.find(id));
        if (run == nullptr) return TimerStop::kDone;
        if (run->thread == Memory::self()) return TimerStop::kRunning;
        ++m_waiters;
        ended = m_ended.load(std::memory_order_relaxed);
      }
      Memory::futexWait(m_ended, ended);
      Lock lock(m_mutex);
      --m_waiters;
    }
  }

 private:
  void unlink(Run& run) {
    Run** link = &m_runs;
    while (*link != &run) link = &(*link)->next;
    *link = run.next;
    PoolTimer& timer = *run.timer;
    timer.period_ns != 0 ? void(timer.state = State::kArmed) : m_pool.free(timer);
  }

  const Run* runOf(const PoolTimer* timer) const {
    const Run* run = timer != nullptr ? m_runs : nullptr;
    while (run != nullptr && run->timer != timer) run = run->next;
    return run;
  }

  Mutex& m_mutex;
  TimerPool<>& m_pool;
  Run* m_runs = nullptr;
  uint32_t m_waiters = 0;                                 ///< threads in await()
  typename Memory::template Atomic<uint32_t> m_ended{0};  ///< counts runs that ended while there were waiters; changed locked
};

/// Calls that are counted in under their owner's lock and made after it. When the owner ends, it waits for the last of them.
template <class Memory = StdMemory>
class CallGate {
 public:
  /// Locked, and not after the owner has ended: a call is about to be made.
  void enter() { m_calls.fetch_add(1, std::memory_order_relaxed); }

  /// It has been made. What it did happens before the return of close().
  void leave() {
    if (m_calls.fetch_sub(1, std::memory_order_release) == (kClosing | 1)) Memory::futexWakeAll(m_calls);
  }

  /// Blocks until all calls have left. Not locked; no call enters any more.
  void close() {
    m_calls.fetch_or(kClosing, std::memory_order_relaxed);
    for (uint32_t calls; (calls = m_calls.load(std::memory_order_acquire)) != kClosing;) Memory::futexWait(m_calls, calls);
  }

 private:
  static constexpr uint32_t kClosing = 0x8000'0000;  ///< somebody is in close(); below: calls under way
  typename Memory::template Atomic<uint32_t> m_calls{0};
};

}  // namespace sylar
