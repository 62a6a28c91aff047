// The message queues and semaphores of System V. No event tells of them, so a fiber asks again and again. Source: msgop(2),
// semop(2).
#include <sys/msg.h>
#include <sys/sem.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {
namespace {

/// Makes the call `ask`, which does not wait and fails with `no_luck` instead, until it gives something else. Returns that, or
/// -errno.
template <class Ask>
long untilGiven(EpollEngine& engine, int no_luck, Deadline latest, Ask ask) {
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  bool existed = false;
  CallWait call(EndedBy::kAny);
  const auto attempt = [&]() -> long {
    const long given = attempt::keepingErrno(ask);
    if (given == -EINVAL && existed) return -EIDRM;  // it was removed
    existed = true;
    return given == -no_luck ? -EAGAIN : given;
  };
  return call.askAgain(attempt, latest);
}

/// The most operations of a call that are made without a helper thread.
constexpr size_t kMostOperations = 64;

/// Operations on semaphores that do not wait, unlike the user's.
class Asking {
 public:
  /// Returns false if they cannot be read.
  bool copy(const sembuf* operations, size_t count) {
    SYLAR_DCHECK(count <= kMostOperations);
    m_count = count;
    if (!probe::copyIn(m_all.data(), operations, count * sizeof(sembuf))) return false;
    const auto end = m_all.begin() + static_cast<ptrdiff_t>(count);
    m_impatient = static_cast<size_t>(std::count_if(m_all.begin(), end, [](sembuf& one) { return one.sem_flg & IPC_NOWAIT; }));
    m_wants_zero = std::any_of(m_all.begin(), end, [](sembuf& one) { return one.sem_op == 0; });
    std::for_each(m_all.begin(), end, [](sembuf& one) { one.sem_flg |= IPC_NOWAIT; });
    return true;
  }
  sembuf* all() { return m_all.data(); }
  /// Returns true if the user wants to wait for all of them, and they may be asked for again and again. A value of 0 may last for
  /// less than the pause between two questions.
  bool mayAskAgain() const { return m_impatient == 0 && !m_wants_zero; }
  bool noneWaits() const { return m_impatient == m_count; }

 private:
  std::array<sembuf, kMostOperations> m_all;
  size_t m_count = 0;
  size_t m_impatient = 0;
  bool m_wants_zero = false;
};

/// Returns the deadline for a timeout, which may be null. Returns false if the kernel refuses it.
bool deadlineOf(const timespec* timeout, Deadline& deadline) {
  deadline = Deadline::never();
  if (timeout == nullptr) return true;
  timespec own;
  if (!probe::copyIn(&own, timeout, sizeof own) || own.tv_sec < 0 || own.tv_nsec < 0 || own.tv_nsec >= 1'000'000'000)
    return false;
  deadline = Deadline::after(std::chrono::nanoseconds(attempt::toNs(own)), waitClock());
  return true;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

ssize_t msgrcv(int queue, void* to, size_t size, long type, int flags) {
  countCall(Hook::msgrcv);
  EpollEngine* const engine = hookEngine();
  const bool waits = (flags & (IPC_NOWAIT | MSG_COPY)) == 0;
  if (engine == nullptr || !waits) return real::msgrcv(queue, to, size, type, flags);
  return IoCall::result(
      untilGiven(*engine, ENOMSG, Deadline::never(), [=] { return real::msgrcv(queue, to, size, type, flags | IPC_NOWAIT); }));
}

int msgsnd(int queue, const void* message, size_t size, int flags) {
  countCall(Hook::msgsnd);
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr || (flags & IPC_NOWAIT) != 0) return real::msgsnd(queue, message, size, flags);
  return static_cast<int>(IoCall::result(
      untilGiven(*engine, EAGAIN, Deadline::never(), [=] { return real::msgsnd(queue, message, size, flags | IPC_NOWAIT); })));
}

/// What is to be undone (SEM_UNDO) is the process's, as libc makes threads, so any thread may make the call. If only some
/// operations may wait, the kernel does not tell which one would, and only in the kernel a wait for zero misses none. Then a helper
/// thread makes the whole call, unless the operations can be done at once.
int semtimedop(int set, sembuf* operations, size_t count, const timespec* timeout) noexcept {
  const NoCancellationPoint whole;
  countCall(Hook::semtimedop);
  const auto plain = [=] { return real::semtimedop(set, operations, count, timeout); };
  EpollEngine* const engine = hookEngine();
  Deadline latest = Deadline::never();
  if (engine == nullptr || count == 0 || !deadlineOf(timeout, latest)) return plain();
  Asking asking;
  if (count <= kMostOperations) {
    if (!asking.copy(operations, count) || asking.noneWaits()) return plain();
    const auto ask = [&] { return real::semtimedop(set, asking.all(), count, nullptr); };
    if (asking.mayAskAgain()) {
      const long n = untilGiven(*engine, EAGAIN, latest, ask);
      return static_cast<int>(IoCall::result(n == -ETIMEDOUT ? -EAGAIN : n));
    }
    engine->chargeCall();
    yieldIfBudgetIsSpent(*engine);
    if (const long n = attempt::keepingErrno(ask); n != -EAGAIN) return static_cast<int>(IoCall::result(n));
  }
  return offload(plain, BlockingPool::Length::kOthers);
}
int semop(int set, sembuf* operations, size_t count) noexcept { return semtimedop(set, operations, count, nullptr); }

}  // extern "C"
