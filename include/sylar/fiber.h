// A fiber is a function with its own stack: it can be suspended, and later resumes where it stopped.
//
// Most programs never touch this class: they give functions to a Scheduler or IOManager and call blocking functions. Use it to
// wait for a fiber (join), or to run a coroutine by hand (resume / yield).
//
// By hand, resume() runs the fiber until it yields, then returns to the caller; it works on any thread and inside any fiber. In
// a scheduler, call schedule(fiber) once; the fiber's yields return to the worker. A started fiber stays on the thread that
// first ran it.
//
// In a forked child of a process that has started a scheduler, only the fiber that forked exists, and it behaves as if it ran
// on a thread's own stack: YieldToReady and YieldToHold return at once, and cancel() of any other fiber has no effect.
//
// All of sylar's spellings exist: swapIn/call = resume, swapOut/back = yield, YieldToReady, YieldToHold.
//
// Thread safety: getId, getState, getName, setName, join, cancel and copies of the shared_ptr may be used from any thread;
// everything else only on the fiber's own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sylar/clock.h"

namespace sylar {

namespace detail {
class FiberControl;
}

/// As which thread of libc's a fiber of a scheduler runs. That says whose are its thread_local variables, keys, locale and signal
/// mask, and what pthread_self() gives.
enum class FiberIdentity : uint8_t {
  /// As the worker's, which all fibers of the worker share. A library that keeps something for its thread while it waits finds
  /// there what another fiber has left.
  kWorker,
  /// Each as one of its own, which it borrows from a pool for its function. A fiber that waits takes 10 KiB of memory in place of
  /// 4.5, and each wait 10 to 25 ns more, or two system calls where /proc/cpuinfo has no `fsgsbase`. Fibers resumed by hand
  /// run as the worker. Only with hooks, on x86-64, without AddressSanitizer and ThreadSanitizer; elsewhere as kWorker.
  kOwn,
};

/// A function with its own stack, which can be suspended and later resumes where it stopped.
class Fiber final : public std::enable_shared_from_this<Fiber> {
 public:
  using ptr = std::shared_ptr<Fiber>;

  /// The state of a fiber. INIT: it has never run. READY: it will be run again. EXEC: it is running, or has resumed a fiber
  /// that is. HOLD: it is suspended. TERM: its function has returned. EXCEPT: an exception left its function. RUNNING is
  /// another name for EXEC.
  enum State { INIT = 0, HOLD = 1, EXEC = 2, TERM = 3, READY = 4, EXCEPT = 5, RUNNING = EXEC };

  /// Makes a fiber that will run `cb` on a stack of `stacksize` bytes. 0 means the default, 128 KiB; any other size is clamped
  /// to [16 KiB, 1 GiB] and rounded up, to a power of two up to 2 MiB and to whole pages above. The fiber takes a stack and a
  /// thread only when it first runs. `use_caller` is accepted for compatibility with sylar and has no effect, because every
  /// fiber returns to the code that resumed it. Throws std::invalid_argument if `cb` is null, and std::bad_alloc; `cb` is then
  /// gone.
  explicit Fiber(std::function<void()> cb, size_t stacksize = 0, bool use_caller = false);

  /// Dropping the last handle of a suspended fiber that was started by hand reclaims its stack without running the destructors
  /// of the objects on it, and reports that. An exception that no join() has taken goes to the exception handler (by default a
  /// log line).
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives a new function to a fiber in INIT, TERM or EXCEPT. Throws std::logic_error in any other state.
  void reset(std::function<void()> cb);

  /// Says as which thread it runs, before it is given to a scheduler. kOwn, which it has at first, stands for what the scheduler's
  /// options say. kWorker saves memory in a fiber of which you know that it calls no library that keeps something for its thread.
  void setIdentity(FiberIdentity identity);

  /// Runs the fiber until it yields or ends. The call is refused, with a log line and no other effect, if the fiber is running,
  /// is parked in a blocking call, belongs to a scheduler, has ended, or was started on another thread. Throws std::bad_alloc
  /// if there is no memory for its stack; the fiber is then unchanged. An exception of its function is not thrown here; see
  /// join().
  void resume();
  void swapIn() { resume(); }
  void call() { resume(); }

  /// Suspends this fiber, which must be the running one, in state HOLD. May suspend: yes.
  void yield();
  void swapOut() { yield(); }
  void back() { yield(); }

  /// Suspends the running fiber but leaves it runnable. A scheduler runs it again after the others that are ready. Those that have
  /// not begun take turns with the ready ones, so a fiber that yields alone may go on before the next one begins. Code that resumed
  /// it by hand decides when to resume it. Does nothing on a thread's own stack.
  static void YieldToReady();
  /// Suspends the running fiber until it is scheduled or resumed. A schedule() that came earlier is not lost: it is kept as a
  /// permit, and this call returns at once. Does nothing on a thread's own stack.
  static void YieldToHold();

  /// Waits until the fiber has ended, then throws the exception that its function threw, if any (once: the first join takes
  /// it). Throws std::bad_alloc if there was no memory for its stack, and std::runtime_error if its scheduler abandoned it, or
  /// refused it and it has not been scheduled since. Suspends the caller if it is a fiber on a worker, otherwise blocks the
  /// thread. Cancelling the caller does not end the wait. A fiber that joins itself is a programmer error. Throws
  /// std::logic_error if the fiber has not ended, in a forked child of a process that has started a scheduler.
  void join();

  /// Asks the fiber to end, permanently: from now on none of its waits suspends for long. A hooked call that would wait fails
  /// with ECANCELED, and YieldToHold returns; see this_fiber::cancelled(). A fiber that has not started begins cancelled.
  /// Fibers that it has resumed by hand are cancelled with it. A fiber that ignores this and waits another 1 000 times is given
  /// up: it never runs again, and that is reported. If it holds a Mutex or RWMutex then, the process ends. Waits in join() and
  /// within a CancelShield are not affected. May suspend: no.
  void cancel();

  /// Sets the name for reports, of any length. It is empty at first. May throw std::bad_alloc.
  void setName(std::string name);
  std::string getName() const;
  /// Copies as much of the name as fits, with a 0 behind it, and returns the copied length. Usable in signal handlers; copies
  /// "" if the name is just being set.
  size_t copyName(char* out, size_t size) const noexcept;

  /// Returns the 64-bit id, which is never reused in this process. 0 stands for a thread's own stack.
  uint64_t getId() const;
  State getState() const;

  /// Returns the running fiber. On a thread's own stack, returns a handle with id 0 that stands for that stack.
  static ptr GetThis();
  /// Returns the id of the running fiber, or 0 on a thread's own stack.
  static uint64_t GetFiberId();
  /// Returns the number of Fiber objects that exist, including those of scheduled functions but not those that were abandoned.
  /// Usable in signal handlers.
  static uint64_t TotalFibers();
  /// Sets the stack size, clamped to [16 KiB, 1 GiB], of fibers that are made from now on without a size of their own.
  static void SetDefaultStackSize(size_t bytes);

  /// Receives each exception that left a fiber and that no join() took. A null handler restores the initial behaviour, a log
  /// line. The handler is called where the fiber's last handle is dropped, usually on a worker outside any fiber, and must not
  /// throw. While it blocks, that worker runs no fibers, and Scheduler::stop(deadline) leaves the worker behind as if it were
  /// computing.
  using ExceptionHandler = std::function<void(uint64_t id, const std::string& name, const std::exception_ptr& exception)>;
  static void SetExceptionHandler(ExceptionHandler handler);

 private:
  friend class detail::FiberControl;
  struct OwnStack {};
  explicit Fiber(OwnStack);

  detail::FiberControl* const m_control;
};

namespace this_fiber {

/// Returns true once the running fiber was asked to end: from then on none of its waits suspends, hooked calls fail with
/// ECANCELED, and YieldToHold returns at once. A loop around such calls should check this. Returns false on a thread's own
/// stack.
bool cancelled();

/// Returns the earliest deadline of the DeadlineScopes that the running fiber is in, or one that has resumed it by hand, or
/// Deadline::never(). A CancelShield hides the scopes outside of it.
Deadline deadline();

/// Bounds all waits of the fiber that makes it, and of those that it resumes by hand, while it exists. Calls of unmodified
/// libraries are bounded as well: a hooked call that would wait past the deadline ends as it does when its own timeout passes.
///
///   recv, send, accept, similar calls   -1 with EAGAIN, or what they have transferred so far
///   connect                             -1 with ETIMEDOUT
///   locks of files, open of a FIFO      -1 with ETIMEDOUT
///   getaddrinfo                         EAI_SYSTEM with ETIMEDOUT
///   poll, select, epoll_wait            0
///   sleep, usleep, nanosleep            the rest, or -1 with EINTR and the rest
///   Mutex, Channel and others of sync/  as if the deadline had been given to the call
///   curl_easy_perform                   CURLE_OPERATION_TIMEDOUT
/// Calls that need no waiting succeed even after the deadline. A poll, select or sleep that begins after it fails with ETIMEDOUT at
/// once (sleep returns 0), or loops around it would not end. An epoll_wait that begins after it is not bounded: its loop may serve
/// others. In nested scopes the earliest deadline counts. A CancelShield hides the scopes outside of it, so one inside bounds a
/// clean-up. Not bounded are Fiber::join, YieldToHold, calls without a deadline of Mutex and RWMutex, libc's locks, and other calls
/// on the blocking pool, such as getpwnam. The clock is the scheduler's. Has no effect on a thread's own stack. In a fiber that is
/// resumed by hand on a plain thread, it bounds the waits of sylar/sync only, because the other calls are libc's own there.
///
/// Thread safety: belongs to one scope of one fiber. May suspend: no. Source: Trio's move_on_at, Go's context.WithDeadline.
class DeadlineScope {
 public:
  explicit DeadlineScope(Deadline deadline);
  ~DeadlineScope();
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;

 private:
  void* const m_core;  // the fiber's core; null on a thread's own stack
  const Deadline m_outer;
};

/// While a shield exists, neither cancelling nor a DeadlineScope outside of it affects the waits of the fiber that made it. Use it
/// for clean-up that must be able to wait. All shields end at the deadline of Scheduler::stop(deadline). Shields may be nested;
/// each belongs to one scope of one fiber.
class CancelShield {
 public:
  CancelShield();
  ~CancelShield();
  CancelShield(const CancelShield&) = delete;
  CancelShield& operator=(const CancelShield&) = delete;

 private:
  void* const m_core;  // the fiber's core; null on a thread's own stack
  const bool m_outer;
  const Deadline m_hidden;  // of the scopes outside
};

}  // namespace this_fiber

/// Calls `function` within a this_fiber::DeadlineScope, and returns what it returns.
template <class Function>
decltype(auto) withDeadline(Deadline deadline, Function&& function) {
  const this_fiber::DeadlineScope scope(deadline);
  return std::forward<Function>(function)();
}

}  // namespace sylar
