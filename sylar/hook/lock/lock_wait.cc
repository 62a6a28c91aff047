#include "sylar/hook/lock/lock_wait.h"

#include "sylar/hook.h"

namespace sylar::detail {

constinit std::atomic<bool> g_hook_locks{true};

ShieldIfCancelled::ShieldIfCancelled(bool in_fiber) {
  if (!in_fiber) return;
  const FiberCore& me = *runningFiber();
  const Deadline scope = withinScope(Deadline::never());
  const bool cancelled = me.cancelled != 0 && !me.shielded;
  if (cancelled || (!scope.isNever() && scope.ns() <= waitClock().nowNs())) m_shield.emplace();
}

Deadline LockTime::deadline(bool as_fiber) const {
  if (m_time == nullptr) return Deadline::never();
  timespec now;
  ::clock_gettime(m_clock, &now);
  const int64_t left_ns = std::max<int64_t>(attempt::toNs(*m_time) - attempt::toNs(now), 0);
  return Deadline::after(std::chrono::nanoseconds(left_ns), as_fiber ? waitClock() : steadyClock());
}

bool LockTime::hasPassed(bool as_fiber) const {
  if (m_time == nullptr) return false;
  if (as_fiber && &waitClock() != &steadyClock()) return true;  // the scheduler's clock is driven by hand, and m_clock is not
  timespec now;
  ::clock_gettime(m_clock, &now);
  return attempt::toNs(now) >= attempt::toNs(*m_time);
}

namespace {

/// A this_fiber::CancelShield of the running fiber, which costs little where no DeadlineScope is to be hidden.
class SectionShield {
 public:
  explicit SectionShield(FiberCore& me) : m_me(me), m_shielded(me.shielded) {
    if (me.in_deadline_scope) m_from_scope.emplace();
    me.shielded = true;
  }
  ~SectionShield() {
    m_from_scope.reset();
    m_me.shielded = m_shielded;
  }
  SectionShield(const SectionShield&) = delete;
  SectionShield& operator=(const SectionShield&) = delete;

 private:
  FiberCore& m_me;
  const bool m_shielded;
  std::optional<this_fiber::CancelShield> m_from_scope;
};

int takeOrWait(void* object, const Taking& wanted, CallWait& call) {
  int error = EBUSY;
  const auto take = [&] { return (error = wanted.kind.take(object)) != EBUSY; };
  uint64_t turn = 0;
  Deadline until = wanted.until.deadline(true);
  for (Pauses pauses;;) {
    const Deadline look = wanted.polls ? std::min(until, pauses.nextLook()) : until;
    if (!(wanted.shielded && look.isNever()) && !reserveWithinScope(look)) {
      // Somebody may have woken it for the object, and woken nobody else.
      if (take()) return error;
      ParkingLot::release(object, wanted.kind.what, ParkingLot::Release::kWakeAll);
      return ENOMEM;
    }
    LotWait wait(object, wanted.kind, true);
    const bool first = turn == 0;
    if (!wait.enterUnless([&] { return !(first && wanted.stands_back && wait.othersWait()) && take(); }, turn)) return error;
    const LotEnd end = wait.park(look, call);
    if (end == LotEnd::kGranted) return 0;
    if (end == LotEnd::kTold) continue;
    if (take()) return error;  // a free lock wins over a cancel or a timeout
    if (end == LotEnd::kCancelled) return ECANCELED;
    if (end == LotEnd::kInterrupted) return EINTR;
    if (look != until) continue;
    if (wanted.until.hasPassed(true)) return ETIMEDOUT;
    until = wanted.until.deadline(true);  // the clock was set back
  }
}

}  // namespace

int takeInLot(void* object, const Taking& wanted) {
  FiberCore& me = *runningFiber();
  countCallOf(me, wanted.hook);
  CallWait call(wanted.by);
  call.begin();
  if (!wanted.shielded) return takeOrWait(object, wanted, call);
  const SectionShield shield(me);
  for (;;) {  // behind the deadline of a stop, until the fiber is abandoned
    const int error = takeOrWait(object, wanted, call);
    if (error != ECANCELED && error != ENOMEM) return error;
    if (error == ENOMEM) Fiber::YieldToReady();
  }
}

int takeInLotForEver(FiberCore& me, Hook hook, void* object, const LotKind& kind) {
  countCallOf(me, hook);
  const SectionShield shield(me);
  int error = EBUSY;
  const auto take = [&] { return (error = kind.take(object)) != EBUSY; };
  for (uint64_t turn = 0;;) {
    LotWait wait(object, kind, true);
    if (!wait.enterUnless(take, turn)) return error;
    const LotEnd end = wait.parkForEver();
    if (end == LotEnd::kGranted) return 0;
    if (end == LotEnd::kCancelled && take()) return error;  // behind the deadline of a stop, until the fiber is abandoned
  }
}

}  // namespace sylar::detail

namespace sylar {

void setHookLocks(bool on) { g_hook_locks.store(on, std::memory_order_relaxed); }
bool hookLocks() { return g_hook_locks.load(std::memory_order_relaxed); }

}  // namespace sylar
