// Internal. What a signal handler does to the hooked calls that wait (setHookEintr).
//
// With HookEintr::kPosix, a handler that ran on a worker's thread ends one wait of a fiber of that worker, and the call then fails
// with EINTR unless it has something to return. It is the wait that has lasted longest, of those that this handler may end: a
// handler with SA_RESTART ends only calls that are never restarted, and no handler ends a call whose mask blocks its signal. A call
// that waits for nothing but a handler (pause, sigsuspend) comes before all others, and is ended in either mode. Source: signal(7).
//
// A handler may find nothing to end because the fiber of the call is awake, on its way from one wait to the next. So the handlers
// that have ended nothing are numbered, and a call ends as well if one of those that end it has a number from after its beginning.
//
// pthread_cancel of a thread that is a fiber ends its wait like a handler that is never blocked.
//
// Thread safety: a call belongs to its thread, whose handlers look at it between any two instructions.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/hook.h"
#include "sylar/hook/core/hook_count.h"
#include "sylar/hook/core/posix_modes.h"
#include "sylar/sched/park.h"

namespace sylar::detail {

/// Which handlers end a call.
enum class EndedBy : uint8_t {
  kNone,       ///< none
  kNoRestart,  ///< those without SA_RESTART
  kAny,        ///< all, because the call is never restarted
  kAwaited,    ///< all, in either mode, because it waits for one
  kCancel,     ///< none, but pthread_cancel ends it, as it ends all others that handlers end
};

class Interruptible {
 public:
  /// No handler of a signal in `mask`, which may be null, ends the call.
  explicit Interruptible(EndedBy by, const sigset_t* mask = nullptr) : m_by(by), m_mask(mask) {}
  ~Interruptible() noexcept(false) { end(); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Unwinds the thread by force, if pthread_cancel has ended the wait.
  void end() {
    if (m_interrupted) [[unlikely]]
      actOnCancel();
  }
  /// Says that the call is not restarted from now on. Handlers with SA_RESTART that have run before do not count.
  void neverRestarts() {
    if (m_by != EndedBy::kNoRestart) return;
    if (m_active) [[unlikely]]
      noteBeforeChange();
    m_by = EndedBy::kAny;
  }
  /// Makes it the wait of another call, which has not begun.
  void renew(EndedBy by) {
    m_by = by;
    m_active = m_interrupted = false;
  }
  /// From here on the call may be interrupted. To be called before the first wait; later calls have no effect.
  void begin() {
    if (isOn(PosixMode::kEintr) || m_by == EndedBy::kAwaited) [[unlikely]]
      beginNow();
  }
  /// Takes note of handlers that have run since begin() and ended nothing. park() does so itself.
  void noteHandlers() { m_interrupted = m_interrupted || (m_active && handlerHasRun()); }
  /// Returns true if the call is to fail with EINTR, unless it has something to return.
  bool interrupted() const { return m_interrupted; }
  /// Parks as Wait does. Returns kReady if the call is or was interrupted.
  WakeReason park(Wait& wait, Deadline until = Deadline::never()) {
    const HookPark waiting(*wait.waker().core);
    const WakeReason reason = m_active ? parkActive(wait, until) : wait.park(until);
    waiting.count();
    return reason;
  }
  /// Makes a call of libc that may let signals through. A handler that runs in it ends that call, and nothing else.
  template <class Look>
  static auto lettingSignalsThrough(Look look) -> decltype(look()) {
    const struct Scope {
      Scope() { t_lets_through.store(true, std::memory_order_relaxed); }
      ~Scope() { letNoneThrough(); }
    } scope;
    return look();
  }
  /// Returns true if such a call is being made.
  static bool letsThrough() { return t_lets_through.load(std::memory_order_relaxed); }
  /// Says that no such call is being made any more. A jump may leave one.
  static void letNoneThrough() { t_lets_through.store(false, std::memory_order_relaxed); }

  /// Called on the thread of a handler of `signal` when that has returned. `restarts` says whether it has SA_RESTART.
  static void handlerRan(int signal, bool restarts);
  /// Ends the wait of the calling thread, which is a fiber, because somebody has cancelled it.
  static void cancelled();
  /// Forgets the calls that wait on this thread, because a jump leaves their frames.
  static void leaveAll();

 private:
  struct Parked;
  struct Queue;
  struct Unused;

  void beginNow();
  void noteBeforeChange();
  WakeReason parkActive(Wait& wait, Deadline until);
  bool endsWith(int signal, bool restarts) const;
  bool handlerHasRun() const;
  static void actOnCancel();

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Queue t_queues[2];
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Unused* t_unused;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local std::atomic<bool> t_lets_through;

  EndedBy m_by;
  bool m_active = false;
  bool m_interrupted = false;
  const sigset_t* const m_mask;
  uint64_t m_unused_before;
};

}  // namespace sylar::detail
