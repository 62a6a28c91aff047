// Internal. One thread of a scheduler: what runs on it, in which order, and when it sleeps.
//
// One turn, in this order (a contract): 1. mail; 2. due timeouts of its own fibers, then the driver's upkeep; 3. at most kBatch
// runnable fibers, or fewer that take kBatchNs, fresh work in alternation with woken ones, the injector first and at every 61st
// pick; 4. steal, if nothing is left, and run the oldest of that; 5. collect ready descriptors: without waiting if there is more
// to run, else asleep until mail, a descriptor or a deadline.
//
// Thread safety: everything belongs to the worker's thread but the sections marked otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/base/counter.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/own_fresh.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker_slot.h"
#include "sylar/timer/heap_queue.h"

namespace sylar {

class Worker;

class Worker final : public FiberHost, private AutoAdvance::Member {
 public:
  Worker(Scheduler& scheduler, std::string name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The worker whose thread this is, or null. Never inlined, as runningFiber().
  static Worker* current();
  /// A new thread or process begins with the timer slack of the thread that made it. Gives the calling thread what the process
  /// had before its first worker. Safe in a forked child.
  static void dropTimerSlack();

  /// What it waits on; before run(), after slot().open().
  void setDriver(std::unique_ptr<Driver> driver) { m_driver = std::move(driver); }
  /// The thread's whole work; returns when the scheduler is done.
  void run();

  /// Not for a worker that is detached.
  Scheduler& scheduler() const { return m_scheduler; }
  const Clock& clock() const { return m_clock; }
  /// Not after run() has returned.
  Driver& driver() const { return *m_driver; }
  WorkerSlot& slot() const { return m_slot; }
  const std::string& name() const { return m_name; }

  // ---- Fibers (worker_fibers.cc). --------------------------------------------------------------------------------------------

  /// How often something got the thread; so a fiber finds out whether it gave the thread away in between.
  uint64_t switches() const { return m_counts.switches.get(); }
  /// Wakes a sleeper for fresh work that is queued here, as if another fiber began now.
  void shareFresh() { m_fresh.share(m_scheduler.rest()); }
  /// The turn's batch ends with the fiber that runs: descriptors first.
  void endTurn() { m_turn_over = true; }
  void makeRunnable(QueueNode* node) { m_runnable.push(node); }
  /// Queues work that has not started. False: refused.
  bool pushFresh(QueueNode* node) {
    const tsan::Exempt of_this_thread;
    return m_fresh.push(node);
  }
  /// Does what a fiber of its own was asked by other threads.
  void attend(const Fiber::ptr& fiber);
  /// Makes room for a timeout of the running fiber, so that no wait can fail half-way. False: no memory.
  [[nodiscard]] bool reserveTimeout(FiberCore& core, Deadline deadline);
  WakeReason park(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) noexcept;
  void awaitEnd(Fiber& fiber) override;
  void unlinkTimer(FiberCore& core) override;

  // ---- From any thread. ------------------------------------------------------------------------------------------------------

  FreshQueue<>& fresh() { return m_fresh.queue(); }
  /// Kernel id of its thread; 0 before that exists and after the end.
  pid_t threadId() const { return m_thread_id.load(std::memory_order_acquire); }
  void setThread(pid_t id);
  bool running() const { return threadId() != 0 && !detached(); }
  /// How many functions are placed on it; may outlive it.
  const std::shared_ptr<std::atomic<uint32_t>>& placed() const { return m_placed; }
  /// Appends its fibers.
  void list(std::vector<FiberInfo>& out);
  void addStats(WorkerStats& sum) const;

  /// Gives up a worker whose fiber does not come back. False: it is in its loop, or at its end. From then on its thread touches
  /// nothing of the scheduler, and stands still when the fiber comes back.
  [[nodiscard]] bool detach();
  bool detached() const { return m_place.load(std::memory_order_acquire) == Place::kDetached; }

  // ---- For the stop detection, under its lock, while the worker is known to sleep. ------------------------------------------

  size_t waiting() const { return m_waiting; }
  size_t uncancelled() const { return m_live_count - m_cancelled_count; }
  size_t live() const { return m_live_count; }
  /// How many of its fibers join one that this scheduler does not run.
  size_t joinsElsewhere() const;

  // ---- For the stopping thread, when the worker has ended or is detached. ----------------------------------------------------

  /// Fibers that were given up.
  Leftovers& leftovers() { return m_leftovers; }
  /// Of a detached one: gives up what it runs and holds, and `mail`, the last that it got; notes them.
  void leaveBehind(NodeList mail, Leftovers& out);
  void endDriver() { m_driver.reset(); }

 private:
  static constexpr int kBatch = 256;
  static constexpr int64_t kBatchNs = 1'000'000;
  static constexpr int kFibersPerLook = 16;  // at the clock
  static constexpr size_t kReportedOneByOne = 100;
  static constexpr int kInjectorInterval = 61;
  static constexpr size_t kTimeoutsPerTurn = 2000;
  static constexpr int64_t kTimeoutsNsPerTurn = 500'000;
  static constexpr int64_t kPushedMayWakeNs = 10'000'000;
  enum class Place : uint8_t { kLoop, kFiber, kDetached };

  void turn();
  bool goesOn();
  void takeMail();
  void runBatch(int64_t now_ns);
  QueueNode* pick();
  void sleep();
  void rest(AutoAdvance& time);
  bool quiet() const override;
  int64_t dueNs() const override;
  void wake() override { m_slot.wake(); }
  void poll(int64_t now_ns, int64_t deadline_ns);

  void runNode(QueueNode* node);
  bool prepareFresh(Fiber& fiber);
  void settle(FiberCore& core);
  WakeReason parkByHand(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what);
  void permit(Fiber& fiber);
  void moveAway(FiberCore& core);
  void linkLive(FiberCore& core);
  void unlinkLive(FiberCore& core);

  bool behindStop() const;
  void followStop();
  void cancel(FiberCore& core);
  void markCancelled(FiberCore& core);
  /// A joiner may have lent the joined fiber its stack: it is told of that one's end, also if it is given up, and called last.
  bool mayInterrupt(const FiberCore& core) const {
    if (!core.cancelled || !core.shielded) return core.cancelled;
    return m_last_call >= (core.fiber->joins() == nullptr ? LastCall::kShields : LastCall::kJoins);
  }
  void interrupt(FiberCore& core);
  void abandon(FiberCore& core);
  void refuse(Fiber& fiber);
  void leave(const Fiber& fiber);
  template <class Foreign>
  void outside(Foreign foreign);

  void arm(FiberCore& core, int64_t deadline_ns);
  void expireTimeouts(int64_t now_ns);
  int64_t nextDeadline(int64_t now_ns);

  Scheduler& m_scheduler;
  const Clock& m_clock;
  const std::string m_name;
  const std::shared_ptr<std::atomic<uint32_t>> m_placed = std::make_shared<std::atomic<uint32_t>>(0);
  HeapQueue<4> m_timeouts;  // one node per fiber at most
  WorkerSlot& m_slot;       // the last that may not be had: given back by the destructor
  std::unique_ptr<Driver> m_driver;
  ThreadFibers* m_thread_fibers = nullptr;  // its thread's, from run() on

  NodeList m_runnable;          // woken fibers and pinned fresh ones
  OsMutex m_live_lock;          // for others' looks at the list; only the owner changes it
  FiberCore* m_live = nullptr;  // fibers to bring to their end; of hand-resumed ones, those that are parked
  size_t m_live_count = 0;
  size_t m_cancelled_count = 0;            // of the live ones
  size_t m_waiting = 0;                    // parked fibers whose wake-up comes from outside
  size_t m_joining = 0;                    // parked fibers that join another
  uint64_t m_cancel_round = 0;             // of the scheduler's, the last that was carried out
  LastCall m_last_call = LastCall::kNone;  // of the scheduler's, likewise
  Leftovers m_leftovers;
  bool m_fresh_next = false;
  int m_injector_in = 0;      // picks of this turn, until the injector is first
  int64_t m_due_ns = kNever;  // at rest on virtual time: its fibers' earliest deadline
  bool m_turn_over = false;

  struct {
    Counter switches, polls, sleeps, tickles, mail, armed, pushed, relinked, fired;
  } m_counts;  // see WorkerStats

  OwnFresh<> m_fresh;
  std::atomic<pid_t> m_thread_id{0};
  std::atomic<Place> m_place{Place::kLoop};
};

}  // namespace sylar
