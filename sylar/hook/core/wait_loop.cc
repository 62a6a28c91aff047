#include "sylar/hook/core/wait_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/ring_transfer.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_hook_enabled = false;

/// Returns the worker of the calling fiber, or null if the call must not suspend. Inlined, as onThreadStack().
inline Worker* hookWorker() {
  const FiberCore* const me = t_running;
  if (me == nullptr || !me->hook_enabled || me->home == nullptr) return nullptr;  // the usual case of code outside fibers
  Worker* const worker = static_cast<WorkerSlot*>(me->home)->worker;
  if (worker == nullptr || worker->detached() || sys::inForkedChild()) return nullptr;
  return Entry::interrupting() || HandlerScope::running() || onSignalStack(*me) ? nullptr : worker;
}

bool mayBeUnix(FdKind kind) { return kind == FdKind::kStream || kind == FdKind::kMarkedStream || kind == FdKind::kMessages; }

}  // namespace

[[gnu::noinline]] bool maySuspendHere() {
  __asm__ volatile("");
  return hookWorker() != nullptr;
}

[[gnu::noinline]] EpollEngine* hookEngine() {
  __asm__ volatile("");
  const FiberCore* const me = t_running;
  EpollEngine* const engine = hookEngineOf(me);
  return engine == nullptr || onSignalStack(*me) ? nullptr : engine;
}

bool yieldIfBudgetIsSpent(EpollEngine& engine) {
  SYLAR_DCHECK(runningFiber() != nullptr);
  if (!engine.budgetIsSpent()) return false;
  engine.refillBudget();
  const FiberCore* const me = runningFiber();
  // A fiber that is resumed by hand is its resumer's affair.
  const bool mine = me->live && me->resumer == nullptr && !onSignalStack();
  if (!mine) return false;
  // 256 fibers that all have this much to do would keep descriptors and timers waiting, so the worker ends its batch. The worker
  // is null if a stop abandoned it just now.
  if (Worker* const worker = hookWorker()) worker->endBatch();
  Fiber::YieldToReady();
  return true;
}

// The close may take as long as a peer likes, and may wait for another fiber of this thread.
uint64_t lifeAfterClose(const Entry& entry, int fd) {
  if (entry.mustAwaitClose(fd) && maySuspendHere()) {
    const this_fiber::CancelShield shield;
    CallWait call(EndedBy::kNone);
    const auto look = [&] { return entry.mustAwaitClose(fd) && maySuspendHere() ? -EAGAIN : 0L; };
    call.askAgain(look, Deadline::never(), Pauses(std::chrono::microseconds(10)));
  }
  return entry.awaitOpen(fd);
}

int HookedFd::useCopy() {
  SYLAR_DCHECK(parks() && !m_has_copy);
  if (!m_entry->pin(m_generation)) return -EBADF;
  const long copy = sys::call(SYS_fcntl, m_fd, F_DUPFD_CLOEXEC, 64);  // low numbers are the program's
  m_entry->unpin();
  m_has_copy = copy >= 0;
  return static_cast<int>(copy);
}

bool HookedFd::follow(Stay& stay) {
  const int copy = stay.copy();
  if (copy == Stay::kNone || copy == m_fd) return false;
  m_fd = copy;
  m_entry = FdTable::at(copy);
  m_generation = Entry::generationOf(m_entry->life());
  return true;
}

bool IoCall::follow() {
  if (!m_hooked.follow(m_stay)) return false;
  m_kernel_asked = false;
  return true;
}

[[gnu::noinline]] void IoCall::beginPosix() {
  m_wait.begin();
  if (isOn(PosixMode::kClose)) m_stay.begin(m_hooked.fd(), m_hooked.generation(), m_hooked.engine());
}

/// Finds out before the first park whether the call blocks at all, and for how long. Returns 0, or -EAGAIN if it does not block.
inline int IoCall::learnLimits() {
  SYLAR_DCHECK(!m_limits_known && !onThreadStack());
  m_limits_known = true;
  if (mayBeInScope(*t_running)) [[unlikely]]
    m_deadline = withinScope(m_deadline);
  // One that asks again, such as a connect, hears of its error by that.
  if (m_direction == Direction::kWrite && !m_asks_again)
    m_writes_to_unix = mayBeUnix(kind()) && probe::isUnixConnection(m_hooked.fd());
  const bool remembered = entry().isPrivate();
  return remembered && entry().timeoutNs(m_direction) == 0 ? 0 : learnTimeout(remembered);
}

[[gnu::noinline]] int IoCall::learnTimeout(bool remembered) {
  if (!remembered) {
    const long flags = sys::call(SYS_fcntl, m_hooked.fd(), F_GETFL, 0);
    if (!m_hooked.isOpen()) {
      m_limits_known = false;
      return -EBADF;
    }
    if (flags < 0) return static_cast<int>(flags);
    if ((flags & O_NONBLOCK) != 0) {
      m_must_use_libc = true;
      return -EAGAIN;
    }
  }
  int64_t timeout_ns = entry().timeoutNs(m_direction);
  if (!remembered) {
    const int64_t kernels_ns = attempt::timeoutNs(m_hooked.fd(), m_direction);
    if (kernels_ns != 0 || timeout_ns > 0) timeout_ns = kernels_ns;  // the kernel does not tell "wait for nothing" from "none"
  }
  if (timeout_ns < 0) {
    limit(Deadline::after(std::chrono::nanoseconds(0), waitClock()), m_socket_timeout_error);  // for the rest of the call
    return -m_socket_timeout_error;
  }
  if (timeout_ns > 0) {
    const Deadline deadline = Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock());
    if (deadline < m_deadline) limit(deadline, m_socket_timeout_error);
    m_wait.neverRestarts();
    if (m_writes_to_unix || m_renews_timeout) m_timeout_of_piece_ns = timeout_ns;
  }
  return 0;
}

void IoCall::renewTimeout() {
  SYLAR_DCHECK(m_timeout_of_piece_ns > 0);
  m_deadline = withinScope(Deadline::after(std::chrono::nanoseconds(m_timeout_of_piece_ns), waitClock()));
}

long IoCall::unixWriteError() const { return probe::unixWriteError(m_hooked.fd()); }

/// Returns true if this is a receive of whole messages and reading is shut down. A lasting event has told so, now or before: the
/// first registration makes the kernel report it again.
bool IoCall::readsShutDownMessages() {
  if (m_direction != Direction::kRead || !entry().sticky() || kind() != FdKind::kMessages) return false;
  return probe::isShutDown(m_hooked.fd());
}

/// Makes the checks before a wait that are rarely needed. Returns 0, or -errno if something else has ended the call.
[[gnu::noinline]] int IoCall::waitsStill(bool first) {
  // In the kernel a writer to a pipe looks at O_NONBLOCK whenever it has been woken.
  if (!first && m_direction == Direction::kWrite && entry().kind() == FdKind::kPipe && probe::isNonblocking(m_hooked.fd()) &&
      m_hooked.isOpen()) {
    return -EAGAIN;
  }
  if (readsShutDownMessages() && m_hooked.isOpen()) {
    m_shut_down = first ? ShutDown::kAtFirst : ShutDown::kInWait;
    return -EAGAIN;
  }
  // Events that bring nothing do not prolong the wait.
  if (!first && !m_deadline.isNever() && waitClock().nowNs() >= m_deadline.ns()) return -m_timeout_error;
  return !first && interrupted() ? -EINTR : 0;
}

/// Waits on the thread. The call was under way when a handler forked, and no loop tells the child of events.
[[gnu::noinline]] int IoCall::waitInChild(Deadline until) {
  SYLAR_DCHECK(sys::inForkedChild());
  pollfd one{m_hooked.fd(), static_cast<short>(m_direction == Direction::kRead ? POLLIN | POLLRDHUP : POLLOUT), 0};
  const timespec left = attempt::toTimespec(std::max<int64_t>(until.ns() - waitClock().nowNs(), 0));
  const long ready = attempt::keepingErrno([&] { return real::ppoll(&one, 1, until.isNever() ? nullptr : &left, nullptr); });
  m_wait.noteHandlers();
  return ready == 0 && until == m_deadline ? -m_timeout_error : 0;
}

/// Goes on waiting after a close. That is nothing to try again for, and the registration of the copy reports what is there.
[[gnu::noinline, gnu::cold]] int IoCall::waitForCopy() { return follow() ? wait(entry().edges(m_direction)) : -EBADF; }

/// Hands the waker of a wait to the worker's ring, if that makes the attempt, or to the entry. Returns 0 or -errno.
[[gnu::always_inline]] inline int IoCall::watch(const Waker& waker, uint64_t edges_seen, Entry::Waiter& waiter, bool& by_ring) {
  waiter.waker = waker;
  waiter.engine = &m_hooked.engine();
  waiter.events = m_direction == Direction::kRead ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;  // errors wake all waiters
  int error = -EBUSY;
  if (m_transfer != nullptr) error = m_transfer->begin(m_hooked.fd(), entry(), m_hooked.generation(), m_direction, waiter);
  by_ring = error != -EBUSY;
  if (!by_ring) {
    // The number may be another file than its entry knows, so a MOD makes the kernel report readiness again. It is made once a
    // call, because a second one would report what this call has left there, without end.
    const bool ask_kernel = !entry().isPrivate() && !m_asks_again && !std::exchange(m_kernel_asked, true);
    error = entry().enqueue(m_hooked.fd(), m_hooked.generation(), m_direction, edges_seen, ask_kernel, waiter);
  }
  if (error == 0) m_hooked.engine().refillBudget();
  return error;
}

int IoCall::wait(uint64_t edges_seen) {
  SYLAR_DCHECK(m_hooked.parks() && !onThreadStack());
  const bool first = !m_limits_known;
  if (first) {
    if (m_must_use_libc) return -EAGAIN;
    stay();
    if (const int error = learnLimits()) {
      if (error == -EBADF) return waitForCopy();
      m_hooked.engine().chargeCall();  // it does not wait
      return error;
    }
  }
  if (!first || entry().sticky()) {
    if (const int error = waitsStill(first)) return error;
  }
  // A writer on AF_UNIX gets an event when there is room, but none when the other side shuts its reading down.
  const bool looks_again = m_asks_again || m_writes_to_unix;
  const Deadline until = looks_again ? std::min(m_deadline, m_pauses.nextLook()) : m_deadline;
  Entry::Waiter waiter;
  bool by_ring = false;
  const WaitEnd end = m_wait.once(until, m_direction == Direction::kRead ? WaitsFor::kRead : WaitsFor::kWrite, m_hooked.fd(),
                                  [&](const Waker& waker) { return watch(waker, edges_seen, waiter, by_ring); });
  if (end == WaitEnd::kWoken && !by_ring && !interrupted()) [[likely]]
    return 0;
  if (end == WaitEnd::kInChild) return interrupted() ? -EINTR : waitInChild(until);
  if (end == WaitEnd::kNoMemory) return -ENOMEM;
  if (end == WaitEnd::kRefused) {
    m_must_use_libc = m_wait.refusal() == -EPERM;
    if (m_wait.refusal() == -EBADF) return waitForCopy();
    return m_wait.refusal() == -EAGAIN ? 0 : m_wait.refusal();
  }
  if (by_ring) {
    const long result = m_transfer->end(m_direction, waiter);
    if (result != -ECANCELED) {
      m_by_ring = {result, edges_seen};
      m_ring_has_tried = true;
      return 0;
    }
    if (sys::inForkedChild()) return interrupted() ? -EINTR : 0;
  }
  if (end == WaitEnd::kClosed) return waitForCopy();
  entry().dequeue(m_direction, waiter);
  if (end == WaitEnd::kWoken) return 0;
  if (end == WaitEnd::kCancelled) return -ECANCELED;
  return until < m_deadline ? 0 : -m_timeout_error;
}

}  // namespace sylar::detail

namespace sylar {

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

}  // namespace sylar
