// The parts that the scenarios have in common: cores, workers and their scheduler in model form, around the production protocols.
// What is not a protocol header (the order of a turn, what a worker does with a woken fiber) is written again here, in short.
//
// Fibers run on top of their worker's loop: park() is that loop, until the core comes out of a queue. So a worker has one fiber
// at a time.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/wait_word.h"
#include "sylar/sched/idle.h"
#include "sylar/sched/mailbox.h"
#include "sylar/sched/own_spawn_queue.h"
#include "sylar/sched/waker.h"
#include "tests/model/memory.h"

namespace sylar::model {

class House;
class Worker;

/// The part of a worker that others touch, as WorkerSlot.
struct Slot {
  explicit Slot(Worker& owner) : worker(owner) {}

  void push(QueueNode* node) {
    if (mailbox.push(node)) notify();
  }
  bool wake() {
    if (!mailbox.tryWake()) return false;
    notify();
    return true;
  }
  void notify() {
    bell.fetch_add(1, std::memory_order_acq_rel);
    ++notified;
  }

  /// Until somebody has notified; true: that was it.
  bool poll(const std::function<bool()>& or_else);

  Worker& worker;
  Mailbox<ModelMemory> mailbox;
  Atomic<uint32_t> bell;  // an eventfd: the kernel's, so every access to it is a fence on its way
  int notified = 0;       // in all
};

/// A started fiber, as FiberCore.
struct Core : QueueNode {
  explicit Core(Slot& slot) : QueueNode(Kind::kCore), home(&slot) {}

  WaitWord<ModelMemory> wait;
  Var<Slot*> home;   ///< read by the winner of a claim only
  Var<bool> linked;  ///< stands in a queue: the link is the winner's, then the home worker's
  bool parked = false;
  bool gone = false;             ///< abandoned: nobody may deliver it any more
  std::function<void()> resume;  ///< of one more fiber of a worker, which is cut at its waits
};

using ModelWaker = WakerOf<Core>;

/// A request to a worker, or unstarted work. Runs on the worker's stack.
struct Task : SpawnNode {
  explicit Task(std::function<void()> body) : SpawnNode(Kind::kMessage), run(std::move(body)) {}
  std::function<void()> run;
  Var<int> payload;  ///< written by who offers it, read by who runs it
  int runs = 0;
};

/// The source of a worker's events.
class Driver {
 public:
  virtual bool ready() const = 0;
  virtual void serve() = 0;

 protected:
  ~Driver() = default;
};

class Worker {
 public:
  explicit Worker(House* house = nullptr, Driver* driver = nullptr) : m_house(house), m_driver(driver), m_slot(*this) {}

  // As production's Worker has them, for Idle.
  Slot& slot() { return m_slot; }
  SpawnQueue<ModelMemory>& spawned() { return m_spawned.queue(); }
  bool detached() const { return m_detached; }
  size_t waiting() const { return m_waiting; }
  size_t joinsElsewhere() const { return 0; }
  size_t uncancelled() const { return m_live - m_cancelled; }
  size_t live() const { return m_live; }

  OwnSpawnQueue<ModelMemory>& own() { return m_spawned; }
  bool isHere() const { return m_thread == self(); }
  void adoptThread() { m_thread = self(); }

  void makeRunnable(Core& core);
  /// Runs the loop until `core`, whose wait is open or decided, comes out of a queue. `timer`: a deadline of it may pass at any
  /// time.
  WakeReason park(Core& core, bool timer = false);
  /// Collects events until `enough` holds.
  void serveUntil(const std::function<bool()>& enough);
  /// The scheduler's loop, until it has ended or `enough` holds.
  void runUntil(const std::function<bool()>& enough);

  void detach() { m_detached = true; }
  void count(size_t live, size_t waiting) { m_live = live, m_waiting = waiting; }
  void setCancelled(size_t cancelled) { m_cancelled = cancelled; }
  /// Follows a round of cancelling.
  std::function<void()> on_cancel_round;
  std::function<void(CancelPhase)> on_cancel_phase;

 private:
  QueueNode* pick();
  void run(QueueNode& node);
  void takeMail();
  void follow();
  void sleep(const std::function<bool()>& enough);

  bool driverReady() const { return m_driver != nullptr && m_driver->ready(); }

  House* const m_house;
  Driver* const m_driver;
  Slot m_slot;
  OwnSpawnQueue<ModelMemory> m_spawned;
  NodeList m_runnable;
  uint32_t m_thread = ~0U;
  bool m_detached = false;
  size_t m_live = 0;
  size_t m_waiting = 0;
  size_t m_cancelled = 0;
  uint64_t m_cancel_round = 0;
  CancelPhase m_cancel_phase = CancelPhase::kNone;
};

/// The scheduler, as Idle sees it.
class House {
 public:
  explicit House(size_t count) {
    for (size_t i = 0; i < count; ++i) m_workers.push_back(std::make_unique<Worker>(this));
  }

  const std::vector<std::unique_ptr<Worker>>& workers() const { return m_workers; }
  Worker& worker(size_t i) { return *m_workers[i]; }
  Idle<House, ModelMemory>& idle() { return m_idle; }

  bool nothingExpected() const { return pending.load() == 0 && (!expects || !expects()); }
  void ended() { ++ends; }

  /// From outside. False: refused.
  bool offer(Task& task) {
    task.payload.set(task.payload.get() + 1);
    const Pushed pushed = m_idle.injector().push(&task);
    if (pushed == Pushed::kFirst) m_idle.wakeOne();
    return pushed != Pushed::kRejected;
  }

  Atomic<int> pending;            ///< what stop() must wait for besides work
  std::function<bool()> expects;  ///< whether there is more of it
  int ends = 0;

 private:
  std::vector<std::unique_ptr<Worker>> m_workers;
  Idle<House, ModelMemory> m_idle{*this};
};

}  // namespace sylar::model

namespace sylar {
template <>
void model::ModelWaker::deliver(model::Core& core);
template <>
void model::ModelWaker::deliverByMail(model::Core& core);
}  // namespace sylar
