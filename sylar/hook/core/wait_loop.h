// Internal. The one loop that all descriptor hooks share: try without blocking, park, try again (protocol P3).
//
//   IoCall call(fd, Direction::kRead);
//   if (!call.parks()) return real::read(fd, buffer, size);
//   return call.result(call.run([&] { return attempt::read(call.entry(), call.kind(), fd, buffer, size); }));
//
// The most frequent calls make the first attempt on a HookedFd, and an IoCall only if that was not enough.
#pragma once

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/call_wait.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/hook_count.h"
#include "sylar/hook/core/posix_modes.h"
#include "sylar/hook/core/stay.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker_slot.h"

namespace sylar::detail {

class RingTransfer;

/// Returns the engine in which the calling fiber may wait for descriptors, or null if libc's call is to be made: on plain
/// threads, with hooks off, in a plain Scheduler, in a signal handler, and in a forked child however it was made.
EpollEngine* hookEngine();
/// Inlined form of hookEngine() for `me`, the running fiber or null. Does not check onSignalStack().
[[gnu::always_inline]] inline EpollEngine* hookEngineOf(const FiberCore* me) {
  if (me == nullptr || !me->hook_enabled || me->home == nullptr) return nullptr;  // the usual case of code outside fibers
  Driver* const driver = static_cast<WorkerSlot*>(me->home)->fd_driver.load(std::memory_order_acquire);
  // A handler that the trampolines do not know must not come back to the locks of the library's sections, if it interrupted one.
  if (driver == nullptr || sys::inForkedChild() || Entry::interrupting() || HandlerScope::running()) return nullptr;
  return static_cast<EpollEngine*>(driver);
}
/// Does the same for the running fiber, so only for the first line of a hook (see onThreadStack).
[[gnu::always_inline]] inline EpollEngine* hookEngineHere() { return hookEngineOf(t_running); }
/// Returns true if the calling fiber may sleep here.
bool maySuspendHere();
/// Does what Entry::awaitOpen() does. A fiber that may sleep does so meanwhile. May suspend: yes.
uint64_t lifeAfterClose(const Entry& entry, int fd);
/// Called before a call. If many calls in a row did not wait, lets others run first, or a fast peer would have the worker for
/// itself. Returns true if they ran. It comes before the call and not after it, so that the caller has the call's results at
/// once, for example in memory that the thread's fibers share.
bool yieldIfBudgetIsSpent(EpollEngine& engine);

/// Called before a call that never waits. It may be made under a spin lock of the program's own, so usually it is not suspended,
/// and the next one that may wait lets others run. Only after `row` of them it does so itself: a loop may consist of nothing else.
[[gnu::always_inline]] inline void chargeCallThatNeverWaits(EpollEngine& engine, unsigned row = 4096) {
  engine.chargeCall();
  if (engine.charged() >= row) [[unlikely]]
    yieldIfBudgetIsSpent(engine);
}
/// The same for a look, such as a poll with timeout 0. It stands at the head of a loop rather than under a lock, so it comes first.
[[gnu::always_inline]] inline void chargePoll(EpollEngine& engine) { chargeCallThatNeverWaits(engine, 1024); }
[[gnu::always_inline]] inline void chargeCallHere() {
  if (EpollEngine* const engine = hookEngineHere()) chargeCallThatNeverWaits(*engine);
}

/// The buffer of a plain read; empty for any other call.
struct ReadBuffer {
  const void* buffer = nullptr;
  size_t size = 0;
};

/// The outcome of one attempt.
struct AttemptResult {
  /// No attempt was made, because the descriptor is known to be empty or was closed. The wait that follows finds out which.
  static constexpr long kSkipped = -4096;

  bool wouldBlock() const { return done == -EAGAIN || done == kSkipped; }

  long done;            ///< >= 0, or -errno; -EAGAIN if it would have blocked
  uint64_t edges_seen;  ///< the entry's edges, read before the attempt
};

/// The first part of a hooked call: the engine and entry with which it may wait, and the one attempt that is nearly always
/// enough. A value, so that it stays in registers; a call that has to wait hands it on to an IoCall.
class HookedFd {
 public:
  /// Must be the first thing that a hook does.
  [[gnu::always_inline]] explicit HookedFd(int fd) : HookedFd(fd, Hook::kCount) {}
  /// Does also what countCall() does, unless `hook` is kCount.
  [[gnu::always_inline]] HookedFd(int fd, Hook hook) : m_fd(fd) {
    FiberCore* const me = t_running;
    EpollEngine* const engine = hookEngineOf(me);
    if (engine == nullptr) return;
    if (hook != Hook::kCount) countCallOf(*me, hook);
    m_entry = FdTable::at(fd);
    if (m_entry == nullptr) return;
    if (m_entry->isPrivate() && m_entry->nonblocking()) {
      chargeCallThatNeverWaits(*engine);
      return;
    }
    const uint64_t life = m_entry->life();
    m_generation = Entry::generationOf(Entry::isClosing(life) ? lifeAfterClose(*m_entry, fd) : life);
    m_engine = engine;
  }

  /// Returns false if libc's call is the right one. That is always so on plain threads and for descriptors that the user made
  /// non-blocking.
  bool parks() const { return m_engine != nullptr; }

  int fd() const { return m_fd; }
  EpollEngine& engine() const {
    SYLAR_DCHECK(parks());
    return *m_engine;
  }
  Entry& entry() const {
    SYLAR_DCHECK(parks());
    return *m_entry;
  }
  uint32_t generation() const { return m_generation; }
  FdKind kind() const { return attempt::kindOf(entry(), m_fd); }

  /// Makes the first attempt of a call, after letting others run if the budget is spent. Arguments are as for IoCall::waitAndRetry.
  template <class Attempt>
  [[gnu::always_inline]] AttemptResult attemptFirst(Direction direction, Attempt attempt, ReadBuffer room = {}) {
    SYLAR_DCHECK(parks() && runningFiber() != nullptr);
    if (m_engine->budgetIsSpent() && yieldIfBudgetIsSpent(*m_engine)) othersRan();
    return attemptOnce(direction, attempt, room);
  }
  /// Makes one attempt. Only the first may find that its outcome is known; behind a wait it hardly ever is.
  template <bool kFirst = true, class Attempt>
  AttemptResult attemptOnce(Direction direction, Attempt attempt, ReadBuffer room);
  /// Does what attemptOnce() does after an attempt, which gave `done` and began after `edges_seen` was read.
  AttemptResult tried(Direction direction, long done, uint64_t edges_seen, ReadBuffer room);
  /// Makes one attempt that no wait follows, and returns its outcome, which is EBADF if the number was closed since.
  template <class Attempt>
  long attemptLast(Direction direction, Attempt attempt) {
    const long done = attemptOnce(direction, attempt, {}).done;
    return done == AttemptResult::kSkipped ? -EBADF : done;
  }
  /// Notes that others may have run. A close by the user is no longer the user's own race, because each attempt from here on is
  /// ours, so each holds a pin.
  void othersRan() { m_pins = !m_has_copy; }
  /// Notes that the call has something to return. In the kernel any handler then ends it, also one with SA_RESTART.
  void bytesMoved() { m_has_moved = true; }
  bool hasMoved() const { return m_has_moved; }
  /// Returns true if the number has not been closed since the call began.
  bool isOpen() const {
    const uint64_t life = m_entry->life();
    return Entry::generationOf(life) == m_generation && !Entry::isClosing(life);
  }
  /// Makes a number of its own for the open file, and returns it or -errno. Attempts on that number need no pin, so they may
  /// block and keep no close waiting.
  int useCopy();
  /// Goes on with the number for the same open file that a close has made. Returns false if there is none.
  bool follow(Stay& stay);
  /// Makes attempts that wait for nothing, as CallWait::askAgain() does. A close ends them with -EBADF.
  template <class Attempt>
  long askAgain(CallWait& call, Attempt attempt) {
    SYLAR_DCHECK(parks());
    return call.askAgain([&] {
      const long result = attemptLast(Direction::kRead, attempt);
      othersRan();  // the user's own attempt is over
      return result;
    });
  }

 private:
  bool provesEmpty(ReadBuffer room, size_t done) const;

  EpollEngine* m_engine = nullptr;
  Entry* m_entry = nullptr;
  int m_fd;
  uint32_t m_generation = 0;
  bool m_pins = false;  // not for the user's own attempt: closing during it is the user's race, as in POSIX
  bool m_has_copy = false;
  bool m_has_moved = false;
};

/// One hooked call on a descriptor; may make several attempts (run) before it is through. fd() may change while it waits.
class IoCall {
 public:
  [[gnu::always_inline]] IoCall(int fd, Direction direction) : IoCall(HookedFd(fd), direction) {}
  IoCall(const HookedFd& hooked, Direction direction)
      : m_hooked(hooked),
        m_direction(direction),
        m_must_use_libc(hooked.parks() && onSignalStack()),
        m_wait(EndedBy::kNoRestart) {}
  IoCall(const IoCall&) = delete;
  IoCall& operator=(const IoCall&) = delete;

  bool parks() const { return m_hooked.parks() && !m_must_use_libc; }
  FdKind kind() { return m_hooked.kind(); }
  int fd() const { return m_hooked.fd(); }
  EpollEngine& engine() { return m_hooked.engine(); }
  Entry& entry() { return m_hooked.entry(); }

  /// Does what HookedFd::othersRan() does. run() does so itself.
  void othersRan() { m_hooked.othersRan(); }
  /// Does what HookedFd::bytesMoved() does. run() does so itself.
  void bytesMoved() {
    m_hooked.bytesMoved();
    m_wait.neverRestarts();
  }
  /// Gives this call a deadline of its own, besides SO_RCVTIMEO or SO_SNDTIMEO. At the deadline, or at that of the fiber's
  /// DeadlineScope, run() returns -`error`, which is EAGAIN without this call.
  void limit(Deadline deadline, int error) {
    m_deadline = deadline;
    m_timeout_error = error;
  }
  /// Makes the call ask the kernel from time to time from now on, because no event will tell when the descriptor is ready.
  void askAgainLater() { m_asks_again = true; }
  /// Returns true, after run() has given `result`, if the descriptor cannot be waited for or is non-blocking after all. libc's call
  /// is then the right one. After a success it is not: a second piece was waited for in vain, and the first one is there.
  bool mustUseLibc(long result) const { return result < 0 && m_must_use_libc; }
  /// Forgets what the entry says. The number was closed behind our back and belongs to something else.
  void forgetKind() {
    entry().setKind(FdKind::kUnknown);
    entry().share();
  }
  /// Lets the next run() be for another message, for which the call waits as if it had not waited before.
  void beginNextMessage() {
    m_limits_known = m_asks_again = m_kernel_asked = false;
    m_shut_down = ShutDown::kNo;
    m_deadline = Deadline::never();
    m_timeout_of_piece_ns = 0;
    m_timeout_error = m_socket_timeout_error = EAGAIN;
    m_pauses = Pauses();
    m_wait.renew(m_hooked.hasMoved() ? EndedBy::kAny : EndedBy::kNoRestart);
  }
  /// Makes SO_RCVTIMEO or SO_SNDTIMEO count again in each run(), because the kernel counts it for each piece of this call.
  void renewTimeoutInEachRun() { m_renews_timeout = true; }
  /// Sets the error for when SO_RCVTIMEO or SO_SNDTIMEO has passed; EAGAIN unless it is set.
  void setTimeoutError(int error) { m_socket_timeout_error = error; }

  /// Makes attempts until one gives something else than -EAGAIN. Returns >= 0 or -errno. Besides the kernel's errors there are
  /// EBADF if the descriptor was closed since, EAGAIN if the call timed out or is non-blocking after all, ECANCELED, EINTR
  /// after a signal handler, and ENOMEM and ENOSPC if the descriptor cannot be waited for now. May suspend: yes.
  template <class Attempt>
  long run(Attempt attempt) {
    if (m_timeout_of_piece_ns > 0) renewTimeout();
    return waitAndRetry(m_hooked.attemptFirst(m_direction, attempt), attempt);
  }
  /// Does what run() does, after the first of the attempts. A plain read says where its `room` is: on a TCP socket, fewer bytes
  /// than that prove it empty, and a socket that is known to be empty need not be asked.
  template <class Attempt>
  [[gnu::always_inline]] long waitAndRetry(AttemptResult last, Attempt attempt, ReadBuffer room = {}) {
    m_hooked.othersRan();  // the user's own attempt is over
    while (last.wouldBlock()) {
      if (const int error = wait(last.edges_seen))
        return last.done == AttemptResult::kSkipped ? unlessReady(error, attempt) : error;
      last = m_ring_has_tried ? takeFromRing(room) : attemptAfterWait(attempt, room);
    }
    if (last.done > 0) bytesMoved();
    return last.done;
  }
  /// Does what run() does, for a receive that may be of whole messages. The kernel tells their end only to a call that may wait.
  /// That call is `plain`, which does not wait any more when reading is shut down. If the descriptor was made non-blocking while
  /// this call waited, `plain` may not wait either, and `end` gives what the kernel would.
  template <class Attempt, class Plain, class End>
  long receive(Attempt attempt, Plain plain, End end) {
    return waitAndReceive(m_hooked.attemptFirst(m_direction, attempt), attempt, plain, end);
  }
  template <class Attempt, class Plain, class End>
  [[gnu::always_inline]] long waitAndReceive(AttemptResult last, Attempt attempt, Plain plain, End end, ReadBuffer room = {}) {
    const long n = waitAndRetry(last, attempt, room);
    if (m_shut_down == ShutDown::kNo) [[likely]]
      return n;
    const long told = attemptAgain(plain);
    return told == -EAGAIN && m_shut_down == ShutDown::kInWait ? end() : told;
  }
  /// Does what waitAndRetry() does, but in each wait the worker's ring makes the attempt, by `transfer`.
  template <class Attempt>
  [[gnu::noinline]] long waitAndRetryByRing(RingTransfer& transfer, AttemptResult last, Attempt attempt, ReadBuffer room = {}) {
    m_transfer = &transfer;
    const long n = waitAndRetry(last, attempt, room);
    m_transfer = nullptr;
    return n;
  }
  /// Returns true if a signal handler has ended a wait of the call.
  bool interrupted() const { return m_wait.interrupted(); }
  /// Makes one more attempt after run(), whatever it gives.
  template <class Attempt>
  [[gnu::noinline]] long attemptAgain(Attempt attempt) {
    const long done = attemptHere(attempt);
    return done == -EBADF && follow() ? attemptHere(attempt) : done;
  }
  /// Does so with the number as it is, and so gives EBADF if that was closed.
  template <class Attempt>
  long attemptHere(Attempt attempt) {
    return m_hooked.attemptLast(m_direction, attempt);
  }
  /// Keeps the call on its open file when the number is closed (`hook.close: posix`). The first wait calls this if nobody has.
  void stay() {
    if (anyPosixMode()) [[unlikely]]
      beginPosix();
  }
  /// Goes on with another number for the same open file, if a close of the call's own has made one. fd() is that number from then
  /// on.
  bool follow();

  /// Converts a result to libc's form, with errno.
  static ssize_t result(long result) {
    SYLAR_DCHECK(result > AttemptResult::kSkipped);  // which no caller gets to see
    if (result >= 0) return result;
    sys::errnoRef() = static_cast<int>(-result);
    return -1;
  }

 private:
  /// Returns the result of a call whose wait has ended with `error` before the kernel was asked: what has come since, or `error`
  /// if nothing has.
  template <class Attempt>
  long unlessReady(int error, Attempt attempt) {
    if (sys::inForkedChild()) return error;
    const long done = attemptAgain(attempt);
    return done == -EAGAIN ? error : done;
  }
  template <class Attempt>
  [[gnu::always_inline]] AttemptResult attemptAfterWait(Attempt attempt, ReadBuffer room) {
    return m_hooked.attemptOnce<false>(
        m_direction,
        [&]() -> long {
          if (m_writes_to_unix) [[unlikely]] {
            if (const long error = unixWriteError()) return error;
          }
          return attempt();
        },
        room);
  }
  /// Takes what the last wait's transfer gave as the outcome of an attempt.
  AttemptResult takeFromRing(ReadBuffer room) {
    m_ring_has_tried = false;
    return m_hooked.tried(m_direction, m_by_ring.done, m_by_ring.edges_seen, room);
  }
  /// Parks until the descriptor may be ready. Returns 0 to try again, else -errno.
  int wait(uint64_t edges_seen);
  enum class ShutDown : uint8_t { kNo, kAtFirst, kInWait };
  void beginPosix();
  int waitForCopy();
  int waitInChild(Deadline until);
  int learnLimits();
  int waitsStill(bool first);
  int learnTimeout(bool remembered);
  long unixWriteError() const;
  void renewTimeout();
  bool readsShutDownMessages();
  int watch(const Waker& waker, uint64_t edges_seen, Entry::Waiter& waiter, bool& by_ring);

  HookedFd m_hooked;
  const Direction m_direction;
  bool m_must_use_libc;
  bool m_limits_known = false;
  bool m_asks_again = false;
  bool m_kernel_asked = false;    // to report readiness again; see wait()
  bool m_writes_to_unix = false;  // a write that no event ends when the other side stops reading
  bool m_renews_timeout = false;
  bool m_ring_has_tried = false;
  int m_timeout_error = EAGAIN;
  int m_socket_timeout_error = EAGAIN;
  Pauses m_pauses;
  Deadline m_deadline = Deadline::never();  // computed once, where the call first blocks
  int64_t m_timeout_of_piece_ns = 0;        // if > 0, renewed for each piece
  RingTransfer* m_transfer = nullptr;
  ShutDown m_shut_down = ShutDown::kNo;  // of a receive of whole messages
  AttemptResult m_by_ring;               // what the last wait's transfer gave, if m_ring_has_tried
  CallWait m_wait;
  Stay m_stay;
};

/// Returns true if `done` bytes are all that there were. A read also ends early at memory that the kernel cannot write. That
/// cannot happen within a page of which it has just written a part, nor on the fiber's own stack.
[[gnu::always_inline]] inline bool HookedFd::provesEmpty(ReadBuffer room, size_t done) const {
  if (m_entry->kind() != FdKind::kTcp || m_entry->sticky()) return false;
  if (!m_entry->registered() && !m_engine->transfers()) return false;
  constexpr uintptr_t kPage = 4096;
  const auto first = reinterpret_cast<uintptr_t>(room.buffer);
  if ((first + done - 1) / kPage == (first + room.size - 1) / kPage) return true;
  const Stack& stack = t_running->stack;
  const auto base = reinterpret_cast<uintptr_t>(stack.base);
  return room.size <= stack.size && first - base <= stack.size - room.size;
}

template <bool kFirst, class Attempt>
[[gnu::always_inline]] inline AttemptResult HookedFd::attemptOnce(Direction direction, Attempt attempt, ReadBuffer room) {
  const uint64_t edges_seen = m_entry->edges(direction);
  if (kFirst && room.size > 0 && m_entry->isPrivate() && m_entry->knownEmpty(direction, edges_seen))
    return {AttemptResult::kSkipped, edges_seen};
  const bool pinned = m_pins && m_entry->pin(m_generation);
  // In a forked child the entries are wiped, and a call that was under way at the fork holds no pin.
  if (m_pins && !pinned && !sys::inForkedChild()) return {AttemptResult::kSkipped, edges_seen};
  const long done = attempt();
  if (pinned) m_entry->unpin();
  return tried(direction, done, edges_seen, room);
}

[[gnu::always_inline]] inline AttemptResult HookedFd::tried(Direction direction, long done, uint64_t edges_seen,
                                                            ReadBuffer room) {
  if (done == -EAGAIN) return {done, edges_seen};
  if (done > 0 && static_cast<size_t>(done) < room.size && provesEmpty(room, static_cast<size_t>(done))) {
    m_entry->setDrained(direction, edges_seen);
  } else if (m_engine->transfers()) {
    m_entry->clearDrained(direction);  // the epoll may not watch it, so no event does it
  }
  m_engine->chargeCall();
  return {done, edges_seen};
}

}  // namespace sylar::detail
