// A scheduler runs fibers on several threads.
//
//   sylar::Scheduler scheduler(4, false, "jobs");
//   scheduler.start();
//   scheduler.schedule([] { ... });            // from anywhere
//   scheduler.stop();                          // runs what is left, then joins the threads
//
// Choose IOManager instead if the fibers wait for descriptors or timers: in a plain Scheduler only sleeps suspend.
//
// Order: on one worker, work from one source runs in FIFO order, but a fiber that another one joins runs next. So a tree of fibers
// grows in depth and needs few stacks. Placement: schedule() on a worker queues the work there, and an idle worker, woken if
// necessary, may steal it until it starts. Work from outside goes to the first free worker. A started fiber stays on its thread.
//
// In a forked child, a scheduler that the parent has started still belongs to the parent: it runs nothing there and nothing
// reaches it. schedule() and place() refuse without a log line, switchTo() returns false, stop() and the destructor do nothing
// (stop(deadline) reports that it was not clean), and start() throws std::logic_error. No scheduler can be started there. If a
// signal handler forks while its thread runs no fiber, the child ends with status 0 when the handler returns.
//
// A derived class may override tickle() and stopping(), and must call stop() in its own destructor.
//
// Thread safety: any thread may call everything, except start (not beside another start, or a stop) and switchTo (concerns the
// calling fiber).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/thread.h"

namespace sylar {

namespace detail {
class MigrationTarget;
class SchedulerCore;
struct SchedulerLink;
}  // namespace detail

/// The configuration of a scheduler.
struct SchedulerOptions {
  size_t threads = 1;                     ///< number of workers in [1, 1024], including the calling thread if use_caller
  bool use_caller = true;                 ///< the calling thread is worker 0 and works only inside stop(). Not on virtual time
  std::string name{};                     ///< name of the scheduler; its workers are name_0, name_1, ...
  const Clock* clock = &steadyClock();    ///< clock of sleeps and timeouts; must outlive the scheduler. For tests: VirtualTime
  std::chrono::milliseconds max_wait{0};  ///< longest sleep of an idle worker; 0 = no limit, the right choice
  /// How much the kernel may prolong a worker's sleep to save wake-ups; 0 = the thread's own value, usually 50 us. Threads that
  /// a fiber makes inherit it, and so do programs that a fiber starts by posix_spawn, popen or system; the child of a fork does
  /// not.
  std::chrono::nanoseconds timer_slack{1};
  /// How long an idle worker of an IOManager polls before it sleeps. Work that arrives in that time needs no wake-up, but the
  /// worker uses that much CPU each time. 0 = no polling. Works in real time only.
  std::chrono::microseconds spin{0};
  /// A fiber that has waited for this long gives the stack memory below its frames back to the kernel; 0 = never. Otherwise a stack
  /// keeps all that its fiber's deepest call has touched, for as long as the fiber lives. The memory goes within about twice this
  /// time. That costs one system call for each such wait, and a fault for each page that the fiber touches again. Fibers in
  /// YieldToHold keep their memory, and so do those that wait for one that they have resumed. Must be 0 if a fiber may wait on a
  /// stack that the program has made inside of the fiber's own, such as a coroutine's in a local array, because what lies below
  /// that would be lost. On virtual time a worker does not wake for it.
  std::chrono::milliseconds trim_after{0};
  FiberIdentity identity = FiberIdentity::kOwn;  ///< as which thread its fibers run
};

/// Counts the work of all workers of a scheduler so far.
struct WorkerStats {
  uint64_t switches = 0;        ///< times that a fiber was given a thread
  uint64_t polls = 0;           ///< polls for ready descriptors, sleeps included
  uint64_t sleeps = 0;          ///< polls that slept, because there was nothing else to do
  uint64_t tickles = 0;         ///< notifications received from other threads; at most one for each sleep
  uint64_t mail = 0;            ///< woken fibers, pinned work and requests received from other threads; most need no tickle
  uint64_t timeouts_armed = 0;  ///< waits with a deadline, sleeps included
  uint64_t timeouts_pushed =
      0;  ///< of these, those that left the queue unchanged, because it holds an earlier deadline of the fiber
  uint64_t timeouts_relinked = 0;  ///< pushed deadlines put in their true place once the earlier one was near or past
  uint64_t timeouts_fired = 0;     ///< waits that ended at their deadline
  uint64_t stacks_trimmed = 0;  ///< times that a waiting fiber's stack was given back in part; see SchedulerOptions::trim_after
};

/// Describes a fiber in a report.
struct FiberInfo {
  uint64_t id;
  std::string name;
  std::string waits_for;  ///< what the fiber is doing, in words, and of one that was abandoned a lock that it holds
};

/// The outcome of Scheduler::stop(deadline).
struct StopResult {
  bool clean;                        ///< true if every fiber has ended
  std::vector<FiberInfo> abandoned;  ///< the fibers that have not; they never run again, and their destructors do not
                                     ///< run. A fiber is missing here if there was no memory to report it
};

/// Runs fibers on a set of worker threads.
class Scheduler {
 public:
  using ptr = std::shared_ptr<Scheduler>;

  /// Throws std::invalid_argument if the thread count is out of range, or for use_caller on a thread that is already a worker:
  /// in a fiber of a scheduler, pass false.
  explicit Scheduler(size_t threads = 1, bool use_caller = true, const std::string& name = "");
  explicit Scheduler(SchedulerOptions options);  ///< also throws it for use_caller with a VirtualTime

  /// Stops the scheduler first, if stop() was not called. In an exit() that a fiber of any scheduler has called, this and stop()
  /// let all workers stand still instead. What a fiber holds then is never released, so static destructors must not wait for
  /// fibers.
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const std::string& getName() const;

  /// Returns the scheduler of which the calling thread is a worker, or which uses the thread as its caller and has not stopped;
  /// otherwise null.
  static Scheduler* GetThis();

  /// Starts the threads; a second call does nothing. Work may be scheduled before. Throws std::system_error or std::bad_alloc
  /// if a thread cannot be made, and std::logic_error in a fork of a process that had started a scheduler, or tried to. After
  /// an exception no thread runs, and the scheduled work is destroyed.
  void start();

  /// Runs until nothing is left to do, then joins the threads. Left to do are runnable fibers, armed timers, fibers that wait for
  /// a descriptor, a deadline or a primitive of sylar/sync, and the work that a WorkGuard announces. When only fibers remain that
  /// are held or join others, they are cancelled: their waits end, and hooked calls fail with ECANCELED. A fiber that keeps
  /// waiting regardless is abandoned, with a log line. A second call waits for the first, and does nothing else.
  ///
  /// With use_caller, only the thread that made the scheduler may call this; a fiber of the scheduler itself never may (both
  /// are checked). Throws what start() throws, if that was not called before. Suspends a fiber of another scheduler, else blocks.
  void stop();

  /// Cancels all fibers first and waits neither for timers nor for descriptors: functions return early, hooked calls that would
  /// wait fail with ECANCELED, destructors run. Returns when all fibers have ended, and at the latest 100 ms after `deadline`,
  /// which is on the steady clock (later only with hundreds of thousands of fibers).
  ///
  /// A fiber that waits again and again regardless is abandoned. A fiber that computes is left to its thread, which halts for
  /// good when the fiber yields or ends (with use_caller, the calling thread instead finishes what it runs). Everything that
  /// such a fiber uses must outlive it, including this object; GetThis() is null for it, and its hooked calls are libc's.
  ///
  /// A second call reports what the first left. Throws std::bad_alloc if there is no memory for the report; the scheduler has
  /// stopped then, and a second call may return the report. Otherwise it behaves as stop() does.
  StopResult stop(Deadline deadline);

  /// Runs `fc`, which is a callable, a Fiber::ptr, or a pointer to a std::function<void()> or Fiber::ptr whose target is moved
  /// out. It runs on worker `thread` (a kernel thread id) if that is not -1.
  ///
  /// A started fiber that is held resumes where it has run before or, if `thread` names another worker, on that one. If a
  /// started fiber is not held, the call is kept as a permit for its next YieldToHold. A fiber that has ended is left alone
  /// without a log line, because a waker may always come too late.
  ///
  /// Null work, an unknown thread, and work offered after the end of stop() are refused with a log line. Refused work is
  /// destroyed if nothing else owns it, and join() of a fiber that is refused before it has begun throws. trySchedule() tells
  /// whether the work was refused; this function returns void because users of sylar cast it to a pointer to a member.
  ///
  /// Throws std::bad_alloc; then nothing is scheduled, and the target of a pointer is unchanged. Work whose stack cannot be
  /// allocated later, when it is to begin, ends with std::bad_alloc: see Fiber::join(). May suspend: no. Source: sylar.
  template <class FiberOrCb>
  void schedule(FiberOrCb fc, int thread = -1) {
    trySchedule(std::move(fc), thread);
  }

  /// Schedules every element of [begin, end) in this order, and moves each of them out. If it throws, the elements before are
  /// scheduled and the others are unchanged.
  template <class InputIterator>
  requires requires(InputIterator it) { *it; }
  void schedule(InputIterator begin, InputIterator end) {
    for (; begin != end; ++begin) trySchedule(&*begin);
  }

  /// Schedules as schedule() does, and returns false if the work was refused.
  template <class FiberOrCb>
  bool trySchedule(FiberOrCb fc, int thread = -1) {
    return offer(toFiber(std::move(fc)), thread);
  }

  /// Runs `cb` on the running worker with the fewest placed functions and pins it there from the start; a placed function
  /// counts until it ends. For long-lived work, such as connections. Returns false if the work was refused, as by schedule().
  /// Throws std::bad_alloc; `cb` is then destroyed. May suspend: no.
  bool place(std::function<void()> cb);

  /// Moves the calling fiber to this scheduler, onto worker `thread` if that is not -1, and resumes it there. A fiber
  /// with FiberIdentity::kWorker gets another thread, so all that it remembers of thread_local variables becomes invalid.
  /// Returns false, with a log line, if the fiber stays where it is (it is not a scheduled fiber, the thread is unknown, or the
  /// scheduler has stopped). Throws std::bad_alloc; the fiber has not moved then. May suspend: yes. Source: sylar.
  bool switchTo(int thread = -1);

  /// Returns the counts. This costs the workers nothing, and the numbers are not all of the same moment. May suspend: no.
  WorkerStats getWorkerStats() const;

  /// Writes the workers and the live fibers, one per line, with what each fiber waits for; not all of the same moment. A worker
  /// that begins or ends a fiber during the call waits while handles on its fibers are taken, which takes nanoseconds for each.
  /// The caller may end up with the last handle of a fiber that ends during the call. Throws std::bad_alloc. May suspend: no.
  /// Source: sylar.
  std::ostream& dump(std::ostream& os) const;

  /// Returns the handle that stands for the calling thread's own stack. Source: sylar.
  static Fiber* GetMainFiber();

 protected:
  /// Wakes one sleeping worker. Called when work arrives from outside and a worker may be asleep, on any thread and without a
  /// lock. An override must extend this function, not replace it.
  virtual void tickle();
  /// Returns whether stop() may end as far as this object is concerned. Called once no fiber has anything left to do. A derived
  /// class that expects more work returns false, and calls tickle() when that changes. Called under a lock, so it must be brief
  /// and make no library calls.
  virtual bool stopping();
  /// Returns true if a worker sleeps. Source: sylar.
  bool hasIdleThreads() const;

  /// Stops waiting for other sources of work. Called by stop(deadline) at its beginning, and at the end of any stop.
  virtual void dropPending() {}
  /// Must be called when stopping() may have become true without any worker's action; `end` makes it so. Once `end` has run,
  /// stop() and the destructor may go on, but not past the end of this call. Needs no memory if `end` captures at most one
  /// pointer. May be called on any thread.
  void pendingEnded(const std::function<void()>& end);

 private:
  friend class detail::SchedulerCore;

  static Fiber::ptr toFiber(std::nullptr_t) { return nullptr; }
  static Fiber::ptr toFiber(Fiber::ptr fiber) { return fiber; }
  static Fiber::ptr toFiber(Fiber::ptr* fiber) { return fiber == nullptr ? nullptr : std::exchange(*fiber, nullptr); }
  // Takes nothing from behind a pointer before there is memory for everything.
  static Fiber::ptr toFiber(std::function<void()>* cb) {
    if (cb == nullptr || *cb == nullptr) return nullptr;
    auto fiber = std::make_shared<Fiber>([] {});
    fiber->reset(std::exchange(*cb, nullptr));
    return fiber;
  }
  template <class Callable>
  requires std::is_invocable_v<Callable&>
  static Fiber::ptr toFiber(Callable cb) {
    std::function<void()> function(std::move(cb));
    return function == nullptr ? nullptr : std::make_shared<Fiber>(std::move(function));
  }
  // Takes an iterator over callables, and moves out the callable that it points at.
  template <class T>
  requires(std::is_invocable_v<T&> && !std::is_function_v<T>) static Fiber::ptr toFiber(T* cb) {
    if (cb == nullptr) return nullptr;
    auto fiber = std::make_shared<Fiber>([] {});
    std::function<void()> function(std::move(*cb));
    if (function == nullptr) return nullptr;
    fiber->reset(std::move(function));
    return fiber;
  }

  bool offer(Fiber::ptr&& fiber, int thread);

  std::unique_ptr<detail::SchedulerCore> m_core;
};

/// Announces that something outside the scheduler, usually a plain thread, will bring it work or wake one of its held fibers.
/// While a guard exists, stop() waits, as it does for armed timers, and cancels no fiber. stop(deadline) does not wait for it.
///
///   std::thread([self = Fiber::GetThis(), &iom, &answer, expected = sylar::WorkGuard(iom)] {
///     answer = compute();
///     iom.schedule(self);
///   }).detach();
///   sylar::Fiber::YieldToHold();                 // without the guard, stop() would end this wait before the thread has written
///
/// Make it while the scheduler has something to do: in one of its fibers, or before stop(). Each copy counts. A guard may
/// outlive the scheduler only after stop(deadline). A plain stop(), also that of the destructor, waits without end for a guard
/// that only the stopping thread itself would reset afterwards. In a forked child a guard does nothing. Source: Asio's
/// executor_work_guard.
///
/// Thread safety: as a plain value; guards may be made, copied and destroyed on any thread. May suspend: no.
class WorkGuard {
 public:
  explicit WorkGuard(Scheduler& scheduler);
  WorkGuard(const WorkGuard& other);
  WorkGuard(WorkGuard&& other) noexcept = default;
  WorkGuard& operator=(WorkGuard other) noexcept {
    m_link.swap(other.m_link);
    return *this;
  }
  ~WorkGuard() { reset(); }

  /// Withdraws the announcement; a second call does nothing.
  void reset();

 private:
  std::shared_ptr<detail::SchedulerLink> m_link;  // null if moved from, or reset
};

/// Moves the calling fiber to `target` (nowhere if null) and, at the end of the scope, back to where it came from, if that
/// scheduler has not ended. Throws std::bad_alloc; the fiber has not moved then. Source: sylar.
class SchedulerSwitcher {
 public:
  explicit SchedulerSwitcher(Scheduler* target = nullptr);
  ~SchedulerSwitcher();
  SchedulerSwitcher(const SchedulerSwitcher&) = delete;
  SchedulerSwitcher& operator=(const SchedulerSwitcher&) = delete;

 private:
  std::shared_ptr<detail::MigrationTarget> m_return_target;  // null if the fiber did not move
};

}  // namespace sylar
