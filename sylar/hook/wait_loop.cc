#include "sylar/hook/wait_loop.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/hook.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_hook_enabled = true;

/// Whose fiber calls, if it may be suspended.
inline Worker* hookWorker() {
  const FiberCore* const me = runningFiber();
  if (me == nullptr || !me->hook_enabled || me->home == nullptr) return nullptr;  // the usual case of code outside fibers
  Worker* const worker = static_cast<WorkerSlot*>(me->home)->worker;
  // A signal handler over the library's own sections must not come back to their locks.
  const bool passes = worker == nullptr || worker->detached() || sys::inForkedChild() || Entry::interrupting();
  return passes ? nullptr : worker;
}

}  // namespace

bool hookSleeps() { return hookWorker() != nullptr; }

[[gnu::noinline]] EpollEngine* hookEngine() {
  __asm__ volatile("");
  return hookEngineHere();
}

bool takeTurns(EpollEngine& engine) {
  if (!engine.turnIsOver()) return false;
  engine.letOthersRun();
  const FiberCore* const me = runningFiber();
  const bool mine = me->live && me->resumer == nullptr;  // one that is resumed by hand is its resumer's affair
  if (!mine) return false;
  // 256 fibers that all have this much to do would keep descriptors and timers waiting. None: a stop gave the worker up just now.
  if (Worker* const worker = hookWorker()) worker->endTurn();
  Fiber::YieldToReady();
  return true;
}

bool is_hook_enable() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->hook_enabled : t_hook_enabled;
}

void set_hook_enable(bool on) {
  FiberCore* const me = runningFiber();
  if (me != nullptr) {
    me->hook_enabled = on;
  } else {
    t_hook_enabled = on;
  }
}

uint64_t HookedFd::lifeAfterClose(const Entry& entry) { return entry.awaitOpen(); }

void IoCall::limit(Deadline deadline, int error) {
  m_deadline = deadline;
  m_timeout_error = error;
}

/// Before the first park: whether the call blocks at all, and for how long. 0, or -EAGAIN if it does not block.
inline int IoCall::learnLimits() {
  m_limits_known = true;
  const bool remembered = entry().isPrivate();
  return remembered && entry().timeoutNs(m_direction) == 0 ? 0 : learnTimeout(remembered);
}

[[gnu::noinline]] int IoCall::learnTimeout(bool remembered) {
  if (!remembered) {
    const long flags = sys::call(SYS_fcntl, m_hooked.fd(), F_GETFL, 0);
    if (flags < 0) return static_cast<int>(flags);
    if ((flags & O_NONBLOCK) != 0) {
      m_passes_on = true;
      return -EAGAIN;
    }
  }
  int64_t timeout_ns = entry().timeoutNs(m_direction);
  if (!remembered) {
    const int64_t kernels_ns = attempt::timeoutNs(m_hooked.fd(), m_direction);
    if (kernels_ns != 0 || timeout_ns > 0) timeout_ns = kernels_ns;  // it does not tell "wait for nothing" from "none"
  }
  if (timeout_ns < 0) return -m_socket_timeout_error;
  if (timeout_ns > 0) {
    const Deadline deadline = Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock());
    if (deadline < m_deadline) limit(deadline, m_socket_timeout_error);
  }
  return 0;
}

/// When to ask again unasked: soon, then less and less often.
Deadline IoCall::nextLook() {
  const auto pause = m_pause;
  m_pause = std::min<std::chrono::nanoseconds>(2 * pause, std::chrono::milliseconds(50));
  return Deadline::after(pause, waitClock());
}

int IoCall::wait(uint64_t edges_seen) {
  if (!m_limits_known) {
    if (const int error = learnLimits()) return error;
  } else if (!m_deadline.isNever() && waitClock().nowNs() >= m_deadline.ns()) {
    return -m_timeout_error;  // events that bring nothing do not prolong it
  }
  const Deadline until = m_asks_again ? std::min(m_deadline, nextLook()) : m_deadline;
  if (!until.isNever() && !reserveTimeout(until)) return -ENOMEM;
  m_hooked.engine().letOthersRun();
  Wait wait(m_direction == Direction::kRead ? Fiber::WaitsFor::kRead : Fiber::WaitsFor::kWrite, m_hooked.fd());
  Entry::Waiter waiter;
  waiter.waker = wait.waker();
  waiter.engine = &m_hooked.engine();
  waiter.events = m_direction == Direction::kRead ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;  // errors wake everybody
  // Readiness reported anew says nothing where no event tells.
  const bool ask_kernel = !entry().isPrivate() && !m_asks_again;
  const int error = entry().enqueue(m_hooked.fd(), m_hooked.generation(), m_direction, edges_seen, ask_kernel, waiter);
  if (error != 0) {
    wait.giveUp();
    m_passes_on = error == -EPERM;
    return error == -EAGAIN ? 0 : error;
  }
  switch (wait.park(until)) {
    case WakeReason::kReady: return 0;
    case WakeReason::kClosed: return -EBADF;
    case WakeReason::kTimeout: entry().dequeue(m_direction, waiter); return until < m_deadline ? 0 : -m_timeout_error;
    case WakeReason::kCanceled: entry().dequeue(m_direction, waiter); return -ECANCELED;
  }
  return -EINVAL;
}

}  // namespace sylar
