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
// Derived classes may override tickle() and stopping(); a derived class calls stop() in its own destructor.
//
// Thread safety: everything from any thread but start and stop (one at a time) and switchTo (the calling fiber).
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
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
#include "sylar/sched/leftovers.h"
#include "sylar/sched/rest.h"

namespace sylar {

class Worker;

/// How a scheduler is set up.
struct SchedulerOptions {
  size_t threads = 1;                     ///< workers, the calling thread included if use_caller; [1, 1024]
  bool use_caller = true;                 ///< worker 0 is the calling thread; it works only inside stop(). Not on virtual time
  std::string name;                       ///< of the scheduler; its workers are name_0, name_1, ...
  const Clock* clock = &steadyClock();    ///< of sleeps and timeouts; outlives the scheduler. For tests: VirtualTime
  std::chrono::milliseconds max_wait{0};  ///< longest sleep of an idle worker; 0 = no cap, which is right
  /// By how much the kernel may prolong a worker's sleep, to spare wake-ups; 0 = what the thread has, usually 50 us. Threads that
  /// a fiber makes inherit it, as programs do that it starts by posix_spawn, popen or system; the child of a fork does not.
  std::chrono::nanoseconds timer_slack{1};
  /// How long an idle worker of an IOManager polls before it sleeps: what comes meanwhile need not wake it, and it uses that much
  /// CPU each time. 0 = not at all. Real time only.
  std::chrono::microseconds spin{0};
};

/// What the workers of a scheduler have done so far, all together.
struct WorkerStats {
  uint64_t switches = 0;         ///< times that a fiber got a thread
  uint64_t polls = 0;            ///< looks for ready descriptors, sleeps included
  uint64_t sleeps = 0;           ///< of those, the ones that had nothing else to do
  uint64_t tickles = 0;          ///< notifications by other threads that they saw; one at most for each sleep
  uint64_t mail = 0;             ///< woken fibers, pinned work and questions from other threads; most of it needs no tickle
  uint64_t timeouts_armed = 0;   ///< waits with a deadline, sleeps included
  uint64_t timeouts_pushed = 0;  ///< of those, the ones that left the queue as it was: an earlier deadline of the fiber is in it
  uint64_t timeouts_relinked = 0;  ///< such deadlines that time came to, and that were put in their true place
  uint64_t timeouts_fired = 0;     ///< waits that ended by their deadline
};

/// How Scheduler::stop(deadline) went.
struct StopResult {
  bool clean;                        ///< every fiber has ended
  std::vector<FiberInfo> leftovers;  ///< those that have not; they never run again, and their destructors do not run. Without
                                     ///< those for whose report there was no memory
};

class Scheduler {
 public:
  using ptr = std::shared_ptr<Scheduler>;

  /// Throws std::invalid_argument for a thread count out of range.
  explicit Scheduler(size_t threads = 1, bool use_caller = true, const std::string& name = "");
  explicit Scheduler(SchedulerOptions options);  ///< std::invalid_argument also for use_caller with a VirtualTime

  /// Stops first, if stop() was not called.
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const std::string& getName() const { return m_options.name; }

  /// The scheduler whose worker the calling thread is, or which uses it as its caller; else null.
  static Scheduler* GetThis();

  /// Starts the threads; a second call does nothing. Work may be offered before. Throws std::system_error or std::bad_alloc if
  /// one cannot be made, std::logic_error in a fork of a process that had started a scheduler, or tried to: then none runs, and
  /// what was offered is destroyed.
  void start();

  /// Runs until nothing is left to do, then joins the threads. Left to do are: runnable fibers, armed timers, fibers that wait
  /// for a descriptor or a deadline. Fibers that only another fiber could wake are cancelled then: their waits end, hooked calls
  /// fail with ECANCELED; one that waits for ever all the same is given up, with a log line. A second call does nothing. With
  /// use_caller only from the thread that made the scheduler; never from one of its own fibers (both checked). Throws what
  /// start() throws, if that was not called before. Blocks the thread.
  void stop();

  /// Cancels all fibers first and waits neither for timers nor for descriptors: functions return early, hooked calls that would
  /// wait fail with ECANCELED, destructors run. Returns when all have ended, at the latest 100 ms after `deadline` (of the
  /// steady clock; more only for hundreds of thousands of fibers): a fiber that waits again and again regardless is given up, one
  /// that computes is left to its thread, which stands still when that is over (not with use_caller: the calling thread finishes
  /// what it runs). What such a fiber uses must outlive it, this object included; GetThis() is null for it, and its hooked calls
  /// are libc's. A second call reports what the first left. Throws std::bad_alloc if there is no memory for the
  /// report: then it has stopped, and a second call may have it. Otherwise as stop().
  StopResult stop(Deadline deadline);

  /// Runs `fc`: a callable, a Fiber::ptr, or a pointer to a std::function<void()> or Fiber::ptr, whose target is moved out. On
  /// worker `thread` (kernel thread id) if that is not -1. A fiber that has started and is held goes on, where it has run
  /// before or, if another `thread` is named, there; if it is not held, the call is kept as a permit for its next YieldToHold.
  /// Null work, an unknown thread and work offered after the end of stop() are refused with a log line and destroyed. Throws
  /// std::bad_alloc, then nothing is scheduled, and what a pointer leads to is as before. Work that gets no memory for its stack
  /// later, where it is to begin, ends with std::bad_alloc: see Fiber::join(). Suspends: no. Source: sylar.
  template <class FiberOrCb>
  void schedule(FiberOrCb fc, int thread = -1) {
    trySchedule(std::move(fc), thread);
  }

  /// The same for every element of [begin, end), each of which is moved out. In this order: if it throws, those before are
  /// scheduled, and the others as before.
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
  /// For work that lives long, such as connections. False: refused, as above. Throws std::bad_alloc, then `cb` is destroyed.
  /// Suspends: no.
  bool place(std::function<void()> cb);

  /// Moves the calling fiber to this scheduler, onto worker `thread` if that is not -1; it goes on there. The one way in which a
  /// started fiber changes its thread: what it remembers of thread_local variables and of errno's address no longer holds.
  /// False, with a log line: it stays where it is (not a scheduled fiber, an unknown thread, the scheduler has stopped). Throws
  /// std::bad_alloc, then it has not moved. Suspends: yes. Source: sylar.
  bool switchTo(int thread = -1);

  /// Costs its workers nothing; the numbers are not all of the same moment. Suspends: no.
  WorkerStats getWorkerStats() const;

  /// Writes workers and live fibers, one a line, with what they wait for. Source: sylar.
  std::ostream& dump(std::ostream& os) const;

  /// The handle that stands for the calling thread's own stack. Source: sylar.
  static Fiber* GetMainFiber();

  // ---- For workers. --------------------------------------------------------------------------------------------------------

  using Rest = sylar::Rest<Scheduler>;
  Rest& rest() { return m_rest; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return m_workers; }
  const Clock& clock() const { return *m_options.clock; }
  int64_t waitCap(int64_t now_ns) const;
  int64_t timerSlackNs() const { return m_options.timer_slack.count(); }
  int64_t spinNs() const { return std::chrono::nanoseconds(m_options.spin).count(); }
  /// Queues a fiber that comes from elsewhere. False: refused.
  bool admitMoved(Fiber& fiber, int thread);

  // While it stops (scheduler_stop.cc):
  bool isStopping() const { return m_rest.isStopping(); }
  /// Fibers begin cancelled.
  bool cancelsAll() const { return m_cancels_all.load(std::memory_order_relaxed); }
  /// Does what the deadline of stop() asks for, once it has passed.
  void watchDeadline();

 protected:
  friend class Worker;

  /// What a worker waits on; called in start(), once for each worker.
  virtual std::unique_ptr<Driver> makeDriver(WorkerSlot& slot);

  /// Called when work from outside meets a worker that may sleep; wakes one. To be extended, not replaced. Any thread, no lock.
  virtual void tickle();
  /// Whether stop() may end as far as this object is concerned, once no fiber has anything left to do. A derived class that
  /// expects more work returns false, and calls tickle() when that changes. Called under a lock: brief, no library calls.
  virtual bool stopping() { return isStopping(); }
  /// True if a worker sleeps. Source: sylar.
  bool hasIdleThreads() const { return m_rest.anySleeping(); }

  /// What else would bring work is not waited for any more: called by stop(deadline) at its beginning, and at the end of any
  /// stop.
  virtual void dropPending() {}
  /// To be called when stopping() may have become true without a worker's doing; `end` makes it so. Once it has, stop() and
  /// the destructor may go on, but not past the end of this call. Needs no memory if `end` captures one pointer at most. Any
  /// thread.
  void pendingEnded(const std::function<void()>& end);

 private:
  friend class SchedulerSwitcher;
  friend Rest;
  struct Door;
  class Route;
  enum Go : uint32_t { kWait, kRun, kNeverRun };

  static Fiber::ptr toFiber(std::nullptr_t) { return nullptr; }
  static Fiber::ptr toFiber(Fiber::ptr fiber) { return fiber; }
  static Fiber::ptr toFiber(Fiber::ptr* fiber) { return fiber == nullptr ? nullptr : std::exchange(*fiber, nullptr); }
  // Of what a pointer leads to nothing is taken before there is memory for all.
  static Fiber::ptr toFiber(std::function<void()>* cb) {
    if (cb == nullptr || *cb == nullptr) return nullptr;
    auto fiber = std::make_shared<Fiber>(std::move(*cb));
    *cb = nullptr;
    return fiber;
  }
  template <class Callable>
  requires std::is_invocable_v<Callable&>
  static Fiber::ptr toFiber(Callable cb) {
    std::function<void()> function(std::move(cb));
    return function == nullptr ? nullptr : std::make_shared<Fiber>(std::move(function));
  }
  // An iterator over callables: what it points at is moved out.
  template <class T>
  requires(std::is_invocable_v<T&> && !std::is_function_v<T>) static Fiber::ptr toFiber(T* cb) {
    if (cb == nullptr) return nullptr;
    auto fiber = std::make_shared<Fiber>([] {});
    std::function<void()> function(std::move(*cb));
    if (function == nullptr) return nullptr;
    fiber->reset(std::move(function));
    return fiber;
  }

  bool offer(Fiber::ptr fiber, int thread);
  bool offerStarted(const Fiber::ptr& fiber, const Worker* target, int thread);
  bool submit(Fiber& fiber);
  bool submitTo(Worker& worker, QueueNode* node);
  bool refuse(const Fiber& fiber, const char* why) const;
  Worker* workerOfThread(int thread) const;

  void letGo(Go how);
  void end(Deadline deadline, bool cancels_all);
  static void giveUp(NodeList unrun, Leftovers& out);
  void awaitDone();
  void detachStuck();
  bool done() const { return m_rest.done(); }
  bool isCaller() const { return ::pthread_equal(m_caller, ::pthread_self()) != 0; }
  bool nothingExpected() { return cancelsAll() || stopping(); }
  void ended();

  const SchedulerOptions m_options;
  const pthread_t m_caller;          // who made it
  std::atomic<pid_t> m_caller_id{};  // its kernel id, which is another one after a fork
  std::vector<std::unique_ptr<Worker>> m_workers;
  std::vector<std::unique_ptr<Thread>> m_threads;  // of the last workers; the caller's has none
  const std::shared_ptr<Door> m_door;              // by which fibers come that move here
  bool m_started = false;
  std::atomic<uint32_t> m_ready{0};   // threads that exist and have what they need, or not
  std::atomic<uint32_t> m_unfit{0};   // of those, the ones that have not
  std::atomic<uint32_t> m_go{kWait};  // threads begin when all of them are there
  Leftovers m_leftovers;              // the stopping thread's

  OsMutex m_stuck_mutex;
  Leftovers m_stuck SYLAR_GUARDED_BY(m_stuck_mutex);  // fibers of detached workers
  std::atomic<bool> m_cancels_all{false};
  std::atomic<int64_t> m_stop_deadline_ns{kNever};  // steady clock

  Rest m_rest{*this};
};

/// Moves the calling fiber to `target` (null: nowhere) and, at the end of its scope, back to where it came from, if that has not
/// ended. Throws std::bad_alloc, then it has not moved. Source: sylar.
class SchedulerSwitcher {
 public:
  explicit SchedulerSwitcher(Scheduler* target = nullptr);
  ~SchedulerSwitcher();
  SchedulerSwitcher(const SchedulerSwitcher&) = delete;
  SchedulerSwitcher& operator=(const SchedulerSwitcher&) = delete;

 private:
  std::shared_ptr<FiberDestination> m_way_back;  // null: it did not move
};

}  // namespace sylar
