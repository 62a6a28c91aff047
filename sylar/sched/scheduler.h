// Runs fibers on several threads.
//
//   sylar::Scheduler scheduler(4, false, "jobs");
//   scheduler.start();
//   scheduler.schedule([] { ... });            // from anywhere
//   scheduler.stop();                          // runs what is left, then joins the threads
//
// Choose IOManager instead if the fibers wait for descriptors or timers: here only sleeps are suspended.
//
// Order: work from one source runs in FIFO order on one worker. Placement: schedule() from a worker queues there and may be
// stolen by an idle one until it starts; from outside it goes to whoever is free first. A started fiber stays on its thread.
//
// Thread safety: schedule, trySchedule, place, getName from any thread; start and stop from one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/thread.h"
#include "sylar/fiber/fiber.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/fresh_queue.h"

namespace sylar {

class Worker;

/// How a scheduler is set up.
struct SchedulerOptions {
  size_t threads = 1;                     ///< workers, the calling thread included if use_caller; [1, 1024]
  bool use_caller = true;                 ///< worker 0 is the calling thread; it works only inside stop()
  std::string name;                       ///< of the scheduler; its workers are name_0, name_1, ...
  const Clock* clock = &steadyClock();    ///< of sleeps and timeouts; outlives the scheduler
  std::chrono::milliseconds max_wait{0};  ///< longest sleep of an idle worker; 0 = no cap, which is right
};

class Scheduler {
 public:
  using ptr = std::shared_ptr<Scheduler>;

  /// Throws std::invalid_argument for a thread count out of range.
  explicit Scheduler(size_t threads = 1, bool use_caller = true, const std::string& name = "");
  explicit Scheduler(SchedulerOptions options);

  /// Stops first, if stop() was not called.
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const std::string& getName() const { return m_options.name; }

  /// The scheduler whose worker the calling thread is, or which uses it as its caller; else null.
  static Scheduler* GetThis();

  /// Starts the threads; a second call does nothing. Work may be offered before, but not meanwhile by other threads. Throws
  /// std::system_error if one cannot be made: then none runs.
  void start();

  /// Runs until nothing is left to do, then joins the threads. Left to do are: runnable fibers, armed timers, fibers that wait
  /// for a descriptor or a deadline. Fibers that only another fiber could wake are cancelled then: their waits end, hooked calls
  /// fail with ECANCELED. A second call does nothing. With use_caller only from the thread that made the scheduler; never from
  /// one of its own fibers (both checked). A fiber that waits again and again after it was cancelled (this_fiber::cancelled)
  /// keeps stop() waiting. Blocks the thread.
  void stop();

  /// Runs `fc`: a callable, a Fiber::ptr, or a pointer to a std::function<void()> or Fiber::ptr, whose target is moved out. On
  /// worker `thread` (kernel thread id) if that is not -1. A fiber that has started and is held goes on; if it is not held, the
  /// call is kept as a permit for its next YieldToHold. Null work, an unknown thread and work offered after the end of stop()
  /// are refused with a log line and destroyed. Suspends: no. Source: sylar.
  template <class FiberOrCb>
  void schedule(FiberOrCb fc, int thread = -1) {
    trySchedule(std::move(fc), thread);
  }

  /// The same for every element of [begin, end), each of which is moved out. In this order.
  template <class InputIterator>
  requires requires(InputIterator it) { *it; }
  void schedule(InputIterator begin, InputIterator end) {
    for (; begin != end; ++begin) trySchedule(&*begin);
  }

  /// The same as schedule; false: refused.
  template <class FiberOrCb>
  bool trySchedule(FiberOrCb fc, int thread = -1) {
    return offer(toFiber(std::move(fc)), thread);
  }

  /// Runs `cb` on the running worker with the fewest functions placed, pinned there from the start; each counts until it ends.
  /// For work that lives long, such as connections. False: refused, as above. Suspends: no.
  bool place(std::function<void()> cb);

  // ---- For workers. --------------------------------------------------------------------------------------------------------

  /// Counts its thread as asleep for its lifetime; while the scheduler stops, the last to fall asleep decides what is next.
  class Sleeper {
   public:
    explicit Sleeper(Scheduler& scheduler);
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    /// True: this sleeper found that there is something else to do than to sleep.
    bool decidedDone() const { return m_decided; }

   private:
    Scheduler& m_scheduler;
    const bool m_stopping;
    bool m_decided = false;
  };

  FreshQueue<>& injector() { return m_injector; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return m_workers; }
  const Clock& clock() const { return *m_options.clock; }
  bool done() const { return m_done.load(std::memory_order_seq_cst); }
  uint64_t cancelRound() const { return m_cancel_round.load(std::memory_order_acquire); }
  bool anySleeping() const { return m_sleepers.load(std::memory_order_seq_cst) > 0; }
  /// The worker that runs `fiber`, or null: it has not started, or runs elsewhere.
  Worker* workerOf(const Fiber& fiber) const;
  /// True if fresh work waits anywhere.
  bool anyFresh() const;
  /// Wakes one sleeping worker, if there is one.
  void wakeOne();
  int64_t waitCap(int64_t now_ns) const;

 protected:
  friend class Worker;

  /// What a worker waits on; called in start(), once for each worker.
  virtual std::unique_ptr<Driver> makeDriver(WorkerSlot& slot);

  /// True while something outside the fibers will still bring work: armed timers, descriptor callbacks. Any thread.
  virtual bool hasPending() { return false; }

  /// To be called when hasPending() may have become false without a worker's doing; `end` makes it so. Once it has, stop() and
  /// the destructor may go on, but not past the end of this call. Any thread.
  template <class End>
  void pendingEnded(End end) {
    Lock lock(m_stop_mutex);
    end();
    if (m_stopping.load(std::memory_order_seq_cst)) wakeOne();
  }

 private:
  static Fiber::ptr toFiber(Fiber::ptr fiber) { return fiber; }
  static Fiber::ptr toFiber(Fiber::ptr* fiber) { return fiber == nullptr ? nullptr : std::exchange(*fiber, nullptr); }
  static Fiber::ptr toFiber(std::function<void()>* cb) { return cb == nullptr ? nullptr : toFiber(std::exchange(*cb, nullptr)); }
  template <class Callable>
  requires std::is_invocable_v<Callable&>
  static Fiber::ptr toFiber(Callable cb) {
    std::function<void()> function(std::move(cb));
    return function == nullptr ? nullptr : std::make_shared<Fiber>(std::move(function));
  }
  // An iterator over callables: what it points at is moved out.
  template <class T>
  requires(std::is_invocable_v<T&> && !std::is_function_v<T>) static Fiber::ptr toFiber(T* cb) {
    return cb == nullptr ? nullptr : toFiber(std::move(*cb));
  }

  bool offer(Fiber::ptr fiber, int thread);
  bool offerStarted(const Fiber::ptr& fiber, const Worker* target);
  bool submit(Fiber& fiber);
  bool submitTo(Worker& worker, QueueNode* node);
  bool refuse(const Fiber& fiber, const char* why);
  Worker* workerOfThread(int thread) const;
  void wakeAll();
  bool decide() SYLAR_REQUIRES(m_stop_mutex);
  bool nothingLeft();

  const SchedulerOptions m_options;
  const pid_t m_caller;  // who made it
  std::vector<std::unique_ptr<Worker>> m_workers;
  std::vector<std::unique_ptr<Thread>> m_threads;
  bool m_started = false;

  OsMutex m_stop_mutex;
  size_t m_asleep SYLAR_GUARDED_BY(m_stop_mutex) = 0;
  std::atomic<bool> m_stopping{false};
  std::atomic<bool> m_done{false};
  std::atomic<uint64_t> m_cancel_round{0};

  alignas(64) FreshQueue<> m_injector;
  alignas(64) std::atomic<size_t> m_sleepers{0};
  std::atomic<size_t> m_next_woken{0};
};

}  // namespace sylar
