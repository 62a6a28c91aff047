// A worker's queue against who detaches the worker (run/), and unstarted work that is taken out of turn against all else that
// takes it (out/). Written from what the two queues promise, not from how they keep it.
#include <algorithm>
#include <array>
#include <vector>

#include "sylar/sched/run_queue.h"
#include "sylar/sched/spawn_queue.h"
#include "tests/model/checker.h"
#include "tests/model/house.h"
#include "tests/model/memory.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

/// Something runnable.
struct Item : QueueNode {
  Item() : QueueNode(Kind::kCore) {}
  Var<int> payload;  ///< written by whose the item is
};
using Items = std::vector<Item*>;

/// A worker as its queue sees it, and next to each call what must then be so.
class Runner {
 public:
  // ---- On the worker's thread.

  void push(Item& item) {
    item.payload.set(item.payload.get() + 1);
    m_queue.push(&item);
    m_standing.push_back(&item);
  }
  void pushFirst(Item& item) {
    item.payload.set(item.payload.get() + 1);
    m_queue.pushFirst(&item);
    m_standing.insert(m_standing.begin(), &item);
  }
  Item& pop() {
    require(!m_standing.empty() && m_queue.front() == m_standing.front(), "the oldest is in front");
    Item& item = *m_standing.front();
    require(m_queue.pop() == &item, "the oldest comes out");
    m_standing.erase(m_standing.begin());
    item.payload.set(item.payload.get() + 1);
    return item;
  }
  void leave() {
    require(m_queue.inLoop(), "it leaves the loop");
    m_left.set(m_left.get() + 1);
    m_queue.leaveLoop();
    require(!m_queue.inLoop(), "it is in a fiber");
  }
  /// In a fiber: for later.
  void pushInFiber(Item& item) {
    item.payload.set(item.payload.get() + 1);
    m_queue.push(&item);
    m_aside.push_back(&item);
  }
  bool comeBack() {
    const bool seen = m_queue.detached();
    if (!m_queue.comeBack()) {
      m_gone = true;
      require(m_queue.detached(), "it was detached");
      require(!m_queue.comeBack(), "it does not come back later either");
      return false;
    }
    require(!seen && !m_taken && !m_queue.detached(), "who is detached does not come back");
    require(m_queue.inLoop(), "it is in its loop");
    ++m_back;
    m_standing.insert(m_standing.end(), m_aside.begin(), m_aside.end());
    m_aside.clear();
    return true;
  }
  /// Tells a detacher how far it is, and waits for as many answers.
  void say() { m_said.fetch_add(1, std::memory_order_release); }
  void hear(int answers) { awaitIn(m_heard, answers); }

  // ---- On others.

  /// True: it is detached, and what stood in its queue is in `*left`, which its nodes' owner may write.
  bool tryDetach(Items* left) {
    if (!m_queue.detach()) return false;
    require(!m_taken, "it is detached once");
    m_taken = true;
    require(m_queue.detached(), "it is detached");
    require(m_left.get() == m_back + 1, "it was in a fiber");
    NodeList nodes = m_queue.takeLeft();
    for (Item* const item : m_standing) {
      require(nodes.front() == item, "all that stood there, in order");
      nodes.pop();
      item->payload.set(item->payload.get() + 1);
      left->push_back(item);
    }
    require(nodes.empty(), "and no more");
    m_standing.clear();
    require(!m_queue.detach(), "not twice");
    return true;
  }
  void awaitSaid(int times) { awaitIn(m_said, times); }
  bool seenDetached() const { return m_queue.detached(); }
  void answer() { m_heard.fetch_add(1, std::memory_order_release); }

  // ---- After the end.

  /// Returns how many items are here, and takes them.
  size_t finish() {
    require(m_gone == m_taken && m_queue.detached() == m_taken, "it does not come back, or it is not detached");
    require(m_left.get() == m_back + (m_gone ? 1 : 0), "one of the two, of each fiber");
    if (m_gone) return 0;
    require(!m_queue.detach(), "in its loop it is not detached");
    size_t count = 0;
    for (; !m_standing.empty(); ++count) pop();
    require(m_queue.front() == nullptr, "nothing is left");
    return count;
  }
  bool gone() const { return m_gone; }

 private:
  static void awaitIn(Atomic<int>& word, int value) {
    await("the other", [&] { return word.peek() >= value; });
    word.fetch_add(0, std::memory_order_acquire);
  }

  RunQueue<ModelMemory> m_queue;
  Var<int> m_left;  // the loop, in all; written there
  Atomic<int> m_said, m_heard;
  // What the scenario knows.
  Items m_standing, m_aside;
  int m_back = 0;
  bool m_gone = false, m_taken = false;
};

// One detacher tries twice while the worker goes through three fibers, in one of which it makes something runnable.
void threeFibers() {
  Runner worker;
  std::array<Item, 3> items;
  Items left;
  addThread("worker", [&] {
    worker.push(items[0]);
    worker.push(items[1]);
    worker.leave();
    worker.pushInFiber(items[2]);
    if (!worker.comeBack()) return;
    Item& first = worker.pop();
    worker.leave();
    if (!worker.comeBack()) return;
    worker.pop();
    worker.pushFirst(first);
    worker.leave();
    worker.comeBack();
  });
  addThread("detacher", [&] { static_cast<void>(worker.tryDetach(&left) || worker.tryDetach(&left)); });
  runThreads();
  const size_t count = worker.finish();
  require(worker.gone() ? count == 0 && left.size() == 2 : count == 2 && left.empty(), "nothing is lost or doubled");
}

// The detacher asks at any time; then twice while the worker is in its loop for certain, which must be refused. That does not
// count later: if nobody asks during the next fiber, the worker comes back. In the last one it stays, so that it must be
// detached. Somebody else looks on.
void askedAndRefused() {
  Runner worker;
  std::array<Item, 3> items;
  Items left;
  size_t in = 0;  // stand in the queue
  const bool quiet_fiber = choose(2) == 1;
  addThread("worker", [&] {
    worker.push(items[0]), in = 1;
    worker.leave();
    if (!worker.comeBack()) return;
    worker.push(items[1]), in = 2;
    worker.say();
    worker.hear(1);
    worker.leave();
    if (quiet_fiber) {
      worker.pushInFiber(items[2]);
      require(worker.comeBack(), "nobody has asked");
      worker.pop();
      worker.leave();
    }
    worker.say();
    worker.hear(2);
    require(!worker.comeBack(), "it was detached");
  });
  addThread("detacher", [&] {
    if (worker.tryDetach(&left)) return;
    worker.awaitSaid(1);
    require(!worker.tryDetach(&left), "it is in its loop");
    require(!worker.tryDetach(&left), "it still is");
    worker.answer();
    worker.awaitSaid(2);
    require(worker.tryDetach(&left), "it is in a fiber");
    worker.answer();
  });
  addThread("onlooker", [&] {
    const bool seen = worker.seenDetached();
    require(worker.seenDetached() || !seen, "that is for ever");
  });
  runThreads();
  worker.finish();
  require(worker.gone() && left.size() == in, "nothing is lost or doubled");
}

// A worker detaches another and takes over its items, at which a third thread aims too; then that one aims at the first.
void detacherIsDetached() {
  Runner worker, heir;
  Mutex turn;  // of the detachers
  std::array<Item, 3> items;
  Items left;
  addThread("worker", [&] {
    worker.push(items[0]);
    worker.push(items[1]);
    worker.leave();
    if (!worker.comeBack()) return;
    Item& first = worker.pop();
    worker.push(first);
    worker.leave();
    worker.comeBack();
  });
  addThread("heir", [&] {
    heir.push(items[2]);
    Items inherited;
    {
      Lock lock(turn);
      worker.tryDetach(&inherited);
    }
    for (Item* const item : inherited) heir.push(*item);
    heir.leave();
    if (!heir.comeBack()) return;
    heir.pushFirst(heir.pop());
  });
  addThread("detacher", [&] {
    for (Runner* const aim : {&worker, &heir}) {
      Lock lock(turn);
      aim->tryDetach(&left);
    }
  });
  runThreads();
  require(worker.finish() + heir.finish() + left.size() == items.size(), "nothing is lost or doubled");
}

// ---- Out of turn. --------------------------------------------------------------------------------------------------------------

using Spawned = SpawnQueue<ModelMemory>;

/// Unstarted work that does nothing.
struct Work : Task {
  Work() : Task([] {}) {}
};

/// Whoever gets `work` has it alone, with what was written before.
void touch(Task& work) {
  require(work.runs == 0, "it has not come out");
  work.payload.set(work.payload.get() + 1);
}
void use(QueueNode& node) {
  auto& work = static_cast<Task&>(node);
  touch(work);
  ++work.runs;
}

Pushed put(Spawned& queue, QueueNode& node) {
  auto& work = static_cast<Task&>(node);
  touch(work);
  return queue.push(&work);
}
void move(NodeList nodes, Spawned& to) {
  while (QueueNode* const node = nodes.pop()) require(put(to, *node) != Pushed::kRejected, "it is open");
}
bool takeOut(Spawned& queue, Task& work) {
  if (!queue.takeOut(work)) return false;
  use(work);
  return true;
}
bool takeNext(Spawned& queue) {
  QueueNode* const node = queue.take();
  if (node != nullptr) use(*node);
  return node != nullptr;
}

void drain(Spawned& queue) {
  for (size_t count = queue.count(); count > 0; --count) require(takeNext(queue), "as many as it says");
  require(queue.take() == nullptr && queue.count() == 0, "and no more");
}
template <size_t kCount>
void requireAllUsed(const std::array<Work, kCount>& works) {
  require(std::all_of(works.begin(), works.end(), [](const Work& work) { return work.runs == 1; }), "each came out once");
}

// A thief carries work off into its own queue, and the owner carries it back, while two look for it there and here.
void stolenAndBack() {
  Spawned own, thiefs;
  std::array<Work, 3> works;
  for (Work& work : works) require(put(own, work) == (&work == works.data() ? Pushed::kFirst : Pushed::kMore), "in turn");
  Work& wanted = works[1];
  addThread("thief", [&] {
    NodeList loot;
    if (own.steal(&loot) == 0) return;
    use(*loot.pop());
    move(loot, thiefs);
  });
  addThread("owner", [&] {
    if (takeOut(own, wanted)) return;
    NodeList back;
    thiefs.steal(&back);
    move(back, own);
  });
  addThread("joiner", [&] { static_cast<void>(takeOut(thiefs, wanted) || takeOut(own, wanted)); });
  runThreads();
  drain(own), drain(thiefs);
  requireAllUsed(works);
}

// A queue closes, and what was in goes elsewhere, while the first, the middle or the last is taken out here and there, while
// somebody pushes one more and takes it out again.
void againstClose() {
  Spawned closing, next;
  std::array<Work, 4> works;
  Work& last = works[3];
  for (Work& work : works) {
    if (&work != &last) static_cast<void>(put(closing, work));
  }
  Work& wanted = works[choose(3)];
  addThread("closer", [&] {
    NodeList all = closing.close();
    require(closing.count() == 0, "it is empty for ever");
    const Task* before = nullptr;
    while (QueueNode* const node = all.pop()) {
      auto& work = static_cast<Task&>(*node);
      require(before < &work, "in order");
      before = &work;
      static_cast<void>(put(next, work));
    }
  });
  addThread("joiner", [&] { static_cast<void>(takeOut(closing, wanted) || takeOut(next, wanted)); });
  addThread("pusher", [&] {
    if (put(closing, last) != Pushed::kRejected) {
      static_cast<void>(takeOut(closing, last) || takeOut(next, last));
      return;
    }
    require(!closing.takeOut(last), "it was rejected");
    require(put(next, last) != Pushed::kRejected, "it is open");
    require(!closing.takeOut(last), "it is elsewhere");
    require(takeOut(next, last), "there");
  });
  runThreads();
  require(!takeNext(closing) && closing.count() == 0, "nothing is left");
  drain(next);
  requireAllUsed(works);
  Work late;
  require(closing.push(&late) == Pushed::kRejected, "it stays closed");
}

// Three of four are taken out at once, each by its joiner, in all constellations of neighbours, and one is added and taken out
// at the end, and one more added. Each of them is there, so all must be found; who is left stands in order.
void neighbours() {
  Spawned queue;
  std::array<Work, 6> works;
  for (size_t i = 0; i < 4; ++i) static_cast<void>(put(queue, works[i]));
  const size_t spared = choose(4);
  for (size_t i = 0; i < 4; ++i) {
    if (i == spared) continue;
    addThread("joiner", [&, i] { require(takeOut(queue, works[i]), "it stands there"); });
  }
  addThread("pusher", [&] {
    require(put(queue, works[4]) == Pushed::kMore, "one is spared");
    require(takeOut(queue, works[4]), "it stands there");
    require(put(queue, works[5]) == Pushed::kMore, "one is spared");
  });
  runThreads();
  require(queue.count() == 2, "two are left");
  for (const size_t i : {spared, size_t{5}}) {
    require(queue.take() == &works[i], "in order");
    use(works[i]);
  }
  drain(queue);
  requireAllUsed(works);
}

}  // namespace

std::vector<Scenario> runQueueScenarios() {
  return {
      {"run/three_fibers", threeFibers},
      {"run/asked_and_refused", askedAndRefused},
      {"run/detacher_is_detached", detacherIsDetached},
      {"out/stolen_and_back", stolenAndBack},
      {"out/against_close", againstClose},
      {"out/neighbours", neighbours},
  };
}

}  // namespace sylar::model
