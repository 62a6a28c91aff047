// Stop against fire: a timer with an id has one fate, and who waits for the end of its run is told (RT-7.4). The queue and the
// list of what is ready, which are under the manager's lock and nothing else, are written again in short: every timer is always
// due.
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sylar/timer/timer_state.h"
#include "tests/model/memory.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

/// The task of a timer, and its outcome.
struct Work {
  void run() {
    require(!stopped, "nothing runs that was stopped");
    require(begun == ended, "it does not run twice at once");
    ++begun;
    payload.set(payload.get() + 1);
    inside();
    m_while.fetch_add(1, std::memory_order_relaxed);  // others go on meanwhile
    ++ended;
  }
  bool isRunning() const { return begun != ended; }
  /// Its captures are being destroyed; others go on meanwhile.
  void destroy() {
    m_while.fetch_add(1, std::memory_order_relaxed);
    destroyed = true;
    destroyed_beneath = isRunning();
  }

  Var<int> payload;  ///< written by who starts the timer, by each run, and by who has stopped it
  int begun = 0, ended = 0;
  bool stopped = false;    ///< stop() has said that it will not run, or stopSync() has returned
  bool destroyed = false;  ///< its captures
  bool destroyed_beneath = false;
  std::function<void()> inside = [] {};

 private:
  Atomic<int> m_while;
};

/// The captures of a timer's task.
class Capture {
 public:
  explicit Capture(Work& work) : m_work(&work) {}
  Capture(Capture&& other) noexcept : m_work(std::exchange(other.m_work, nullptr)) {}
  Capture& operator=(Capture&&) = delete;
  ~Capture() {
    if (m_work != nullptr) m_work->destroy();
  }
  void operator()() const { m_work->run(); }

 private:
  Work* m_work;
};

/// The timers of a manager.
class Timers {
  static constexpr int64_t kPeriodNs = 1'000'000;

 public:
  /// With place for `most` at once.
  explicit Timers(size_t most = 2) {
    while (m_pool.inUse() < TimerPool<>::kNodesPerPage - most) m_pool.allocate();
    m_others = m_pool.inUse();
  }

  /// 0: there is no place.
  TimerId start(Work& work, bool recurring = false) {
    work.payload.set(work.payload.get() + 1);
    Lock lock(m_mutex);
    PoolTimer* const timer = m_pool.allocate();
    if (timer == nullptr) return 0;
    timer->period_ns = recurring ? kPeriodNs : 0;
    timer->task = Capture(work);
    m_queue.push_back(timer);
    return m_pool.idOf(*timer);
  }

  TimerStop stop(TimerId id) {
    TimerTask dropped;
    Lock lock(m_mutex);
    PoolTimer* const timer = m_pool.find(id);
    if (timer == nullptr) return TimerStop::kGone;
    if (timer->state == PoolTimer::State::kArmed || timer->period_ns != 0) {
      std::erase(m_queue, timer);
      timer->period_ns = 0;
    }
    return m_runs.stop(*timer, dropped);
  }

  TimerStop stopSync(TimerId id) {
    const TimerStop result = stop(id);
    return result == TimerStop::kRunning ? m_runs.await(id, m_waits) : result;
  }

  /// Hands out what is due.
  void expire() {
    Lock lock(m_mutex);
    std::deque<PoolTimer*> again;
    for (; !m_queue.empty(); m_queue.pop_front()) {
      PoolTimer* const timer = m_queue.front();
      if (timer->state == PoolTimer::State::kArmed) {
        timer->state = PoolTimer::State::kQueued;
        m_ready.push_back(timer);
      }
      if (timer->period_ns != 0) again.push_back(timer);
    }
    m_queue.swap(again);
  }

  /// Runs what was handed out first.
  void runOne() {
    const auto run = std::make_unique<TimerRuns<ModelMemory>::Run>();
    run->flow = m_waits.here();
    bool once = false;
    {
      Lock lock(m_mutex);
      if (m_ready.empty()) return;
      PoolTimer* const timer = m_ready.front();
      m_ready.pop_front();
      if (!m_runs.begin(*run, *timer)) return;
      once = timer->period_ns == 0;
    }
    run->task();
    if (once) run->task = nullptr;
    m_runs.end(*run);
  }

  void drive(int passes = 1) {
    for (; passes > 0; --passes) {
      expire();
      runOne();
    }
  }

  bool none() const { return m_pool.inUse() == m_others && m_queue.empty() && m_ready.empty(); }

 private:
  Spinlock m_mutex;
  TimerPool<> m_pool{1};
  ThreadRunWaits<ModelMemory> m_waits;
  TimerRuns<ModelMemory> m_runs{m_mutex, m_pool};
  std::deque<PoolTimer*> m_queue, m_ready;
  size_t m_others = 0;
};

/// The answers that every stop may give, and what must then be so.
void checkStop(Work& work, TimerStop result) {
  if (result == TimerStop::kCancelled) {
    require(work.begun == 0, "what was cancelled has not begun");
    require(work.destroyed, "its captures are gone");
    work.stopped = true;
  }
  if (result == TimerStop::kRunning) require(work.begun == 1, "it has begun");
}

/// The further promises of stopSync(), on another thread than the callback's.
void checkSync(Work& work, TimerStop result) {
  require(result != TimerStop::kRunning, "it waits");
  if (result == TimerStop::kCancelled) require(work.begun == work.ended, "it does not run");
  if (result != TimerStop::kDone) return;
  require(work.begun > 0 && !work.isRunning(), "the run has ended");
  require(work.destroyed, "its captures are gone");
  work.payload.set(work.payload.get() + 1);  // and what it did is there
  work.stopped = true;
}

void checkEnd(const Timers& timers, const Work& work) {
  require(timers.none(), "nothing is left");
  require(work.destroyed && !work.destroyed_beneath, "captures are destroyed, and not beneath a run");
}

// FM-29: a one-shot that two stop while it is handed out and fired: it is cancelled, by one, or it runs, once.
void stopAgainstFire() {
  Timers timers;
  Work work;
  const TimerId id = timers.start(work);
  int cancelled = 0;
  addThread("driver", [&] { timers.drive(); });
  for (const char* name : {"stopper", "second stopper"}) {
    addThread(name, [&] {
      const TimerStop result = timers.stop(id);
      checkStop(work, result);
      cancelled += result == TimerStop::kCancelled ? 1 : 0;
    });
  }
  runThreads();
  require(work.begun + cancelled == 1, "one fate");
  checkEnd(timers, work);
}

// C-54: when stopSync() returns, the callback is not running and will not run.
void stopSync() {
  Timers timers;
  Work work;
  const TimerId id = timers.start(work);
  addThread("driver", [&] { timers.drive(); });
  for (const char* name : {"waiter", "second waiter"}) {
    const bool first = name == std::string("waiter");
    addThread(name, [&, first] {
      const TimerStop result = timers.stopSync(id);
      checkStop(work, result);
      if (first) checkSync(work, result);
    });
  }
  runThreads();
  checkEnd(timers, work);
}

// The same of a recurring timer, armed again while it runs, that two drivers serve.
void recurring() {
  Timers timers;
  Work work;
  const TimerId id = timers.start(work, true);
  addThread("driver", [&] { timers.drive(2); });
  addThread("second driver", [&] { timers.drive(); });
  addThread("waiter", [&] {
    const TimerStop result = timers.stopSync(id);
    require(result == TimerStop::kDone || result == TimerStop::kCancelled, "it was there");
    require(!work.isRunning() && work.destroyed, "it does not run, and its captures are gone");
    work.stopped = true;
    require(timers.stop(id) == TimerStop::kGone, "it is gone");
  });
  runThreads();
  timers.drive(2);
  checkEnd(timers, work);
}

// C-54: a recurring timer is stopped while its callback runs: its captures live as long as that, and no longer than the wait.
void stopWhileItRuns() {
  Timers timers;
  Work work;
  const TimerId id = timers.start(work, true);
  bool asked = false;
  work.inside = [&] { await("the stop", [&] { return asked; }); };
  addThread("driver", [&] { timers.drive(); });
  addThread("waiter", [&] {
    checkStop(work, timers.stop(id));
    asked = true;
    const TimerStop result = timers.stopSync(id);
    require(work.begun == 0 || result != TimerStop::kCancelled, "it was stopped before");
    checkSync(work, result);
  });
  runThreads();
  checkEnd(timers, work);
}

// Another timer's run ends meanwhile: that is not what the waiter waits for.
void twoRuns() {
  Timers timers;
  Work work, other;
  timers.start(other);
  const TimerId id = timers.start(work);
  timers.expire();
  addThread("driver", [&] { timers.runOne(); });
  addThread("second driver", [&] { timers.runOne(); });
  addThread("waiter", [&] { checkSync(work, timers.stopSync(id)); });
  runThreads();
  require(other.begun == 1, "the other has run");
  checkEnd(timers, work);
}

// TD-18: a timer is stopped at any point, and the next one takes its place as soon as it may; the old id does not find it.
void reusedPlace() {
  Timers timers(1);
  Work work, next;
  const TimerId id = timers.start(work);
  TimerId next_id = 0;
  addThread("driver", [&] { timers.drive(2); });
  addThread("stopper", [&] {
    const TimerStop result = timers.stop(id);
    checkStop(work, result);
    next_id = timers.start(next);
    const TimerStop again = timers.stop(id);
    require(again == TimerStop::kGone || result == TimerStop::kRunning, "an old id finds nothing");
    require(next_id == 0 || (again == TimerStop::kGone && next_id != id), "least of all the next timer");
  });
  runThreads();
  timers.drive();
  require(next.begun == (next_id == 0 ? 0 : 1), "the next one runs, once");
  checkEnd(timers, work);
}

// C-54: in its own callback it does not wait, while another thread does.
void fromItsOwnCallback() {
  Timers timers;
  Work work;
  const TimerId id = timers.start(work, true);
  work.inside = [&] {
    const TimerStop own = timers.stopSync(id);
    require(own == TimerStop::kRunning, "it runs");
  };
  addThread("driver", [&] { timers.drive(2); });
  addThread("waiter", [&] {
    const TimerStop result = timers.stopSync(id);
    checkStop(work, result);
    checkSync(work, result);
  });
  runThreads();
  require(work.begun <= 1, "it has ended itself");
  checkEnd(timers, work);
}

// C-24: a manager ends while two threads tell it of a new front: each call is made before close() returns, or not at all.
void close() {
  Spinlock mutex;
  CallGate<ModelMemory> calls;
  Var<int> manager;  // what the calls touch: gone when close() has returned
  bool closed = false, gone = false;
  const auto tell = [&] {
    {
      Lock lock(mutex);
      if (closed) return;
      calls.enter();
    }
    require(!gone, "the manager is there");
    manager.get();
    calls.leave();
  };
  addThread("timer", [&] { tell(), tell(); });
  addThread("second timer", [&] { tell(); });
  addThread("owner", [&] {
    {
      Lock lock(mutex);
      closed = true;
    }
    calls.close();
    gone = true;
    manager.set(1);
  });
  runThreads();
}

}  // namespace

std::vector<Scenario> timerScenarios() {
  return {
      {"timer/stop_against_fire", stopAgainstFire},        {"timer/stop_sync", stopSync}, {"timer/recurring", recurring},
      {"timer/stop_while_it_runs", stopWhileItRuns},       {"timer/two_runs", twoRuns},   {"timer/reused_place", reusedPlace},
      {"timer/from_its_own_callback", fromItsOwnCallback}, {"timer/close", close},
  };
}

}  // namespace sylar::model
