#include "sylar/hook/parking_lot.h"

#include <linux/futex.h>

#include <new>

#include "sylar/base/memory.h"
#include "sylar/base/tsan.h"
#include "sylar/hook/real.h"
#include "sylar/sched/waker.h"
#include "sylar/sync/thread_wait.h"

namespace sylar {
namespace {

/// Sleeps like a cancellation point. It needs nothing to be cleaned up, because a cancel may unwind it from any of its instructions.
[[gnu::noinline]] long sleepCancellably(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
  const timespec until{deadline.ns() / 1'000'000'000, deadline.ns() % 1'000'000'000};
  int before;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  const long result = sys::call(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                                deadline.isNever() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  ::pthread_setcanceltype(before, nullptr);
  return result;
}

/// Orders an atomic read-modify-write before a load, as it already is on x86-64.
void fenceOfBuckets() {
#ifdef __x86_64__
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

struct CancellableMemory : StdMemory {
  [[nodiscard]] static bool futexWaitUntil(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
    return sleepCancellably(word, expected, deadline) != -ETIMEDOUT;
  }
};

}  // namespace

constinit LotBucket ParkingLot::s_buckets[1 << kBucketBits];
constinit int ParkingLot::s_forks = 0;

// ---- LotBucket. --------------------------------------------------------------------------------------------------------------

/// Holds a bucket, unless the thread may be in a signal handler, and cannot have it: then whoever has it looks for the waiters.
class SYLAR_SCOPED_CAPABILITY LotBucket::Hold {
 public:
  explicit Hold(LotBucket& bucket, bool in_handler = false) SYLAR_ACQUIRE(bucket.m_lock)
      : m_bucket(bucket), m_has_it(!in_handler || takes(bucket)) {
    if (!in_handler) bucket.m_lock.lock();
  }
  ~Hold() SYLAR_RELEASE() {
    if (m_has_it) m_bucket.unlock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  bool hasIt() const { return m_has_it; }

 private:
  /// A handler may have interrupted the section of its own thread, or that of another thread in whose handler somebody waits for a
  /// section that this one has interrupted.
  static bool takes(LotBucket& bucket) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries && !bucket.m_lock.heldByThisThread(); ++i) {
      if (bucket.m_lock.tryLock()) return true;
      StdMemory::relax();
    }
    bucket.m_posted.exchange(true, std::memory_order_seq_cst);
    return bucket.m_lock.tryLock();  // else whoever has it sees the word
  }

  LotBucket& m_bucket;
  const bool m_has_it;
};

void LotBucket::link(LotWait& one) {
  one.m_linked = true;
  one.m_bucket.store(this, std::memory_order_relaxed);
  LotWait* before = m_last;
  while (before != nullptr && before->m_turn > one.m_turn) before = before->m_prev;
  one.m_prev = before;
  one.m_next = before != nullptr ? before->m_next : m_first;
  (one.m_prev != nullptr ? one.m_prev->m_next : m_first) = &one;
  (one.m_next != nullptr ? one.m_next->m_prev : m_last) = &one;
}

void LotBucket::unlink(LotWait& one) {
  one.m_linked = false;
  (one.m_prev != nullptr ? one.m_prev->m_next : m_first) = one.m_next;
  (one.m_next != nullptr ? one.m_next->m_prev : m_last) = one.m_prev;
  m_waiting.fetch_sub(1, std::memory_order_relaxed);
}

/// Takes out `one` and ends its wait, unless that is over. Returns true if it did. Without `wakes` a fiber is told by mail.
bool LotBucket::take(LotWait& one, detail::SyncWakes* wakes) {
  unlink(one);
  if (!one.claim()) return false;
  one.m_told = true;
  if (wakes != nullptr || one.core() == nullptr) {
    detail::SyncWakes thread;
    (wakes != nullptr ? *wakes : thread).add(one);
  } else {
    FiberCore& core = *one.core();
    tsan::release(&core.wait);  // park() acquires it
    Waker::deliverByMail(core);
  }
  return true;
}

void LotBucket::unlock() {
  m_lock.unlock();
  fenceOfBuckets();
  while (m_posted.load(std::memory_order_relaxed) && m_posted.exchange(false, std::memory_order_acq_rel)) {
    m_lock.lock();
    for (LotWait* one = m_first; one != nullptr;) {
      LotWait* const next = one->m_next;
      const auto what = one->m_kind.what;  // each of them tries again
      if (what == detail::SyncKind::kPosixSemaphore || what == detail::SyncKind::kFutex) take(*one, nullptr);
      one = next;
    }
    m_lock.unlock();
    fenceOfBuckets();
  }
}

// ---- LotWait. ----------------------------------------------------------------------------------------------------------------

void LotWait::lockForEntry() {
  LotBucket& bucket = ParkingLot::bucketOf(m_object);
  bucket.m_waiting.fetch_add(1, std::memory_order_seq_cst);
  bucket.m_lock.lock();
  fenceOfBuckets();
}

bool LotWait::othersWait() const {
  for (const LotWait* one = ParkingLot::bucketOf(m_object).m_first; one != nullptr; one = one->m_next) {
    if (one->m_object == m_object && one->isOpen()) return true;
  }
  return false;
}

/// Returns false if the wait is over. Then its owner leaves the queue by itself, or never, and the object may be gone.
bool LotWait::isOpen() const {
  if (m_core == nullptr) return m_state.load(std::memory_order_relaxed) == 0;
  return m_core->wait.epoch() == m_epoch && m_core->wait.isOpen();
}

void LotWait::enterAndUnlock(bool enters, uint64_t& turn) {
  LotBucket& bucket = ParkingLot::bucketOf(m_object);
  if (enters) {
    if (turn == 0) turn = ++bucket.m_last_turn;
    m_turn = turn;
    if (m_as_fiber) {
      m_wait.emplace(m_kind.what, m_object);
      m_core = m_wait->waker().core;
      m_epoch = m_wait->waker().epoch;
    }
    bucket.link(*this);
  } else {
    bucket.m_waiting.fetch_sub(1, std::memory_order_relaxed);
  }
  bucket.unlock();
}

void LotWait::leave() {
  for (;;) {
    LotBucket& bucket = *m_bucket.load(std::memory_order_relaxed);
    bucket.m_lock.lock();
    const bool here = m_bucket.load(std::memory_order_relaxed) == &bucket;
    if (here && m_linked) bucket.unlink(*this);
    bucket.unlock();
    if (here) return;
  }
}

LotEnd LotWait::park(Deadline deadline, Interruptible& call) {
  if (!m_wait) return parkThread<StdMemory>(deadline);
  const Deadline until = withinScope(deadline);
  const WakeReason reason = call.park(*m_wait, until);
  if (m_told) return told();
  leave();
  if (reason == WakeReason::kReady) return LotEnd::kInterrupted;
  return reason == WakeReason::kTimeout && until == deadline ? LotEnd::kTimeout : LotEnd::kCancelled;
}

LotEnd LotWait::parkCancellably(Deadline deadline) { return parkThread<CancellableMemory>(deadline); }

template <class Memory>
LotEnd LotWait::parkThread(Deadline deadline) {
  if (detail::ThreadWait<Memory>(m_state).park(deadline)) return told();
  leave();
  return LotEnd::kTimeout;
}

bool LotWait::withdraw() {
  const bool told = m_wait ? !m_wait->withdraw() : !detail::ThreadWait(m_state).withdraw();
  if (!told) leave();
  return told;
}

// ---- ParkingLot. -------------------------------------------------------------------------------------------------------------

void ParkingLot::release(void* object, detail::SyncKind what, Release how, bool in_handler) {
  if (sys::inForkedChild()) return;
  LotBucket& bucket = bucketOf(object);
  detail::SyncWakes wakes;
  const LotBucket::Hold hold(bucket, in_handler);
  if (!hold.hasIt()) return;
  for (LotWait* one = bucket.m_first; one != nullptr;) {
    LotWait* const next = one->m_next;
    if (one->m_object == object && one->m_kind.what == what) {
      const auto& kind = one->m_kind;
      const int error = how != Release::kHandOver || !one->isOpen() ? EAGAIN : kind.take(object);
      if (error == EBUSY) return;  // whoever has it will come here
      const auto give_back = kind.give_back;
      one->m_granted = error == 0;
      const bool told = bucket.take(*one, in_handler ? nullptr : &wakes);
      if (!told && error == 0) give_back(object);  // its wait has ended just now, so it is still there
      if (told && how == Release::kWakeOne) return;
    }
    one = next;
  }
}

uint32_t ParkingLot::wake(const void* object, uint32_t most, uint32_t bits, bool in_handler) {
  if (!mayWait(object) || sys::inForkedChild()) return 0;
  uint32_t woken = 0;
  LotBucket& bucket = bucketOf(object);
  detail::SyncWakes wakes;
  const LotBucket::Hold hold(bucket, in_handler);
  if (!hold.hasIt()) return 0;
  for (LotWait* one = bucket.m_first; one != nullptr && woken < most;) {
    LotWait* const next = one->m_next;
    const bool wanted = one->m_object == object && (one->m_bits & bits) != 0;
    if (wanted && bucket.take(*one, in_handler ? nullptr : &wakes)) ++woken;
    one = next;
  }
  return woken;
}

uint32_t ParkingLot::requeue(const void* from, void* to, uint32_t most) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  if (!mayWait(from) || sys::inForkedChild()) return 0;
  LotBucket& source = bucketOf(from);
  LotBucket& target = bucketOf(to);
  if (&target < &source) target.m_lock.lock();
  source.m_lock.lock();
  if (&target > &source) target.m_lock.lock();
  uint32_t moved = 0;
  LotWait* const last = source.m_last;  // of one bucket those that were moved come behind it
  for (LotWait* one = source.m_first; one != nullptr && moved < most;) {
    LotWait* const next = one == last ? nullptr : one->m_next;
    if (one->m_object == from) {
      target.m_waiting.fetch_add(1, std::memory_order_seq_cst);
      source.unlink(*one);
      one->m_object = to;
      one->m_turn = ++target.m_last_turn;
      target.link(*one);
      ++moved;
    }
    one = next;
  }
  source.unlock();
  if (&target != &source) target.unlock();
  return moved;
}

// The child's one thread waits nowhere, and the locks may be those of others.
[[gnu::constructor]] static void followForks() {
  pthread_atfork(nullptr, nullptr, [] { ParkingLot::forgetAll(); });
}

void ParkingLot::forgetAll() {
  for (LotBucket& bucket : s_buckets) new (&bucket) LotBucket();
  ++s_forks;
}

}  // namespace sylar
