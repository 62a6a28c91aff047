// pthread_barrier_wait. Fibers and threads wait in the parking lot. A barrier that processes share is libc's. Source:
// pthread_barrier_wait(3p); glibc's nptl/pthreadP.h.
#include <pthread.h>

#include <cerrno>

#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

constexpr LotKind kBarrier{SyncKind::kPthreadBarrier};

/// What libc's pthread_barrier_init makes. All but `shared` is used under the lock of the lot.
struct Barrier {
  unsigned arrived;  ///< in the present round
  unsigned round;
  unsigned count;
  int shared;
};
static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t));

/// Tells the waiters of a round from those of the next one, who may come before all of them were woken.
uint32_t bitOf(unsigned round) { return uint32_t{1} << round % 32; }

int wait(pthread_barrier_t* object) {
  auto& barrier = *reinterpret_cast<Barrier*>(object);
  const bool as_fiber = !outsideFibers() && locksSuspend();
  std::optional<this_fiber::CancelShield> shield;
  if (as_fiber) {
    countCallOf(*runningFiber(), Hook::pthread_barrier_wait);
    shield.emplace();
  }
  unsigned round = 0;
  const auto is_last = [&] {
    round = barrier.round;
    if (++barrier.arrived < barrier.count) return false;
    barrier.arrived = 0;
    ++barrier.round;
    return true;
  };
  const auto is_over = [&] { return barrier.round != round; };
  for (bool arrived = false;; arrived = true) {
    LotWait one(object, kBarrier, as_fiber);
    const auto look = [&] {
      const bool over = arrived ? is_over() : is_last();
      one.wakeBy(bitOf(round));
      return over;
    };
    if (!one.enterUnless(look)) {
      if (arrived) return 0;
      ParkingLot::wakeAll(object, bitOf(round));
      return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    CallWait call(EndedBy::kNone);
    if (one.park(Deadline::never(), call) == LotEnd::kTold) return 0;  // else behind the deadline of a stop
  }
}

bool isOfLibc(pthread_barrier_t* object) { return reinterpret_cast<Barrier*>(object)->shared != 0 || sys::inForkedChild(); }

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  return isOfLibc(barrier) ? real::pthread_barrier_wait(barrier) : sylar::wait(barrier);
}
int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  return isOfLibc(barrier) ? real::pthread_barrier_destroy(barrier) : 0;  // nobody touches it any more
}

}  // extern "C"
