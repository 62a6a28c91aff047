// P6: the parking lot of the hooks. What it does with its queues is the library's. The objects, and how a call waits for them, are
// written again here, in short.
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sylar/hook/lock/lot_steps.h"
#include "tests/model/parties.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

using detail::SyncKind;

// ---- The types of the library's template. ------------------------------------------------------------------------------------

struct LotModelMemory : ModelMemory {
  /// An exchange of one word by both sides is what a fence on both sides is: the later one sees what the earlier one did before.
  static void fence(Where where = Where::current()) { s_fence->fetch_add(0, std::memory_order_acq_rel, where); }
  static inline Atomic<uint32_t>* s_fence = nullptr;
};

/// Of a bucket.
class BucketLock {
 public:
  void lock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    m_mutex.lock();
    holds(1);
  }
  bool tryLock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (!m_mutex.tryLock()) return false;
    holds(1);
    return true;
  }
  void unlock() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    holds(-1);
    m_mutex.unlock();
  }
  bool heldByThisThread() const { return m_holder == self(); }

 private:
  void holds(int more) {
    m_holder = more > 0 ? self() : 0;
    Cast::here().held += more;
  }
  Mutex m_mutex;
  uint32_t m_holder = 0;
};

struct ModelLotWait;

struct ModelBucket {
  Atomic<bool> m_may_wait;
  Atomic<bool> m_posted;
  BucketLock m_lock;
  Field<uint64_t> m_last_turn;
  Field<ModelLotWait*, true> m_first;
  Field<ModelLotWait*, true> m_last;
};

/// What a waiter wants to be done for it, as LotKind.
struct ModelLotKind {
  SyncKind what;
  int (*take)(void* object) = nullptr;
  void (*give_back)(void* object) = nullptr;
};

/// Something of libc that fibers wait for.
class Object {
 public:
  explicit Object(ModelBucket& its_bucket) : bucket(its_bucket) {}

  // Of a mutex the word is 1 while it is free, of a semaphore its count.
  int take() {
    requireThere();
    uint32_t there = 1;
    while (!word.compare_exchange_strong(there, there - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (there == 0) return EBUSY;
    }
    return 0;
  }
  void put() {
    requireThere();
    word.fetch_add(1, std::memory_order_release);
  }
  /// Its last user destroys it.
  void goes() {
    requireThere();
    m_gone = true;
  }

  Atomic<uint32_t> word;
  ModelBucket& bucket;

 private:
  void requireThere() const { require(!m_gone, "nobody touches an object that is gone"); }
  bool m_gone = false;
};

int takeFor(void* object) { return static_cast<Object*>(object)->take(); }
void giveBack(void* object) { static_cast<Object*>(object)->put(); }

const ModelLotKind kMutex{SyncKind::kPthreadMutex, takeFor, giveBack};
const ModelLotKind kSemaphore{SyncKind::kPosixSemaphore, takeFor, giveBack};
const ModelLotKind kFutex{SyncKind::kFutex};

struct LotTypes {
  using Memory = LotModelMemory;
  using Wait = ModelLotWait;
  using Bucket = ModelBucket;
  using Wakes = ModelWakes;
  using Waker = ModelWaker;
  static constexpr int kHandlerTries = 1;

  static ModelBucket& bucketOf(const void* object) { return static_cast<const Object*>(object)->bucket; }
  static void begin(ModelLotWait& wait);
};
using Steps = LotSteps<LotTypes>;

/// How a wait has ended: of the two that end it for the waiter, kGranted has taken the object for it.
enum class End : uint8_t { kGranted, kTold, kGaveUp };

/// Where a wait stands: a word of its party, since the wait lies on the stack.
struct BucketWord {
  ModelBucket* load(std::memory_order order) const { return reinterpret_cast<ModelBucket*>(word.load(order)); }
  void store(ModelBucket* bucket, std::memory_order order) { word.store(reinterpret_cast<uint64_t>(bucket), order); }
  Atomic<uint64_t>& word = Cast::here().bucket;
};

struct ModelLotWait : ModelWait {
  ModelLotWait(Object& object, const ModelLotKind& kind)
      : m_object(&object), m_kind(kind), m_as_fiber(m_party.core() != nullptr) {
    if (!m_as_fiber) m_state.store(0, std::memory_order_relaxed);
  }
  ModelLotWait(const ModelLotWait&) = delete;
  ~ModelLotWait() {
    m_next = nullptr;
    m_prev = nullptr;
    m_linked = false;
    m_granted = false;
  }

  bool claim() { return SyncSteps::claim(*this); }
  Core* core() const { return m_core; }
  uint64_t epoch() const { return m_epoch; }

  bool enterUnless(const std::function<bool()>& is_there, uint64_t& turn) {
    Steps::lockForEntry(*this);
    const bool there = is_there();
    Steps::enterAndUnlock(*this, !there, turn);
    return !there;
  }
  End park(Deadline deadline) {
    const bool woken = m_as_fiber ? m_party.park(!deadline.isNever()) == WakeReason::kReady
                                  : detail::ThreadWait<ModelMemory>(m_state).park(deadline);
    require(woken == m_told, "somebody has told it, or nobody");
    if (woken) return m_granted ? End::kGranted : End::kTold;
    Steps::leave(*this);
    return End::kGaveUp;
  }

  Party& m_party = Cast::here();
  Field<void*> m_object;
  const ModelLotKind& m_kind;
  const bool m_as_fiber;
  Field<bool> m_linked;
  Field<bool> m_told;
  Field<bool> m_granted;
  Field<uint32_t> m_bits{~0u};
  Field<uint64_t> m_turn;
  BucketWord m_bucket;
  Field<ModelLotWait*, true> m_next;
  Field<ModelLotWait*, true> m_prev;
};

void LotTypes::begin(ModelLotWait& wait) {
  wait.m_core = wait.m_party.core();
  wait.m_epoch = wait.m_party.core()->wait.prepare();
}

// ---- The calls of libc. ------------------------------------------------------------------------------------------------------

/// The queues of a scenario.
class Lot {
 public:
  Lot() { LotModelMemory::s_fence = &m_fence; }
  ~Lot() { LotModelMemory::s_fence = nullptr; }
  Lot(const Lot&) = delete;
  Lot& operator=(const Lot&) = delete;

  ModelBucket& bucket(size_t which) { return m_buckets[which]; }
  /// After the end.
  void check() const {
    for (const ModelBucket& bucket : m_buckets) {
      require(!bucket.m_may_wait.peek(), "nobody is announced who does not wait");
      require(bucket.m_first.peek() == nullptr && bucket.m_last.peek() == nullptr, "nobody is left in a queue");
      require(!bucket.m_posted.peek(), "nobody is asked to look once more");
    }
  }

 private:
  Atomic<uint32_t> m_fence;
  ModelBucket m_buckets[2];
};

bool mayWait(const Object& object) {
  LotModelMemory::fence();
  return object.bucket.m_may_wait.load(std::memory_order_relaxed);
}

/// As takeInLot(). Returns false if the deadline has passed or the fiber was cancelled.
bool takeOrWait(
    Object& object, const ModelLotKind& kind, Deadline deadline, const std::function<void()>& in_section = [] {}) {
  uint64_t turn = 0;
  for (;;) {
    ModelLotWait wait(object, kind);
    const auto take = [&] { return object.take() == 0; };
    const auto try_it = [&] {
      const bool taken = take();
      in_section();
      return taken;
    };
    if (!wait.enterUnless(try_it, turn)) return true;
    const End end = wait.park(deadline);
    if (end == End::kGranted) return true;
    if (end == End::kGaveUp) return take();
  }
}

void putBack(Object& object, const ModelLotKind& kind, bool in_handler = false) {
  object.put();
  if (mayWait(object)) Steps::release(&object, kind.what, LotRelease::kHandOver, in_handler);
}

/// How a mutex is unlocked: only plain ones can be passed on as they are.
enum class Kind : uint8_t { kPlain, kOther };

/// A mutex, and what it guards.
class Guarded {
 public:
  explicit Guarded(ModelBucket& bucket, bool held = false, Kind kind = Kind::kPlain) : mutex(bucket), m_kind(kind) {
    if (!held) mutex.word.store(1, std::memory_order_relaxed);
  }
  /// As pthread_mutex_lock(3), which no cancel ends.
  void lock() {
    Cast::here().shielded = true;
    require(lockUntil(kNoDeadline), "it waits for ever");
    Cast::here().shielded = false;
  }
  bool lockUntil(Deadline deadline) { return mutex.take() == 0 || takeOrWait(mutex, kMutex, deadline); }
  /// As pthread_mutex_unlock(3).
  void unlock() {
    if (m_kind == Kind::kPlain && mayWait(mutex) && Steps::passOn(&mutex, kMutex.what)) return;
    putBack(mutex, kMutex);
  }
  void use() {
    ++used;
    m_count.set(m_count.get() + 1);
  }
  void lockAndUse(Deadline deadline) {
    if (!lockUntil(deadline)) return;
    use();
    unlock();
  }
  /// After the end.
  void check(int least, int most) {
    require(mutex.word.peek() == 1, "the mutex is free in the end");
    require(m_count.get() == used && used >= least && used <= most, "each had it once, one after the other");
  }

  Object mutex;
  int used = 0;

 private:
  const Kind m_kind;
  Var<int> m_count;
};

// ---- Mutexes. ----------------------------------------------------------------------------------------------------------------

// P6: the mutex goes from a plain thread to the fibers that wait, one of which gives up.
template <Kind kKind>
void mutexAgainstATimeout() {
  Cast cast;
  Lot lot;
  Guarded guarded(lot.bucket(0), true, kKind);
  cast.thread("holder", [&] {
    guarded.use();
    guarded.unlock();
  });
  cast.fiber("impatient", [&] { guarded.lockAndUse(kSoon); });
  cast.fiber("patient", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.run();
  guarded.check(2, 3);
  lot.check();
}

// P6: the cancel comes while the mutex is handed over. It goes to the cancelled fiber, or to the one behind it.
template <Kind kKind>
void mutexAgainstACancel() {
  Cast cast;
  Lot lot;
  Guarded guarded(lot.bucket(0), true, kKind);
  FiberParty* waiter = nullptr;
  cast.thread("holder", [&] {
    guarded.use();
    guarded.unlock();
  });
  waiter = &cast.fiber("cancelled", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.fiber("next", [&] { guarded.lockAndUse(kNoDeadline); });
  cast.thread("canceller", [&] { waiter->cancel(); });
  cast.run();
  guarded.check(2, 3);
  lot.check();
}

// P6: two mutexes in one queue: a release serves those who wait for its own.
template <Kind kKind>
void mutexesInOneBucket() {
  Cast cast;
  Lot lot;
  Guarded one(lot.bucket(0), true, kKind), other(lot.bucket(0), true, kKind);
  cast.thread("holder", [&] {
    other.use();
    other.unlock();
    one.use();
    one.unlock();
  });
  cast.fiber("of one", [&] { one.lockAndUse(kNoDeadline); });
  cast.fiber("of the other", [&] { other.lockAndUse(kNoDeadline); });
  cast.run();
  one.check(2, 2);
  other.check(2, 2);
  lot.check();
}

// P6: its last user destroys the mutex, while whoever has handed it over may still be in the call.
template <Kind kKind>
void mutexGoesWithItsUser() {
  Cast cast;
  Lot lot;
  Guarded guarded(lot.bucket(0), true, kKind);
  cast.thread("holder", [&] {
    guarded.use();
    guarded.unlock();
  });
  cast.fiber("last", [&] {
    guarded.lock();
    guarded.use();
    guarded.mutex.put();
    guarded.mutex.goes();
  });
  cast.run();
  require(guarded.used == 2, "each had it once");
  lot.check();
}

// ---- Mutexes that are passed on. ---------------------------------------------------------------------------------------------

/// A plain mutex, held in the beginning, whose users look whether passOn() keeps what it promises.
class Passed : public Guarded {
 public:
  explicit Passed(ModelBucket& bucket) : Guarded(bucket, true) {}

  void lock() {
    Cast::here().shielded = true;
    require(lockUntil(kNoDeadline), "it waits for ever");
    Cast::here().shielded = false;
  }
  bool tryLock() {
    if (mutex.take() != 0) return false;
    require(std::exchange(m_is_free, false), "it is not free while it is passed on");
    return true;
  }
  bool lockUntil(Deadline deadline) {
    if (tryLock()) return true;
    const bool is_patient = Cast::here().shielded && deadline.isNever();
    int number = 0;
    const auto take = [&] {
      if (tryLock()) return true;
      number = ++arrived;
      m_patient += is_patient;
      return false;
    };
    ModelLotWait wait(mutex, kMutex);
    uint64_t turn = 0;
    if (!wait.enterUnless(take, turn)) return true;
    const End end = wait.park(deadline);
    require(end != End::kTold, "who is woken has the mutex");
    if (end == End::kGaveUp) return tryLock();
    m_is_free = false;
    require(number > std::exchange(served, number), "the oldest has it first");
    m_patient -= is_patient;
    return true;
  }
  void unlock() {
    const bool somebody = m_patient > 0;
    if (mayWait(mutex) && Steps::passOn(&mutex, kMutex.what)) return;
    require(!somebody, "it is passed on if somebody waits");
    m_is_free = true;
    putBack(mutex, kMutex);
  }
  void lockAndUse() {
    lock();
    use();
    unlock();
  }
  void lockAndUseUntil(Deadline deadline) {
    if (!lockUntil(deadline)) return;
    use();
    unlock();
  }

  int arrived = 0;  // those who had to wait, the oldest first
  int served = 0;   // who of them

 private:
  int m_patient = 0;       // those of them whose waits nothing ends
  bool m_is_free = false;  // or was, and is taken for one of them
};

// P6: of those in a chain one has a deadline and the middle one is cancelled. The mutex gets to the patient one behind them.
void passedOnAlongAChain() {
  Cast cast;
  Lot lot;
  Passed passed(lot.bucket(0));
  FiberParty* waiter = nullptr;
  cast.thread("first and last", [&] {
    await("both", [&] { return passed.arrived == 2; });
    waiter->cancel();
    passed.use();
    passed.unlock();
    passed.lockAndUse();
  });
  cast.thread("impatient", [&] { passed.lockAndUseUntil(kSoon); });
  waiter = &cast.fiber("cancelled", [&] {
    await("the impatient one", [&] { return passed.arrived == 1; });
    passed.lockAndUseUntil(kNoDeadline);
  });
  cast.run();
  passed.check(2, 4);
  lot.check();
}

// P6: nobody gets in between, neither the one who has passed it on nor one who comes; whoever had it may want it again at once.
void passedOnAndLockedAgain() {
  Cast cast;
  Lot lot;
  Passed passed(lot.bucket(0));
  cast.thread("holder", [&] {
    await("somebody", [&] { return passed.arrived > 0; });
    passed.use();
    passed.unlock();
    if (!passed.tryLock()) return;
    passed.use();
    passed.unlock();
  });
  cast.fiber("twice", [&] {
    passed.lockAndUse();
    passed.lockAndUse();
  });
  cast.thread("once", [&] { passed.lockAndUse(); });
  cast.run();
  passed.check(4, 5);
  lot.check();
}

// P6: two pass on their mutexes of one bucket at once, to a fiber or to each other.
void passedOnByTwo() {
  Cast cast;
  Lot lot;
  Passed one(lot.bucket(0)), other(lot.bucket(0));
  const auto cross = [](Passed& mine, Passed& theirs) {
    mine.use();
    mine.unlock();
    theirs.lockAndUse();
  };
  cast.thread("of one", [&] { cross(one, other); });
  cast.fiber("of the other", [&] { cross(other, one); });
  cast.fiber("of both", [&] {
    one.lockAndUse();
    other.lockAndUse();
  });
  cast.run();
  one.check(3, 3);
  other.check(3, 3);
  lot.check();
}

// P6: who waits for a condition passes the mutex on; it is moved to the address of the mutex, which it does not wait for, and told.
void passedOnPastAMovedOne() {
  Cast cast;
  Lot lot;
  Passed passed(lot.bucket(0));
  Object condition(lot.bucket(0));
  Var<bool> flag;
  bool moved = false;
  cast.fiber("waiter", [&] {
    End end;
    {
      ModelLotWait wait(condition, kFutex);
      uint64_t turn = 0;
      (void)wait.enterUnless([] { return false; }, turn);
      passed.unlock();
      end = wait.park(kNoDeadline);
    }
    require(end == End::kTold, "it has not got the mutex");
    passed.lock();
    require(flag.get(), "it was woken afterwards");
    passed.use();
    passed.unlock();
  });
  cast.fiber("mover", [&] {
    passed.lock();
    flag.set(true);
    require(Steps::requeue(&condition, &passed.mutex, ~0u) == 1, "it is moved");
    moved = true;
    passed.use();
    passed.unlock();
    require(Steps::wake(&passed.mutex, 1, ~0u, false) == 1, "it is woken");
  });
  cast.thread("other", [&] {
    await("the moved one", [&] { return moved; });
    passed.lockAndUse();
  });
  cast.run();
  passed.check(3, 3);
  lot.check();
}

// P6: a mutex is passed on and back. The last of its users destroys it as soon as its own unlock has returned.
void passedOnToItsLastUser() {
  Cast cast;
  Lot lot;
  Passed passed(lot.bucket(0));
  const auto use = [&] {
    passed.use();
    const bool was_last = passed.used == 5;
    passed.unlock();
    if (was_last) passed.mutex.goes();
  };
  const auto lockAndUse = [&] {
    passed.lock();
    use();
  };
  cast.thread("holder", [&] {
    use();
    lockAndUse();
    lockAndUse();
  });
  cast.fiber("other", [&] {
    lockAndUse();
    lockAndUse();
  });
  cast.run();
  passed.check(5, 5);
  lot.check();
}

// P6: a handler interrupts the unlock and posts a semaphore of the same bucket. Whoever has the section looks after it.
void passedOnWhileAHandlerPosts() {
  Cast cast;
  Lot lot;
  Passed passed(lot.bucket(0));
  Object semaphore(lot.bucket(0));
  bool posts = true, waits = false;
  cast.thread("interrupted", [&] {
    await("both", [&] { return waits; });
    mayBeInterruptedBy([&] {
      if (std::exchange(posts, false)) putBack(semaphore, kSemaphore, true);
    });
    passed.unlock();
    mayBeInterruptedBy(nullptr);
    if (std::exchange(posts, false)) putBack(semaphore, kSemaphore);
  });
  cast.fiber("of the mutex", [&] { passed.lock(); });
  cast.fiber("of the semaphore", [&] {
    await("the other", [&] { return passed.arrived > 0; });
    require(takeOrWait(semaphore, kSemaphore, kNoDeadline, [&] { waits = true; }), "it waits for ever");
  });
  cast.run();
  require(semaphore.word.peek() == 0, "the unit was taken");
  require(passed.served == 1 && passed.mutex.word.peek() == 0, "the mutex went to its waiter");
  lot.check();
}

// ---- Conditions. -------------------------------------------------------------------------------------------------------------

/// As pthread_cond_t.
class Condition {
 public:
  explicit Condition(ModelBucket& bucket) : m_object(bucket) {}

  bool wait(Guarded& guarded, Deadline deadline) {
    uint64_t turn = 0;
    End end;
    {
      ModelLotWait wait(m_object, kFutex);
      (void)wait.enterUnless([] { return false; }, turn);
      guarded.unlock();
      end = wait.park(deadline);
    }
    guarded.lock();
    told += end == End::kTold;
    return end == End::kTold;
  }
  void wake(uint32_t most) {
    if (mayWait(m_object)) woken += Steps::wake(&m_object, most, ~0u, false);
  }

  uint32_t woken = 0;
  uint32_t told = 0;

 private:
  Object m_object;
};

void waitUntil(Var<bool>& flag, Guarded& guarded, Condition& condition, Deadline deadline) {
  guarded.lock();
  while (!flag.get() && condition.wait(guarded, deadline)) {
  }
  guarded.unlock();
}

/// Of fibers one gives up, as `give_up` says; the other one has to go on.
void condition(Deadline deadline, bool cancels, bool threads) {
  Cast cast;
  Lot lot;
  Guarded guarded(lot.bucket(0));
  Condition condition(lot.bucket(1));
  Var<bool> flag;
  FiberParty* impatient = nullptr;
  if (threads) {
    cast.thread("impatient", [&] { waitUntil(flag, guarded, condition, deadline); });
  } else {
    impatient = &cast.fiber("impatient", [&] { waitUntil(flag, guarded, condition, deadline); });
  }
  cast.fiber("patient", [&] { waitUntil(flag, guarded, condition, kNoDeadline); });
  cast.thread("waker", [&] {
    if (cancels) impatient->cancel();
    guarded.lock();
    flag.set(true);
    guarded.unlock();
    condition.wake(2);
  });
  cast.run();
  require(condition.woken == condition.told, "each wake-up is of one that waits");
  lot.check();
}
void conditionAgainstATimeout() { condition(kSoon, false, false); }
void conditionAgainstACancel() { condition(kNoDeadline, true, false); }
void conditionOfAThread() { condition(kSoon, false, true); }

// P6: a wake-up for one that meets a timeout goes to the one behind.
void wakeOfOneAgainstATimeout() {
  Cast cast;
  Lot lot;
  Object futex(lot.bucket(0));
  uint32_t told = 0, woken = 0;
  const auto wait = [&](Deadline deadline) {
    ModelLotWait mine(futex, kFutex);
    uint64_t turn = 0;
    if (!mine.enterUnless([&] { return futex.word.load(std::memory_order_acquire) != 0; }, turn)) return;
    told += mine.park(deadline) == End::kTold;
  };
  cast.fiber("impatient", [&] { wait(kSoon); });
  cast.fiber("patient", [&] { wait(kNoDeadline); });
  cast.thread("waker", [&] {
    futex.word.fetch_add(1, std::memory_order_release);
    for (int i = 0; i < 2; ++i) {
      if (mayWait(futex)) woken += Steps::wake(&futex, 1, ~0u, false);
    }
  });
  cast.run();
  require(told == woken, "each wake-up is of one that waits");
  lot.check();
}

// ---- Requeues. ---------------------------------------------------------------------------------------------------------------

/// Where those who wait are moved to.
enum class Target : uint8_t { kOtherBucket, kSameBucket, kSameObject };

/// Two wait at one futex and are moved while one of them gives up.
void requeue(bool cancels, Target target) {
  Cast cast;
  Lot lot;
  Object from(lot.bucket(0)), another(lot.bucket(target == Target::kOtherBucket ? 1 : 0));
  Object& to = target == Target::kSameObject ? from : another;
  uint32_t told = 0, woken = 0;
  FiberParty* leaver = nullptr;
  const auto wait = [&](Deadline deadline) {
    ModelLotWait mine(from, kFutex);
    uint64_t turn = 0;
    if (!mine.enterUnless([&] { return from.word.load(std::memory_order_acquire) != 0; }, turn)) return;
    told += mine.park(deadline) == End::kTold;
  };
  leaver = &cast.fiber("leaver", [&] { wait(cancels ? kNoDeadline : kSoon); });
  cast.fiber("patient", [&] { wait(kNoDeadline); });
  cast.thread("mover", [&] {
    if (cancels) leaver->cancel();
    from.word.fetch_add(1, std::memory_order_release);
    if (mayWait(from)) Steps::requeue(&from, &to, ~0u);
    for (Object* const object : {&from, &to}) {  // those who came in between see the word
      if (mayWait(*object)) woken += Steps::wake(object, 2, ~0u, false);
    }
  });
  cast.run();
  require(told == woken, "each wake-up is of one that waits");
  lot.check();
}
void requeueAgainstATimeout() { requeue(false, Target::kOtherBucket); }
void requeueAgainstACancel() { requeue(true, Target::kOtherBucket); }
void requeueInOneBucket() { requeue(false, Target::kSameBucket); }
void requeueToItself() { requeue(false, Target::kSameObject); }

// ---- Signal handlers. --------------------------------------------------------------------------------------------------------

// P6: a handler posts a semaphore while somebody is in the section of its bucket, and may not wait for it.
void postInAHandler() {
  Cast cast;
  Lot lot;
  Object semaphore(lot.bucket(0));
  cast.thread("handler", [&] { putBack(semaphore, kSemaphore, true); });
  cast.fiber("waiter", [&] { require(takeOrWait(semaphore, kSemaphore, kNoDeadline), "it waits for ever"); });
  cast.thread("other", [&] { (void)Steps::wake(&semaphore, 0, ~0u, false); });
  cast.run();
  require(semaphore.word.peek() == 0, "the unit was taken");
  lot.check();
}

// P6: the handler has interrupted the very section in which its own thread enters the queue.
void postInAHandlerOfTheSection() {
  Cast cast;
  Lot lot;
  Object semaphore(lot.bucket(0));
  bool posts = true;
  cast.fiber("interrupted", [&] {
    const auto handler = [&] {
      if (std::exchange(posts, false)) putBack(semaphore, kSemaphore, true);
    };
    require(takeOrWait(semaphore, kSemaphore, kNoDeadline, handler), "it waits for ever");
  });
  cast.thread("other", [&] { (void)Steps::wake(&semaphore, 0, ~0u, false); });
  cast.run();
  require(semaphore.word.peek() == 0, "the unit was taken");
  lot.check();
}

}  // namespace

std::vector<Scenario> lotScenarios() {
  return {
      {"lot/mutex_against_a_timeout", mutexAgainstATimeout<Kind::kOther>},
      {"lot/mutex_against_a_cancel", mutexAgainstACancel<Kind::kOther>},
      {"lot/mutexes_in_one_bucket", mutexesInOneBucket<Kind::kOther>},
      {"lot/mutex_goes_with_its_user", mutexGoesWithItsUser<Kind::kOther>},
      {"lot/plain_mutex_against_a_timeout", mutexAgainstATimeout<Kind::kPlain>},
      {"lot/plain_mutex_against_a_cancel", mutexAgainstACancel<Kind::kPlain>},
      {"lot/plain_mutexes_in_one_bucket", mutexesInOneBucket<Kind::kPlain>},
      {"lot/plain_mutex_goes_with_its_user", mutexGoesWithItsUser<Kind::kPlain>},
      {"lot/passed_on_along_a_chain", passedOnAlongAChain},
      {"lot/passed_on_and_locked_again", passedOnAndLockedAgain},
      {"lot/passed_on_by_two", passedOnByTwo},
      {"lot/passed_on_past_a_moved_one", passedOnPastAMovedOne},
      {"lot/passed_on_to_its_last_user", passedOnToItsLastUser},
      {"lot/passed_on_while_a_handler_posts", passedOnWhileAHandlerPosts},
      {"lot/condition_against_a_timeout", conditionAgainstATimeout},
      {"lot/condition_against_a_cancel", conditionAgainstACancel},
      {"lot/condition_of_a_thread", conditionOfAThread},
      {"lot/wake_of_one_against_a_timeout", wakeOfOneAgainstATimeout},
      {"lot/requeue_against_a_timeout", requeueAgainstATimeout},
      {"lot/requeue_against_a_cancel", requeueAgainstACancel},
      {"lot/requeue_in_one_bucket", requeueInOneBucket},
      {"lot/requeue_to_itself", requeueToItself},
      {"lot/post_in_a_handler", postInAHandler},
      {"lot/post_in_a_handler_of_the_section", postInAHandlerOfTheSection},
  };
}

}  // namespace sylar::model
