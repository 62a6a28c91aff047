// Internal. Waits for what no event tells, such as a lock of a file that another process gives up: asks, and asks again.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {

/// Makes attempts until one gives something else than -EAGAIN: the next after 1 ms, then less and less often, up to 50 ms. No
/// helper thread waits instead, because it could not be interrupted, and enough of them would fill the pool for those on whom
/// they wait. Returns what the last attempt gave, -ECANCELED, -EINTR, -ETIMEDOUT at `latest` or at the deadline of the fiber's
/// DeadlineScope, or -ENOMEM. Only where hookEngine() gives an engine. May suspend: yes.
template <class Attempt>
long askAgain(Interruptible& call, Attempt attempt, Deadline latest = Deadline::never()) {
  SYLAR_DCHECK(mayPark());
  call.begin();
  const Deadline end = withinScope(latest);
  for (std::chrono::milliseconds pause(1);; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const long result = attempt();
    if (result != -EAGAIN) return result;
    if (call.interrupted()) return -EINTR;
    if (!end.isNever() && waitClock().nowNs() >= end.ns()) return -ETIMEDOUT;
    const Deadline until = std::min(end, Deadline::after(pause, waitClock()));
    if (!reserveTimeout(until)) return -ENOMEM;
    if (call.parkUntil(until) == WakeReason::kCanceled) return -ECANCELED;
  }
}

/// Does the same for attempts on `fd`. A close ends them with -EBADF.
template <class Attempt>
long askAgain(Interruptible& call, HookedFd& fd, Attempt attempt) {
  SYLAR_DCHECK(fd.parks());
  return askAgain(call, [&] {
    const long result = fd.tryLast(Direction::kRead, attempt);
    fd.othersRan();  // the user's own attempt is over
    return result;
  });
}

}  // namespace sylar::detail
