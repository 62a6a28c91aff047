// The public timers of an IOManager (P4): one descriptor, which wakes one sleeping worker; who sets it, and who serves. The
// queue, the arming lock and the kernel are written again in short, a worker's turn, too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sylar/io/timer_arming.h"
#include "sylar/io/timer_pass.h"
#include "sylar/timer/front_news.h"
#include "tests/model/memory.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

using Step = std::function<void()>;

/// A due timer's callback, and others of its batch.
struct Batch {
  std::vector<int64_t> due;
  bool begun = false;
};
using BatchPtr = std::shared_ptr<Batch>;

/// One worker's own queue, from which others steal.
class BatchQueue {
 public:
  void push(BatchPtr batch) {
    Lock lock(m_mutex);
    m_batches.push_back(std::move(batch));
    m_count.store(m_batches.size(), std::memory_order_seq_cst);
  }
  BatchPtr take() {
    Lock lock(m_mutex);
    if (m_batches.empty()) return nullptr;
    BatchPtr batch = std::move(m_batches.front());
    m_batches.pop_front();
    m_count.store(m_batches.size(), std::memory_order_seq_cst);
    return batch;
  }
  size_t count() const { return m_count.load(std::memory_order_seq_cst); }
  bool hasSome() const { return !m_batches.empty(); }  // for awaiting it; no step

 private:
  Mutex m_mutex;
  std::deque<BatchPtr> m_batches;
  Atomic<size_t> m_count{0};
};

/// A set of timers. Each is known by when it is due.
class TimerSet {
 public:
  using Ticket = FrontNews<ModelMemory>::Ticket;

  Ticket insert(int64_t due_ns) {
    Lock lock(m_mutex);
    const bool earlier = due_ns < front();
    m_timers[due_ns] = true;
    return m_news.owed(front(), earlier);
  }
  void told(Ticket ticket) { m_news.told(ticket); }
  bool take(int64_t due_ns) {
    Lock lock(m_mutex);
    return m_timers.erase(due_ns) > 0;
  }
  /// Takes the earliest one if it is due.
  std::optional<int64_t> takeDue(int64_t now_ns) {
    Lock lock(m_mutex);
    const int64_t front_ns = front();
    if (front_ns > now_ns) return std::nullopt;
    m_timers.erase(front_ns);
    return front_ns;
  }
  bool anyDue(int64_t now_ns) {
    Lock lock(m_mutex);
    return front() <= now_ns;
  }
  bool holds(int64_t due_ns) const { return m_timers.contains(due_ns); }  // for awaiting it; no step

  int64_t observeNextDue() {
    Lock lock(m_mutex);
    m_news.look(front());
    return front();
  }
  void wakesBy(int64_t due_ns) {
    Lock lock(m_mutex);
    m_news.wakesBy(due_ns);
  }

 private:
  int64_t front() const { return m_timers.empty() ? kNever : m_timers.begin()->first; }

  Spinlock m_mutex;
  FrontNews<ModelMemory> m_news;
  std::map<int64_t, bool> m_timers;
};

/// A manager of one or two sets, its descriptor and its clock.
class Manager {
 public:
  explicit Manager(size_t sets = 1) {
    while (m_sets.size() < sets) m_sets.push_back(std::make_unique<TimerSet>());
  }

  /// Arms a timer; `before_it_tells`, `before_it_sets`: where the thread may be preempted.
  void insert(
      int64_t due_ns, const Step& before_it_tells = [] {}, const Step& before_it_sets = [] {}, size_t set = 0) {
    const TimerSet::Ticket ticket = m_sets[set]->insert(due_ns);
    if (ticket == 0) return;
    before_it_tells();
    if (owe()) {
      before_it_sets();
      Lock lock(m_arming);
      const int64_t front_ns = lookAtFront();
      if (front_ns != m_set_ns) arm(front_ns);
    }
    m_sets[set]->told(ticket);
  }
  void insertInto(size_t set, int64_t due_ns) {
    insert(
        due_ns, [] {}, [] {}, set);
  }
  /// Takes a timer out, and tells nobody. False: it was not there.
  bool cancel(int64_t due_ns) {
    for (const auto& set : m_sets) {
      if (set->take(due_ns)) return true;
    }
    return false;
  }
  void rearm(bool woken) {
    if (!owe() && !woken) return;
    Lock lock(m_arming);
    arm(lookAtFront());
  }
  /// The earliest one of a set, if it is due.
  bool collectOne(Batch& batch) {
    bool more = false;
    for (const auto& set : m_sets) {
      if (!batch.due.empty()) {
        more |= set->anyDue(m_now_ns);
      } else if (const auto due_ns = set->takeDue(m_now_ns)) {
        batch.due.push_back(*due_ns);
        more = set->anyDue(m_now_ns);
      }
    }
    return more;
  }
  void run(const Batch& batch) {
    for (const int64_t due_ns : batch.due) {
      require(due_ns <= m_now_ns, "no timer is early");
      require(!std::exchange(m_served[due_ns], true), "a timer runs once");
    }
  }
  bool served(int64_t due_ns) const { return m_served.contains(due_ns); }
  bool holds(int64_t due_ns) const {  // for awaiting it; no step
    return std::any_of(m_sets.begin(), m_sets.end(), [due_ns](const auto& set) { return set->holds(due_ns); });
  }

  /// The kernel: time passes.
  void setNow(int64_t now_ns) {
    call();
    m_now_ns = now_ns;
    ring();
  }
  /// Of a worker. True: the descriptor says that a timer is due; false: it is `over`.
  bool sleep(const std::function<bool()>& over) {
    m_sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (m_front.owed()) {
      Lock lock(m_arming);
      if (m_front.owed()) arm(lookAtFront());
    }
    const bool woken = wait(over);
    m_sleepers.fetch_sub(1, std::memory_order_seq_cst);
    return woken;
  }

 private:
  /// epoll_wait.
  bool wait(const std::function<bool()>& over) {
    call();
    if (readable()) return true;
    bool woken = false;
    m_asleep.push_back(&woken);
    await("an event", [&] { return woken || over(); });
    std::erase(m_asleep, &woken);
    return woken;
  }
  bool owe() {
    return m_front.owe([this] { return m_sleepers.load(std::memory_order_seq_cst) > 0; });
  }
  int64_t lookAtFront() {
    m_front.settle();
    return m_sets.size() == 1 ? m_sets[0]->observeNextDue() : lookAtAll(m_sets);
  }
  void arm(int64_t due_ns) {
    call();
    m_set_ns = due_ns;
    ring();
  }
  bool readable() const { return m_set_ns <= m_now_ns; }
  void call() { m_kernel.fetch_add(1, std::memory_order_acq_rel); }
  /// It became readable: of those that sleep on it, one wakes (EPOLLEXCLUSIVE).
  void ring() {
    if (!readable() || m_asleep.empty()) return;
    *m_asleep.front() = true;
    m_asleep.erase(m_asleep.begin());
  }

  std::vector<std::unique_ptr<TimerSet>> m_sets;
  Mutex m_arming;
  TimerArming<ModelMemory> m_front;
  Atomic<size_t> m_sleepers;
  Atomic<uint32_t> m_kernel;
  std::map<int64_t, bool> m_served;
  int64_t m_set_ns = kNever, m_now_ns = 0;
  std::vector<bool*> m_asleep;
};

class TimerWorker {
 public:
  TimerWorker(Manager& manager, std::function<bool()> over) : m_manager(manager), m_over(std::move(over)) {}

  /// Turns until it is over. `run`: how it runs a batch. `on_events`: what else the poll that ends a sleep brings.
  void work(
      const std::function<void(const Batch&)>& run, const Step& on_events = [] {}) {
    while (!m_over()) {
      const bool woken = m_manager.sleep(m_over);
      on_events();
      bool more = serve(woken);
      while (const BatchPtr batch = queue.take()) {
        batch->begun = true;
        run(*batch);
        if (more) more = serve(false);
      }
    }
  }

  BatchQueue queue;

 private:
  struct Pass {
    bool begun() const { return worker.m_last == nullptr || worker.m_last->begun; }
    size_t queued() const { return worker.queue.count(); }
    bool collect() { return worker.m_manager.collectOne(*batch); }
    bool found() const { return !batch->due.empty(); }
    void rearm() { worker.m_manager.rearm(woken); }
    void queue() { worker.queue.push(worker.m_last = batch); }
    TimerWorker& worker;
    const bool woken;
    const BatchPtr batch = std::make_shared<Batch>();
  };
  bool serve(bool woken) {
    Pass pass{*this, woken};
    return passOverTimers(pass, woken);
  }

  Manager& m_manager;
  const std::function<bool()> m_over;
  BatchPtr m_last;
};

// A batch is stolen, and the thief has no processor until the next timer has run: the worker that it was stolen from is woken for
// that one, alone.
void stolenBatch() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker worker(manager, over);
  manager.insert(1);
  manager.insert(2);
  bool begun = false;
  addThread("clock", [&] {
    manager.setNow(1);
    await("the first was collected", [&] { return begun || worker.queue.hasSome(); });
    manager.setNow(2);
  });
  addThread("worker", [&] {
    worker.work([&](const Batch& batch) {
      begun = true;
      manager.run(batch);
    });
  });
  addThread("thief", [&] {
    await("loot", [&] { return worker.queue.hasSome() || begun; });
    const BatchPtr loot = worker.queue.take();
    if (loot == nullptr) return;
    begun = true;  // by the thief's word only: nothing of it runs yet
    if (loot->due.front() == 1) await("a processor", [&] { return manager.served(2); });
    loot->begun = true;
    manager.run(*loot);
  });
  runThreads();
  require(over(), "all have run");
}

// As above, and the poll that wakes the worker for the second timer also brings an event, whose callback computes until that has
// run. An idle worker takes what is left in the queue.
void stolenBatchAndAnEvent() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker worker(manager, over);
  manager.insert(1);
  manager.insert(2);
  bool stolen = false;
  const auto run = [&](const Batch& batch) {
    if (batch.due.empty()) await("the second timer", [&] { return manager.served(2); });
    manager.run(batch);
  };
  const auto steal = [&](bool first) {
    await("loot", [&] { return worker.queue.hasSome() || over(); });
    const BatchPtr loot = worker.queue.take();
    if (loot == nullptr) return;
    if (first && !loot->due.empty() && loot->due.front() == 1) {
      stolen = true;
      await("a processor", [&] { return manager.served(2); });
    }
    loot->begun = true;
    manager.run(*loot);
  };
  addThread("clock", [&] {
    manager.setNow(1);
    await("the first was stolen", [&] { return stolen || manager.served(1); });
    manager.setNow(2);
  });
  addThread("worker", [&] {
    bool event = true;
    worker.work(run, [&] {
      if (stolen && std::exchange(event, false)) worker.queue.push(std::make_shared<Batch>());
    });
  });
  addThread("thief", [&] { steal(true); });
  addThread("idle worker", [&] {
    await("the theft", [&] { return stolen || over(); });
    while (!over()) steal(false);
  });
  runThreads();
  require(over(), "all have run");
}

// Two timers are due, and a worker takes one at a time: the first callback computes until the second has run, on the other
// worker.
void nextSleeper() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker first(manager, over), second(manager, over);
  manager.insert(1);
  manager.insert(2);
  const auto run = [&](const Batch& batch) {
    if (batch.due.front() == 1) await("the second timer", [&] { return manager.served(2); });
    manager.run(batch);
  };
  addThread("clock", [&] { manager.setNow(2); });
  addThread("worker", [&] { first.work(run); });
  addThread("second worker", [&] { second.work(run); });
  runThreads();
  require(over(), "all have run");
}

/// A thread that has armed a timer for 2 is preempted before it tells anybody, until that of another thread has run.
void preemptedInserter(int64_t other) {
  Manager manager;
  const auto over = [&] { return manager.served(2) && manager.served(other); };
  TimerWorker worker(manager, over);
  addThread("clock", [&] { manager.setNow(3); });
  addThread("inserter", [&] { manager.insert(2, [&] { await("a processor", [&] { return manager.served(other); }); }); });
  addThread("other inserter", [&] { manager.insert(other); });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}
void preemptedBeforeEarlier() { preemptedInserter(1); }
void preemptedBeforeLater() { preemptedInserter(3); }

// The sleeper knows of one timer, and of the end of that call: the next front is told all the same.
void toldBefore() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(3); };
  TimerWorker worker(manager, over);
  manager.insert(3);
  addThread("clock", [&] {
    manager.setNow(1);
    await("the earlier timer", [&] { return manager.served(1); });
    manager.setNow(3);
  });
  addThread("inserter", [&] { manager.insert(1); });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}

// A timer is armed while the only worker goes to sleep: one of the two sets the descriptor.
void sleepsMeanwhile() {
  Manager manager;
  const auto over = [&] { return manager.served(1); };
  TimerWorker worker(manager, over);
  addThread("clock", [&] { manager.setNow(1); });
  addThread("inserter", [&] { manager.insert(1); });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "it has run");
}

// A timer is armed while the only worker, which serves another one, sets the descriptor.
void owedAgain() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker worker(manager, over);
  manager.insert(1);
  addThread("clock", [&] { manager.setNow(2); });
  addThread("inserter", [&] {
    await("the worker serves", [&] { return !manager.holds(1); });
    manager.insert(2);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}

// While one worker computes, a timer is armed and another, earlier one; then a second worker goes to sleep, for both.
void setForBoth() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) { manager.run(batch); };
  manager.insert(2);
  addThread("clock", [&] {
    manager.setNow(1);
    await("the earlier timer", [&] { return manager.served(1); });
    manager.setNow(2);
  });
  addThread("worker", [&] {
    manager.insert(1);
    await("the second worker serves both", over);
    first.work(run);
  });
  addThread("second worker", [&] { second.work(run); });
  runThreads();
  require(over(), "all have run");
}

// A thread that arms a timer is preempted before it tells anybody, or before it sets the descriptor for a sleeper that it saw.
// Meanwhile the sleeper is called away, and a second worker arms a timer, too, and goes to sleep: for both.
void placesChange() {
  Manager manager;
  bool called = false;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker first(manager, [&] { return called || over(); }), second(manager, over);
  const auto run = [&](const Batch& batch) { manager.run(batch); };
  const auto preempted = [&] { await("a processor", [&] { return manager.served(1); }); };
  const Step at_once = [] {};
  manager.setNow(2);
  addThread("inserter", [&] {
    const bool before_it_tells = choose(2) == 0;
    manager.insert(2, before_it_tells ? preempted : at_once, before_it_tells ? at_once : preempted);
  });
  addThread("worker", [&] {
    first.work(run);
    await("the second worker serves", over);
  });
  addThread("second worker", [&] {
    manager.insert(1, [&] { called = true; });
    second.work(run);
  });
  runThreads();
  require(over(), "all have run");
}

// Two workers arm a timer each and go to sleep; the first callback computes until the second has run, on the other worker.
void armAndSleep() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) {
    if (batch.due.front() == 1) await("the second timer", [&] { return manager.served(2); });
    manager.run(batch);
  };
  addThread("clock", [&] { manager.setNow(2); });
  addThread("worker", [&] {
    manager.insert(1);
    first.work(run);
  });
  addThread("second worker", [&] {
    manager.insert(2);
    second.work(run);
  });
  runThreads();
  require(over(), "all have run");
}

// Two timers are due, and the callback of the first arms a third. Its worker comes by for the second one, leaves the third due,
// and computes until that has run: on the other worker, which goes to sleep meanwhile.
void leftDue() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2) && manager.served(3); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) {
    if (batch.due.front() == 1) manager.insert(3);
    if (batch.due.front() == 2) await("the third timer", [&] { return manager.served(3); });
    manager.run(batch);
  };
  manager.insert(1);
  manager.insert(2);
  manager.setNow(3);
  addThread("worker", [&] { first.work(run); });
  addThread("second worker", [&] { second.work(run); });
  runThreads();
  require(over(), "all have run");
}

// A thread that has armed a timer is preempted before it tells anybody; another one arms a later timer and takes the first one
// out, in either order.
void takenOut() {
  Manager manager;
  bool taken = false;
  const auto over = [&] { return manager.served(2) && (taken || manager.served(1)); };
  TimerWorker worker(manager, over);
  manager.setNow(2);
  addThread("inserter", [&] { manager.insert(1, [&] { await("a processor", [&] { return manager.served(2); }); }); });
  addThread("other inserter", [&] {
    const bool first = choose(2) == 0;
    if (first) taken = manager.cancel(1);
    manager.insert(2);
    if (!first) taken = manager.cancel(1);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all that are left have run");
  require(!taken || !manager.served(1), "what was taken out does not run");
}

// A timer for which a worker is woken is taken out, and armed again for the same time: the descriptor is set for it already.
void armedAgain() {
  Manager manager;
  const auto over = [&] { return manager.served(1); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) { manager.run(batch); };
  manager.insert(1);
  manager.setNow(1);
  addThread("inserter", [&] {
    if (manager.cancel(1)) manager.insert(1);
  });
  addThread("worker", [&] { first.work(run); });
  addThread("second worker", [&] { second.work(run); });
  runThreads();
  require(over(), "it has run");
}

// A thread that arms a timer sees a sleeper, and is preempted before it sets the descriptor, until that timer has run: another
// thread, which arms a later one, sets it for both.
void toldForAnother() {
  Manager manager;
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker worker(manager, over);
  addThread("clock", [&] {
    manager.setNow(1);
    await("the earlier timer", [&] { return manager.served(1); });
    manager.setNow(2);
  });
  addThread("inserter", [&] {
    manager.insert(
        1, [] {}, [&] { await("a processor", [&] { return manager.served(1); }); });
  });
  addThread("other inserter", [&] {
    await("the earlier one is armed", [&] { return manager.holds(1) || manager.served(1); });
    manager.insert(2);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}

// Two threads arm a timer each, in sets of their own, while the worker goes to sleep.
void twoSets() {
  Manager manager(2);
  const auto over = [&] { return manager.served(1) && manager.served(2); };
  TimerWorker worker(manager, over);
  addThread("clock", [&] {
    manager.setNow(1);
    await("the earlier timer", [&] { return manager.served(1); });
    manager.setNow(2);
  });
  addThread("inserter", [&] { manager.insertInto(0, 2); });
  addThread("other inserter", [&] { manager.insertInto(1, 1); });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}

// The sleeper has known of a timer that it has served since. While it looks at its two sets again, a timer comes into the other
// one.
void comesDuringALook() {
  Manager manager(2);
  const auto over = [&] { return manager.served(1) && manager.served(2) && manager.served(3); };
  TimerWorker worker(manager, over);
  manager.insertInto(0, 1);
  manager.insertInto(0, 3);
  addThread("clock", [&] {
    manager.setNow(1);
    await("the first timer", [&] { return manager.served(1); });
    manager.setNow(2);
    await("the second timer", [&] { return manager.served(2); });
    manager.setNow(3);
  });
  addThread("inserter", [&] {
    await("the worker serves", [&] { return !manager.holds(1); });
    manager.insertInto(1, 2);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all have run");
}

// The front that the sleeper knows, of one set, is taken out. A later one comes into the other set, and need not be told.
void frontOfAnotherSet() {
  Manager manager(2);
  bool taken = false;
  const auto over = [&] { return manager.served(2) && (taken || manager.served(1)); };
  TimerWorker worker(manager, over);
  manager.insertInto(0, 1);
  addThread("clock", [&] {
    manager.setNow(1);
    manager.setNow(2);
  });
  addThread("inserter", [&] {
    taken = manager.cancel(1);
    manager.insertInto(1, 2);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all that are left have run");
}

// The next three were chosen by somebody who knew the protocol's promises only.

// Two workers arm a timer each, in sets of their own, and go to sleep. A third thread arms one between the two, and is preempted
// before it tells or before it sets the descriptor. The first callback computes until the last timer has run.
void sleepersOfTwoSets() {
  Manager manager(2);
  const auto over = [&] { return manager.served(1) && manager.served(2) && manager.served(3); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) {
    if (batch.due.front() == 1) await("the last timer", [&] { return manager.served(3); });
    manager.run(batch);
  };
  const auto preempted = [&] { await("a processor", [&] { return manager.served(3); }); };
  const Step at_once = [] {};
  manager.setNow(3);
  addThread("inserter", [&] {
    const bool before_it_tells = choose(2) == 0;
    manager.insert(2, before_it_tells ? preempted : at_once, before_it_tells ? at_once : preempted, 0);
  });
  addThread("worker", [&] {
    manager.insertInto(0, 1);
    first.work(run);
  });
  addThread("second worker", [&] {
    manager.insertInto(1, 3);
    second.work(run);
  });
  runThreads();
  require(over(), "all have run");
}

// The front that the sleeper knows is taken out, and a later timer armed in the other set. Another thread arms an earlier one
// there, and takes it out again.
void frontsComeAndGo() {
  Manager manager(2);
  bool taken_first = false, taken_other = false;
  const auto over = [&] { return manager.served(3) && (taken_first || manager.served(2)) && (taken_other || manager.served(1)); };
  TimerWorker worker(manager, over);
  manager.insertInto(0, 2);
  addThread("clock", [&] {
    manager.setNow(2);
    manager.setNow(3);
  });
  addThread("inserter", [&] {
    taken_first = manager.cancel(2);
    manager.insertInto(1, 3);
  });
  addThread("other inserter", [&] {
    manager.insertInto(1, 1);
    taken_other = manager.cancel(1);
  });
  addThread("worker", [&] { worker.work([&](const Batch& batch) { manager.run(batch); }); });
  runThreads();
  require(over(), "all that are left have run");
}

// Two workers are woken. The callback of one arms a timer in the other set, behind the look of the other worker, and computes.
void armedBehindALook() {
  Manager manager(2);
  const auto over = [&] { return manager.served(1) && manager.served(2) && manager.served(3); };
  TimerWorker first(manager, over), second(manager, over);
  const auto run = [&](const Batch& batch) {
    if (batch.due.front() == 1) {
      manager.insertInto(1, 3);
      await("the timer that it has armed", [&] { return manager.served(3); });
    }
    manager.run(batch);
  };
  manager.insertInto(0, 1);
  manager.insertInto(1, 2);
  manager.setNow(3);
  addThread("worker", [&] { first.work(run); });
  addThread("second worker", [&] { second.work(run); });
  runThreads();
  require(over(), "all have run");
}

}  // namespace

std::vector<Scenario> serveScenarios() {
  return {
      {"serve/stolen_batch", stolenBatch},
      {"serve/stolen_batch_and_an_event", stolenBatchAndAnEvent},
      {"serve/next_sleeper", nextSleeper},
      {"serve/preempted_before_an_earlier", preemptedBeforeEarlier},
      {"serve/preempted_before_a_later", preemptedBeforeLater},
      {"serve/told_before", toldBefore},
      {"serve/sleeps_meanwhile", sleepsMeanwhile},
      {"serve/owed_again", owedAgain},
      {"serve/set_for_both", setForBoth},
      {"serve/places_change", placesChange},
      {"serve/arm_and_sleep", armAndSleep},
      {"serve/left_due", leftDue},
      {"serve/taken_out", takenOut},
      {"serve/armed_again", armedAgain},
      {"serve/told_for_another", toldForAnother},
      {"serve/sets_two", twoSets},
      {"serve/sets_comes_during_a_look", comesDuringALook},
      {"serve/sets_front_of_another", frontOfAnotherSet},
      {"serve/sets_wide_sleepers", sleepersOfTwoSets},
      {"serve/sets_wide_fronts", frontsComeAndGo},
      {"serve/sets_armed_behind_a_look", armedBehindALook},
  };
}

}  // namespace sylar::model
