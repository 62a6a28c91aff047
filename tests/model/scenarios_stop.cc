// The end of a scheduler: it comes, once, when nothing is left, and not before (idle.h).
#include <deque>
#include <string>
#include <vector>

#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

const std::function<bool()> kUntilTheEnd = [] { return false; };

void startWorkers(House& house) {
  for (size_t i = 0; i < house.workers().size(); ++i) {
    addThread("worker " + std::to_string(i), [&house, i] { house.worker(i).runUntil(kUntilTheEnd); });
  }
}

void stop(House& house, bool cancel_all = false) {
  house.idle().beginStop(cancel_all);
  house.idle().wakeAll();
}

void checkEnd(House& house) {
  require(house.ends == 1, "it ends once");
  require(house.idle().done(), "and is done");
}

// RT-7.7: work that is offered from outside while the scheduler stops runs before the end, or is refused.
void offer() {
  House house(2);
  Task task([] {});
  bool accepted = false;
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("producer", [&] { accepted = house.offer(task); });
  runThreads();
  checkEnd(house);
  require(task.runs == (accepted ? 1 : 0), "what was accepted has run");
}

// The same with two, one after the other, and one worker.
void offerTwo() {
  House house(1);
  std::deque<Task> tasks;
  bool accepted[2] = {};
  for (int i = 0; i < 2; ++i) tasks.emplace_back([] {});
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("producer", [&] {
    for (size_t i = 0; i < 2; ++i) accepted[i] = house.offer(tasks[i]);
    require(!accepted[1] || accepted[0], "once it refuses, it does so for ever");
  });
  runThreads();
  checkEnd(house);
  for (size_t i = 0; i < 2; ++i) require(tasks[i].runs == (accepted[i] ? 1 : 0), "what was accepted has run");
}

// The same for work that goes to one worker by mail.
void offerByMail() {
  House house(2);
  Task task([] {});
  bool accepted = false;
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("producer", [&] {
    task.payload.set(1);
    bool notify = false;
    accepted = house.idle().injector().admit([&] { notify = house.worker(1).slot().mailbox.push(&task); });
    if (notify) house.worker(1).slot().notify();
  });
  runThreads();
  checkEnd(house);
  require(task.runs == (accepted ? 1 : 0), "what was accepted has run");
}

// RT-7.7: a fiber schedules more while the scheduler stops: that runs, too, wherever.
void spawn() {
  House house(2);
  std::deque<Task> tasks;
  tasks.emplace_back([] {});
  tasks.emplace_back([&] {
    Worker& here = *(house.worker(0).isHere() ? &house.worker(0) : &house.worker(1));
    tasks[0].payload.set(1);
    require(here.own().push(&tasks[0]), "before the end the queue is open");
  });
  require(house.offer(tasks[1]), "before the start");
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  runThreads();
  checkEnd(house);
  for (const Task& task : tasks) require(task.runs == 1, "all has run");
}

// RT-7.7: a parked fiber that somebody outside will wake keeps the scheduler from ending.
void park() {
  House house(2);
  bool over = false;
  Task resumed([&] {
    house.worker(0).count(0, 0);
    over = true;
  });
  resumed.payload.set(1);
  house.worker(0).count(1, 1);
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("waker", [&] { house.worker(0).slot().push(&resumed); });
  runThreads();
  checkEnd(house);
  require(over, "the fiber has ended before");
}

// RT-7.7: what the class waits for (timers, callbacks) keeps it; when that ends without a worker's doing, the end comes.
void pending() {
  House house(2);
  house.pending.store(1);
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("timer", [&] {
    house.idle().pendingEnded([&] {
      require(house.ends == 0, "it has not ended meanwhile");
      house.pending.fetch_sub(1, std::memory_order_acq_rel);
    });
  });
  runThreads();
  checkEnd(house);
}

// The same, with work that comes with the timer.
void timerBringsWork() {
  House house(1);
  Task callback([] {});
  house.pending.store(1);
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  addThread("timer", [&] {
    require(house.offer(callback), "it waits for the timer");
    house.idle().pendingEnded([&] { house.pending.fetch_sub(1, std::memory_order_acq_rel); });
  });
  runThreads();
  checkEnd(house);
  require(callback.runs == 1, "the callback has run");
}

// Fibers that only fibers could wake are cancelled, whichever worker falls asleep last, and then the end comes.
void cancelRound() {
  House house(2);
  for (const auto& worker : house.workers()) {
    worker->count(1, 0);
    worker->on_cancel_round = [&worker] { worker->count(0, 0); };  // it ends its wait, and then itself
  }
  startWorkers(house);
  addThread("stopper", [&] { stop(house); });
  runThreads();
  checkEnd(house);
  require(house.idle().cancelRound() == 1, "one round does");
}

// A deadline: all are cancelled at once; shielded fibers wait regardless until the last phase of cancelling.
void cancelPhase() {
  House house(1);
  Worker& shielding = house.worker(0);
  shielding.count(1, 0);
  shielding.on_cancel_round = [&] { shielding.setCancelled(shielding.live()); };
  shielding.on_cancel_phase = [&](CancelPhase call) {
    if (call == CancelPhase::kShields) return;
    shielding.setCancelled(0);
    shielding.count(0, 0);
  };
  startWorkers(house);
  addThread("stopper", [&] { stop(house, true); });
  addThread("deadline", [&] {
    while (!house.idle().isStopping()) ModelMemory::relax();
    house.idle().raisePhase(CancelPhase::kShields);
  });
  runThreads();
  checkEnd(house);
  require(house.idle().cancelPhase() == CancelPhase::kJoins, "nobody else could end that wait");
}

// A worker that does not come back is left out: the others come to their end without it, and what it left is given out.
void exclude() {
  House house(2);
  Task other([] {});
  Worker& stuck = house.worker(1);
  addThread("worker 0", [&] { house.worker(0).runUntil(kUntilTheEnd); });
  addThread("stopper", [&] {
    stop(house, true);
    house.idle().exclude(
        [&] {
          stuck.detach();
          return 1;
        },
        [] { require(false, "one worker is left"); });
  });
  bool accepted = false;
  addThread("producer", [&] { accepted = house.offer(other); });
  runThreads();
  checkEnd(house);
  require(other.runs == (accepted ? 1 : 0), "accepted work has run");
}

// A fiber of the worker that is left out schedules at that moment: accepted work is found, by whoever leaves the worker out.
void excludeWhileItSchedules() {
  House house(2);
  Task late([] {});
  Worker& stuck = house.worker(1);
  bool accepted = false;
  addThread("worker 0", [&] { house.worker(0).runUntil(kUntilTheEnd); });
  addThread("stuck", [&] {
    late.payload.set(1);
    accepted = stuck.own().push(&late);
  });
  addThread("stopper", [&] {
    stop(house, true);
    const auto leave_out = [&] {
      stuck.detach();
      NodeList left = stuck.spawned().close();
      while (QueueNode* node = left.pop()) ++static_cast<Task*>(node)->runs;
      return 1;
    };
    house.idle().exclude(leave_out, [] { require(false, "one worker is left"); });
  });
  runThreads();
  checkEnd(house);
  require(late.runs == (accepted ? 1 : 0), "accepted work is found, other is not");
}

// The last worker is left out: what unstarted work there is is handed out, once, and no more is accepted.
void excludeTheLast() {
  House house(1);
  Task other([] {});
  bool accepted = false;
  addThread("stopper", [&] {
    stop(house, true);
    house.idle().exclude(
        [&] {
          house.worker(0).detach();
          return 1;
        },
        [&] {
          NodeList unrun = house.idle().injector().close();
          while (QueueNode* node = unrun.pop()) ++static_cast<Task*>(node)->runs;
        });
  });
  addThread("producer", [&] { accepted = house.offer(other); });
  runThreads();
  checkEnd(house);
  require(other.runs == (accepted ? 1 : 0), "accepted work is found, other is not");
}

}  // namespace

std::vector<Scenario> stopScenarios() {
  return {
      {"stop/offer", offer},
      {"stop/offer_two", offerTwo},
      {"stop/offer_by_mail", offerByMail},
      {"stop/spawn", spawn},
      {"stop/park", park},
      {"stop/pending", pending},
      {"stop/timer_brings_work", timerBringsWork},
      {"stop/cancel_round", cancelRound},
      {"stop/cancel_phase", cancelPhase},
      {"stop/exclude", exclude},
      {"stop/exclude_while_it_schedules", excludeWhileItSchedules},
      {"stop/exclude_the_last", excludeTheLast},
  };
}

}  // namespace sylar::model
