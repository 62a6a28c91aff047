#include "sylar/hook/lock/parking_lot.h"

#include <linux/futex.h>

#include <new>

#include "sylar/hook/core/real.h"
#include "sylar/sync/thread_wait.h"

namespace sylar::detail {
namespace {

/// Sleeps like a cancellation point. It needs nothing to be cleaned up, because a cancel may unwind it from any of its
/// instructions.
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

using Steps = LotSteps<LotTypes>;

}  // namespace

constinit LotBucket ParkingLot::s_buckets[1 << kBucketBits];
constinit int ParkingLot::s_forks = 0;

// ---- LotWait. ----------------------------------------------------------------------------------------------------------------

void LotTypes::begin(LotWait& wait) {
  wait.m_wait.emplace(*t_running, wait.m_kind.what, wait.m_object);
  wait.m_core = wait.m_wait->waker().core;
  wait.m_epoch = wait.m_wait->waker().epoch;
}

void LotWait::lockForEntry() { Steps::lockForEntry(*this); }
void LotWait::enterAndUnlock(bool enters, uint64_t& turn) { Steps::enterAndUnlock(*this, enters, turn); }
bool LotWait::othersWait() const { return Steps::othersWait(*this); }

LotEnd LotWait::park(Deadline deadline, CallWait& call) {
  if (!m_wait) return parkThread<StdMemory>(deadline);
  const Deadline until = withinScope(deadline);
  const WakeReason reason = call.park(*m_wait, until);
  if (m_told) return told();
  Steps::leave(*this);
  if (reason == WakeReason::kReady) return LotEnd::kInterrupted;
  return reason == WakeReason::kTimeout && until == deadline ? LotEnd::kTimeout : LotEnd::kCancelled;
}

LotEnd LotWait::parkForEver() {
  const HookPark waiting(*m_core);
  m_wait->park();
  waiting.count();
  if (m_told) return told();
  Steps::leave(*this);
  return LotEnd::kCancelled;
}

LotEnd LotWait::parkCancellably(Deadline deadline) { return parkThread<CancellableMemory>(deadline); }

template <class Memory>
LotEnd LotWait::parkThread(Deadline deadline) {
  if (ThreadWait<Memory>(m_state).park(deadline)) return told();
  Steps::leave(*this);
  return LotEnd::kTimeout;
}

bool LotWait::withdraw() {
  const bool told = m_wait ? !m_wait->withdraw() : !ThreadWait(m_state).withdraw();
  if (!told) Steps::leave(*this);
  return told;
}

// ---- ParkingLot. -------------------------------------------------------------------------------------------------------------

void ParkingLot::release(void* object, SyncKind what, Release how, bool in_handler) {
  if (!sys::inForkedChild()) Steps::release(object, what, how, in_handler);
}

bool ParkingLot::passOn(void* object, SyncKind what) { return !sys::inForkedChild() && Steps::passOn(object, what); }

uint32_t ParkingLot::wake(const void* object, uint32_t most, uint32_t bits, bool in_handler) {
  return mayWait(object) && !sys::inForkedChild() ? Steps::wake(object, most, bits, in_handler) : 0;
}

uint32_t ParkingLot::requeue(const void* from, void* to, uint32_t most) {
  return mayWait(from) && !sys::inForkedChild() ? Steps::requeue(from, to, most) : 0;
}

// The child's one thread waits nowhere, and the locks may be those of others.
[[gnu::constructor]] static void followForks() {
  pthread_atfork(nullptr, nullptr, [] { ParkingLot::forgetAll(); });
}

void ParkingLot::forgetAll() {
  for (LotBucket& bucket : s_buckets) new (&bucket) LotBucket();
  ++s_forks;
}

}  // namespace sylar::detail
