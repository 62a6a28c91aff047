// sem_wait and similar calls. A fiber that finds the semaphore at 0 is suspended, and a post hands its permit to the oldest.
// Source: sem_wait(3), sem_post(3); glibc's nptl/internaltypes.h.
#include <dlfcn.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

/// What libc has in a sem_t of a 64-bit machine.
struct Semaphore {
  uint64_t data;  ///< the number of permits, and above it the number of threads that wait in the kernel
  int shared;
  int unused;
};
static_assert(sizeof(Semaphore) <= sizeof(sem_t) && sizeof(long) == 8);

Semaphore& insideOf(sem_t* semaphore) { return *reinterpret_cast<Semaphore*>(semaphore); }
bool threadsWait(sem_t* semaphore) {
  return std::atomic_ref(insideOf(semaphore).data).load(std::memory_order_relaxed) >> 32 != 0;
}

int takePermit(void* object) {
  auto* const semaphore = static_cast<sem_t*>(object);
  const int before = sys::errnoRef();
  if (real::sem_trywait(semaphore) == 0) return 0;
  sys::errnoRef() = before;
  return EBUSY;
}
void giveBackPermit(void* object) { real::sem_post(static_cast<sem_t*>(object)); }
constexpr LotKind kSemaphore{SyncKind::kPosixSemaphore, &takePermit, &giveBackPermit};

template <class Block>
[[gnu::noinline]] int waitInFiber(Hook hook, sem_t* semaphore, LockTime until, Block blocks) {
  if (!locksSuspend()) return blocks();
  int error = EINVAL;
  if (until.isValid()) {
    if (takePermit(semaphore) == 0) return 0;
    // A handler ends it, unless it restarts.
    error = takeInLot(
        semaphore,
        {.hook = hook, .kind = kSemaphore, .until = until, .by = EndedBy::kNoRestart, .polls = insideOf(semaphore).shared != 0});
  }
  if (error == 0) return 0;
  sys::errnoRef() = error;
  return -1;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int sem_wait(sem_t* semaphore) {
  const auto block = [=] { return real::sem_wait(semaphore); };
  return outsideFibers() ? block() : waitInFiber(Hook::sem_wait, semaphore, {}, block);
}
int sem_timedwait(sem_t* semaphore, const timespec* time) {
  const auto block = [=] { return real::sem_timedwait(semaphore, time); };
  return outsideFibers() ? block() : waitInFiber(Hook::sem_timedwait, semaphore, {CLOCK_REALTIME, time}, block);
}
int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  const auto block = [=] { return real::sem_clockwait(semaphore, clock, time); };
  return outsideFibers() ? block() : waitInFiber(Hook::sem_clockwait, semaphore, {clock, time}, block);
}
// It may be called in a signal handler.
int sem_post(sem_t* semaphore) noexcept {
  const bool threads_wait = threadsWait(semaphore);
  const int result = real::sem_post(semaphore);
  if (ParkingLot::mayWait(semaphore)) [[unlikely]] {
    ParkingLot::release(semaphore, kSemaphore.what, threads_wait ? ParkingLot::Release::kWakeOne : ParkingLot::Release::kHandOver,
                        true);
  }
  return result;
}

}  // extern "C"
