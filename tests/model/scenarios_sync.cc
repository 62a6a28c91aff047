// P5: the waiting primitives of sync. The steps of their queues, of a mutex, of a channel and of select() are the library's. The
// rest is written again here, in short: the other primitives, the cases of select(), and how a fiber parks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sylar/sync/exchange.h"
#include "sylar/sync/mutex_word.h"
#include "sylar/sync/select_steps.h"
#include "tests/model/parties.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

// ---- Mutex. ------------------------------------------------------------------------------------------------------------------

/// As sylar::Mutex.
class ModelMutex {
 public:
  bool lock(Deadline deadline) {
    if (word().tryLock(me())) {
      require(m_waiters.m_first.peek() == nullptr, "a newcomer finds nothing while somebody waits");
      return true;
    }
    return word().lock(me(), deadline, [] { require(false, "nobody locks what it holds"); });
  }
  void unlock() {
    word().unlock(me(), [](uintptr_t) { require(false, "the mutex belongs to its holder"); });
  }
  bool isFree() const { return m_word.peek() == 0; }
  /// By the party that is added next, before it runs.
  void lockForFirst() { require(word().tryLock(2), "it is free"); }

 private:
  detail::MutexWord<ModelTypes> word() { return {m_word, m_lock, m_waiters}; }
  static uintptr_t me() { return 2 * uintptr_t{self()}; }

  Atomic<uintptr_t> m_word;
  Lock m_lock;
  ModelQueue m_waiters{detail::SyncKind::kMutex};
};

/// What a mutex guards.
struct Guarded {
  void lockAndUse(Deadline deadline) {
    if (!mutex.lock(deadline)) return;
    use();
    mutex.unlock();
  }
  void use() {
    ++used;
    count.set(count.get() + 1);
  }
  /// After the end.
  void check(int least, int most) {
    require(mutex.isFree(), "the mutex is free in the end");
    require(count.get() == used && used >= least && used <= most, "each had it once, one after the other");
  }

  ModelMutex mutex;
  Var<int> count;
  int used = 0;
};

// RT-7.6: the mutex goes from its holder to those who wait, of whom one has a deadline, one is cancelled, and one is a thread.
void mutexHandedOver() {
  Cast cast;
  Guarded guarded;
  guarded.mutex.lockForFirst();
  FiberParty* patient = nullptr;
  cast.fiber("holder", [&] {
    guarded.use();
    guarded.mutex.unlock();
    patient->cancel();
  });
  cast.fiber("impatient", [&] { guarded.lockAndUse(kSoon); });
  patient = &cast.fiber("cancelled", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.thread("thread", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.run();
  guarded.check(2, 4);
}

// RT-7.6: the cancel comes while the mutex is handed over. It goes to the cancelled fiber, or to the one behind it.
void mutexAgainstCancel() {
  Cast cast;
  Guarded guarded;
  guarded.mutex.lockForFirst();
  FiberParty* waiter = nullptr;
  cast.thread("holder", [&] {
    guarded.use();
    guarded.mutex.unlock();
  });
  waiter = &cast.fiber("cancelled", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.fiber("next", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.thread("canceller", [&] { waiter->cancel(); });
  cast.run();
  guarded.check(2, 3);
}

// RT-7.6: a thread gives up while the mutex is handed over, and comes again.
void mutexAgainstATimeout() {
  Cast cast;
  Guarded guarded;
  guarded.mutex.lockForFirst();
  cast.thread("holder", [&] {
    guarded.use();
    guarded.mutex.unlock();
  });
  cast.thread("impatient", [&] {
    guarded.lockAndUse(kSoon);
    guarded.lockAndUse(kNoDeadline);
  });
  cast.fiber("fiber", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.run();
  guarded.check(3, 4);
}

// RT-7.6: two fibers and a thread lock and unlock, and nobody waits forever.
void mutexOfThree() {
  Cast cast;
  Guarded guarded;
  cast.fiber("first", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.fiber("second", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.thread("thread", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.run();
  guarded.check(3, 3);
}

// ---- RWMutex. ----------------------------------------------------------------------------------------------------------------

/// As sylar::RWMutex.
class ModelRWMutex {
 public:
  bool lock(bool writes, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Request request{writes, me()};
    m_lock.lock();
    require(m_writer != request.me, "nobody locks what it holds");
    ModelWaiter mine(&request);
    bool admitted = m_waiters.empty() && admit(request);
    require(!admitted || m_waiters.m_first.peek() == nullptr, "a newcomer finds nothing while somebody waits");
    admitted ? m_lock.unlock() : void(admitted = m_waiters.wait(m_lock, mine, deadline));
    if (admitted) return true;
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    admitWaiters(wakes);
    return false;
  }
  void unlock() {
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    if (m_readers > 0) {
      m_readers = m_readers - 1;
    } else {
      require(m_writer == me(), "the mutex belongs to its writer");
      m_writer = 0;
    }
    admitWaiters(wakes);
  }
  /// By the party that is added next, before it runs.
  void lockForFirst(bool writes) { require(admit({writes, 2}), "it is free"); }
  /// After the end.
  void end() {
    m_waiters.end(m_lock);
    require(m_writer == 0 && m_readers == 0, "the mutex is free in the end");
  }

 private:
  struct Request {
    bool writes;
    uintptr_t me;
  };

  static uintptr_t me() { return 2 * uintptr_t{self()}; }

  bool admit(const Request& request) {
    if (m_writer != 0 || (request.writes && m_readers > 0)) return false;
    request.writes ? void(m_writer = request.me) : void(m_readers = m_readers + 1);
    return true;
  }
  void admitWaiters(ModelWakes& wakes) {
    while (ModelWaiter* const oldest = m_waiters.oldest()) {
      const Request request = *static_cast<const Request*>(oldest->data);
      if (m_writer != 0 || (request.writes && m_readers > 0)) return;
      if (!m_waiters.take(*oldest)) continue;
      require(admit(request), "a waiter that is taken out is let in");
      wakes.add(*oldest);
    }
  }

  Lock m_lock;
  Field<uint32_t> m_readers;
  Field<uintptr_t> m_writer;
  ModelQueue m_waiters{detail::SyncKind::kRWMutex};
};

/// An RWMutex and its data. A read beside a write is a race.
struct Shared {
  bool read(Deadline deadline) {
    if (!mutex.lock(false, deadline)) return false;
    look();
    mutex.unlock();
    return true;
  }
  bool write(Deadline deadline) {
    if (!mutex.lock(true, deadline)) return false;
    change();
    mutex.unlock();
    return true;
  }
  void look() const { require(count.get() == written, "a reader sees all that was written"); }
  void change() {
    ++written;
    count.set(count.get() + 1);
  }
  /// After the end.
  void check(int least, int most) {
    mutex.end();
    require(count.get() == written && written >= least && written <= most, "each writer had it once, one after the other");
  }

  ModelRWMutex mutex;
  Var<int> count;
  int written = 0;
};

// RT-7.6: two readers and a writer, and nobody waits forever.
void rwMutexOfThree() {
  Cast cast;
  Shared shared;
  cast.fiber("reader", [&] { require(shared.read(kNoDeadline), "nobody cancels it"); });
  cast.thread("thread", [&] { require(shared.read(kNoDeadline), "it has no deadline"); });
  cast.fiber("writer", [&] { require(shared.write(kNoDeadline), "nobody cancels it"); });
  cast.run();
  shared.check(1, 1);
}

// RT-7.6: a writer unlocks. Of those who wait, a reader has a deadline, another writer is cancelled, and one more reader is let in.
void rwMutexHandedOver() {
  Cast cast;
  Shared shared;
  shared.mutex.lockForFirst(true);
  FiberParty* waiter = nullptr;
  cast.thread("holder", [&] {
    shared.change();
    shared.mutex.unlock();
    waiter->cancel();
  });
  cast.thread("impatient", [&] { shared.read(kSoon); });
  waiter = &cast.fiber("cancelled", [&] { shared.write(kNoDeadline); });
  cast.fiber("patient", [&] { require(shared.read(kNoDeadline), "nobody cancels it"); });
  cast.run();
  shared.check(1, 2);
}

// RT-7.6: two readers that waited for a writer are in together: each waits there for the other.
void rwMutexReadersTogether() {
  Cast cast;
  Shared shared;
  shared.mutex.lockForFirst(true);
  int readers = 0;
  const auto meet = [&] {
    require(shared.mutex.lock(false, kNoDeadline), "nobody cancels it");
    ++readers;
    shared.look();
    await("the other reader", [&] { return readers == 2; });
    shared.mutex.unlock();
  };
  cast.thread("holder", [&] {
    shared.change();
    shared.mutex.unlock();
  });
  cast.fiber("fiber", meet);
  cast.thread("thread", meet);
  cast.run();
  shared.check(1, 1);
}

// RT-7.6: a writer waits for a reader, and gives up. It lets the reader in that waited behind it, for which the first one waits.
void rwMutexWriterGivesUp() {
  Cast cast;
  Shared shared;
  shared.mutex.lockForFirst(false);
  bool both = false;
  cast.fiber("reader", [&] {
    shared.look();
    await("the other reader", [&] { return both; });
    shared.mutex.unlock();
  });
  cast.thread("impatient", [&] { shared.write(kSoon); });
  cast.fiber("behind", [&] {
    require(shared.mutex.lock(false, kNoDeadline), "nobody cancels it");
    both = true;
    shared.look();
    shared.mutex.unlock();
  });
  cast.run();
  shared.check(0, 1);
}

// RT-7.6: the same for a writer that is cancelled, and a thread behind it.
void rwMutexWriterCancelled() {
  Cast cast;
  Shared shared;
  shared.mutex.lockForFirst(false);
  bool both = false;
  FiberParty* writer = nullptr;
  cast.thread("reader", [&] {
    shared.look();
    writer->cancel();
    await("the other reader", [&] { return both; });
    shared.mutex.unlock();
  });
  writer = &cast.fiber("cancelled", [&] { shared.write(kNoDeadline); });
  cast.thread("behind", [&] {
    require(shared.mutex.lock(false, kNoDeadline), "it has no deadline");
    both = true;
    shared.look();
    shared.mutex.unlock();
  });
  cast.run();
  shared.check(0, 1);
}

// ---- Event. ------------------------------------------------------------------------------------------------------------------

/// As sylar::Event.
class ModelEvent {
 public:
  void set() {
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    m_set = true;
    m_waiters.wakeAll(wakes);
  }
  void reset() {
    const ScopedLockImpl<Lock> lock(m_lock);
    m_set = false;
  }
  bool isSet() {
    const ScopedLockImpl<Lock> lock(m_lock);
    return m_set;
  }
  bool wait(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (isSet()) return true;
    m_lock.lock();
    if (m_set) {
      m_lock.unlock();
      return true;
    }
    ModelWaiter mine;
    return m_waiters.wait(m_lock, mine, deadline);
  }
  /// After the end.
  void end() { m_waiters.end(m_lock); }

 private:
  Lock m_lock;
  Field<bool> m_set;
  ModelQueue m_waiters{detail::SyncKind::kEvent};
};

// RT-7.6: the event is set, reset and set again. Two wait for it, of whom one may give up. They see all that was written before.
void eventSetAndReset() {
  Cast cast;
  ModelEvent event;
  Var<int> written;
  cast.thread("setter", [&] {
    written.set(1);
    event.set();
    event.reset();
    event.set();
  });
  cast.thread("impatient", [&] { require(!event.wait(kSoon) || written.get() == 1, "it sees what was written"); });
  cast.fiber("patient", [&] { require(event.wait(kNoDeadline) && written.get() == 1, "it sees what was written"); });
  cast.run();
  require(event.isSet(), "it was set last");
  event.end();
}

// RT-7.6: nobody passes an event that was reset. Of two who wait for the next time, one is cancelled.
void eventAgainstCancel() {
  Cast cast;
  ModelEvent event;
  Var<int> written;
  event.set();
  event.reset();
  FiberParty& waiter = cast.fiber("cancelled", [&] { require(!event.wait(kNoDeadline) || written.get() == 1, "it was reset"); });
  cast.thread("thread", [&] { require(event.wait(kNoDeadline) && written.get() == 1, "it was reset"); });
  cast.fiber("setter", [&] {
    require(!event.wait(kSoon), "nobody else sets it");
    waiter.cancel();
    written.set(1);
    event.set();
  });
  cast.run();
  event.end();
}

// ---- WaitGroup and Latch. ------------------------------------------------------------------------------------------------------

/// As sylar::WaitGroup, over which sylar::Latch is made.
class ModelWaitGroup {
 public:
  explicit ModelWaitGroup(size_t count) : m_count(count) {}

  void add(size_t count) {
    const ScopedLockImpl<Lock> lock(m_lock);
    m_count = m_count + count;
  }
  void done(size_t count) {
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    end(count, wakes);
  }
  bool isDone() {
    const ScopedLockImpl<Lock> lock(m_lock);
    return m_count == 0;
  }
  bool wait(Deadline deadline) { return isDone() || doneAndWait(0, deadline); }
  bool doneAndWait(size_t count, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    ModelWakes wakes;
    m_lock.lock();
    end(count, wakes);
    if (m_count == 0) {
      m_lock.unlock();
      return true;
    }
    ModelWaiter mine;
    return m_waiters.wait(m_lock, mine, deadline);
  }
  /// As the destructor. The memory stays until the end of the run, so that late touches are noticed.
  void destroy() {
    m_waiters.end(m_lock);
    m_waiters.goes();
    m_count = 0;
    m_lock.goes();
  }
  bool isGone() const { return m_lock.isGone(); }
  /// Returns true if the calling party has counted down to 0. No access.
  bool isLast() const { return m_last == self(); }

 private:
  void end(size_t count, ModelWakes& wakes) {
    require(m_count >= count, "nobody counts below 0");
    m_count = m_count - count;
    if (m_count != 0) return;
    if (count > 0) m_last = self();
    m_waiters.wakeAll(wakes);
  }

  Lock m_lock;
  Field<size_t> m_count;
  ModelQueue m_waiters{detail::SyncKind::kWaitGroup};
  uint32_t m_last = 0;
};

/// Arrives at a latch, which goes with the last.
void arriveAtLatch(ModelWaitGroup& latch, Deadline deadline) {
  const bool all = latch.doneAndWait(1, deadline);
  if (!latch.isLast()) return;
  require(all, "the last does not wait");
  latch.destroy();
}

// RT-7.6: waits of a fiber and a thread at a latch time out while the last arrives, who destroys it. Nobody touches it afterwards.
void latchGoesWithTheLast() {
  Cast cast;
  ModelWaitGroup latch(3);
  cast.fiber("fiber", [&] { arriveAtLatch(latch, kSoon); });
  cast.thread("thread", [&] { arriveAtLatch(latch, kSoon); });
  cast.fiber("patient", [&] { arriveAtLatch(latch, kNoDeadline); });
  cast.run();
  require(latch.isGone(), "it went with the last");
}

// RT-7.6: the same for a fiber that is cancelled, and a thread.
void latchAgainstCancel() {
  Cast cast;
  ModelWaitGroup latch(2);
  FiberParty& waiter = cast.fiber("cancelled", [&] { arriveAtLatch(latch, kNoDeadline); });
  cast.thread("thread", [&] { arriveAtLatch(latch, kNoDeadline); });
  cast.thread("canceller", [&] { waiter.cancel(); });
  cast.run();
  require(latch.isGone(), "it went with the last");
}

// RT-7.6: the one who waits for a group destroys it, though the one who was done last may still hold its lock. It sees all that
// the others have written.
void waitGroupGoesWithItsWaiter() {
  Cast cast;
  ModelWaitGroup group(2);
  Var<int> written[2];
  cast.thread("waiter", [&] {
    if (!group.wait(kSoon)) require(group.wait(kNoDeadline), "it has no deadline");
    require(written[0].get() + written[1].get() == 2, "all are done");
    group.destroy();
  });
  cast.fiber("fiber", [&] {
    group.add(1);
    group.done(1);
    written[0].set(1);
    group.done(1);
  });
  cast.thread("thread", [&] {
    written[1].set(1);
    group.done(1);
  });
  cast.run();
  require(group.isGone(), "it went with its waiter");
}

// RT-7.6: a fiber that waits for a group is cancelled while the last is done. The other who waits destroys the group after both.
void waitGroupAgainstCancel() {
  Cast cast;
  ModelWaitGroup group(1);
  Var<int> written;
  bool left = false;
  FiberParty& waiter = cast.fiber("cancelled", [&] {
    require(!group.wait(kNoDeadline) || written.get() == 1, "all are done");
    left = true;
  });
  cast.thread("thread", [&] {
    require(group.wait(kNoDeadline) && written.get() == 1, "it has no deadline");
    await("the other who waits", [&] { return left; });
    group.destroy();
  });
  cast.fiber("last", [&] {
    waiter.cancel();
    written.set(1);
    group.done(1);
  });
  cast.run();
  require(group.isGone(), "it went with its waiter");
}

// ---- Once. -------------------------------------------------------------------------------------------------------------------

/// As sylar::Once.
class ModelOnce {
 public:
  /// Returns false if the wait was in vain, or `function` does, which stands for its exception.
  bool call(Deadline deadline, const std::function<bool()>& function) {
    if (m_done.load(std::memory_order_acquire)) return true;
    if (!m_mutex.lock(deadline)) return false;
    const bool done = callLocked(function);
    m_mutex.unlock();
    return done;
  }

 private:
  bool callLocked(const std::function<bool()>& function) {
    if (m_done.load(std::memory_order_relaxed)) return true;
    if (!function()) return false;
    m_done.store(true, std::memory_order_release);
    return true;
  }

  Atomic<bool> m_done;
  ModelMutex m_mutex;
};

// RT-7.6: the first call fails, and the next in line tries. Of those who wait one has a deadline and one is cancelled. Each who
// returns sees what the function has written.
void onceTriedAgain() {
  Cast cast;
  ModelOnce once;
  Var<int> written;
  int calls = 0;
  const auto call = [&](Deadline deadline) {
    const bool done = once.call(deadline, [&] {
      if (++calls == 1) return false;
      written.set(written.get() + 1);
      return true;
    });
    require(!done || written.get() == 1, "it was done once, and before");
  };
  cast.thread("impatient", [&] { call(kSoon); });
  FiberParty& waiter = cast.fiber("cancelled", [&] { call(kNoDeadline); });
  cast.fiber("patient", [&] {
    call(kNoDeadline);
    waiter.cancel();
    call(kNoDeadline);
  });
  cast.run();
  require(calls == 2 && written.get() == 1, "it fails once and succeeds once");
}

// ---- Future. -----------------------------------------------------------------------------------------------------------------

/// As detail::Outcome with its value.
class ModelOutcome {
 public:
  /// Returns false if it has ended before.
  bool bring(int value) {
    if (m_claimed.exchange(true, std::memory_order_relaxed)) return false;
    m_value.set(value);
    m_ended.set();
    return true;
  }
  bool wait(Deadline deadline) { return m_ended.wait(deadline); }
  int value() { return m_value.get(); }
  /// After the end.
  void end() { m_ended.end(); }

 private:
  Atomic<bool> m_claimed;
  Var<int> m_value;
  ModelEvent m_ended;
};

// RT-7.6: two bring a value, of whom one is refused. A wait with a deadline and one that is cancelled end in vain or with the
// value.
void futureBroughtOnce() {
  Cast cast;
  ModelOutcome outcome;
  int winner = 0;
  const auto bring = [&](int value) {
    if (outcome.bring(value)) winner += value;
  };
  int seen[2] = {};
  const auto wait = [&](Deadline deadline) { return outcome.wait(deadline) ? outcome.value() : 0; };
  cast.thread("impatient", [&] { seen[0] = wait(kSoon); });
  FiberParty& waiter = cast.fiber("cancelled", [&] { seen[1] = wait(kNoDeadline); });
  cast.thread("one", [&] { bring(1); });
  cast.fiber("other", [&] {
    bring(2);
    waiter.cancel();
    require(outcome.wait(kNoDeadline), "nobody cancels it");
  });
  cast.run();
  require(winner == 1 || winner == 2, "one of them brings the value");
  for (const int value : seen) require(value == 0 || value == winner, "nobody sees another value");
  outcome.end();
}

// ---- Condition variable and semaphore. -----------------------------------------------------------------------------------------

/// As sylar::ConditionVariable.
class ModelCondition {
 public:
  bool wait(ModelMutex& mutex, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    ModelWaiter mine;
    m_lock.lock();
    Cast::here().delivers_under = 1;
    mutex.unlock();
    Cast::here().delivers_under = 0;
    const bool notified = m_waiters.wait(m_lock, mine, deadline);
    Cast::here().shielded = true;
    require(mutex.lock(kNoDeadline), "the fiber is shielded");
    Cast::here().shielded = false;
    return notified;
  }
  void notifyOne() {
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    if (ModelWaiter* const waiter = m_waiters.takeOldest()) wakes.add(*waiter);
  }

 private:
  Lock m_lock;
  ModelQueue m_waiters{detail::SyncKind::kCondition};
};

/// Items that consumers wait for, and whoever has waited in vain leaves.
struct Items {
  void consume(Deadline deadline) {
    if (!mutex.lock(kNoDeadline)) return;
    bool in_time = true;
    while (in_time && count.get() == 0) in_time = changed.wait(mutex, deadline);
    if (count.get() > 0) {
      count.set(count.get() - 1);
      ++taken;
    }
    mutex.unlock();
  }
  void produce() {
    require(mutex.lock(kNoDeadline), "nobody cancels it");
    count.set(count.get() + 1);
    mutex.unlock();
    changed.notifyOne();
  }
  /// After the end.
  void check(int produced) {
    require(mutex.isFree(), "the mutex is free in the end");
    require(taken >= 1 && taken + count.get() == produced, "each item is taken once, or is left");
  }

  ModelMutex mutex;
  ModelCondition changed;
  Var<int> count;
  int taken = 0;
};

// RT-7.6: what is written under the mutex before a notification is seen. A notification goes to a waiter that still waits.
void condition() {
  Cast cast;
  Items items;
  cast.fiber("impatient", [&] { items.consume(kSoon); });
  cast.thread("thread", [&] { items.consume(kNoDeadline); });
  cast.fiber("producer", [&] {
    items.produce();
    items.produce();
  });
  cast.run();
  items.check(2);
}

// RT-7.6: the same for a fiber that is cancelled while it waits, or while it locks again. It holds the mutex when its wait ends.
void conditionAgainstCancel() {
  Cast cast;
  Items items;
  FiberParty& waiter = cast.fiber("cancelled", [&] { items.consume(kNoDeadline); });
  cast.thread("thread", [&] { items.consume(kNoDeadline); });
  cast.fiber("producer", [&] {
    items.produce();
    waiter.cancel();
    items.produce();
  });
  cast.run();
  items.check(2);
}

/// As sylar::Semaphore.
class ModelSemaphore {
 public:
  bool wait(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    m_lock.lock();
    if (m_count.get() > 0) {
      m_count.set(m_count.get() - 1);
      m_lock.unlock();
      return true;
    }
    ModelWaiter mine;
    return m_waiters.wait(m_lock, mine, deadline);
  }
  void notify() {
    ModelWakes wakes;
    const ScopedLockImpl<Lock> lock(m_lock);
    if (ModelWaiter* const waiter = m_waiters.takeOldest()) return wakes.add(*waiter);
    m_count.set(m_count.get() + 1);
  }
  int count() const { return m_count.get(); }

 private:
  Lock m_lock;
  Var<int> m_count;
  ModelQueue m_waiters{detail::SyncKind::kSemaphore};
};

// RT-7.6: a permit against a timeout and a cancel: a waiter has it, or it is left.
void semaphore() {
  Cast cast;
  ModelSemaphore permits;
  int passed = 0;
  const auto wait = [&](Deadline deadline) { passed += permits.wait(deadline); };
  cast.thread("impatient", [&] { wait(kSoon); });
  FiberParty& waiter = cast.fiber("cancelled", [&] { wait(kNoDeadline); });
  cast.fiber("notifier", [&] {
    permits.notify();
    permits.notify();
  });
  cast.thread("canceller", [&] { waiter.cancel(); });
  cast.run();
  require(passed + permits.count() == 2, "a permit is neither lost nor doubled");
}

// ---- Channel. ------------------------------------------------------------------------------------------------------------------

/// Is with one party at a time. 0 when it was moved from.
struct Value {
  explicit Value(int is) : number(is) {}
  Value(Value&& other) noexcept : number(other.number.get()) { other.number.set(0); }
  ~Value() { number.set(-1); }
  Var<int> number;
};

using Exchange = detail::Exchange<Value, ModelTypes>;

/// A channel, and where its values have gone.
struct Values {
  explicit Values(size_t capacity = 0) : channel(capacity) {}

  bool send(int number, Deadline deadline) {
    offered.push_back(number);
    Value value(number);
    const bool sent = channel->send(value, deadline);
    require(value.number.get() == (sent ? 0 : number), "the value is with its sender exactly if it was not sent");
    if (!sent) kept.push_back(number);
    return sent;
  }
  bool receive(Deadline deadline) {
    std::optional<Value> value = channel->receive(deadline);
    if (value) received.push_back(value->number.get());
    return value.has_value();
  }
  /// After the end.
  void check() {
    for (std::optional<Value> left; channel->tryReceive(left) && left; left.reset()) received.push_back(left->number.get());
    channel->close();  // looks at all waiters that are left
    std::vector<int> all(received);
    all.insert(all.end(), kept.begin(), kept.end());
    std::sort(all.begin(), all.end());
    std::sort(offered.begin(), offered.end());
    require(all == offered, "each value is with its sender or with one receiver");
  }

  Kept<Exchange> channel;
  std::vector<int> offered;
  std::vector<int> received;
  std::vector<int> kept;
};

// RT-7.6: the sender has a deadline and the receiver is cancelled, while the value is handed over.
void channelBothGiveUp() {
  Cast cast;
  Values values;
  cast.fiber("sender", [&] { values.send(1, kSoon); });
  FiberParty& receiver = cast.fiber("receiver", [&] { values.receive(kNoDeadline); });
  cast.thread("canceller", [&] { receiver.cancel(); });
  cast.run();
  values.check();
}

// RT-7.6: of two receivers one gives up. The other has the value that was sent.
void channelReceiverGivesUp() {
  Cast cast;
  Values values;
  cast.thread("impatient", [&] {
    if (values.receive(kSoon)) values.send(2, kNoDeadline);
  });
  cast.fiber("patient", [&] { require(values.receive(kNoDeadline), "it has what was sent"); });
  cast.fiber("sender", [&] { require(values.send(1, kNoDeadline), "somebody receives it"); });
  cast.run();
  require(values.kept.empty(), "nothing is left over");
  values.check();
}

// RT-7.6: a ring of one value. Values of a sender arrive in order, and a waiting sender is let in by the one who makes room.
void channelRing() {
  Cast cast;
  Values values(1);
  cast.thread("thread", [&] {
    values.send(1, kNoDeadline);
    values.send(2, kNoDeadline);
  });
  cast.fiber("impatient", [&] { values.send(3, kSoon); });
  cast.fiber("receiver", [&] {
    for (int i = 0; i < 2; ++i) require(values.receive(kNoDeadline), "there are two values at least");
  });
  cast.run();
  values.check();
  std::erase(values.received, 3);
  require(values.received == std::vector<int>{1, 2}, "values arrive in the order of their sends");
}

// RT-7.6: a close ends the waits of senders, or of receivers, once, and nobody waits afterwards.
void channelClosed() {
  Cast cast;
  Values values;
  cast.fiber("sender", [&] { values.send(1, kNoDeadline); });
  cast.fiber("impatient", [&] { values.send(2, kSoon); });
  cast.thread("receiver", [&] { values.receive(kNoDeadline); });
  cast.thread("closer", [&] { values.channel->close(); });
  cast.run();
  values.check();
}

// RT-7.6: the same for two receivers, and nothing is received any more.
void channelClosedForReceivers() {
  Cast cast;
  Values values;
  cast.thread("thread", [&] { require(!values.receive(kNoDeadline), "there is nothing"); });
  cast.fiber("fiber", [&] { require(!values.receive(kNoDeadline), "there is nothing"); });
  cast.thread("closer", [&] { values.channel->close(); });
  cast.run();
  values.check();
}

// ---- select(). -----------------------------------------------------------------------------------------------------------------

/// As detail::SelectCase, of a channel.
class Case {
 public:
  explicit Case(Values& values) : m_values(values) {}
  virtual ~Case() = default;

  const void* place() const { return &m_values; }
  Deadline deadline() const { return m_deadline; }
  void setDeadline(Deadline deadline) { m_deadline = deadline; }
  virtual bool tryNow() = 0;
  virtual bool enqueue(ModelWait& wait) = 0;
  virtual void dequeue() = 0;
  virtual bool isDone() const = 0;
  virtual void run() = 0;

 protected:
  Values& m_values;
  Deadline m_deadline = kNoDeadline;
};

class Receive final : public Case {
 public:
  using Case::Case;
  bool tryNow() override { return m_values.channel->tryReceive(m_value); }
  bool enqueue(ModelWait& wait) override { return m_values.channel->enqueueReceive(m_waiter, wait); }
  void dequeue() override { m_values.channel->dequeueReceive(m_waiter); }
  bool isDone() const override { return m_waiter.isTaken(); }
  void run() override { m_values.received.push_back(m_value->number.get()); }

  /// After select().
  bool has() const { return m_value.has_value(); }

 private:
  std::optional<Value> m_value;
  ModelWaiter m_waiter{&m_value};
};

class Send final : public Case {
 public:
  Send(Values& values, int number) : Case(values), m_number(number), m_value(number) { values.offered.push_back(number); }
  bool tryNow() override { return m_values.channel->trySend(m_sending); }
  bool enqueue(ModelWait& wait) override { return m_values.channel->enqueueSend(m_waiter, wait); }
  void dequeue() override { m_values.channel->dequeueSend(m_waiter); }
  bool isDone() const override { return m_waiter.isTaken(); }
  void run() override { require(m_sending.taken, "nobody closes the channel"); }

  /// After select().
  bool has() {
    require(m_sending.taken == (m_value.number.get() == 0), "the value is with its sender exactly if it was not sent");
    if (!m_sending.taken) m_values.kept.push_back(m_number);
    return m_sending.taken;
  }

 private:
  const int m_number;
  Value m_value;
  Exchange::Sending m_sending{&m_value};
  ModelWaiter m_waiter{&m_sending};
};

struct SelectTypes : ModelTypes {
  using Case = model::Case;
  static bool hasPassed(Deadline /*deadline*/) { return false; }  // only while it waits
  static bool isOwnTimeout(Deadline /*deadline*/) { return false; }
};

/// Returns true if a case was done.
bool select(std::initializer_list<Case*> cases) {
  const std::vector<Case*> all(cases);
  std::vector<Case*> ordered(all.size());
  return detail::SelectSteps<SelectTypes>::select(all, ordered);
}

/// Receives from the first that has a value, and returns true if it did.
bool receiveOne(Values& a, Values& b, Deadline deadline = kNoDeadline) {
  Receive from_a(a);
  Receive from_b(b);
  from_b.setDeadline(deadline);
  const bool any = select({&from_a, &from_b});
  require(from_a.has() + from_b.has() == any, "one case is done, and no other");
  return any;
}

// RT-7.6: two senders claim the one wait of a select in two queues. One wins, and the other goes on to wait.
void selectOfTwo() {
  Cast cast;
  Values a;
  Values b;
  cast.fiber("select", [&] {
    require(receiveOne(a, b), "nobody cancels it");
    require(receiveOne(a, b), "there are two values");
  });
  cast.fiber("fiber", [&] { require(a.send(1, kNoDeadline), "it is received"); });
  cast.thread("thread", [&] { require(b.send(2, kNoDeadline), "it is received"); });
  cast.run();
  a.check();
  b.check();
}

// RT-7.6: the same with a thread that selects, of which the deadline may pass, and a sender that is cancelled.
void selectGivesUp() {
  Cast cast;
  Values a;
  Values b;
  cast.thread("select", [&] { receiveOne(a, b, kSoon); });
  FiberParty& sender = cast.fiber("cancelled", [&] { a.send(1, kNoDeadline); });
  cast.fiber("impatient", [&] { b.send(2, kSoon); });
  cast.thread("canceller", [&] { sender.cancel(); });
  cast.run();
  a.check();
  b.check();
}

/// Sends on `to` or receives from `from`.
bool meet(Values& to, int number, Values& from, Deadline deadline = kNoDeadline) {
  Send send(to, number);
  Receive receive(from);
  send.setDeadline(deadline);
  const bool any = select({&send, &receive});
  const bool sent = send.has();
  require(sent + receive.has() == any, "one case is done, and no other");
  return any;
}

// RT-7.6: two selects face each other: what one sends the other receives, in both channels. They meet in one of these, and at most
// one of them withdraws for the other.
void selectsThatFace() {
  Cast cast;
  Values a;
  Values b;
  cast.fiber("fiber", [&] { require(meet(a, 1, b), "nobody cancels it"); });
  cast.thread("thread", [&] { require(meet(b, 2, a), "it has no deadline"); });
  cast.run();
  require(a.received.size() + b.received.size() == 1, "one value is passed");
  require(cast.withdrawals() <= 1, "they do not withdraw for each other");
  a.check();
  b.check();
}

// RT-7.6: the same when both may give up. They meet, or neither does anything.
void selectsThatFaceGiveUp() {
  Cast cast;
  Values a;
  Values b;
  bool met[2] = {};
  cast.fiber("impatient", [&] { met[0] = meet(a, 1, b, kSoon); });
  FiberParty& other = cast.fiber("cancelled", [&] { met[1] = meet(b, 2, a); });
  cast.thread("canceller", [&] { other.cancel(); });
  cast.run();
  require(met[0] == met[1], "both have met, or none");
  require(a.received.size() + b.received.size() == met[0], "one value is passed if they meet");
  a.check();
  b.check();
}

// RT-7.6: a select that offers both ends of one channel does not meet itself.
void selectOfBothEnds() {
  Cast cast;
  Values values;
  cast.fiber("select", [&] { require(meet(values, 1, values), "nobody cancels it"); });
  cast.thread("other", [&] {
    if (!values.receive(kSoon)) values.send(2, kNoDeadline);
  });
  cast.run();
  require(values.received.size() == 1, "one value is passed");
  values.check();
}

}  // namespace

std::vector<Scenario> syncScenarios() {
  return {
      {"sync/mutex_of_three", mutexOfThree},
      {"sync/mutex_handed_over", mutexHandedOver},
      {"sync/mutex_against_a_cancel", mutexAgainstCancel},
      {"sync/mutex_against_a_timeout", mutexAgainstATimeout},
      {"sync/rw_mutex_of_three", rwMutexOfThree},
      {"sync/rw_mutex_handed_over", rwMutexHandedOver},
      {"sync/rw_mutex_readers_together", rwMutexReadersTogether},
      {"sync/rw_mutex_writer_gives_up", rwMutexWriterGivesUp},
      {"sync/rw_mutex_writer_cancelled", rwMutexWriterCancelled},
      {"sync/event_set_and_reset", eventSetAndReset},
      {"sync/event_against_a_cancel", eventAgainstCancel},
      {"sync/latch_goes_with_the_last", latchGoesWithTheLast},
      {"sync/latch_against_a_cancel", latchAgainstCancel},
      {"sync/wait_group_goes_with_its_waiter", waitGroupGoesWithItsWaiter},
      {"sync/wait_group_against_a_cancel", waitGroupAgainstCancel},
      {"sync/once_tried_again", onceTriedAgain},
      {"sync/future_brought_once", futureBroughtOnce},
      {"sync/condition", condition},
      {"sync/condition_against_a_cancel", conditionAgainstCancel},
      {"sync/semaphore", semaphore},
      {"sync/channel_both_give_up", channelBothGiveUp},
      {"sync/channel_receiver_gives_up", channelReceiverGivesUp},
      {"sync/channel_ring", channelRing},
      {"sync/channel_closed", channelClosed},
      {"sync/channel_closed_for_receivers", channelClosedForReceivers},
      {"sync/select_of_two", selectOfTwo},
      {"sync/select_gives_up", selectGivesUp},
      {"sync/selects_that_face", selectsThatFace},
      {"sync/selects_that_face_give_up", selectsThatFaceGiveUp},
      {"sync/select_of_both_ends", selectOfBothEnds},
  };
}

}  // namespace sylar::model
