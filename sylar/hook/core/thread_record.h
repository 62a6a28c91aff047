// Internal. What the library knows of a thread that is a fiber (fiber_thread.h), and how many there are.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"
#include "sylar/sched/waker.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

extern constinit std::atomic<int> g_threads_are_fibers;
/// The signals that no thread of fibers can block, as sigprocmask(2) has them.
extern constinit std::atomic<uint64_t> g_never_blocked;

/// What the library knows of a thread that is a fiber. It stands in the thread's own thread_local memory, so that it is found by
/// the pthread_t, as long as that is valid.
struct FiberThread {
  enum State : uint32_t { kIsThread, kRuns, kLeft };

  /// Returns that of `thread`, which must not have been joined.
  static FiberThread& of(pthread_t thread);
  static FiberThread& mine() { return t_mine; }
  bool isFiber() const { return state.load(std::memory_order_acquire) != kIsThread; }
  /// Notes that `its_fiber` runs it from now on. From here on it gets what is sent to it.
  void isRunBy(Fiber* its_fiber) { fiber.store(its_fiber, std::memory_order_seq_cst); }
  /// Notes that no fiber runs it any more. For the thread itself. The fiber and the thread may end when this has returned.
  void isLeft();
  /// Returns the number of those that have not left.
  static std::atomic<uint32_t>& count();

  /// Returns true if it is to act on a pthread_cancel. libc believes it disabled, because its own functions must not unwind the
  /// thread out of the library's sections. The library's waits do, at their ends.
  bool isCancelled() const {
    return cancel_asked.load(std::memory_order_relaxed) && !cancel_disabled.load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t> state{kIsThread};
  std::atomic<pid_t> worker{0};              ///< the id of the worker's thread that runs it; 0 before it has begun
  std::atomic<uintptr_t> worker_pointer{0};  ///< the thread pointer of that thread, while it may run this one; else 0
  bool gets_signal = false;                  ///< the signal that is raised now was sent to this thread
  bool hears_cancel = false;                 ///< the library cancels it: it is a fiber, or main
  std::atomic<bool> cancel_asked{false};
  std::atomic<bool> cancel_disabled{false};  ///< pthread_setcancelstate
  bool cancel_anywhere = false;              ///< pthread_setcanceltype: it need not wait
  int* libc_id = nullptr;                    ///< where libc has its id
  char name[16]{};                           ///< "" if it has the name of the program
  std::atomic<uint64_t> sent{0};             ///< the signals that pthread_kill has sent and it has not got
  std::atomic<Fiber*> fiber{nullptr};        ///< that runs it now
  std::atomic<uint32_t> senders{0};          ///< how many threads look at `fiber`
  Waker signal_wait;                         ///< its last wait that ends by a blocked signal (sigwait, a mask)

 private:
  [[gnu::tls_model("initial-exec")]] static constinit thread_local FiberThread t_mine;
};

/// Unwinds the calling thread by force, because it was cancelled.
[[noreturn]] void unwindCancelled();

#endif

/// While it exists, no pthread_cancel ends the calling thread's waits, which are in a call that is no cancellation point.
class NoCancellationPoint {
 public:
#ifdef SYLAR_THREAD_POINTER
  NoCancellationPoint() : m_before(FiberThread::mine().cancel_disabled.exchange(true, std::memory_order_relaxed)) {}
  ~NoCancellationPoint() { FiberThread::mine().cancel_disabled.store(m_before, std::memory_order_relaxed); }
#else
  NoCancellationPoint() {}
#endif
  NoCancellationPoint(const NoCancellationPoint&) = delete;
  NoCancellationPoint& operator=(const NoCancellationPoint&) = delete;

 private:
#ifdef SYLAR_THREAD_POINTER
  const bool m_before;
#endif
};

}  // namespace sylar::detail
