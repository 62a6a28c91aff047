// Internal. The one loop that all descriptor hooks share: try without blocking, park, try again (protocol P3).
//
//   IoCall call(fd, Direction::kRead);
//   if (!call.parks()) return real::read(fd, buffer, size);
//   return call.result(call.run([&] { return attempt::read(call.entry(), call.kind(), fd, buffer, size); }));
//
// The calls that programs make most often make the first attempt on a HookedFd, and an IoCall only if that was not enough.
#pragma once

#include <cerrno>
#include <chrono>

#include "sylar/hook/attempt.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker_slot.h"

namespace sylar {

/// The engine in which the calling fiber may wait for descriptors; null: make libc's call. Null on plain threads, with hooks
/// off, in a plain Scheduler, and in a forked child, whatever way it was made.
EpollEngine* hookEngine();
/// The same, inlined, so only for the first line of a hook (see onThreadStack).
[[gnu::always_inline]] inline EpollEngine* hookEngineHere() {
  const FiberCore* const me = t_running;
  if (me == nullptr || !me->hook_enabled || me->home == nullptr) return nullptr;  // the usual case of code outside fibers
  Driver* const driver = static_cast<WorkerSlot*>(me->home)->fd_driver.load(std::memory_order_acquire);
  // A signal handler over the library's own sections must not come back to their locks.
  if (driver == nullptr || sys::inForkedChild() || Entry::interrupting()) return nullptr;
  return static_cast<EpollEngine*>(driver);
}
/// Whether the calling fiber may sleep here.
bool hookSleeps();
/// Before a call: if many in a row did not wait, others run first, or a fast peer would have the worker for itself. True: they
/// ran. Before and not after it, so that what a call brings, into memory that the thread's fibers share, say, is its caller's at
/// once.
bool takeTurns(EpollEngine& engine);

/// What one attempt has given.
struct Tried {
  long done;            ///< >= 0, or -errno; -EAGAIN: it would have blocked
  uint64_t edges_seen;  ///< the entry's, read before it
};

/// The first part of a hooked call: who may wait for which number, and the one attempt that is nearly always enough. A value, so
/// that it stays in registers; a call that has to wait hands it on to an IoCall.
class HookedFd {
 public:
  /// The first thing that a hook does.
  [[gnu::always_inline]] explicit HookedFd(int fd) : m_fd(fd) {
    EpollEngine* const engine = hookEngineHere();
    if (engine == nullptr) return;
    m_entry = FdTable::at(fd);
    if (m_entry == nullptr || (m_entry->isPrivate() && m_entry->nonblocking())) return;
    const uint64_t life = m_entry->life();
    m_generation = Entry::generationOf(Entry::isClosing(life) ? lifeAfterClose(*m_entry) : life);
    m_engine = engine;
  }

  /// False: libc's call is the right one. Always so on plain threads and for what the user made non-blocking.
  bool parks() const { return m_engine != nullptr; }

  int fd() const { return m_fd; }
  EpollEngine& engine() const { return *m_engine; }
  Entry& entry() const { return *m_entry; }
  uint32_t generation() const { return m_generation; }
  FdKind kind() const { return attempt::kindOf(*m_entry, m_fd); }

  /// The first attempt of a call; before it others run if it is their turn. Arguments as for IoCall::goOn.
  template <class Attempt>
  [[gnu::always_inline]] Tried tryFirst(Direction direction, Attempt attempt, size_t short_of = 0) {
    if (m_engine->turnIsOver() && takeTurns(*m_engine)) othersRan();
    return tryOnce(direction, attempt, short_of);
  }
  /// One attempt, unless it is known what it would give.
  template <class Attempt>
  Tried tryOnce(Direction direction, Attempt attempt, size_t short_of);
  /// From here on others may have run, and what the user closes meanwhile is his race no more: each attempt is ours, and holds a
  /// pin.
  void othersRan() { m_first = false; }

 private:
  static uint64_t lifeAfterClose(const Entry& entry);

  EpollEngine* m_engine = nullptr;
  Entry* m_entry = nullptr;
  int m_fd;
  uint32_t m_generation = 0;
  bool m_first = true;  // the user's own attempt: what he closes meanwhile is his race, as in POSIX
};

/// One hooked call on a descriptor; may make several attempts (run) before it is through.
class IoCall {
 public:
  [[gnu::always_inline]] IoCall(int fd, Direction direction) : IoCall(HookedFd(fd), direction) {}
  IoCall(const HookedFd& hooked, Direction direction) : m_hooked(hooked), m_direction(direction) {}

  bool parks() const { return m_hooked.parks(); }
  FdKind kind() { return m_hooked.kind(); }
  Entry& entry() { return m_hooked.entry(); }

  /// An end of its own for this call, beside SO_RCVTIMEO or SO_SNDTIMEO: at the deadline run() gives -`error`.
  void limit(Deadline deadline, int error);
  /// No event will tell when the descriptor is ready: from now on ask the kernel from time to time.
  void askAgainLater() { m_asks_again = true; }
  /// After run(): the descriptor cannot be waited for, or is non-blocking after all; libc's call is the right one.
  bool passesOn() const { return m_passes_on; }
  /// The number belongs to something else than its entry says: it was closed behind our back.
  void learnAnew() {
    entry().setKind(FdKind::kUnknown);
    entry().share();
  }
  /// What a passed SO_RCVTIMEO or SO_SNDTIMEO gives; EAGAIN unless it is set.
  void setTimeoutError(int error) { m_socket_timeout_error = error; }

  /// Makes attempts until one gives something else than -EAGAIN. >= 0, or -errno: the kernel's; EBADF: closed meanwhile; EAGAIN:
  /// timed out, or non-blocking after all; ECANCELED; ENOMEM, ENOSPC: it cannot be waited for now.
  template <class Attempt>
  long run(Attempt attempt) {
    return goOn(m_hooked.tryFirst(m_direction, attempt), attempt);
  }
  /// The same after the first of the attempts. `short_of` > 0: a plain read of that many bytes: on a TCP socket, fewer prove it
  /// empty, and where it is known to be empty it need not be asked.
  template <class Attempt>
  long goOn(Tried last, Attempt attempt, size_t short_of = 0) {
    m_hooked.othersRan();  // the user's own attempt is over
    while (last.done == -EAGAIN) {
      if (const int error = wait(last.edges_seen)) return error;
      last = m_hooked.tryOnce(m_direction, attempt, m_asks_again ? 0 : short_of);
    }
    return last.done;
  }
  /// After run(): one attempt more, whatever it gives.
  template <class Attempt>
  long tryAgain(Attempt attempt) {
    return m_hooked.tryOnce(m_direction, attempt, 0).done;
  }

  /// libc's form of it.
  static ssize_t result(long result) {
    if (result >= 0) return result;
    sys::errnoRef() = static_cast<int>(-result);
    return -1;
  }

 private:
  /// Parks until the descriptor may be ready. 0: try again; else -errno.
  int wait(uint64_t edges_seen);
  int learnLimits();
  int learnTimeout(bool remembered);
  Deadline nextLook();

  HookedFd m_hooked;
  const Direction m_direction;
  bool m_limits_known = false;
  bool m_asks_again = false;
  bool m_passes_on = false;
  int m_timeout_error = EAGAIN;
  int m_socket_timeout_error = EAGAIN;
  std::chrono::nanoseconds m_pause = std::chrono::milliseconds(1);
  Deadline m_deadline = Deadline::never();  // computed once, where the call first blocks
};

template <class Attempt>
[[gnu::always_inline]] inline Tried HookedFd::tryOnce(Direction direction, Attempt attempt, size_t short_of) {
  const uint64_t edges_seen = m_entry->edges(direction);
  if (short_of > 0 && m_entry->isPrivate() && m_entry->knownEmpty(direction, edges_seen)) return {-EAGAIN, edges_seen};
  if (!m_first && !m_entry->pin(m_generation)) return {-EBADF, edges_seen};
  const long done = attempt();
  if (!m_first) m_entry->unpin();
  if (done == -EAGAIN) return {done, edges_seen};
  if (done > 0 && static_cast<size_t>(done) < short_of && m_entry->kind() == FdKind::kTcp && m_entry->registered() &&
      !m_entry->sticky()) {
    m_entry->setDrained(direction, edges_seen);
  }
  m_engine->countCall();
  return {done, edges_seen};
}

}  // namespace sylar
