// pthread_mutex_*, pthread_spin_lock. A fiber that finds a mutex locked is suspended, and gets it in its turn. The owner of a
// recursive or error-checking mutex that a fiber has locked is that fiber, and not every fiber of its thread. Source:
// pthread_mutex_lock(3p), pthread_mutex_timedlock(3p), pthread_spin_lock(3); glibc's bits/struct_mutex.h.
//
// libc's owner field names the thread, which is right because a fiber never changes it. The owning fiber is stored in the list
// link, which only robust mutexes use.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <climits>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/thread_pointer.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/lock/lock_wait.h"

#ifdef SYLAR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace sylar::detail {
namespace {

// The bits of a mutex's kind. Source: glibc, pthread.h and nptl/pthreadP.h.
constexpr int kType = 3;
constexpr int kRobust = 16;
constexpr int kPriority = 32 | 64;  // PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT
constexpr int kShared = 128;

int kindOf(const pthread_mutex_t& mutex) { return mutex.__data.__kind; }

/// Returns true for kinds that know their owner. Of robust ones only the thread is known.
bool knowsOwner(const pthread_mutex_t& mutex) {
  const int kind = kindOf(mutex);
  const int type = kind & kType;
  return (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) && (kind & kRobust) == 0;
}
/// Returns true for kinds that note the thread in a way that nobody else can change. No mutex is handed over to such a one.
bool isTakenByItself(const pthread_mutex_t& mutex) { return (kindOf(mutex) & (kRobust | kPriority)) != 0; }

#ifdef SYLAR_THREAD_POINTER
/// Where libc has the id of a thread, by which it knows the owner of a mutex, from the thread pointer on; 0 if that is not known.
constinit uintptr_t g_id_offset = 0;

/// Returns the id of the calling thread, as libc has it, if g_id_offset is known.
pid_t knownIdHere() { return *reinterpret_cast<const pid_t*>(threadPointer() + g_id_offset); }
/// Returns the same in any case. (In a child, sys::threadId() is another one while the handlers of pthread_atfork run, and if libc
/// has not made the fork.)
pid_t idHere() { return g_id_offset != 0 ? knownIdHere() : sys::threadId(); }
#else
pid_t knownIdHere() { return sys::knownThreadIdHere(); }
pid_t idHere() { return sys::threadId(); }
#endif

std::atomic_ref<int> ownerOf(pthread_mutex_t& mutex) { return std::atomic_ref(mutex.__data.__owner); }
bool isOfThisThread(pthread_mutex_t& mutex) {
  return ownerOf(mutex).load(std::memory_order_relaxed) == static_cast<int>(idHere());
}
/// The fiber that has locked the mutex; null if that was a thread outside fibers. Only if isOfThisThread().
const void* fiberOf(pthread_mutex_t& mutex) {
  return std::atomic_ref(mutex.__data.__list.__prev).load(std::memory_order_relaxed);
}
void setFiber(pthread_mutex_t& mutex, FiberCore* fiber) {
  auto* const link = reinterpret_cast<__pthread_internal_list*>(fiber);
  std::atomic_ref(mutex.__data.__list.__prev).store(link, std::memory_order_relaxed);
}
bool isOfAnotherFiber(pthread_mutex_t& mutex, const FiberCore* me) {
  return isOfThisThread(mutex) && fiberOf(mutex) != nullptr && fiberOf(mutex) != me;
}

// ---- In place. ---------------------------------------------------------------------------------------------------------------
//
// Nearly all mutexes are plain ones, such as std::mutex, or recursive, and nearly always free. These are locked and unlocked right
// here, as libc does it, because the way through libc's function costs as much again. Source: glibc, nptl/pthread_mutex_lock.c,
// pthread_mutex_unlock.c and lowlevellock.h.

#ifdef SYLAR_TSAN
constexpr bool g_knows_words = false;  // the sanitizer watches libc's functions
#else
/// True if libc's words are as they are known here.
constinit bool g_knows_words = false;
#endif

std::atomic_ref<int> wordOf(pthread_mutex_t& mutex) { return std::atomic_ref(mutex.__data.__lock); }  // 2 if threads sleep on it

bool isPlain(const pthread_mutex_t& mutex) { return kindOf(mutex) == PTHREAD_MUTEX_TIMED_NP && g_knows_words; }

/// Takes the word if it is free.
[[gnu::always_inline]] inline bool takeWord(pthread_mutex_t& mutex) {
  int free = wordOf(mutex).load(std::memory_order_relaxed);  // a look costs less than an attempt that fails
  return free == 0 && wordOf(mutex).compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
}

/// Locks a plain mutex if it is free.
[[gnu::always_inline]] inline bool lockPlain(pthread_mutex_t& mutex) {
  if (!takeWord(mutex)) return false;
  ownerOf(mutex).store(static_cast<int>(knownIdHere()), std::memory_order_relaxed);  // for debuggers
  ++mutex.__data.__nusers;
  return true;
}

/// Gives the word back. Returns true if threads wait for it in the kernel, one of which the caller has to wake.
[[gnu::always_inline]] inline bool unlockWord(pthread_mutex_t& mutex) {
  ownerOf(mutex).store(0, std::memory_order_relaxed);
  --mutex.__data.__nusers;
  return wordOf(mutex).exchange(0, std::memory_order_release) > 1;
}

#ifdef SYLAR_THREAD_POINTER

bool isRecursive(const pthread_mutex_t& mutex) { return kindOf(mutex) == PTHREAD_MUTEX_RECURSIVE_NP && g_knows_words; }

/// Returns true if `me`, null for a thread outside fibers, has locked the mutex.
[[gnu::always_inline]] inline bool isOwner(pthread_mutex_t& mutex, const FiberCore* me) {
  return ownerOf(mutex).load(std::memory_order_relaxed) == static_cast<int>(knownIdHere()) && fiberOf(mutex) == me;
}

/// Locks a recursive mutex if it is free or the caller's. The owner's id comes last: a signal handler of the thread that finds it
/// counts on what was written before.
[[gnu::always_inline]] inline bool lockRecursive(pthread_mutex_t& mutex) {
  FiberCore* const me = t_running;
  unsigned& count = mutex.__data.__count;
  if (isOwner(mutex, me)) {
    if (count == UINT_MAX) return false;  // which libc reports
    ++count;
    return true;
  }
  if (!takeWord(mutex)) return false;
  ++mutex.__data.__nusers;
  count = 1;
  if (me != nullptr) setFiber(mutex, me);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ownerOf(mutex).store(static_cast<int>(knownIdHere()), std::memory_order_relaxed);
  return true;
}

#else  // the sanitizers' runtimes have their own part in it, and other processors have not been tried

bool isRecursive(const pthread_mutex_t&) { return false; }
bool lockRecursive(pthread_mutex_t&) { return false; }

#endif

#ifndef SYLAR_TSAN
bool isFree(const pthread_mutex_t& mutex) {
  const auto& words = mutex.__data;
  return words.__lock == 0 && words.__owner == 0 && words.__nusers == 0 && words.__count == 0;
}

bool knowsPlain() {
  pthread_mutex_t probe = PTHREAD_MUTEX_INITIALIZER;
  const auto& words = probe.__data;
  bool same = real::pthread_mutex_lock(&probe) == 0 && words.__lock == 1 && words.__nusers == 1;
  same = same && !unlockWord(probe) && isFree(probe);
  same = same && lockPlain(probe) && real::pthread_mutex_trylock(&probe) == EBUSY && real::pthread_mutex_unlock(&probe) == 0;
  return same && isFree(probe);
}

#ifdef SYLAR_THREAD_POINTER
/// Finds g_id_offset.
bool knowsIds() {
  const pid_t* id = nullptr;
  if (sys::call(SYS_prctl, PR_GET_TID_ADDRESS, &id) != 0 || id == nullptr) return false;
  pthread_mutex_t probe = PTHREAD_MUTEX_INITIALIZER;
  const bool same = real::pthread_mutex_lock(&probe) == 0 && probe.__data.__owner == static_cast<int>(*id);
  if (same) g_id_offset = reinterpret_cast<uintptr_t>(id) - threadPointer();
  return same;
}

bool knowsRecursive() {
  pthread_mutex_t probe = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  const auto& words = probe.__data;
  const auto unlocksTwice = [&probe] {
    return real::pthread_mutex_unlock(&probe) == 0 && real::pthread_mutex_unlock(&probe) == 0 && isFree(probe);
  };
  bool same = real::pthread_mutex_lock(&probe) == 0 && words.__lock == 1 && words.__nusers == 1 && words.__count == 1;
  same = same && lockRecursive(probe) && words.__count == 2 && unlocksTwice();
  return same && lockRecursive(probe) && real::pthread_mutex_trylock(&probe) == 0 && words.__count == 2 && unlocksTwice();
}
#else
bool knowsIds() { return true; }
bool knowsRecursive() { return true; }  // it is not locked in place
#endif

/// Sees what libc does with mutexes, and whether libc takes what is done here for its own. Where libc stands before the hooks, they
/// are lost, and there is nothing to see.
[[gnu::constructor]] void learnWords() {
  if (::dlsym(RTLD_NEXT, "pthread_mutex_lock") == nullptr) return;
  g_knows_words = knowsIds() && knowsPlain() && knowsRecursive();
}
#endif

// ---- Waiting. ----------------------------------------------------------------------------------------------------------------

// Without the sanitizer's interceptor: whoever hands a mutex over does not become its owner.
constinit real::Real<decltype(::pthread_mutex_trylock)> g_libc_trylock("pthread_mutex_trylock", nullptr);
constinit real::Real<decltype(::pthread_mutex_unlock)> g_libc_unlock("pthread_mutex_unlock", nullptr);
[[gnu::constructor]] void lookUp() {
  g_libc_trylock.lookUp(::dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
  g_libc_unlock.lookUp(::dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
}

/// Takes a mutex for a waiter, which adopts it. Until then it has no owner: it is not this thread's.
int takeMutex(void* object) {
  auto& mutex = *static_cast<pthread_mutex_t*>(object);
  if (isPlain(mutex)) return lockPlain(mutex) ? 0 : EBUSY;
  if (isTakenByItself(mutex)) return real::pthread_mutex_trylock(&mutex);  // only the waiter itself does so
  if (knowsOwner(mutex) && isOfThisThread(mutex)) return EBUSY;            // another fiber's
  const int error = g_libc_trylock(&mutex);
  if (error == 0) ownerOf(mutex).store(0, std::memory_order_relaxed);
  return error;
}
void giveBackMutex(void* object) {
  auto& mutex = *static_cast<pthread_mutex_t*>(object);
  ownerOf(mutex).store(static_cast<int>(idHere()), std::memory_order_relaxed);
  g_libc_unlock(&mutex);
}
constexpr LotKind kMutex{SyncKind::kPthreadMutex, &takeMutex, &giveBackMutex};

/// Makes the mutex, which was taken for it, the calling fiber's.
void adopt(pthread_mutex_t& mutex, FiberCore* me) {
  if (isTakenByItself(mutex)) return;
  ownerOf(mutex).store(static_cast<int>(idHere()), std::memory_order_relaxed);
  if (knowsOwner(mutex)) setFiber(mutex, me);
#ifdef SYLAR_TSAN
  __tsan_mutex_pre_lock(&mutex, __tsan_mutex_try_lock);
  __tsan_mutex_post_lock(&mutex, __tsan_mutex_try_lock, 0);
#endif
}

/// Locks a mutex for the fiber `me`, without waiting. Returns EBUSY as well where another fiber of the thread has it.
int tryLock(pthread_mutex_t& mutex, FiberCore* me) {
  const bool owned = knowsOwner(mutex);
  if (owned && isOfAnotherFiber(mutex, me)) return EBUSY;
  const int error = real::pthread_mutex_trylock(&mutex);
  if (owned && error == 0) setFiber(mutex, me);
  return error;
}

/// Returns true if the mutex is one that `me` has locked and that refuses to be locked again.
bool refuses(pthread_mutex_t& mutex, const FiberCore* me) {
  return (kindOf(mutex) & kType) == PTHREAD_MUTEX_ERRORCHECK && isOfThisThread(mutex) &&
         (fiberOf(mutex) == me || (kindOf(mutex) & kRobust) != 0);
}

/// Returns true where threads are fibers: the kernel knows no thread of theirs whose priority it could raise.
bool priorityIsIgnored() {
#ifdef SYLAR_THREAD_POINTER
  return g_threads_are_fibers.load(std::memory_order_relaxed) != 0;
#else
  return false;
#endif
}

/// Locks a mutex in a fiber. `blocks` is libc's call.
template <class Block>
[[gnu::noinline]] int lockInFiber(Hook hook, pthread_mutex_t& mutex, LockTime until, bool timed, Block blocks) {
  FiberCore* const me = runningFiber();
  if (isPlain(mutex)) {
    if (lockPlain(mutex)) return 0;
  } else {
    if ((kindOf(mutex) & kPriority) != 0 && !priorityIsIgnored()) return blocks();
    const int error = tryLock(mutex, me);
    if (error != EBUSY) return error;
    if (refuses(mutex, me)) return EDEADLK;
  }
  if (!locksSuspend()) {
    if (knowsOwner(mutex) && isOfAnotherFiber(mutex, me)) return EDEADLK;  // libc would let it in, as the same thread
    const int blocked = blocks();
    if (blocked == 0 && knowsOwner(mutex)) setFiber(mutex, me);
    return blocked;
  }
  if (!until.isValid()) return EINVAL;
  const bool polls = (kindOf(mutex) & (kRobust | kPriority | kShared)) != 0;
  const int taken = takeInLot(&mutex, {.hook = hook, .kind = kMutex, .until = until, .shielded = !timed, .polls = polls});
  if (taken == 0) adopt(mutex, me);
  return taken == ECANCELED || taken == ENOMEM ? ETIMEDOUT : taken;
}

[[gnu::noinline]] void releaseWaiters(pthread_mutex_t& mutex, bool threads_wait) {
  // Threads that sleep in the kernel get their chance as well: one of them was woken, and the oldest fiber competes with it.
  ParkingLot::release(&mutex, kMutex.what, threads_wait ? ParkingLot::Release::kWakeOne : ParkingLot::Release::kHandOver);
}

/// Wakes those who wait for a mutex that was unlocked in place.
[[gnu::noinline]] int wakeAndRelease(pthread_mutex_t& mutex, bool threads_wait) {
  if (threads_wait) sys::call(SYS_futex, &mutex.__data.__lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
  if (ParkingLot::mayWait(&mutex)) releaseWaiters(mutex, threads_wait);
  return 0;
}

[[gnu::always_inline]] inline int unlockInPlace(pthread_mutex_t& mutex) {
  const bool threads_wait = unlockWord(mutex);
  if (!threads_wait && !ParkingLot::mayWait(&mutex)) [[likely]]
    return 0;
  return wakeAndRelease(mutex, threads_wait);
}

/// Unlocks a plain mutex for which fibers may wait. Where only fibers do, the mutex goes to the oldest of them without being free
/// in between.
[[gnu::noinline]] int unlockForWaiters(pthread_mutex_t& mutex) {
  if (wordOf(mutex).load(std::memory_order_relaxed) == 1 && ParkingLot::passOn(&mutex, kMutex.what)) return 0;
  return unlockInPlace(mutex);
}

[[gnu::noinline]] int unlockByLibc(pthread_mutex_t& mutex) {
  if (const FiberCore* const me = runningFiber(); me != nullptr && knowsOwner(mutex) && isOfThisThread(mutex)) {
    if (isOfAnotherFiber(mutex, me)) return EPERM;
    if (mutex.__data.__count <= 1) setFiber(mutex, nullptr);
  }
  const bool wakes = isTakenByItself(mutex) || wordOf(mutex).load(std::memory_order_relaxed) > 1;
  const int error = real::pthread_mutex_unlock(&mutex);
  if (error == 0 && ParkingLot::mayWait(&mutex)) releaseWaiters(mutex, wakes);
  return error;
}

/// Unlocks a recursive mutex once.
[[gnu::always_inline]] inline int unlockRecursive([[maybe_unused]] pthread_mutex_t& mutex) {
#ifdef SYLAR_THREAD_POINTER
  const FiberCore* const me = t_running;
  if (isOwner(mutex, me)) {
    if (--mutex.__data.__count > 0) return 0;
    ownerOf(mutex).store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (me != nullptr) setFiber(mutex, nullptr);
    return unlockInPlace(mutex);
  }
#endif
  return unlockByLibc(mutex);
}

/// Locks a mutex that could not be locked in place.
[[gnu::noinline]] int lockElsewhere(pthread_mutex_t& mutex) {
  FiberCore* const me = t_running;
  if (me != nullptr && isPlain(mutex) && locksSuspend()) {
    const int error = takeInLotForEver(*me, Hook::pthread_mutex_lock, &mutex, kMutex);
    ownerOf(mutex).store(static_cast<int>(knownIdHere()), std::memory_order_relaxed);
    return error;
  }
  const auto block = [&mutex] { return real::pthread_mutex_lock(&mutex); };
  return me == nullptr ? block() : lockInFiber(Hook::pthread_mutex_lock, mutex, {}, false, block);
}

}  // namespace

void noteLockedByLibc(pthread_mutex_t& mutex) {
  FiberCore* const me = runningFiber();
  if (me != nullptr && knowsOwner(mutex) && isOfThisThread(mutex)) setFiber(mutex, me);
}

InPlace locksInPlace() { return {.plain = g_knows_words, .recursive = isRecursive(PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP)}; }

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  const bool locked = isPlain(*mutex) ? lockPlain(*mutex) : isRecursive(*mutex) && lockRecursive(*mutex);
  if (!locked) [[unlikely]]
    return lockElsewhere(*mutex);
  return 0;
}
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_mutex_timedlock(mutex, time); };
  const LockTime until(CLOCK_REALTIME, time);
  return outsideFibers() ? block() : lockInFiber(Hook::pthread_mutex_timedlock, *mutex, until, true, block);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) noexcept {
  const auto block = [=] { return real::pthread_mutex_clocklock(mutex, clock, time); };
  const LockTime until(clock, time);
  return outsideFibers() ? block() : lockInFiber(Hook::pthread_mutex_clocklock, *mutex, until, true, block);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return outsideFibers() ? real::pthread_mutex_trylock(mutex) : tryLock(*mutex, runningFiber());
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (isPlain(*mutex)) return ParkingLot::mayWait(mutex) ? unlockForWaiters(*mutex) : unlockInPlace(*mutex);
  return isRecursive(*mutex) ? unlockRecursive(*mutex) : unlockByLibc(*mutex);
}

// Its holder, if it is a fiber of this thread, must come to run.
int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (outsideFibers() || !locksSuspend()) return real::pthread_spin_lock(lock);
  constexpr unsigned kSpins = 100;
  for (unsigned i = 1;; ++i) {
    const int error = ::pthread_spin_trylock(lock);
    if (error != EBUSY) return error;
    i % kSpins == 0 ? Fiber::YieldToReady() : StdMemory::relax();
  }
}

}  // extern "C"
