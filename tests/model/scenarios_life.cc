// The life of a fiber besides its waits: requests while it moves, the observers of its end, and the remains of a worker
// that is detached (fiber_requests.h, end_observers.h, run_queue.h). A worker's part around them is written again, in short.
#include <array>
#include <deque>
#include <new>
#include <string>
#include <vector>

#include "sylar/fiber/end_observers.h"
#include "sylar/fiber/fiber_requests.h"
#include "sylar/sched/run_queue.h"
#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

// ---- FiberRequests. ---------------------------------------------------------------------------------------------

/// A worker slot, as far as messages go there.
struct Home {
  explicit Home(uint64_t number) : owner(number) {}
  Atomic<uint64_t> owner;
  Worker worker;
};

/// One fiber that is asked for things, each a bit.
struct Asked {
  explicit Asked(uint8_t all) : wanted(all) {}

  /// As ThreadFibers::post, and WorkerSlot::handleRequests.
  void post(size_t bit) {
    written[bit].set(1);
    if (requests.post(static_cast<uint8_t>(1U << bit))) sendTo(requests.home());
  }
  void sendTo(Home* home) {
    if (home == nullptr) return;
    require(under_way++ == 0 || moves, "one message at a time is under way");
    home->worker.slot().push(&messages.emplace_back([] {}));
  }
  /// As Worker::handleRequests.
  void handleRequests(Home& here) {
    --under_way;
    Home* const home = requests.home();
    home == &here ? see(requests.take()) : sendTo(home);
  }
  void see(uint8_t bits) {
    for (size_t bit = 0; bit < written.size(); ++bit) {
      if ((bits & 1U << bit) != 0) require(written[bit].get() == 1, "what was written before is seen");
    }
    seen |= bits;
  }
  bool all() const { return seen == wanted; }

  /// A worker: opens messages until all has been seen.
  void serve(Home& here, const std::function<void(QueueNode*)>& arrive = nullptr) {
    Slot& slot = here.worker.slot();
    while (!all()) {
      NodeList mail = slot.mailbox.drain();
      while (QueueNode* const node = mail.pop()) node->kind == QueueNode::Kind::kMessage ? handleRequests(here) : arrive(node);
      if (all() || !slot.mailbox.trySleep()) continue;
      slot.poll([this] { return all(); });
      slot.mailbox.wakeUp();
    }
  }

  FiberRequests<Home, ModelMemory> requests;
  const uint8_t wanted;
  bool moves = false;
  uint8_t seen = 0;
  int under_way = 0;
  std::array<Var<int>, 2> written;
  std::deque<Task> messages;
};

// Two threads ask for different things, one of them again and again: both are seen, and no second message is sent for one.
void post() {
  Asked fiber(3);
  Home home(1);
  require(fiber.requests.moveIn(&home) == 0, "nothing was asked yet");
  addThread("home", [&] { fiber.serve(home); });
  addThread("permit", [&] { fiber.post(0); });
  addThread("cancel", [&] {
    fiber.post(1);
    if (fiber.requests.post(2)) fiber.sendTo(fiber.requests.home());
  });
  runThreads();
}

// The fiber moves meanwhile: it is seen by the old home before, by the new one on arrival, or by a message.
void postWhileItMoves() {
  Asked fiber(3);
  fiber.moves = true;
  Home from(1);
  Home to(2);
  Core core(from.worker.slot());
  require(fiber.requests.moveIn(&from) == 0, "nothing was asked yet");
  addThread("from", [&] {
    fiber.requests.moveOut();
    to.worker.slot().push(&core);
    fiber.serve(from);
  });
  addThread("to", [&] { fiber.serve(to, [&](QueueNode*) { fiber.see(fiber.requests.moveIn(&to)); }); });
  addThread("permit", [&] { fiber.post(0); });
  addThread("cancel", [&] { fiber.post(1); });
  runThreads();
}

// ---- The end. ----------------------------------------------------------------------------------------------------------------

/// A fiber that ends, with a result.
struct Ending {
  EndObservers<ModelMemory> ends;
  Var<int> result;

  void end() {
    ends.end(false, [this] { result.set(7); });
  }
};

/// As in Worker::awaitEnd.
struct Joiner : EndObserver {
  explicit Joiner(Ending& of) : joined(of), core(home.slot()) {
    claim = [](EndObserver* self) { return static_cast<Joiner*>(self)->waker.claim(WakeReason::kReady); };
    ended = [](EndObserver* self) {
      auto& joiner = *static_cast<Joiner*>(self);
      require(joiner.here.get() == 1, "who is told is still there");
      EndObserver again = *self;
      require(!joiner.joined.ends.add(again), "the joiner, which this wakes, may ask again at once");
      ModelWaker::deliver(*joiner.waker.core);
    };
  }

  /// `impatient`: its wait may end by something else.
  void join(bool impatient) {
    here.set(1);
    waker = {&core, core.wait.prepare()};
    bool told = true;
    if (!joined.ends.add(*this)) {
      require(core.wait.withdraw(waker.epoch), "nobody else has it");
    } else if (home.park(core, impatient) != WakeReason::kReady) {
      joined.ends.remove(*this);
      told = false;
    }
    here.set(0);
    if (!told) return;
    require(joined.result.get() == 7, "the result is there");
    require(!joined.ends.abandoned(), "it has ended");
  }

  Ending& joined;
  Worker home;
  Core core;
  ModelWaker waker;
  Var<int> here;
};

// Two join while it ends, one of them leaves: who waits is told, and nobody who has left.
void join() {
  Ending fiber;
  Joiner impatient(fiber);
  Joiner patient(fiber);
  addThread("impatient", [&] { impatient.join(true); });
  addThread("patient", [&] { patient.join(false); });
  addThread("fiber", [&] { fiber.end(); });
  runThreads();
  require(!impatient.core.linked.get() && !patient.core.linked.get(), "no delivery is left over");
}

// ---- A worker that is detached. ----------------------------------------------------------------------------------------------

struct Node : QueueNode {
  explicit Node(Kind what) : QueueNode(what) {}
  int runs = 0;
  int left = 0;
};

// A worker has pinned work in its queue when it goes into a fiber, which makes another one runnable. It comes back and runs
// both, or is detached, and the detacher has what is left: one of them, and not both at once.
void detach() {
  RunQueue<ModelMemory> queue;
  Node pinned(QueueNode::Kind::kFiber);
  Node woken(QueueNode::Kind::kCore);
  Node later(QueueNode::Kind::kFiber);
  bool came_back = false;
  bool detached = false;
  addThread("worker", [&] {
    queue.push(&pinned);
    queue.leaveLoop();
    queue.push(&woken);
    came_back = queue.comeBack();
    if (!came_back) return;  // it stands still
    queue.push(&later);
    std::vector<QueueNode*> order;
    while (QueueNode* const node = queue.pop()) order.push_back(node);
    require(order == std::vector<QueueNode*>{&pinned, &woken, &later}, "in the order in which they were made runnable");
    for (Node* const node : {&pinned, &woken, &later}) ++node->runs;
  });
  addThread("detacher", [&] {
    detached = queue.detach();
    if (!detached) return;
    NodeList unrun;
    sortLeft(
        queue.takeLeft(), [](QueueNode*) { require(false, "there is no message"); }, unrun);
    while (QueueNode* const node = unrun.pop()) ++static_cast<Node*>(node)->left;
  });
  runThreads();
  require(came_back != detached, "it comes back, or is detached");
  require(pinned.runs + pinned.left == 1, "pinned work runs or is left");
  require(woken.left == 0, "fibers are known otherwise");
}

// The same while it goes from one fiber to the next, twice: who detaches it has what the last one left in the queue.
void detachBetweenFibers() {
  RunQueue<ModelMemory> queue;
  Node first(QueueNode::Kind::kFiber);
  Node second(QueueNode::Kind::kFiber);
  bool in_time = true;
  bool detached = false;
  addThread("worker", [&] {
    queue.push(&first);
    queue.push(&second);
    for (Node* const node : {&first, &second}) {
      queue.leaveLoop();
      in_time = queue.comeBack();
      if (!in_time) return;
      require(queue.pop() == node, "it is still there");
      ++node->runs;
    }
  });
  addThread("detacher", [&] {
    detached = queue.detach();
    if (!detached) return;
    NodeList left = queue.takeLeft();
    while (QueueNode* const node = left.pop()) ++static_cast<Node*>(node)->left;
  });
  runThreads();
  require(in_time != detached, "it comes back each time, or is detached");
  for (const Node* const node : {&first, &second}) require(node->runs + node->left == 1, "each runs or is left");
}

// A message lies in its mailbox: it is opened, and with that is gone; what its memory says then means nothing.
void detachWithMail() {
  Worker worker;
  RunQueue<ModelMemory> queue;
  Node pinned(QueueNode::Kind::kFiber);
  alignas(Node) unsigned char memory[sizeof(Node)];
  auto* const message = ::new (memory) Node(QueueNode::Kind::kMessage);
  int opened = 0;
  NodeList unrun;
  queue.leaveLoop();
  addThread("asker", [&] { worker.slot().push(message); });
  addThread("placer", [&] { worker.slot().push(&pinned); });
  addThread("detacher", [&] {
    require(queue.detach(), "nobody else does");
    const auto open = [&](QueueNode* node) {
      require(node == message, "only a message is opened");
      ++opened;
      ::new (memory) Node(QueueNode::Kind::kFiber);  // as another object would
    };
    while (opened == 0 || unrun.empty()) {
      sortLeft(worker.slot().mailbox.drain(), open, unrun);
      if (opened == 0 || unrun.empty()) ModelMemory::yield();
    }
  });
  runThreads();
  require(opened == 1, "it is opened once");
  require(unrun.pop() == &pinned && unrun.empty(), "what is left is the pinned work, once");
}

/// Fibers that wait for one thing, which is handed to the first that can take it.
struct HandOver {
  /// As the end of a lock that has waiters.
  Core* handOver(std::initializer_list<ModelWaker> waiters) {
    for (const ModelWaker& waker : waiters) {
      if (waker.claim(WakeReason::kReady)) return waker.core;
    }
    return nullptr;
  }
};

// A fiber is parked on the worker that is detached: from then on what is handed over goes to the next waiter.
void handOver() {
  Worker stuck;
  Worker other;
  Core first(stuck.slot());
  Core second(other.slot());
  RunQueue<ModelMemory> queue;
  const ModelWaker left{&first, first.wait.prepare()};
  queue.leaveLoop();
  bool told = false;  // who joins the first is
  addThread("other fiber", [&] {
    const ModelWaker waker{&second, second.wait.prepare()};
    Core* const got = HandOver().handOver({left, waker});
    require(got != nullptr, "somebody gets it");
    require(!told || got == &second, "not a fiber that was abandoned");
  });
  addThread("detacher", [&] {
    require(queue.detach(), "nobody else does");
    closeWait(first);
    told = true;
  });
  runThreads();
  require(!first.wait.isOpen(), "its wait is decided");
}

// The fiber that has the thread opens a wait when the worker is detached already, or just then.
void parkOnADetachedWorker() {
  Worker stuck;
  Core core(stuck.slot());
  RunQueue<ModelMemory> queue;
  Atomic<uint64_t> handed;
  bool stands = false;
  bool came_back = false;
  addThread("worker", [&] {
    queue.leaveLoop();
    handed.exchange(core.wait.prepare(), std::memory_order_release);
    came_back = queue.comeBack();
    if (came_back) return;
    closeWait(core);
    stands = true;
  });
  addThread("detacher", [&] {
    if (queue.detach()) closeWait(core);
  });
  addThread("waker", [&] {
    await("an epoch", [&] { return handed.peek() != 0; });
    const ModelWaker waker{&core, handed.fetch_or(0, std::memory_order_acquire)};
    const bool too_late = stands;
    require(!waker.claim(WakeReason::kReady) || !too_late, "nobody wins the wait of a fiber that stands still");
  });
  runThreads();
  require(came_back || !core.wait.isOpen(), "its wait is decided");
}

}  // namespace

std::vector<Scenario> lifeScenarios() {
  return {
      {"life/post", post},
      {"life/post_while_it_moves", postWhileItMoves},
      {"life/join", join},
      {"life/detach", detach},
      {"life/detach_between_fibers", detachBetweenFibers},
      {"life/detach_with_mail", detachWithMail},
      {"life/hand_over", handOver},
      {"life/park_on_a_detached_worker", parkOnADetachedWorker},
  };
}

}  // namespace sylar::model
