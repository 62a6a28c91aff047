// pthread_rwlock_*. Readers and writers that are fibers wait in one queue. Source: pthread_rwlock_rdlock(3p) and similar calls;
// glibc's bits/struct_rwlock.h.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/lock/lock_wait.h"

#ifdef SYLAR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace sylar::detail {
namespace {

/// The thread that writes, 0 if none does or if a fiber has yet to adopt the lock.
std::atomic_ref<int> writerOf(pthread_rwlock_t& lock) { return std::atomic_ref(lock.__data.__cur_writer); }
/// The fiber that writes, in a member that libc does not use; 0 if it is a thread outside fibers.
std::atomic_ref<unsigned long> writingFiberOf(pthread_rwlock_t& lock) { return std::atomic_ref(lock.__data.__pad2); }

/// Returns the id by which libc knows the owner. To the library a borrowed thread is its worker, and not to libc.
int thisThread() {
#ifdef SYLAR_THREAD_POINTER
  if (const int* const id = FiberThread::mine().libc_id) return *id;
#endif
  return static_cast<int>(sys::threadId());
}
bool isWrittenByThisThread(pthread_rwlock_t& lock) { return writerOf(lock).load(std::memory_order_relaxed) == thisThread(); }
bool isWrittenBy(pthread_rwlock_t& lock, const FiberCore* me) {
  return isWrittenByThisThread(lock) && writingFiberOf(lock).load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(me);
}

// Without the sanitizer's interceptors, as in hook_mutex.cc.
constinit real::Real<decltype(::pthread_rwlock_tryrdlock)> g_libc_tryrdlock("pthread_rwlock_tryrdlock", nullptr);
constinit real::Real<decltype(::pthread_rwlock_trywrlock)> g_libc_trywrlock("pthread_rwlock_trywrlock", nullptr);
constinit real::Real<decltype(::pthread_rwlock_unlock)> g_libc_unlock("pthread_rwlock_unlock", nullptr);
[[gnu::constructor]] void lookUp() {
  g_libc_tryrdlock.lookUp(::dlsym(RTLD_NEXT, "pthread_rwlock_tryrdlock"));
  g_libc_trywrlock.lookUp(::dlsym(RTLD_NEXT, "pthread_rwlock_trywrlock"));
  g_libc_unlock.lookUp(::dlsym(RTLD_NEXT, "pthread_rwlock_unlock"));
}

int takeToRead(void* object) { return g_libc_tryrdlock(static_cast<pthread_rwlock_t*>(object)); }
int takeToWrite(void* object) {
  auto& lock = *static_cast<pthread_rwlock_t*>(object);
  const int error = g_libc_trywrlock(&lock);
  if (error == 0) writerOf(lock).store(0, std::memory_order_relaxed);  // until it is adopted
  return error;
}
void giveBackRead(void* object) { g_libc_unlock(static_cast<pthread_rwlock_t*>(object)); }
void giveBackWrite(void* object) {
  auto& lock = *static_cast<pthread_rwlock_t*>(object);
  writerOf(lock).store(thisThread(), std::memory_order_relaxed);
  g_libc_unlock(&lock);
}
constexpr LotKind kRead{SyncKind::kPthreadRWLock, &takeToRead, &giveBackRead};
constexpr LotKind kWrite{SyncKind::kPthreadRWLock, &takeToWrite, &giveBackWrite};

/// How a lock is taken: to read or to write.
struct Mode {
  const LotKind& kind;
  bool writes;
};
constexpr Mode kReads{kRead, false};
constexpr Mode kWrites{kWrite, true};

int tryLock(pthread_rwlock_t& lock, const Mode& mode, const FiberCore* me) {
  if (!mode.writes) return real::pthread_rwlock_tryrdlock(&lock);
  const int error = real::pthread_rwlock_trywrlock(&lock);
  if (error == 0) writingFiberOf(lock).store(reinterpret_cast<uintptr_t>(me), std::memory_order_relaxed);
  return error;
}

void adopt(pthread_rwlock_t& lock, const Mode& mode, const FiberCore* me) {
  if (mode.writes) {
    writerOf(lock).store(thisThread(), std::memory_order_relaxed);
    writingFiberOf(lock).store(reinterpret_cast<uintptr_t>(me), std::memory_order_relaxed);
  }
#ifdef SYLAR_TSAN
  const unsigned how = __tsan_mutex_try_lock | (mode.writes ? 0 : __tsan_mutex_read_lock);
  __tsan_mutex_pre_lock(&lock, how);
  __tsan_mutex_post_lock(&lock, how, 0);
#endif
}

/// Returns true if threads sleep in the kernel, or are about to.
bool threadsWait(pthread_rwlock_t& lock) {
  constexpr unsigned kUsed = 2;  // of the words on which they sleep
  const auto load = [](unsigned& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); };
  return load(lock.__data.__writers) != 0 ||
         ((load(lock.__data.__writers_futex) | load(lock.__data.__wrphase_futex)) & kUsed) != 0;
}

void releaseWaiters(pthread_rwlock_t& lock, bool threads_wait) {
  if (!ParkingLot::mayWait(&lock)) [[likely]]
    return;
  ParkingLot::release(&lock, SyncKind::kPthreadRWLock,
                      threads_wait ? ParkingLot::Release::kWakeAll : ParkingLot::Release::kHandOver);
}

/// Does what libc's call does, on a thread. A writer that gives up lets readers in, which libc tells its own waiters only.
template <class Block>
int lockOnThread(pthread_rwlock_t& lock, Block block) {
  const int error = block();
  if (error != 0) releaseWaiters(lock, true);
  return error;
}

template <class Block>
[[gnu::noinline]] int lockInFiber(Hook hook, pthread_rwlock_t& lock, const Mode& mode, LockTime until, bool timed, Block blocks) {
  const FiberCore* const me = runningFiber();
  if (!until.isValid()) return EINVAL;
  // Where writers come first, readers stand back behind those who wait. Otherwise a fiber may read twice.
  const bool stands_back = !mode.writes && lock.__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
  const int error = stands_back && ParkingLot::mayWait(&lock) && locksSuspend() ? EBUSY : tryLock(lock, mode, me);
  if (error != EBUSY) return error;
  if (isWrittenBy(lock, me)) return EDEADLK;
  if (!locksSuspend()) return blocks();
  const bool polls = lock.__data.__shared != 0;
  const int taken = takeInLot(
      &lock, {.hook = hook, .kind = mode.kind, .until = until, .shielded = !timed, .polls = polls, .stands_back = stands_back});
  if (taken == 0) adopt(lock, mode, me);
  return taken == ECANCELED || taken == ENOMEM ? ETIMEDOUT : taken;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  const auto block = [=] { return real::pthread_rwlock_rdlock(lock); };
  return outsideFibers() ? block() : lockInFiber(Hook::pthread_rwlock_rdlock, *lock, kReads, {}, false, block);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  const auto block = [=] { return real::pthread_rwlock_wrlock(lock); };
  return outsideFibers() ? block() : lockInFiber(Hook::pthread_rwlock_wrlock, *lock, kWrites, {}, false, block);
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_rwlock_timedrdlock(lock, time); };
  const LockTime until(CLOCK_REALTIME, time);
  return outsideFibers() ? lockOnThread(*lock, block)
                         : lockInFiber(Hook::pthread_rwlock_timedrdlock, *lock, kReads, until, true, block);
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_rwlock_timedwrlock(lock, time); };
  const LockTime until(CLOCK_REALTIME, time);
  return outsideFibers() ? lockOnThread(*lock, block)
                         : lockInFiber(Hook::pthread_rwlock_timedwrlock, *lock, kWrites, until, true, block);
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_rwlock_clockrdlock(lock, clock, time); };
  const LockTime until(clock, time);
  return outsideFibers() ? lockOnThread(*lock, block)
                         : lockInFiber(Hook::pthread_rwlock_clockrdlock, *lock, kReads, until, true, block);
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_rwlock_clockwrlock(lock, clock, time); };
  const LockTime until(clock, time);
  return outsideFibers() ? lockOnThread(*lock, block)
                         : lockInFiber(Hook::pthread_rwlock_clockwrlock, *lock, kWrites, until, true, block);
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return outsideFibers() ? real::pthread_rwlock_trywrlock(lock) : tryLock(*lock, kWrites, runningFiber());
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  if (!outsideFibers() && isWrittenByThisThread(*lock)) writingFiberOf(*lock).store(0, std::memory_order_relaxed);
  const bool threads_wait = threadsWait(*lock);
  const int error = real::pthread_rwlock_unlock(lock);
  releaseWaiters(*lock, threads_wait);
  return error;
}

}  // extern "C"
