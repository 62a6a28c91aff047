// A fiber: a function with a stack of its own, which can be suspended and goes on later where it stopped.
//
// Most programs never touch this class: they give functions to a Scheduler or IOManager and call blocking functions. Use it to
// wait for a fiber (join), or to run a coroutine by hand (resume / yield).
//
// By hand: resume() runs the fiber until it yields, and returns to the caller; on any thread and from inside any fiber. In a
// scheduler: schedule(fiber) once; its yields return to the worker. A started fiber stays on the thread that first ran it.
//
// sylar's spellings are all here: swapIn/call = resume, swapOut/back = yield, YieldToReady, YieldToHold.
//
// Thread safety: getId, getState, getName, setName, join, cancel and shared_ptr copies from any thread; all else on the
// fiber's own thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "sylar/base/check.h"
#include "sylar/base/os_mutex.h"
#include "sylar/fiber/queue_node.h"

namespace sylar {

struct FiberCore;
class FiberDestination;
class FiberHome;
class ThreadFibers;

class Fiber final : public std::enable_shared_from_this<Fiber>, public QueueNode {
 public:
  using ptr = std::shared_ptr<Fiber>;

  /// INIT: never run. READY: to be run again. EXEC: runs, or has resumed a fiber that runs. HOLD: suspended. TERM: its function
  /// has returned. EXCEPT: an exception left it. RUNNING is another name for EXEC.
  enum State { INIT = 0, HOLD = 1, EXEC = 2, TERM = 3, READY = 4, EXCEPT = 5, RUNNING = EXEC };

  /// A fiber that will run `cb` on a stack of `stacksize` bytes (0: the default, 128 KiB; else clamped to [16 KiB, 1 GiB] and
  /// rounded up: to a power of two, above 2 MiB to pages). Neither stack nor thread is taken before it first runs. `use_caller`
  /// is accepted for sylar's sake: every fiber returns to whoever resumed it. Throws std::invalid_argument if `cb` is null.
  explicit Fiber(std::function<void()> cb, size_t stacksize = 0, bool use_caller = false);

  /// Dropping the last handle of a fiber that was started by hand and is suspended reclaims its stack without running the
  /// destructors on it; that is reported. An exception that nobody took by join() goes to the handler (a log line).
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives a fiber in INIT, TERM or EXCEPT a new function. In another state: std::logic_error.
  void reset(std::function<void()> cb);

  /// Runs the fiber until it yields or ends. Refused with a log line, and without effect: if it runs, is parked in a blocking
  /// call, belongs to a scheduler, has ended, or was started on another thread. Throws std::bad_alloc if there is no
  /// memory for its stack; then it is as before. An exception of its function does not come out here: see join().
  void resume();
  void swapIn() { resume(); }
  void call() { resume(); }

  /// Suspends the fiber, which must be the one that runs, in HOLD. May suspend: yes.
  void yield();
  void swapOut() { yield(); }
  void back() { yield(); }

  /// Suspends the running fiber; a scheduler runs it again after the others, a hand resumer when it likes. On a thread's own
  /// stack: nothing happens.
  static void YieldToReady();
  /// Suspends the running fiber until somebody schedules or resumes it. A schedule() that came before is not lost: it is kept as
  /// a permit, and this call returns at once. On a thread's own stack: nothing happens.
  static void YieldToHold();

  /// Waits until the fiber has ended, then throws what its function threw (once: the first join takes it), std::bad_alloc if
  /// there was no memory for its stack, std::runtime_error if its scheduler gave it up. On a worker the calling fiber is
  /// suspended, elsewhere the thread blocks; cancelling the caller does not end the wait. Joining oneself is a programmer error.
  void join();

  /// Asks the fiber to end, now and for good: from now on none of its waits suspends for long. A hooked call that would wait
  /// fails with ECANCELED, YieldToHold returns; see this_fiber::cancelled(). A fiber that has not started begins cancelled. What
  /// it has resumed by hand is cancelled with it. One that goes on waiting regardless, 1 000 times, is given up: it never runs
  /// again and is reported. Waits of join() and of a CancelShield's scope are left alone. Suspends: no.
  void cancel();

  /// A name for reports. Any length; empty at first.
  void setName(std::string name);
  std::string getName() const;
  /// As much of the name as fits, with a 0 behind it; returns its length. For signal handlers: "" while somebody sets it.
  size_t copyName(char* out, size_t size) const noexcept;

  /// 64 bit, never used again in this process; 0 is a thread's own stack.
  uint64_t getId() const { return m_id; }
  State getState() const;

  /// The running fiber. On a thread's own stack: a handle with id 0 that stands for it.
  static ptr GetThis();
  /// Id of the running fiber, 0 on a thread's own stack.
  static uint64_t GetFiberId();
  /// Number of Fiber objects that exist, those of scheduled functions included, those that were given up not. In a signal
  /// handler, too.
  static uint64_t TotalFibers();
  /// Stack size of fibers that name none; clamped to [16 KiB, 1 GiB]. For fibers made from now on.
  static void SetDefaultStackSize(size_t bytes);

  /// Who is told of an exception that left a fiber and that nobody took by join(). Null: a log line, as at first. Called where
  /// the fiber's last handle goes, usually on a worker; must not throw.
  using ExceptionHandler = std::function<void(uint64_t id, const std::string& name, const std::exception_ptr& exception)>;
  static void SetExceptionHandler(ExceptionHandler handler);

  // ---- For sched: how a scheduler moves fibers. -----------------------------------------------------------------------------

  /// What a fiber is doing. Changed in one place, which checks where it comes from.
  enum class Life : uint8_t {
    kInit,        ///< never run
    kQueued,      ///< in a scheduler's queue, owned by it
    kRunning,     ///< has the thread
    kResuming,    ///< has resumed another fiber, which has not come back yet
    kReady,       ///< yielded to a hand resumer, wants to run
    kHeldByHand,  ///< yielded to a hand resumer, waits to be resumed or scheduled
    kHeld,        ///< a scheduler's, waits to be scheduled
    kParked,      ///< waits for its wait word to be claimed
    kEnded,
    kFailed,     ///< ended by an exception
    kAbandoned,  ///< suspended for ever
  };
  Life life() const { return m_life.load(std::memory_order_acquire); }
  static bool isOver(Life life) { return life >= Life::kEnded; }
  /// `from` -> `to`; anything else is a bug of the library.
  void move(Life from, Life to) {
    const Life was = m_life.load(std::memory_order_relaxed);
    SYLAR_CHECK_EQ(was, from);
    m_life.store(to, std::memory_order_release);
  }
  /// The same, for a transition that several threads may compete for: false if somebody else was faster.
  [[nodiscard]] bool tryMove(Life from, Life to) { return m_life.compare_exchange_strong(from, to, std::memory_order_acq_rel); }

  /// Told once when a fiber ends; lies with the one who waits.
  struct EndObserver {
    EndObserver* next = nullptr;
    void (*ended)(EndObserver*) = nullptr;  ///< brief; may let the observer go, not take it back
  };
  /// False: it has ended already.
  [[nodiscard]] bool observeEnd(EndObserver& observer);
  /// Afterwards it is not told, nor being told.
  void unobserveEnd(EndObserver& observer);

  /// What other threads may ask of it.
  enum Asked : uint8_t { kPermit = 1, kCancel = 2 };
  /// Goes to the fiber's worker by mail, and keeps the fiber until it is opened.
  class Question final : public QueueNode {
   public:
    /// Null: there is no memory for one, and the fiber's own, which it has for that, is under way: that will do.
    static Question* make(ptr fiber) noexcept;
    /// Takes the fiber out of a question that has arrived, which ends.
    static ptr open(QueueNode* question);

   private:
    friend class Fiber;
    explicit Question(bool spare) : QueueNode(Kind::kMessage), m_spare(spare) {}
    const bool m_spare;
    ptr m_fiber;
  };
  /// Cancelled, and its thread has not looked yet. On plain threads nobody looks but this_fiber::cancelled().
  bool askedToEnd() const { return (m_asked.load(std::memory_order_relaxed) & kCancel) != 0; }

  /// The fiber that it waits for in join(); for its own worker, and for the stop detection.
  Fiber* joins() const { return m_joins; }
  void setJoins(Fiber* fiber) { m_joins = fiber; }

  /// What it waits for when it is parked, for reports.
  enum class WaitsFor : uint8_t { kEvent, kTime, kRead, kWrite, kPoll, kFiber, kHelper };
  void noteWait(WaitsFor what, int fd) {
    m_waits_for.store(static_cast<uint64_t>(what) << 32 | static_cast<uint32_t>(fd), std::memory_order_relaxed);
  }
  /// What it is doing, in words: "reads descriptor 7".
  std::string describe() const;

 private:
  friend class ThreadFibers;
  struct OwnStack {};
  explicit Fiber(OwnStack);

  void run();          // on its own stack
  void end(Life how);  // when nothing will run on its stack any more
  void tellObservers() SYLAR_REQUIRES(m_lock);
  bool mayResume(Life life) const;
  bool wantsAway() const;

  std::atomic<Life> m_life{Life::kInit};
  std::atomic<uint8_t> m_asked{0};
  std::atomic<bool> m_spare_is_away{false};
  Question m_spare_question{true};
  mutable Spinlock m_lock;
  std::atomic<pid_t> m_thread_id{0};        // where it was started
  std::atomic<FiberHome*> m_home{nullptr};  // of the worker that runs it
  std::atomic<uint64_t> m_home_owner{0};
  std::atomic<uint64_t> m_waits_for{0};
  uint64_t m_id;
  FiberCore* m_core = nullptr;  // from start to end
  Fiber* m_joins = nullptr;
  ptr m_self;  // set while a scheduler owns it
  std::function<void()> m_cb;
  std::exception_ptr m_exception;
  size_t m_stack_size;
  EndObserver* m_observers SYLAR_GUARDED_BY(m_lock) = nullptr;
  bool m_given_up SYLAR_GUARDED_BY(m_lock) = false;  // its end will not come, or it never began
  std::string m_name SYLAR_GUARDED_BY(m_lock);
  std::shared_ptr<FiberDestination> m_destination SYLAR_GUARDED_BY(m_lock);
};

namespace this_fiber {

/// True once the running fiber was asked to end: from then on none of its waits suspends, hooked calls fail with ECANCELED, and
/// YieldToHold returns at once. A loop around them should look here. False on a thread's own stack.
bool cancelled();

/// While it exists, cancelling does not touch the waits of the fiber that made it: for clean-up that must be able to wait. All
/// shields end at the deadline of Scheduler::stop(deadline). May be nested; belongs to one scope of one fiber.
class CancelShield {
 public:
  CancelShield();
  ~CancelShield();
  CancelShield(const CancelShield&) = delete;
  CancelShield& operator=(const CancelShield&) = delete;

 private:
  FiberCore* const m_core;
  const bool m_outer;
};

}  // namespace this_fiber

}  // namespace sylar
