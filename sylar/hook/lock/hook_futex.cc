// futex by its number: the words on which std::future, std::atomic::wait, std::latch, std::barrier, std::counting_semaphore, the
// initialization of static variables and the locks of many libraries wait. Source: futex(2).
//
// Fibers wait in the parking lot, threads in the kernel, and a wake first looks for fibers. Operations on priorities, and waits at
// several words (futex_waitv), are the kernel's.
#include <fcntl.h>
#include <linux/futex.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>

#include "sylar/base/sys.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/lock/futex.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

constexpr LotKind kFutex{SyncKind::kFutex};

/// One call, with the arguments that it may have.
struct Futex {
  explicit Futex(const long (&arguments)[6])
      : all(arguments),
        word(reinterpret_cast<uint32_t*>(arguments[0])),
        options(static_cast<int>(arguments[1])),
        value(static_cast<uint32_t>(arguments[2])),
        time(reinterpret_cast<const timespec*>(arguments[3])),
        second_count(static_cast<uint32_t>(arguments[3])),
        second_word(reinterpret_cast<uint32_t*>(arguments[4])),
        third_value(static_cast<uint32_t>(arguments[5])) {}

  int command() const { return options & FUTEX_CMD_MASK; }
  bool isPrivate() const { return (options & FUTEX_PRIVATE_FLAG) != 0; }
  uint32_t now() const { return std::atomic_ref(*word).load(std::memory_order_seq_cst); }

  const long (&all)[6];
  uint32_t* const word;
  const int options;
  const uint32_t value;
  const timespec* const time;
  const uint32_t second_count;
  uint32_t* const second_word;
  const uint32_t third_value;
};

long failed(int error) {
  sys::errnoRef() = error;
  return -1;
}
long callOfKernel(const long (&a)[6]) {
  const long result = sys::call(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
  return result < 0 ? failed(static_cast<int>(-result)) : result;
}

/// Returns true if other processes may change the word: its page is of a file, or of memory that is shared, or it cannot be told.
/// Source: Documentation/admin-guide/mm/pagemap.rst of Linux, bit 61.
bool mayBeShared(const uint32_t* word) {
  const long fd = sys::call(SYS_open, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  uint64_t page = 0;
  const auto page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const long n = sys::call(SYS_pread64, fd, &page, sizeof page, reinterpret_cast<uintptr_t>(word) / page_size * sizeof page);
  sys::call(SYS_close, fd);
  return n != sizeof page || (page >> 61 & 1) != 0;
}

/// Waits in a fiber. `bits` are those of FUTEX_WAIT_BITSET, whose time is absolute.
long wait(const Futex& call, bool is_absolute, uint32_t bits) {
  timespec time;
  if (call.time != nullptr && !probe::copyIn(&time, call.time, sizeof time)) return failed(EFAULT);
  const clockid_t clock = (call.options & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const LockTime until(clock, call.time != nullptr ? &time : nullptr);
  if (!until.isValid() || (call.time != nullptr && time.tv_sec < 0) || bits == 0) return failed(EINVAL);
  uint32_t found;
  if (reinterpret_cast<uintptr_t>(call.word) % sizeof found != 0) return failed(EINVAL);
  if (!probe::copyIn(&found, call.word, sizeof found)) return failed(EFAULT);
  if (found != call.value) return failed(EAGAIN);
  if (!is_absolute && (call.options & FUTEX_CLOCK_REALTIME) != 0) return callOfKernel(call.all);  // which may not know it

  countCallOf(*runningFiber(), Hook::syscall);
  const bool polls = !call.isPrivate() && mayBeShared(call.word);
  const ShieldIfCancelled shield(true);
  CallWait interruptible(EndedBy::kNoRestart);
  interruptible.begin();
  Deadline deadline = until.deadline(true);
  if (call.time != nullptr && !is_absolute)
    deadline = Deadline::after(std::chrono::nanoseconds(attempt::toNs(time)), waitClock());
  uint64_t turn = 0;
  for (Pauses pauses;;) {
    const Deadline look = polls ? std::min(deadline, pauses.nextLook()) : deadline;
    if (!reserveWithinScope(look)) return failed(ENOMEM);
    LotWait one(call.word, kFutex, true);
    one.wakeBy(bits);
    if (!one.enterUnless([&] { return call.now() != call.value; }, turn)) return failed(EAGAIN);
    const LotEnd end = one.park(look, interruptible);
    if (end == LotEnd::kInterrupted) return failed(EINTR);
    if (end != LotEnd::kTimeout) return 0;
    if (look != deadline) continue;
    if (!is_absolute || until.hasPassed(true)) return failed(ETIMEDOUT);
    deadline = until.deadline(true);  // the clock was set back
  }
}

/// Returns how many the kernel would wake for a number given to it: at least one.
uint32_t atLeastOne(uint32_t count) { return static_cast<uint32_t>(std::max(static_cast<int>(count), 1)); }

/// Wakes fibers, and then as many threads as are left. A signal handler may do so.
long wake(const Futex& call, uint32_t bits) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the word was changed by whatever instruction
  const uint32_t most = atLeastOne(call.value);
  const uint32_t woken = ParkingLot::wake(call.word, most, bits, true);
  if (woken == most) return woken;
  const long rest[6] = {call.all[0], call.all[1], static_cast<long>(most - woken), call.all[3], call.all[4], call.all[5]};
  const long others = callOfKernel(rest);
  return others < 0 ? (woken > 0 ? static_cast<long>(woken) : others) : static_cast<long>(woken) + others;
}

/// Wakes and moves threads, and then as many fibers as are left. The kernel looks at the word, if it is to be compared.
long requeue(const Futex& call) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const long n = callOfKernel(call.all);
  if (n < 0 || !ParkingLot::mayWait(call.word)) return n;
  const auto woken_threads = static_cast<uint32_t>(std::min<long>(n, call.value));
  const auto moved_threads = static_cast<uint32_t>(n) - woken_threads;  // told only if it was to be compared
  const uint32_t woken = ParkingLot::wake(call.word, call.value - woken_threads);
  const uint32_t moved =
      ParkingLot::requeue(call.word, call.second_word, call.second_count - std::min(call.second_count, moved_threads));
  return n + woken + (call.command() == FUTEX_CMP_REQUEUE ? moved : 0);
}

/// The kernel decides whether those at the second word are woken. Fibers there are woken in any case, which every waiter has to
/// expect.
long wakeOp(const Futex& call) {
  const long n = callOfKernel(call.all);
  if (n < 0) return n;
  return n + ParkingLot::wake(call.word, atLeastOne(call.value)) +
         ParkingLot::wake(call.second_word, atLeastOne(call.second_count));
}

}  // namespace

long futexByNumber(const long (&arguments)[6]) {
  const Futex call(arguments);
  switch (call.command()) {
    case FUTEX_WAIT:
      if (outsideFibers() || !locksSuspend()) break;
      return wait(call, false, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAIT_BITSET:
      if (outsideFibers() || !locksSuspend()) break;
      return wait(call, true, call.third_value);
    case FUTEX_WAKE: return wake(call, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAKE_BITSET: return wake(call, call.third_value);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE: return requeue(call);
    case FUTEX_WAKE_OP: return wakeOp(call);
    default: break;
  }
  return callOfKernel(arguments);
}

}  // namespace sylar::detail
