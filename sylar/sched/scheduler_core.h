// Internal. The inside of a Scheduler: its workers, how work is offered, and the end (scheduler_stop.cc).
//
// Thread safety: the same as Scheduler's.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/abandoned_fibers.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/idle.h"
#include "sylar/sched/placed_count.h"
#include "sylar/scheduler.h"
#include "sylar/thread.h"

namespace sylar::detail {

class Worker;

/// Leads to a scheduler that may be gone. For fibers that decided to move there while it existed, and for the ends of
/// WorkGuards.
struct SchedulerLink {
  explicit SchedulerLink(SchedulerCore* to) : scheduler(to) {}
  OsMutex mutex;
  SchedulerCore* scheduler SYLAR_GUARDED_BY(mutex);
  std::atomic<size_t> guards{0};  // WorkGuards
};

/// Makes the driver of a worker. start() calls it once for each worker.
using DriverFactory = std::function<std::unique_ptr<Driver>(WorkerSlot& slot)>;

class SchedulerCore final : public ThreadAwaiter {
 public:
  SchedulerCore(Scheduler& scheduler, SchedulerOptions options);
  ~SchedulerCore();
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  static SchedulerCore& of(const Scheduler& scheduler) { return *scheduler.m_core; }
  /// Returns the user's object.
  Scheduler& scheduler() const { return m_scheduler; }

  // ---- What Scheduler's functions of these names do. -------------------------------------------------------------------------

  const std::string& getName() const { return m_options.name; }
  void start();
  void stop();
  StopResult stop(Deadline deadline);
  bool offer(Fiber::ptr&& fiber, int thread);
  /// `run` is stored together with its count in one allocation. It must be copyable, and is called as const.
  template <class Run>
  bool place(Run run, FiberIdentity identity = FiberIdentity::kOwn) {
    const Place place = leastPlaced();
    if (place.placed == nullptr) return schedule(std::move(run), -1, identity);  // no thread runs yet, so the first one takes it
    return schedule([count = PlacedCount(place.placed), run = std::move(run)] { run(); }, place.thread, identity);
  }
  template <class Run>
  bool schedule(Run run, int thread, FiberIdentity identity) {
    auto fiber = std::make_shared<Fiber>(std::move(run));
    fiber->setIdentity(identity);
    return offer(std::move(fiber), thread);
  }
  bool switchTo(int thread);
  WorkerStats getWorkerStats() const;
  std::ostream& dump(std::ostream& os) const;
  void tickle();
  void pendingEnded(const std::function<void()>& end);

  // ---- For Scheduler. --------------------------------------------------------------------------------------------------------

  /// Sets how drivers are made. To be called before start(). The default is a driver that waits for no descriptors.
  void setDriverFactory(DriverFactory make) {
    SYLAR_DCHECK(!m_started && make != nullptr);
    m_make_driver = std::move(make);
  }
  /// Ends the scheduler, as ~Scheduler() does. Returns false if threads that have not ended go on using this object.
  [[nodiscard]] bool close();
  /// Keeps what close() says is in use until the process has ended.
  static void leave(std::unique_ptr<SchedulerCore> core);
  const std::shared_ptr<SchedulerLink>& link() const { return m_link; }
  /// Moves the running fiber to `target`.
  static void move(std::shared_ptr<MigrationTarget> target);
  /// Returns this scheduler as a target, which may be gone when a fiber arrives.
  std::shared_ptr<MigrationTarget> migrationTarget(int thread) const;

  // ---- For workers. ----------------------------------------------------------------------------------------------------------

  using Idle = sylar::Idle<SchedulerCore>;
  Idle& idle() { return m_idle; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return m_workers; }
  const Clock& clock() const { return *m_options.clock; }
  int64_t waitCap(int64_t now_ns) const;
  int64_t timerSlackNs() const { return m_options.timer_slack.count(); }
  bool lendsThreads() const { return m_lends_threads; }
  /// Queues unstarted work until there is a thread that it can borrow. For a worker's loop.
  void awaitThread(SpawnNode& node, const void* pinned_to);
  int64_t trimAfterNs() const { return std::chrono::nanoseconds(m_options.trim_after).count(); }
  int64_t spinNs() const { return std::chrono::nanoseconds(m_options.spin).count(); }
  /// Queues a fiber that comes from elsewhere. Returns false if it is refused.
  bool admitMigrated(Fiber& fiber, int thread);

  // While it stops (scheduler_stop.cc):
  bool isStopping() const { return m_idle.isStopping(); }
  /// Returns true if fibers begin cancelled.
  bool cancelsAll() const { return m_cancels_all.load(std::memory_order_relaxed); }
  /// Does what the deadline of stop() asks for, once it has passed.
  void watchDeadline();

 private:
  friend Idle;
  enum StartSignal : uint32_t { kWait, kRun, kNeverRun };
  enum EndState : uint32_t { kNotEnding, kEnding, kOver };

  bool offerStarted(const Fiber::ptr& fiber, const Worker* target, int thread);
  bool submit(Fiber& fiber);
  bool submitTo(Worker& worker, QueueNode* node);
  bool refuse(const Fiber& fiber, const char* why) const;
  /// The thread of a worker, and the number of functions that are placed on it.
  struct Place {
    int thread;
    std::shared_ptr<std::atomic<uint32_t>> placed;
  };
  Worker* workerOfThread(int thread) const;
  Place leastPlaced() const;

  void goOn(SpawnNode& node, const void* pinned_to) override;
  void ended(const std::function<void()>& end) override;
  void openThreads();
  void closeThreads();
  void signalStart(StartSignal how);
  void end(Deadline deadline, bool cancels_all);
  bool endInThread(const std::function<void()>& finish, bool is_first);
  void windUp(Deadline deadline, bool cancels_all);
  void setOver();
  bool awaitOver(int64_t end_ns) const;
  static NodeList abandonAll(NodeList unrun, AbandonedFibers& out);
  static void drop(NodeList never_begun);
  void awaitDone();
  void detachStuck();
  /// Returns true in an exit() that a fiber has called, if the scheduler was there before.
  bool isLeftByExit() const;
  void haltForExit();
  [[noreturn]] void haltHere();
  /// Returns true if the workers have nothing left. They may still be about to leave, and a thread be inside of the end.
  bool done() const { return m_idle.done(); }
  /// Returns true if the end is over, and no thread uses this object any more.
  bool over() const { return m_end_state.load(std::memory_order_seq_cst) == kOver; }
  bool isCaller() const { return ::pthread_equal(m_caller, ::pthread_self()) != 0; }
  bool halts() const { return m_halts.load(std::memory_order_acquire); }
  bool nothingExpected() {
    return waitForThreads() == 0 && !halts() && (cancelsAll() || (!anyGuard() && m_scheduler.stopping()));
  }
  bool anyGuard() const { return m_link->guards.load(std::memory_order_acquire) > 0; }
  void ended();
  /// Returns true in a forked child if the threads run in the parent.
  bool isParents() const;
  void forget();
  void releaseCaller();

  Scheduler& m_scheduler;
  const SchedulerOptions m_options;
  const pthread_t m_caller;          // the thread that made it
  std::atomic<pid_t> m_caller_id{};  // its kernel id, which is another one after a fork
  DriverFactory m_make_driver = makeSleepDriver;
  std::vector<std::unique_ptr<Worker>> m_workers;
  std::vector<std::unique_ptr<Thread>> m_threads;  // of the last workers; the caller's has none
  const std::shared_ptr<SchedulerLink> m_link;
  const bool m_made_in_exit;
  bool m_started = false;
  bool m_lends_threads = false;
  std::atomic<uint32_t> m_threads_ready{0};     // threads that exist, whether they have what they need or not
  std::atomic<uint32_t> m_threads_unfit{0};     // those of them that lack something
  std::atomic<uint32_t> m_start_signal{kWait};  // threads begin when all of them are there
  std::atomic<uint32_t> m_end_state{kNotEnding};
  std::atomic<pid_t> m_ender{0};  // the thread that is inside of the end, or was
  AbandonedFibers m_abandoned;    // belongs to the stopping thread
  struct Stopper {
    const Clock* clock = nullptr;
    ClockHold* hold = nullptr;
  } m_stopper;  // the fiber that has begun the end and waits for it, if one has

  std::atomic<int> m_leaving{0};  // threads that are telling what detached workers leave
  OsMutex m_stuck_mutex;
  AbandonedFibers m_stuck SYLAR_GUARDED_BY(m_stuck_mutex);  // fibers of detached workers
  std::atomic<bool> m_cancels_all{false};
  std::atomic<int64_t> m_stop_deadline_ns{kNever};  // steady clock
  SchedulerCore* m_next_left = nullptr;             // of those that exit() has left
  std::atomic<bool> m_halts{false};                 // the workers stand still: see haltForExit()
  std::atomic<uint32_t> m_halted{0};                // those that do

  Idle m_idle{*this};
};

inline SchedulerCore& coreOf(const Scheduler& scheduler) { return SchedulerCore::of(scheduler); }

}  // namespace sylar::detail
