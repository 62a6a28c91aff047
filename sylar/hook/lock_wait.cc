#include "sylar/hook/lock_wait.h"

#include "sylar/hook.h"

namespace sylar {

constinit std::atomic<bool> g_hook_locks{true};

void setHookLocks(bool on) { g_hook_locks.store(on, std::memory_order_relaxed); }
bool hookLocks() { return g_hook_locks.load(std::memory_order_relaxed); }

bool waitsEndAtOnce() {
  const FiberCore& me = *runningFiber();
  if (me.cancelled != 0 && !me.shielded) return true;
  const Deadline scope = withinScope(Deadline::never());
  return !scope.isNever() && scope.ns() <= waitClock().nowNs();
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

int takeOrWait(void* object, const Taking& wanted, Interruptible& call) {
  std::chrono::milliseconds pause(1);
  for (bool again = false;; again = true) {
    const Deadline until = wanted.until.deadline(true);
    const Deadline look = wanted.polls ? std::min(until, Deadline::after(pause, waitClock())) : until;
    if (!(wanted.shielded && look.isNever()) && !reserveWithinScope(look)) return ENOMEM;
    LotWait wait(object, wanted.kind, true);
    int error = EBUSY;
    const auto take = [&] { return (error = wanted.kind.take(object)) != EBUSY; };
    if (!wait.enterUnless(take, again)) return error;
    const LotEnd end = wait.park(look, call);
    if (end == LotEnd::kGranted) return 0;
    if (end == LotEnd::kTold) continue;
    if (take()) return error;  // it gets what is there
    if (end == LotEnd::kCancelled) return ECANCELED;
    if (end == LotEnd::kInterrupted) return EINTR;
    if (wanted.until.hasPassed(true)) return ETIMEDOUT;
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
}

}  // namespace

int takeInLot(void* object, const Taking& wanted) {
  countCallOf(*runningFiber(), wanted.hook);
  Interruptible call(wanted.by);
  call.begin();
  if (!wanted.shielded) return takeOrWait(object, wanted, call);
  const this_fiber::CancelShield shield;
  int error;
  do {
    error = takeOrWait(object, wanted, call);
  } while (error == ECANCELED || error == ENOMEM);  // behind the deadline of a stop, until the fiber is abandoned
  return error;
}

}  // namespace sylar
