// pthread_create and what is done to threads by their pthread_t, where threads are fibers (ThreadsAreFibers). Otherwise all of it
// is libc's. Source: pthread_create(3), pthread_exit(3), pthread_kill(3), pthread_cancel(3), pthread_setname_np(3), thrd_create of
// C11.
#include "sylar/hook/thread/fiber_thread.h"

#ifdef SYLAR_THREAD_POINTER

#include <pthread.h>
#include <sched.h>
#include <threads.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/lock/lock_wait.h"
#include "sylar/hook/lock/parking_lot.h"
#include "sylar/sched/worker.h"

// clang-format off
#define SYLAR_THREAD_NAMES(X) \
  X(pthread_create) X(pthread_exit) X(pthread_kill) X(raise) X(pthread_cancel) X(pthread_testcancel) \
  X(pthread_setcancelstate) X(pthread_setcanceltype) X(pthread_sigmask) X(sigprocmask) \
  X(pthread_setname_np) X(pthread_getname_np) X(pthread_setaffinity_np) X(pthread_getaffinity_np) \
  X(pthread_setschedparam) X(pthread_getschedparam) X(pthread_setschedprio) X(pthread_getcpuclockid) \
  X(pthread_getattr_np) X(sigpending) X(thrd_create)
// clang-format on

// As in real.cc, a sanitizer's interceptor comes first, or it would not learn that there are threads.
#define SYLAR_WEAK_(name) extern "C" decltype(::name) __interceptor_##name __attribute__((weak));
SYLAR_THREAD_NAMES(SYLAR_WEAK_)
#undef SYLAR_WEAK_

namespace sylar::detail {
namespace {

#define SYLAR_LIBC_(name) constinit real::Real<decltype(::name)> g_##name(#name, &__interceptor_##name);
SYLAR_THREAD_NAMES(SYLAR_LIBC_)
#undef SYLAR_LIBC_

constexpr LotKind kLastThread{SyncKind::kOnce};

bool isFiber(pthread_t thread) { return FiberThread::of(thread).isFiber(); }
bool isSelf(pthread_t thread) { return ::pthread_equal(thread, ::pthread_self()) != 0; }

/// Returns true in a fiber that is no thread of its own, of a program whose threads are fibers, such as its main.
bool isMainOfFiberThreads() {
  return g_threads_are_fibers.load(std::memory_order_relaxed) != 0 && !outsideFibers() && !FiberThread::mine().isFiber() &&
         maySuspendHere();
}

bool g_main_leaves = false;

/// Waits until no thread is left that is a fiber.
void awaitLastThread() {
  std::atomic<uint32_t>& count = FiberThread::count();
  const this_fiber::CancelShield shield;
  while (count.load(std::memory_order_acquire) != 0) {
    LotWait wait(&count, kLastThread, true);
    if (!wait.enterUnless([&] { return count.load(std::memory_order_acquire) == 0; })) return;
    CallWait call(EndedBy::kNone);
    wait.park(Deadline::never(), call);
  }
}

/// Called when the calling thread has set its mask.
void noteMask() {
  const Worker* const worker = Worker::current();
  const bool keeps_mask =
      (worker != nullptr && worker->lends_threads) || g_threads_are_fibers.load(std::memory_order_relaxed) != 0;
  if (!keeps_mask || outsideFibers()) return;
  uint64_t mask = 0;
  const uint64_t never = g_never_blocked.load(std::memory_order_relaxed);
  sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, &never, nullptr, sizeof never);
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask);
  keepSignalMask(mask);
  raiseSent();
}

/// Makes a call of libc that asks the kernel by the id of `thread`. Meanwhile that is the id of the worker's thread.
template <class Ask>
int askOfWorker(pthread_t thread, Ask ask) {
  const FiberThread& of = FiberThread::of(thread);
  if (of.state.load(std::memory_order_acquire) != FiberThread::kRuns) return ask();
  const pid_t worker = of.worker.load(std::memory_order_acquire);
  const std::atomic_ref id(*of.libc_id);
  const int before = id.exchange(worker != 0 ? worker : static_cast<pid_t>(sys::call(SYS_gettid)));
  const int error = ask();
  id.store(before);
  return error;
}

/// Returns true if it is the thread of the calling fiber's worker, which is main's where threads are fibers.
bool isMain(pthread_t thread) { return !isFiber(thread) && !outsideFibers() && thread == threadOfWorker(); }

/// Sends a signal to a thread that is a fiber.
void send(pthread_t thread, int signal) {
  FiberThread::of(thread).sent.fetch_or(uint64_t{1} << (signal - 1), std::memory_order_seq_cst);
  tell(thread);
}

struct C11Start {
  thrd_start_t function;
  void* argument;

  static void* run(void* start) {
    const C11Start mine = *static_cast<C11Start*>(start);
    delete static_cast<C11Start*>(start);
    return reinterpret_cast<void*>(static_cast<intptr_t>(mine.function(mine.argument)));
  }
};

}  // namespace

void awaitThreadsOfMain() {
  if (std::exchange(g_main_leaves, false)) awaitLastThread();
}

void unwindCancelled() {
  FiberThread::mine().cancel_asked = false;  // it is heard once
  FiberThread::mine().hears_cancel = false;
  if (isMainOfFiberThreads()) g_main_leaves = true;
  g_pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  g_pthread_testcancel();
  __builtin_unreachable();
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) noexcept {
  return makesFiberThreads() ? createFiberThread(thread, attributes, function, argument)
                             : g_pthread_create(thread, attributes, function, argument);
}

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  if (!makesFiberThreads()) return g_thrd_create(thread, function, argument);
  auto* const start = new (std::nothrow) C11Start{function, argument};
  if (start == nullptr) return thrd_nomem;
  const int error = createFiberThread(thread, nullptr, &C11Start::run, start);
  if (error == 0) return thrd_success;
  delete start;
  return error == ENOMEM || error == EAGAIN ? thrd_nomem : thrd_error;
}

/// The kernel thread of a main whose threads are fibers cannot end before them. See awaitThreadsOfMain().
void pthread_exit(void* value) {
  if (isMainOfFiberThreads()) g_main_leaves = true;
  g_pthread_exit(value);
  __builtin_unreachable();
}

int pthread_kill(pthread_t thread, int signal) noexcept {
  if (sys::inForkedChild()) return g_pthread_kill(thread, signal);
  const bool of_fiber = isFiber(thread);
  const bool is_main = isMain(thread) && FiberThread::mine().isFiber();
  if (!of_fiber && !is_main) return g_pthread_kill(thread, signal);  // which finds no fiber: ESRCH
  if (signal < 0 || signal >= NSIG) return EINVAL;
  if (signal != 0) of_fiber ? send(thread, signal) : asThread(thread, &raiseHere, signal);
  return 0;
}

int raise(int signal) noexcept {
  const bool runs = FiberThread::mine().state.load(std::memory_order_relaxed) == FiberThread::kRuns;
  if (!runs || sys::inForkedChild() || signal <= 0 || signal >= NSIG) return g_raise(signal);
  send(::pthread_self(), signal);
  return 0;
}

int sigpending(sigset_t* set) noexcept {
  const int result = g_sigpending(set);
  const uint64_t sent = FiberThread::mine().sent.load(std::memory_order_relaxed);
  for (int signal = 1; result == 0 && sent != 0 && signal < NSIG; ++signal) {
    if ((sent & (uint64_t{1} << (signal - 1))) != 0) ::sigaddset(set, signal);
  }
  return result;
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  const int error = g_pthread_sigmask(how, set, old);
  if (set != nullptr) noteMask();
  return error;
}
int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  const int result = g_sigprocmask(how, set, old);
  if (set != nullptr) noteMask();
  return result;
}

// libc notes that such a thread is cancelled, and believes that it has this disabled (see isCancelled()).
int pthread_cancel(pthread_t thread) {
  FiberThread& of = FiberThread::of(thread);
  const int error = g_pthread_cancel(thread);
  if (!of.hears_cancel) return error;
  of.cancel_asked = true;
  if (isSelf(thread)) {
    if (of.cancel_anywhere && of.isCancelled()) unwindCancelled();
  } else if (isMain(thread)) {
    asThread(
        thread, [](long) { Interruptible::cancelled(); }, 0);
  } else {
    tell(thread);
  }
  return 0;
}
void pthread_testcancel() {
  const FiberThread& mine = FiberThread::mine();
  if (!mine.hears_cancel) return g_pthread_testcancel();
  if (mine.isCancelled()) unwindCancelled();
}
int pthread_setcancelstate(int state, int* old) {
  FiberThread& mine = FiberThread::mine();
  if (!mine.hears_cancel) return g_pthread_setcancelstate(state, old);
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  const bool before = mine.cancel_disabled.exchange(state == PTHREAD_CANCEL_DISABLE);
  if (old != nullptr) *old = before ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
  if (mine.cancel_anywhere && mine.isCancelled()) unwindCancelled();
  return 0;
}
int pthread_setcanceltype(int type, int* old) {
  FiberThread& mine = FiberThread::mine();
  if (!mine.hears_cancel) return g_pthread_setcanceltype(type, old);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  const bool before = std::exchange(mine.cancel_anywhere, type == PTHREAD_CANCEL_ASYNCHRONOUS);
  if (old != nullptr) *old = before ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
  if (mine.cancel_anywhere && mine.isCancelled()) unwindCancelled();
  return 0;
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (!isFiber(thread)) return g_pthread_setname_np(thread, name);
  FiberThread& of = FiberThread::of(thread);
  if (std::strlen(name) >= sizeof of.name) return ERANGE;
  std::strcpy(of.name, name);
  return 0;
}

int pthread_getname_np(pthread_t thread, char* name, size_t size) noexcept {
  const FiberThread& of = FiberThread::of(thread);
  if (!of.isFiber() || of.name[0] == '\0') return g_pthread_getname_np(isFiber(thread) ? ::pthread_self() : thread, name, size);
  if (size < sizeof of.name) return ERANGE;
  std::strcpy(name, of.name);
  return 0;
}

// What the kernel is asked about the thread of a fiber, it is asked about the worker's.
int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t* processors) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_setaffinity_np(thread, size, processors); });
}
int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t* processors) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_getaffinity_np(thread, size, processors); });
}
int pthread_setschedparam(pthread_t thread, int policy, const sched_param* parameters) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_setschedparam(thread, policy, parameters); });
}
int pthread_getschedparam(pthread_t thread, int* policy, sched_param* parameters) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_getschedparam(thread, policy, parameters); });
}
int pthread_setschedprio(pthread_t thread, int priority) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_setschedprio(thread, priority); });
}
int pthread_getcpuclockid(pthread_t thread, clockid_t* clock) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_getcpuclockid(thread, clock); });
}
int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  return askOfWorker(thread, [=] { return g_pthread_getattr_np(thread, attributes); });
}

pid_t gettid() noexcept {
  return FiberThread::mine().isFiber() ? *FiberThread::mine().libc_id : static_cast<pid_t>(sys::call(SYS_gettid));
}

}  // extern "C"

#endif
