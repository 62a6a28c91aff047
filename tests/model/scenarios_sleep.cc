// P2: whoever offers work, by mail, from outside or to its own queue, somebody runs it, once, without any other event.
#include <deque>
#include <string>
#include <vector>

#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

/// A house, and tasks that count themselves.
struct Work {
  explicit Work(size_t workers) : house(workers) {}

  Task& task(std::function<void()> body = [] {}) {
    Task& made = tasks.emplace_back([this, body = std::move(body)] {
      body();
      ++ran;
    });
    return made;
  }
  bool allRan() const { return ran == static_cast<int>(tasks.size()); }

  void startWorkers() {
    for (size_t i = 0; i < house.workers().size(); ++i) {
      addThread("worker " + std::to_string(i), [this, i] { house.worker(i).runUntil([this] { return allRan(); }); });
    }
  }
  /// As a fiber of the worker that this is.
  void offerHere(Task& task) {
    for (const auto& worker : house.workers()) {
      if (!worker->isHere()) continue;
      task.payload.set(1);
      require(worker->own().offer(&task, house.idle()), "the queue is open");
    }
  }
  /// Waits, as a computation that goes on until then.
  void awaitRun(const Task& other) const {
    await("another task", [&other] { return other.runs == 1; });
  }

  House house;
  std::deque<Task> tasks;
  int ran = 0;
};

/// The least owner of a mailbox: runs what comes until `count` have; how often it slept.
int serveMail(Slot& slot, size_t count, const std::function<void(QueueNode*)>& run) {
  int sleeps = 0;
  for (size_t seen = 0; seen < count;) {
    NodeList mail = slot.mailbox.drain();
    for (; QueueNode* node = mail.pop(); ++seen) run(node);
    if (seen == count || !slot.mailbox.trySleep()) continue;
    ++sleeps;
    slot.poll([] { return false; });
    slot.mailbox.wakeUp();
  }
  return sleeps;
}

// RT-7.2: two sources push to a worker that falls asleep in between: all arrives, in the order of each source.
void mail() {
  Worker worker;
  std::deque<Task> tasks;
  for (int i = 0; i < 4; ++i) tasks.emplace_back([] {});
  std::vector<const QueueNode*> order;
  addThread("owner", [&] {
    serveMail(worker.slot(), 4, [&](QueueNode* node) {
      require(static_cast<Task*>(node)->payload.get() == 1, "what was written for it is seen");
      order.push_back(node);
    });
  });
  for (size_t source : {0, 2}) {
    addThread("source " + std::to_string(source), [&, source] {
      for (size_t i = source; i < source + 2; ++i) {
        tasks[i].payload.set(1);
        worker.slot().push(&tasks[i]);
      }
    });
  }
  runThreads();
  require(order.size() == 4, "all arrived");
  const auto position = [&](size_t i) { return std::find(order.begin(), order.end(), &tasks[i]); };
  require(position(0) < position(1) && position(2) < position(3), "first in, first out, of each source");
}

// A worker that is told several times in one sleep is notified once.
void oneNotification() {
  Worker worker;
  Task first([] {}), second([] {});
  int sleeps = 0;
  addThread("owner", [&] { sleeps = serveMail(worker.slot(), 2, [](QueueNode*) {}); });
  addThread("pusher", [&] {
    worker.slot().push(&first);
    worker.slot().push(&second);
  });
  addThread("waker", [&] { worker.slot().wake(); });
  runThreads();
  require(worker.slot().notified <= sleeps, "no more notifications than sleeps");
}

// RT-7.2: one source offers from outside, one item after the other, to two workers that fall asleep.
void inject() {
  Work work(2);
  Task& first = work.task();
  Task& second = work.task();
  work.startWorkers();
  addThread("producer", [&] {
    work.house.offer(first);
    work.house.offer(second);
  });
  runThreads();
  require(work.allRan(), "all ran");
}

// The same with one worker: there is nobody else to see what it misses.
void injectToOne() {
  Work work(1);
  Task& task = work.task();
  work.startWorkers();
  addThread("producer", [&] { work.house.offer(task); });
  runThreads();
  require(work.allRan(), "it ran");
}

// A burst from outside wakes as many workers as it needs: the first item computes until the second has run.
void burst() {
  Work work(2);
  Task& second = work.task();
  Task& first = work.task([&] { work.awaitRun(second); });
  work.startWorkers();
  addThread("producer", [&] {
    work.house.offer(first);
    work.house.offer(second);
  });
  runThreads();
  require(work.allRan(), "all ran");
}

// A burst that meets a busy worker, which has not come to fetch: what it takes computes until the other item has run.
void burstAtABusyWorker() {
  Work work(2);
  Task& second = work.task();
  Task& first = work.task([&] { work.awaitRun(second); });
  Task& busy = work.task();
  busy.payload.set(1);
  work.house.worker(0).slot().push(&busy);
  work.startWorkers();
  addThread("producer", [&] {
    work.house.offer(first);
    work.house.offer(second);
  });
  runThreads();
  require(work.allRan(), "all ran");
}

// A fiber that schedules, and computes until that has run; twice, for the worker that was called may sleep again in between.
void spawnedOfAFiberThatComputes() {
  Work work(2);
  Task* const pair[] = {&work.task(), &work.task()};
  Task& root = work.task([&] {
    for (Task* task : pair) {
      work.offerHere(*task);
      work.awaitRun(*task);
    }
  });
  require(work.house.offer(root), "before the start");
  work.startWorkers();
  runThreads();
  require(work.allRan(), "all ran");
}

// The same in two fibers on two workers, once each: they call the same third.
void twoFibersThatCompute() {
  Work work(3);
  for (size_t i = 0; i < 2; ++i) {
    Task& child = work.task();
    Task& root = work.task([&] {
      work.offerHere(child);
      work.awaitRun(child);
    });
    root.payload.set(1);
    work.house.worker(i).slot().push(&root);
  }
  work.startWorkers();
  runThreads();
  require(work.allRan(), "all ran");
}

// A burst of a fiber that computes on, whose first part computes until the second has run: a third worker is called while the
// first is on its way, or after it has come.
void threeWhileAFiberComputes() {
  Work work(3);
  Task& second = work.task();
  Task& first = work.task([&] { work.awaitRun(second); });
  Task& root = work.task([&] {
    work.offerHere(first);
    work.offerHere(second);
    work.awaitRun(second);
  });
  require(work.house.offer(root), "before the start");
  work.startWorkers();
  runThreads();
  require(work.allRan(), "all ran");
}

// Unstarted work of a worker's loop against the last other worker that falls asleep: it queues two; the first of them computes
// until the second has run.
void spawnedAgainstLastSleeper() {
  Work work(2);
  Task& second = work.task();
  Task& first = work.task([&] { work.awaitRun(second); });
  Task& root = work.task([&] {
    Worker& here = *(work.house.worker(0).isHere() ? &work.house.worker(0) : &work.house.worker(1));
    for (Task* task : {&first, &second}) {
      task->payload.set(1);
      require(here.own().push(task), "the queue is open");
    }
  });
  work.startWorkers();
  addThread("producer", [&] { work.house.offer(root); });
  runThreads();
  require(work.allRan(), "all ran");
}

// The same with work from outside at the same time: a wake-up spent on the one is not missing for the other.
void spawnedAndInjected() {
  Work work(2);
  Task& second = work.task();
  Task& first = work.task([&] { work.awaitRun(second); });
  Task& outside = work.task();
  Task& root = work.task([&] {
    Worker& here = *(work.house.worker(0).isHere() ? &work.house.worker(0) : &work.house.worker(1));
    for (Task* task : {&first, &second}) {
      task->payload.set(1);
      require(here.own().push(task), "the queue is open");
    }
  });
  require(work.house.offer(root), "before the start");
  work.startWorkers();
  addThread("producer", [&] { work.house.offer(outside); });
  runThreads();
  require(work.allRan(), "all ran");
}

// RT-7.5: an owner puts in and takes out while a thief steals half: each item comes out once, with what was written for it.
void stealing() {
  SpawnQueue<ModelMemory> queue;
  std::deque<Task> tasks;
  for (int i = 0; i < 3; ++i) tasks.emplace_back([] {});
  const auto run = [](QueueNode* node) {
    auto& task = *static_cast<Task*>(node);
    require(task.payload.get() == 1, "what was written for it is seen");
    task.payload.set(2);
    ++task.runs;
  };
  addThread("owner", [&] {
    for (Task& task : tasks) {
      task.payload.set(1);
      require(queue.push(&task) != Pushed::kRejected, "the queue is open");
    }
    for (int i = 0; i < 2; ++i) {
      if (QueueNode* node = queue.take()) run(node);
    }
  });
  addThread("thief", [&] {
    NodeList loot;
    const size_t count = queue.steal(&loot);
    size_t got = 0;
    for (; QueueNode* node = loot.pop(); ++got) run(node);
    require(got == count, "as many as it says");
  });
  addThread("other thief", [&] {
    if (QueueNode* node = queue.take()) run(node);
  });
  runThreads();
  while (QueueNode* node = queue.take()) run(node);
  for (const Task& task : tasks) require(task.runs == 1, "each ran once");
  require(queue.count() == 0, "none is counted that is not there");
}

// An owner takes one out of turn, and then the oldest, while a thief steals half and another takes: each comes out once.
void takingOut() {
  SpawnQueue<ModelMemory> queue;
  std::deque<Task> tasks;
  for (int i = 0; i < 4; ++i) tasks.emplace_back([] {});
  for (Task& task : tasks) require(queue.push(&task) != Pushed::kRejected, "the queue is open");
  const auto run = [](QueueNode* node) {
    auto& task = *static_cast<Task*>(node);
    task.payload.set(1);
    ++task.runs;
  };
  addThread("owner", [&] {
    for (Task* const task : {&tasks[2], &tasks[1]}) {
      if (queue.takeOut(*task)) run(task);
    }
    if (QueueNode* node = queue.take()) run(node);
  });
  addThread("thief", [&] {
    SpawnQueue<ModelMemory> own;
    NodeList loot;
    queue.steal(&loot);
    while (QueueNode* node = loot.pop())
      require(own.push(static_cast<SpawnNode*>(node)) != Pushed::kRejected, "its queue is open");
    while (QueueNode* node = own.take()) run(node);
  });
  addThread("other thief", [&] {
    if (QueueNode* node = queue.take()) run(node);
  });
  runThreads();
  while (QueueNode* node = queue.take()) run(node);
  for (const Task& task : tasks) require(task.runs == 1, "each ran once");
  require(queue.count() == 0, "none is counted that is not there");
}

// A queue that closes: what was accepted comes out, at the close or before; what comes later is refused.
void closing() {
  SpawnQueue<ModelMemory> queue;
  std::deque<Task> tasks;
  for (int i = 0; i < 3; ++i) tasks.emplace_back([] {});
  bool accepted[3] = {};
  bool went_elsewhere = false;
  for (size_t i = 0; i < 2; ++i) {
    addThread("source " + std::to_string(i), [&, i] { accepted[i] = queue.push(&tasks[i]) != Pushed::kRejected; });
  }
  addThread("source by mail", [&] {
    accepted[2] = queue.admit([&] { went_elsewhere = true; });
    require(accepted[2] == went_elsewhere, "admitted is done");
  });
  addThread("closer", [&] {
    if (!queue.closeIfEmpty([&] { return !went_elsewhere; })) {
      NodeList rest = queue.close();
      while (QueueNode* node = rest.pop()) ++static_cast<Task*>(node)->runs;
    }
    require(queue.push(&tasks[0]) == Pushed::kRejected, "closed is closed");
  });
  runThreads();
  for (size_t i = 0; i < 2; ++i) require(tasks[i].runs == (accepted[i] ? 1 : 0), "accepted work is found, other is not");
  require(queue.count() == 0, "nothing is left in");
}

/// Each item computes until the one behind it has run: all of them must run at the same time.
void chainOfThree(bool from_outside) {
  Work work(3);
  Task& third = work.task();
  Task& second = work.task([&] { work.awaitRun(third); });
  Task& first = work.task([&] { work.awaitRun(second); });
  Task* const all[] = {&first, &second, &third};
  if (from_outside) {
    work.startWorkers();
    addThread("producer", [&] {
      for (Task* task : all) work.house.offer(*task);
    });
  } else {
    Task& root = work.task([&] {
      for (const auto& worker : work.house.workers()) {
        if (!worker->isHere()) continue;
        for (Task* task : all) {
          task->payload.set(1);
          require(worker->own().push(task), "the queue is open");
        }
      }
    });
    require(work.house.offer(root), "before the start");
    work.startWorkers();
  }
  runThreads();
  require(work.allRan(), "all ran");
}

void threeFromOutside() { chainOfThree(true); }
void threeOfAFiber() { chainOfThree(false); }

}  // namespace

std::vector<Scenario> sleepScenarios() {
  return {
      {"sleep/mail", mail},
      {"sleep/one_notification", oneNotification},
      {"sleep/inject", inject},
      {"sleep/inject_to_one", injectToOne},
      {"sleep/burst", burst},
      {"sleep/burst_at_a_busy_worker", burstAtABusyWorker},
      {"sleep/spawned_of_a_fiber_that_computes", spawnedOfAFiberThatComputes},
      {"sleep/spawned_against_last_sleeper", spawnedAgainstLastSleeper},
      {"sleep/spawned_and_injected", spawnedAndInjected},
      {"queue/stealing", stealing},
      {"queue/taking_out", takingOut},
      {"queue/closing", closing},
      {"large/two_fibers_that_compute", twoFibersThatCompute, true},
      {"large/three_while_a_fiber_computes", threeWhileAFiberComputes, true},
      {"large/three_from_outside", threeFromOutside, true},
      {"large/three_of_a_fiber", threeOfAFiber, true},
  };
}

}  // namespace sylar::model
