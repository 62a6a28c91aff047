// Those who wait in the scenarios of waiting primitives, fibers and threads, and the types of the library's templates of them, with
// the names of sync/wait_queue.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sylar/sync/sync_steps.h"
#include "tests/model/house.h"

namespace sylar::model {

inline constexpr Deadline kSoon = Deadline::at(1);  // may pass at any time
inline constexpr Deadline kNoDeadline = Deadline::never();

// ---- Those who wait. ---------------------------------------------------------------------------------------------------------

/// A fiber or a plain thread of a scenario.
class Party {
 public:
  virtual ~Party() = default;
  virtual Core* core() { return nullptr; }
  virtual WakeReason park(bool /*timer*/) { return WakeReason::kReady; }

  Atomic<uint32_t> word;    // on which a thread sleeps; used for all of its waits, as a place on its stack
  Atomic<uint64_t> bucket;  // of the parking lot, in which its wait stands
  bool cancelled = false;
  bool shielded = false;
  int withdrawals = 0;
  int held = 0;            // locks of primitives
  int delivers_under = 0;  // so many of them
};

class FiberParty final : public Party {
 public:
  Core* core() override { return &m_core; }
  WakeReason park(bool timer) override {
    endWaitIfCancelled();
    return m_home.park(m_core, timer);
  }
  /// From any thread.
  void cancel() { m_home.slot().push(&m_cancel); }
  bool isLinked() { return m_core.linked.get(); }

 private:
  void endWaitIfCancelled() {
    if (!cancelled || shielded) return;
    if (m_core.wait.claim(m_core.wait.epoch(), WakeReason::kCanceled)) m_home.makeRunnable(m_core);
  }

  Worker m_home;
  Core m_core{m_home.slot()};
  Task m_cancel{[this] {
    cancelled = true;
    if (m_core.parked) endWaitIfCancelled();
  }};
};

/// All parties of one run, and what of them is still there.
class Cast {
 public:
  Cast() { s_present = this; }
  ~Cast() { s_present = nullptr; }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;

  static Cast& present() { return *s_present; }
  static Party& here() { return *s_present->m_parties[self() - 1]; }

  FiberParty& fiber(const char* name, std::function<void()> body) {
    auto party = std::make_unique<FiberParty>();
    FiberParty& added = *party;
    m_fibers.push_back(party.get());
    add(std::move(party), name, std::move(body));
    return added;
  }
  void thread(const char* name, std::function<void()> body) { add(std::make_unique<Party>(), name, std::move(body)); }

  void run() {
    runThreads();
    for (FiberParty* const fiber : m_fibers) require(!fiber->isLinked(), "no delivery is left over");
    require(m_there.empty(), "no waiter is left over");
  }
  int withdrawals() const {
    int all = 0;
    for (const auto& party : m_parties) all += party->withdrawals;
    return all;
  }

  // Waits and waiters lie on the stacks of those who wait.
  void begins(const void* object) { m_there.push_back(object); }
  void ends(const void* object) { std::erase(m_there, object); }
  bool isThere(const void* object) const { return std::find(m_there.begin(), m_there.end(), object) != m_there.end(); }

 private:
  void add(std::unique_ptr<Party> party, const char* name, std::function<void()> body) {
    m_parties.push_back(std::move(party));
    addThread(name, std::move(body));
  }

  static inline Cast* s_present = nullptr;
  std::vector<std::unique_ptr<Party>> m_parties;
  std::vector<FiberParty*> m_fibers;
  std::vector<const void*> m_there;
};

/// The lock of a primitive.
class Lock {
 public:
  void lock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    m_mutex.lock();
    requireThere();
    count(1);
  }
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    count(-1);
    m_mutex.unlock();
    requireThere();
  }
  /// The primitive is destroyed.
  void goes() {
    requireThere();
    m_gone = true;
  }
  bool isGone() const { return m_gone; }

 private:
  void requireThere() const { require(!m_gone, "nobody touches a primitive that is gone"); }
  static void count(int more) {
    if (self() > 0) Cast::here().held += more;
  }
  Mutex m_mutex;
  bool m_gone = false;
};

/// A field that is not atomic: its accesses must be ordered, and what it points to must be there.
template <class T, bool kPointsToStack = false>
class Field {
 public:
  Field(T value = T{}) : m_value(value), m_shadow(value) {}
  Field& operator=(const Field& other) { return *this = static_cast<T>(other); }
  Field& operator=(T value) {
    m_value.set(value);
    m_shadow = value;
    return *this;
  }
  operator T() const {
    T value = m_value.get();
    if constexpr (kPointsToStack) require(value == nullptr || Cast::present().isThere(value), "nobody touches what is gone");
    return value;
  }
  T operator->() const { return *this; }
  /// For checks: no access.
  T peek() const { return m_shadow; }

 private:
  Var<T> m_value;
  T m_shadow;
};

// ---- The types of the library's templates: as those of sync/wait_queue.h. ------------------------------------------------------

struct ModelWait;
struct ModelOpenWait;
struct ModelWaiter;
struct ModelWakes;
struct ModelQueue;

struct ModelTypes {
  using Memory = ModelMemory;
  using Mutex = Lock;
  using Wait = ModelWait;
  using Waiter = ModelWaiter;
  using Wakes = ModelWakes;
  using Queue = ModelQueue;
  using Waker = ModelWaker;
  using OpenWait = ModelOpenWait;
};
using SyncSteps = detail::SyncSteps<ModelTypes>;

struct ModelWait {
  ModelWait() { Cast::present().begins(this); }
  ~ModelWait() { Cast::present().ends(this); }

  Field<Core*> m_core;
  Field<uint64_t> m_epoch;
  Atomic<uint32_t>& m_state = Cast::here().word;
};

struct ModelOpenWait : ModelWait {
  ModelOpenWait(detail::SyncKind /*kind*/, const void* /*object*/) {
    if (Core* const core = m_party.core()) {
      m_core = core;
      m_epoch = core->wait.prepare();
    } else {
      m_state.store(0, std::memory_order_relaxed);
    }
  }
  bool park(Deadline deadline) {
    if (m_party.core() != nullptr) return m_party.park(!deadline.isNever()) == WakeReason::kReady;
    return detail::ThreadWait<ModelMemory>(m_state).park(deadline);
  }
  bool withdraw() {
    ++m_party.withdrawals;
    Core* const core = m_party.core();
    if (core == nullptr) return detail::ThreadWait<ModelMemory>(m_state).withdraw();
    if (core->wait.withdraw(m_epoch)) return true;
    m_party.park(false);
    return false;
  }

  Party& m_party = Cast::here();
};

struct ModelWaiter {
  explicit ModelWaiter(void* its_data = nullptr) : data(its_data) { Cast::present().begins(this); }
  ~ModelWaiter() {
    m_wait = nullptr;
    m_next = nullptr;
    m_prev = nullptr;
    m_linked = false;
    m_taken = false;
    Cast::present().ends(this);
  }
  bool isTaken() const { return m_taken; }

  void* const data;
  Field<ModelWait*, true> m_wait;
  Field<ModelWaiter*, true> m_next;
  Field<ModelWaiter*, true> m_prev;
  Field<bool> m_linked;
  Field<bool> m_taken;
  Atomic<bool> m_settled;
  int number = 0;  // in the order of arrival
};

struct ModelWakes {
  ~ModelWakes() {
    require(m_first == nullptr || Cast::here().held == Cast::here().delivers_under, "fibers are delivered after the lock");
    SyncSteps::deliver(*this);
  }
  void add(ModelWaiter& waiter) { SyncSteps::add(*this, *waiter.m_wait); }
  void add(ModelWait& claimed) { SyncSteps::add(*this, claimed); }

  void* m_first = nullptr;
  void* m_last = nullptr;
};

struct ModelQueue {
  explicit ModelQueue(detail::SyncKind kind) : m_kind(kind) {}
  static void reserve(Deadline /*deadline*/) {}

  bool wait(Lock& lock, ModelWaiter& mine, Deadline deadline) {
    mine.number = ++arrived;
    return SyncSteps::wait(*this, lock, mine, deadline);
  }
  void enqueue(ModelWaiter& mine, ModelWait& wait) {
    mine.number = ++arrived;
    SyncSteps::enqueue(*this, mine, wait);
  }
  void dequeue(ModelWaiter& mine) { SyncSteps::dequeue(*this, mine); }
  bool hasOther(const ModelWait& mine) const { return SyncSteps::hasOther(*this, mine); }
  ModelWaiter* takeOldest() {
    ModelWaiter* const taken = SyncSteps::takeOldest(*this);
    if (taken != nullptr) serve(*taken);
    return taken;
  }
  ModelWaiter* oldest() const { return m_first; }
  bool take(ModelWaiter& waiter) {
    const bool taken = SyncSteps::take(*this, waiter);
    if (taken) serve(waiter);
    return taken;
  }
  void wakeAll(ModelWakes& wakes) { SyncSteps::wakeAll(*this, wakes); }
  bool empty() const { return m_first == nullptr; }
  void end(Lock& lock) {
    lock.lock();
    require(takeOldest() == nullptr, "nobody waits");
    require(self() > 0 || m_leaving == 0, "nobody is leaving after the end");
    while (m_leaving > 0) {
      lock.unlock();
      await("those who leave", [this] { return m_leaving.peek() == 0; });
      lock.lock();
    }
    lock.unlock();
  }
  /// The primitive is destroyed. All accesses must be ordered before.
  void goes() {
    m_leaving = 0;
    m_first = nullptr;
    m_last = nullptr;
  }
  void serve(const ModelWaiter& waiter) {
    require(waiter.number > std::exchange(served, waiter.number), "waiters are served in the order of arrival");
  }

  const detail::SyncKind m_kind;
  Field<uint32_t> m_leaving;
  Field<ModelWaiter*, true> m_first;
  Field<ModelWaiter*, true> m_last;
  int arrived = 0;
  int served = 0;
};

/// An object that checks in its destructor that nobody waits. After a failure somebody may, and it is not destroyed.
template <class T>
class Kept {
 public:
  template <class... Arguments>
  explicit Kept(Arguments&&... arguments) : m_object(new T(std::forward<Arguments>(arguments)...)) {}
  ~Kept() {
    if (std::uncaught_exceptions() == 0) delete m_object;
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  T* operator->() { return m_object; }
  T& operator*() { return *m_object; }

 private:
  T* const m_object;
};

}  // namespace sylar::model
