// Internal. One thread of a scheduler: what runs on it, in which order, and when it sleeps.
//
// One turn, in this order (a contract): 1. mail; 2. due timeouts of its own fibers, then the driver's upkeep; 3. at most kBatch
// runnable fibers, fresh work in alternation with woken ones, the injector first and at every 61st pick; 4. steal, if nothing is
// left; 5. collect ready descriptors: without waiting if there is more to run, else asleep until mail, a descriptor or a
// deadline.
//
// Thread safety: everything belongs to the worker's thread but the sections marked otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "sylar/base/clock.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/fresh_queue.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker_slot.h"
#include "sylar/timer/ordered_set_queue.h"

namespace sylar {

class Scheduler;
class Worker;

/// Something that another thread asks a worker to do; runs on the worker's own stack, then is deleted.
struct Message : QueueNode {
  Message() : QueueNode(Kind::kMessage) {}
  virtual ~Message() = default;
  virtual void run(Worker& worker) = 0;
};

class Worker final : public FiberHost {
 public:
  Worker(Scheduler& scheduler, std::string name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The worker whose thread this is, or null. Never inlined, as runningFiber().
  static Worker* current();

  /// The thread's whole work; returns when the scheduler is done.
  void run();

  Scheduler& scheduler() const { return m_scheduler; }
  /// Not after run() has returned.
  Driver& driver() const { return *m_driver; }
  WorkerSlot& slot() const { return m_slot; }
  const std::string& name() const { return m_name; }

  /// Unique in the process.
  uint64_t id() const { return m_id; }

  void makeRunnable(QueueNode* node) { m_runnable.push(node); }
  /// Queues work that has not started. False: refused.
  bool pushFresh(QueueNode* node);
  /// schedule() of a fiber that has a core: brings it back if it is held, else leaves a permit.
  void permit(Fiber& fiber);
  /// Makes room for a timeout of the running fiber, so that no wait can fail half-way. False: no memory.
  [[nodiscard]] bool reserveTimeout(FiberCore& core, Deadline deadline);
  WakeReason park(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) noexcept;

  void awaitEnd(Fiber& fiber) override;
  void unlinkTimer(FiberCore& core) override;

  // ---- From any thread. ------------------------------------------------------------------------------------------------------
  FreshQueue<>& fresh() { return m_fresh; }
  /// Kernel id of its thread; 0 before that exists and after the end.
  pid_t threadId() const { return m_thread_id.load(std::memory_order_acquire); }
  void setThread(pid_t id) { m_thread_id.store(id, std::memory_order_release); }
  bool running() const { return threadId() != 0; }
  std::atomic<uint32_t>& placed() { return m_placed; }

  // ---- For the stop detection, under its lock, while the worker is known to sleep. ------------------------------------------
  size_t waiting() const { return m_waiting; }
  size_t uncancelled() const { return m_live_count - m_cancelled_count; }
  size_t live() const { return m_live_count; }

 private:
  static constexpr int kBatch = 256;
  static constexpr int kInjectorInterval = 61;
  static constexpr size_t kTimeoutsPerTurn = 2000;

  void turn();
  void takeMail();
  void expireTimeouts(int64_t now_ns);
  void runBatch();
  QueueNode* pick(int round);
  QueueNode* takeInjected();
  void shareFresh();
  bool steal();
  void sleep();
  int64_t nextDeadline();

  void runNode(QueueNode* node);
  bool prepareFresh(Fiber& fiber);
  void settle(FiberCore& core);
  void arm(FiberCore& core, int64_t deadline_ns);
  void linkLive(FiberCore& core);
  void unlinkLive(FiberCore& core);
  void cancelAll();

  Scheduler& m_scheduler;
  WorkerSlot& m_slot;
  const std::string m_name;
  const uint64_t m_id;
  std::unique_ptr<Driver> m_driver;
  NodeList m_runnable;          // woken fibers and pinned fresh ones
  OrderedSetQueue m_timeouts;   // one node per fiber at most
  FiberCore* m_live = nullptr;  // fibers to bring to their end; of hand-resumed ones, those that are parked
  size_t m_live_count = 0;
  size_t m_cancelled_count = 0;  // of the live ones
  size_t m_waiting = 0;          // parked fibers whose wake-up comes from outside
  uint64_t m_cancel_round = 0;   // of the scheduler's, the last that was carried out
  size_t m_next_victim = 0;
  bool m_fresh_next = false;
  bool m_shared = false;         // a sleeper was woken in this turn for what stays behind
  bool m_came_to_fetch = false;  // has searched since it last ran something

  alignas(64) FreshQueue<> m_fresh;
  std::atomic<pid_t> m_thread_id{0};
  std::atomic<uint32_t> m_placed{0};
};

}  // namespace sylar
