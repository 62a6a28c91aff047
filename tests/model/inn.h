// Schedulers that lend threads, and the maker of those, for the scenarios of borrowed threads. What is not in the protocol headers,
// such as how a worker comes to unstarted work, is written again here, in short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sylar/fiber/thread_lending.h"
#include "sylar/hook/thread/maker_calls.h"
#include "tests/model/house.h"

namespace sylar::model {

inline constexpr size_t kRoom = kMinStackSize;
inline constexpr size_t kOddRoom = 2 * kRoom;

struct Lent;

/// A pointer that only one thread at a time may use.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link& other) { return *this = static_cast<Lent*>(other); }
  Link& operator=(Lent* lent) {
    m_lent.set(lent);
    return *this;
  }
  operator Lent*() const { return m_lent.get(); }

 private:
  Var<Lent*> m_lent;
};

/// A thread of libc's.
struct Lent {
  explicit Lent(size_t its_room) : room(its_room) {}

  Link next;
  const size_t room;
  Var<int> used;  ///< what its fibers did with it
  bool borrowed = false;
};

struct Guest;
class Inn;

struct LendingTypes {
  using Memory = ModelMemory;
  using Thread = Lent;
  using Scheduler = Inn;
  static size_t roomOf(QueueNode* node);
  static void refuse(QueueNode* node);
  static bool inForkedChild() { return s_child == self(); }

  static inline uint32_t s_child = ~0U;
  static inline std::function<void()> s_at_lock;
};

/// The process's threads, and who makes them.
struct Threads {
  Threads() {
    LendingTypes::s_child = ~0U;
    LendingTypes::s_at_lock = nullptr;
  }

  Lent* made(size_t room) { return (all.push_back(std::make_unique<Lent>(room)), all.back().get()); }
  void runMaker() {
    calls.run([this] { return lending.serve(kRoom, spare, make); }, Deadline::never);
  }
  void startMaker() {
    addThread("maker", [this] { runMaker(); });
  }
  /// As those that lend none any more. The last ends the maker.
  void leave() {
    if (--users == 0) calls.end();
  }
  /// As a fiber that has borrowed one.
  void use(Lent& lent) {
    require(!std::exchange(lent.borrowed, true), "a thread has one borrower");
    lent.used.set(lent.used.get() + 1);
    computed.fetch_add(1, std::memory_order_relaxed);
    lent.borrowed = false;
  }
  void requireAll() {
    size_t found = 0;
    for (const size_t room : {kRoom, kOddRoom}) {
      for (; const Lent* lent = lending.take(room); ++found) require(!lent->borrowed, "a thread that is free is not borrowed");
    }
    require(found == all.size(), "no thread is lost or doubled");
  }

  ThreadLending<LendingTypes> lending;
  MakerCalls<ModelMemory> calls;
  Atomic<int> computed;
  std::function<Lent*(size_t)> make = [this](size_t room) { return made(room); };
  size_t spare = 0;
  int users = 1;
  std::vector<std::unique_ptr<Lent>> all;
};

/// A scheduler that lends threads. As SchedulerCore, in short.
class Inn : public AwaitedThreads<Inn, ModelMemory> {
 public:
  Inn(Threads& threads, size_t workers) : m_threads(threads), m_house(workers) {
    m_house.expects = [this] { return waitForThreads() > 0; };
  }

  House& house() { return m_house; }
  Threads& threads() { return m_threads; }

  /// Adds a fiber that is queued, or waits for a thread already, pinned if a worker is named.
  Guest& offer(size_t room = kRoom);
  Guest& await(size_t room = kRoom, const Worker* pinned_to = nullptr);

  bool allOver() const;
  /// As each worker's loop. The last one that has nothing left ends the maker.
  void startWorkers() {
    for (size_t i = 0; i < m_house.workers().size(); ++i) {
      addThread("worker " + std::to_string(i), [this, i] {
        m_house.worker(i).runUntil([this] { return allOver(); });
        m_threads.leave();
      });
    }
  }
  void startWorkersUntilTheEnd() {
    addThread("worker", [this] {
      m_house.worker(0).runUntil([] { return false; });
      m_joined = true;
    });
  }

  void stop(bool cancel_all) {
    m_house.idle().beginStop(cancel_all);
    m_house.idle().wakeAll();
  }
  /// Leaves the only worker out, which never runs.
  void stopWithoutWorkers();
  /// From the end on until the object is destroyed.
  void windUp() {
    model::await("the end", [this] { return m_house.ends == 1 && m_joined; });
    while (waitForThreads() > 0) ModelMemory::relax();
    m_house.idle().awaitPendingEnded();
    require(m_inside == 0, "the maker does not use what is destroyed");
    m_there = false;
  }
  void requireOver() const;

  // For ThreadLending.
  void goOn(SpawnNode& node, const void* pinned_to);
  void ended(const std::function<void()>& end) {
    require(m_there, "it is there");
    ++m_inside;
    m_house.idle().pendingEnded(end);
    --m_inside;
  }

 private:
  Guest& add(size_t room, const Worker* pinned_to);

  Threads& m_threads;
  House m_house;
  std::deque<Guest> m_guests;
  bool m_joined = false;
  bool m_there = true;
  int m_inside = 0;
};

/// A fiber that begins as a thread.
struct Guest : Task {
  Guest(Inn& its_inn, size_t its_room, const Worker* its_worker)
      : Task([this] { begin(); }), inn(its_inn), room(its_room), pinned_to(its_worker) {
    payload.set(1);
  }
  bool isOver() const { return begun + failed + left > 0; }

  /// As a worker that comes to it.
  void begin() {
    Threads& threads = inn.threads();
    if (refused.get()) return (void)++failed;
    if (cancelled) return (void)++left;
    Lent* const lent = threads.lending.take(room);
    if (lent == nullptr) {
      runs = 0;
      return threads.lending.await(inn, *this, pinned_to) ? threads.calls.call() : void();
    }
    require(lent->room == room, "it is as large as it must be");
    threads.use(*lent);
    ++begun;
    threads.lending.put(*lent);
  }

  Inn& inn;
  const size_t room;
  const Worker* const pinned_to;
  Var<bool> refused;
  bool cancelled = false;
  int begun = 0;
  int failed = 0;
  int left = 0;
};

inline size_t LendingTypes::roomOf(QueueNode* node) {
  require(node != nullptr, "who is listed waits");
  if (s_at_lock) s_at_lock();
  return static_cast<Guest*>(node)->room;
}

inline void LendingTypes::refuse(QueueNode* node) { static_cast<Guest*>(node)->refused.set(true); }

inline Guest& Inn::add(size_t room, const Worker* pinned_to) { return m_guests.emplace_back(*this, room, pinned_to); }

inline Guest& Inn::offer(size_t room) {
  Guest& guest = add(room, nullptr);
  require(m_house.idle().injector().push(&guest) != Pushed::kRejected, "before the start");
  return guest;
}

inline Guest& Inn::await(size_t room, const Worker* pinned_to) {
  Guest& guest = add(room, pinned_to);
  if (m_threads.lending.await(*this, guest, pinned_to)) m_threads.calls.call();
  return guest;
}

inline bool Inn::allOver() const {
  return std::all_of(m_guests.begin(), m_guests.end(), [](const Guest& guest) { return guest.isOver(); });
}

inline void Inn::stopWithoutWorkers() {
  stop(true);
  NodeList unrun;
  const auto detach = [this] {
    m_house.worker(0).detach();
    return 1;
  };
  m_house.idle().exclude(detach, [&] {
    unrun = m_house.idle().injector().close();
    NodeList waiting = m_threads.lending.takeAll(*this);
    unrun.append(waiting);
  });
  while (QueueNode* const node = unrun.pop()) ++static_cast<Guest*>(node)->left;
  m_joined = true;
}

inline void Inn::goOn(SpawnNode& node, const void* pinned_to) {
  require(m_there, "it is there");
  auto& guest = static_cast<Guest&>(node);
  require(pinned_to == guest.pinned_to, "it stays pinned");
  if (pinned_to != nullptr) {
    Slot& slot = const_cast<Worker*>(guest.pinned_to)->slot();
    bool notify = false;
    if (!m_house.idle().injector().admit([&] { notify = slot.mailbox.push(&node); })) ++guest.left;
    if (notify) slot.notify();
    return;
  }
  const Pushed pushed = m_house.idle().injector().push(&node);
  if (pushed == Pushed::kFirst) m_house.idle().wakeOne();
  if (pushed == Pushed::kRejected) ++guest.left;
}

inline void Inn::requireOver() const {
  for (const Guest& guest : m_guests) require(guest.begun + guest.failed + guest.left == 1, "it begins, fails or is left, once");
  require(waitForThreads() == 0, "nobody waits");
}

}  // namespace sylar::model
