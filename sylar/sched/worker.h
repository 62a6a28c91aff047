// Internal. One thread of a scheduler: what runs on it, in which order, and when it sleeps.
//
// One iteration of its loop, in this order (a contract): 1. mail; 2. due timeouts of its own fibers, then the driver's upkeep;
// 3. at most kBatch runnable fibers, or fewer that take kBatchNs (and those before the next look at the clock), unstarted work in
// alternation with woken ones, the injector first and at every 64th pick. Fibers that have used up their budget come last, but
// first after a batch that had no time for them. Joined work and its joiner run out of turn, within bounds; 4. have the driver
// submit what they have begun; steal, if nothing is left, and run the oldest of that; 5. collect ready descriptors: without waiting
// if there is more to run, else asleep until mail, a descriptor or a deadline.
//
// Thread safety: everything belongs to the worker's thread, except the sections marked otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/counter.h"
#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/fiber_timeouts.h"
#include "sylar/sched/live_fibers.h"
#include "sylar/sched/own_spawn_queue.h"
#include "sylar/sched/park.h"
#include "sylar/sched/run_queue.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/stack_trimmer.h"
#include "sylar/sched/worker_slot.h"

namespace sylar::detail {

class Worker;

class Worker final : public FiberHost, private AutoAdvance::Member {
 public:
  /// `number` is its place among the workers of `scheduler`, from 0 on.
  Worker(SchedulerCore& scheduler, size_t number, std::string name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Returns the worker whose thread this is, or null. Never inlined, for the same reason as runningFiber().
  static Worker* current();
  /// Does what current() does, for functions that cannot suspend, nor are inlined into others that can.
  static Worker* currentHere() { return t_worker; }
  /// Makes this the worker of the calling fiber, which has a thread pointer of its own.
  void adoptThreadPointer() override;
  static void forgetThread();
  /// Returns true on its own thread.
  bool isHere() const { return current() == this; }
  /// Gives the calling thread the timer slack that the process had before its first worker. Needed because a new thread or
  /// process begins with the slack of the thread that made it. Safe in a forked child.
  static void dropTimerSlack();

  /// In a forked child the thread must not go on in the loop, which is the parent's with all that it waits for and would run. There
  /// is no fiber that runs, so this ends the child as the end of its only fiber does, or calls what setNextInChild() has set.
  static void leaveLoopInChild();
  /// Sets what the child does instead. That may return if the loop has to go on to the end of a switch.
  static void setNextInChild(void (*next)()) { s_next_in_child.store(next, std::memory_order_relaxed); }

  /// Sets the driver on which the worker waits. To be called before run(), after slot().open().
  void setDriver(std::unique_ptr<Driver> driver) {
    SYLAR_DCHECK(m_slot.wake_fd >= 0 && m_thread_fibers == nullptr);
    m_driver = std::move(driver);
  }
  /// Does the thread's whole work. Returns when the scheduler is done.
  void run();

  /// Returns its scheduler. Not for a worker that is detached.
  SchedulerCore& scheduler() const { return m_scheduler; }
  const Clock& clock() const { return m_clock; }
  /// Returns its driver. Not after run() has returned.
  Driver& driver() const {
    SYLAR_DCHECK(m_driver != nullptr);
    return *m_driver;
  }
  WorkerSlot& slot() const { return m_slot; }
  const std::string& name() const { return m_name; }

  // ---- Fibers (worker_fibers.cc). --------------------------------------------------------------------------------------------

  /// Returns how often something got the thread. With that a fiber finds out whether it gave the thread away in between.
  uint64_t switches() const { return m_counts.switches.get(); }
  /// Ends the batch with the fiber that runs, so that descriptors come first. If it then yields, all others come first.
  void endBatch() {
    SYLAR_DCHECK(isHere() && !inLoop());
    const tsan::Exempt of_this_thread;
    m_batch_over = true;
    m_next_look = 0;
  }
  bool inLoop() const { return m_runnable.inLoop(); }
  void makeRunnable(QueueNode* node) {
    SYLAR_DCHECK(isHere());
    m_runnable.push(node);
  }
  bool resumeNext(FiberCore& joiner);
  /// Runs code that is not the library's, in the loop. If the worker is detached in between, its thread does not come back.
  template <class Code>
  void runUserCode(Code code) {
    SYLAR_DCHECK(isHere());
    m_runnable.leaveLoop();
    const unsigned next_look = std::exchange(m_next_look, 0);  // a fiber that it resumes does not pass the thread on
    code();
    if (!m_runnable.comeBack()) sys::haltThread();
    m_next_look = m_batch_over ? 0 : next_look;
  }
  /// Queues work that has not started. Work that the loop queues is shared by the loop before it runs anything. Returns false if
  /// it is refused.
  bool pushSpawned(SpawnNode* node) {
    SYLAR_DCHECK(isHere() && node->kind == QueueNode::Kind::kFiber);
    return m_runnable.inLoop() ? m_spawned.push(node) : m_spawned.offer(node, m_scheduler.idle());
  }
  /// Does what other threads asked of a fiber of this worker.
  void handleRequests(const Fiber::ptr& fiber);
  FiberTimeouts& timeouts() { return m_timeouts; }
  /// Parks the running fiber, which has handed out copies of `waker`, on its worker; the last part of Wait::park().
  static WakeReason park(const Waker& waker, Deadline deadline, WaitFor what) noexcept;
  void awaitEnd(Fiber& fiber) override;
  void resumes(FiberCore& core) override;
  void hasResumed(FiberCore& core) override;
  FiberCore* passOn(FiberCore& me) override;
  void unlinkTimer(FiberCore& core) override {
    const tsan::Exempt of_this_thread;
    m_timeouts.unlink(core);
  }

  // ---- From any thread. ------------------------------------------------------------------------------------------------------

  SpawnQueue<>& spawned() { return m_spawned.queue(); }
  /// Returns the kernel id of its thread, or 0 before that exists and after the end.
  pid_t threadId() const { return m_thread_id.load(std::memory_order_acquire); }
  void setThread(pid_t id);
  bool running() const { return threadId() != 0 && !detached(); }
  /// Returns the number of functions that are placed on it. The number may outlive the worker.
  const std::shared_ptr<std::atomic<uint32_t>>& placed() const { return m_placed; }
  /// Appends its fibers to `out`.
  void list(std::vector<FiberReport>& out) { m_live.list(out); }
  /// Calls `tell` with the fiber that has the thread, if there is one, under the lock of the lists.
  template <class Tell>
  void visitRunning(Tell tell) {
    const auto look = [&tell](const FiberCore& core) {
      if (stateOf(*core.fiber) == FiberState::kRunning) tell(*core.fiber);
    };
    m_live.visit(look, look);
  }
  void addStats(WorkerStats& sum) const;

  /// Detaches a worker whose fiber does not come back. Returns false if the worker is in its loop, or at its end. Otherwise its
  /// thread touches nothing of the scheduler from then on, and stands still when the fiber comes back.
  [[nodiscard]] bool detach();
  bool detached() const { return m_runnable.detached(); }

  // ---- For the stop detection, under its lock, while the worker is known to sleep. ------------------------------------------

  size_t waiting() const { return m_waiting; }
  size_t uncancelled() const { return m_live.uncancelled(); }
  size_t live() const { return m_live.count(); }
  /// Returns how many of its fibers join one that this scheduler does not run.
  size_t joinsElsewhere() const;

  // ---- For the stopping thread, when the worker has ended or is detached. ----------------------------------------------------

  /// Returns the fibers that were abandoned.
  AbandonedFibers& abandoned() { return m_abandoned; }
  /// Abandons and notes the fibers that a detached worker runs and holds. Puts into `unrun` what waits to run there, in its
  /// queue and in `mail`, the last that it got.
  void abandonFibers(NodeList mail, AbandonedFibers& out, NodeList& unrun);
  void endDriver() { m_driver.reset(); }
  /// Waits until its thread has left run(), if that was not detached. Returns false if the kernel does not let the thread end now.
  bool awaitEnd() const;

 private:
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Worker* t_worker;

  static constinit std::atomic<void (*)()> s_next_in_child;

  static constexpr unsigned kBatch = 256;
  static constexpr int64_t kBatchNs = 1'000'000;
  static constexpr unsigned kFibersPerLook = 16;  // how many run before the first look at the clock
  static constexpr unsigned kDepthTurns = 4096;  // for how long trees of joined fibers may keep the oldest unstarted work waiting
  static constexpr int64_t kDepthNs = 10'000'000;
  static constexpr size_t kReportedOneByOne = 100;
  static constexpr unsigned kInjectorInterval = 64;

  void runOnce();
  bool goesOn();
  void takeMail();
  /// Returns true if batchGoesOn() must be asked before another fiber runs. After the end of a batch as well.
  bool lookIsDue() const { return m_round >= m_next_look; }
  bool batchGoesOn();
  bool injectorIsDue() const;
  void runBatch();
  QueueNode* pick();
  QueueNode* takeSpawned();
  void oldestHasRun() {
    m_spawned_ns = m_slot.iteration_ns;
    m_oldest_turn = m_depth_turns;
  }
  QueueNode* takeSpent();
  void sleep();
  void enterIdle(AutoAdvance& time);
  bool isQuiescent() const override;
  int64_t dueNs() const override;
  void wake() override { m_slot.wake(); }
  void poll(int64_t now_ns, int64_t deadline_ns);

  void runNode(QueueNode* node);
  void giveThreadTo(FiberCore& core);
  bool mayGoInDepth();
  bool othersAreDue();
  QueueNode* takeJoined();
  FiberCore* startJoined();
  FiberCore* nextCore(FiberCore& me);
  ThreadFibers::Started tryStart(Fiber& fiber);
  bool prepareUnstarted(Fiber& fiber);
  static bool joinIsOver(const FiberCore& core);
  void queueAgain(FiberCore& core);
  void afterSwitch(FiberCore& core);
  void endFiber(FiberCore& core);
  WakeReason parkByHand(const Waker& waker, Deadline deadline, WaitFor what);
  void permit(Fiber& fiber);
  void migrate(FiberCore& core);
  void linkLive(FiberCore& core, bool cancelled);

  bool behindStop() const;
  void followStop();
  void cancel(FiberCore& core);
  void followScope(FiberCore& core);
  FiberCore* innermostOf(const FiberCore& core) const;
  /// Returns true if the fiber is cancelled and its wait may end early. A joiner may have lent the joined fiber its stack, so it
  /// is interrupted last. It is told of that fiber's end, even if that fiber is abandoned.
  bool mayInterrupt(const FiberCore& core) const {
    if (core.cancelled == 0 || !core.shielded) return core.cancelled != 0;
    return m_cancel_phase >= (core.started().joins == nullptr ? CancelPhase::kShields : CancelPhase::kJoins);
  }
  void interrupt(FiberCore& core);
  void abandon(FiberCore& core);
  void refuse(Fiber& fiber);
  void noteAbandoned(const Fiber& fiber);
  [[noreturn]] void standStill(FiberCore& last);

  SchedulerCore& m_scheduler;
  const size_t m_number;
  const Clock& m_clock;
  const std::string m_name;
  const std::shared_ptr<std::atomic<uint32_t>> m_placed = std::make_shared<std::atomic<uint32_t>>(0);
  FiberTimeouts m_timeouts;
  WorkerSlot& m_slot;  // the last member that may fail: only the destructor gives it back
  std::unique_ptr<Driver> m_driver;
  ThreadFibers* m_thread_fibers = nullptr;  // its thread's, from run() on

  RunQueue<> m_runnable;
  LiveFibers m_live;
  StackTrimmer m_trimmer;
  size_t m_waiting = 0;                             // parked fibers whose wake-up comes from outside
  size_t m_joining = 0;                             // parked fibers that join another
  uint64_t m_cancel_round = 0;                      // the scheduler's last round that was carried out here
  CancelPhase m_cancel_phase = CancelPhase::kNone;  // the scheduler's, likewise
  bool m_cancels_all = false;                       // the scheduler's, likewise
  AbandonedFibers m_abandoned;
  std::atomic<uint32_t> m_ended{0};  // the thread touches nothing of this any more
  bool m_unstarted_next = false;
  bool m_spent_overdue = false;
  SpawnNode* m_joined = nullptr;  // what the fiber that ran last has begun to join, if that was queued; until something runs
  uint64_t m_last_end = 0;        // the last switch after which a joined fiber ended
  unsigned m_depth_turns = 0;     // turns of joined fibers and of joiners
  unsigned m_oldest_turn = 0;     // how many there were when the oldest unstarted work had its turn
  int64_t m_spawned_ns = 0;       // the iteration in which that was
  int64_t m_due_ns = kNever;      // idle on virtual time: its fibers' earliest deadline
  bool m_batch_over = false;
  unsigned m_round = 0;      // how many the batch has run, with the one that runs
  unsigned m_next_look = 0;  // the round after which the batch may have to end; 0 if it has ended, and in user code of the loop

  struct {
    Counter switches, polls, sleeps, tickles, mail;
  } m_counts;  // see WorkerStats

  OwnSpawnQueue<> m_spawned;
  std::atomic<pid_t> m_thread_id{0};
};

}  // namespace sylar::detail
