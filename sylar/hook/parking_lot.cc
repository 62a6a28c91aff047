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

struct CancellableMemory : StdMemory {
  [[nodiscard]] static bool futexWaitUntil(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
    return sleepCancellably(word, expected, deadline) != -ETIMEDOUT;
  }
};

}  // namespace

constinit LotBucket ParkingLot::s_buckets[1 << kBucketBits];

// ---- LotBucket. --------------------------------------------------------------------------------------------------------------

class SYLAR_SCOPED_CAPABILITY LotBucket::Hold {
 public:
  explicit Hold(LotBucket& bucket) SYLAR_ACQUIRE(bucket.m_lock) : m_bucket(bucket) { m_bucket.m_lock.lock(); }
  ~Hold() SYLAR_RELEASE() { m_bucket.unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  LotBucket& m_bucket;
};

void LotBucket::link(LotWait& one, bool first) {
  one.m_linked = true;
  one.m_bucket.store(this, std::memory_order_relaxed);
  one.m_prev = first ? nullptr : m_last;
  one.m_next = first ? m_first : nullptr;
  (one.m_prev != nullptr ? one.m_prev->m_next : m_first) = &one;
  (one.m_next != nullptr ? one.m_next->m_prev : m_last) = &one;
}

void LotBucket::unlink(LotWait& one) {
  one.m_linked = false;
  (one.m_prev != nullptr ? one.m_prev->m_next : m_first) = one.m_next;
  (one.m_next != nullptr ? one.m_next->m_prev : m_last) = one.m_prev;
  m_waiting.fetch_sub(1, std::memory_order_relaxed);
}

/// Takes out `one` and ends its wait, unless that is over. Returns true if it did. Without `wakes` the fiber gets it by mail.
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
  while (m_posted.load(std::memory_order_relaxed) && m_posted.exchange(false, std::memory_order_acq_rel)) {
    m_lock.lock();
    for (LotWait* one = m_first; one != nullptr;) {
      LotWait* const next = one->m_next;
      if (one->m_kind.what == detail::SyncKind::kPosixSemaphore) take(*one, nullptr);
      one = next;
    }
    m_lock.unlock();
  }
}

// ---- LotWait. ----------------------------------------------------------------------------------------------------------------

void LotWait::lockForEntry() {
  LotBucket& bucket = ParkingLot::bucketOf(m_object);
  bucket.m_waiting.fetch_add(1, std::memory_order_seq_cst);
  bucket.m_lock.lock();
}

void LotWait::enterAndUnlock(bool enters, bool first) {
  LotBucket& bucket = ParkingLot::bucketOf(m_object);
  if (enters) {
    if (m_as_fiber) {
      m_wait.emplace(m_kind.what, m_object);
      m_core = m_wait->waker().core;
      m_epoch = m_wait->waker().epoch;
    }
    bucket.link(*this, first);
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

void ParkingLot::serve(LotBucket& bucket, void* object, Release how, bool by_mail) {
  detail::SyncWakes wakes;
  const LotBucket::Hold hold(bucket);
  for (LotWait* one = bucket.m_first; one != nullptr;) {
    LotWait* const next = one->m_next;
    if (one->m_object == object && one->m_kind.take != nullptr) {
      const int error = how == Release::kHandOver ? one->m_kind.take(object) : EAGAIN;
      if (error == EBUSY) return;  // whoever has it will come here
      const auto give_back = one->m_kind.give_back;
      one->m_granted = error == 0;
      if (bucket.take(*one, by_mail ? nullptr : &wakes)) {
        if (how == Release::kWakeOne) return;
      } else if (error == 0) {
        give_back(object);
      }
    }
    one = next;
  }
}

void ParkingLot::release(void* object, Release how) { serve(bucketOf(object), object, how, false); }

void ParkingLot::releaseFromAnywhere(void* object, Release how) {
  LotBucket& bucket = bucketOf(object);
  if (bucket.m_lock.heldByThisThread()) {  // by what the handler has interrupted, which looks when it unlocks
    bucket.m_posted.store(true, std::memory_order_relaxed);
  } else {
    serve(bucket, object, how, true);
  }
}

uint32_t ParkingLot::wake(const void* object, uint32_t most, uint32_t bits) {
  if (!mayWait(object)) return 0;
  uint32_t woken = 0;
  detail::SyncWakes wakes;
  LotBucket& bucket = bucketOf(object);
  const LotBucket::Hold hold(bucket);
  for (LotWait* one = bucket.m_first; one != nullptr && woken < most;) {
    LotWait* const next = one->m_next;
    if (one->m_object == object && (one->m_bits & bits) != 0 && bucket.take(*one, &wakes)) ++woken;
    one = next;
  }
  return woken;
}

uint32_t ParkingLot::requeue(const void* from, void* to, uint32_t most) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  if (!mayWait(from)) return 0;
  LotBucket& source = bucketOf(from);
  LotBucket& target = bucketOf(to);
  if (&target < &source) target.m_lock.lock();
  source.m_lock.lock();
  if (&target > &source) target.m_lock.lock();
  uint32_t moved = 0;
  LotWait* const last = source.m_last;
  for (LotWait* one = source.m_first; one != nullptr && moved < most;) {
    LotWait* const next = one == last ? nullptr : one->m_next;
    if (one->m_object == from) {
      target.m_waiting.fetch_add(1, std::memory_order_seq_cst);
      source.unlink(*one);
      one->m_object = to;
      target.link(*one, false);
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
}

}  // namespace sylar
