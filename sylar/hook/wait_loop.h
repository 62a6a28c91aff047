// Internal. The one loop that all descriptor hooks share: try without blocking, park, try again (protocol P3).
//
//   IoCall call(fd, Direction::kRead);
//   if (!call.parks()) return real::read(fd, buffer, size);
//   return call.result(call.run([&] { return attempt::read(call.kind(), fd, buffer, size); }));
#pragma once

#include <cerrno>
#include <chrono>
#include <optional>

#include "sylar/hook/attempt.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/park.h"

namespace sylar {

/// The engine in which the calling fiber may wait for descriptors; null: make libc's call. Null on plain threads, with hooks
/// off, in a plain Scheduler, and in a forked child, whatever way it was made.
EpollEngine* hookEngine();
/// Whether the calling fiber may sleep here.
bool hookSleeps();
/// Before a call: if many in a row did not wait, others run first, or a fast peer would have the worker for itself. True: they
/// ran. Before and not after it, so that what a call brings, into memory that the thread's fibers share, say, is its caller's at
/// once.
bool takeTurns(EpollEngine& engine);

/// One hooked call on a descriptor; may make several attempts (run) before it is through.
class IoCall {
 public:
  IoCall(int fd, Direction direction);

  /// False: libc's call is the right one. Always so on plain threads and for what the user made non-blocking.
  bool parks() const { return m_engine != nullptr; }

  FdKind kind() { return attempt::kindOf(*m_entry, m_fd); }
  Entry& entry() { return *m_entry; }

  /// An end of its own for this call, beside SO_RCVTIMEO or SO_SNDTIMEO: at the deadline run() gives -`error`.
  void limit(Deadline deadline, int error);
  /// No event will tell when the descriptor is ready: from now on ask the kernel from time to time.
  void askAgainLater() { m_asks_again = true; }
  /// After run(): the descriptor cannot be waited for, or is non-blocking after all; libc's call is the right one.
  bool passesOn() const { return m_passes_on; }
  /// The number belongs to something else than its entry says: it was closed behind our back.
  void learnAnew() {
    m_entry->setKind(FdKind::kUnknown);
    m_entry->share();
  }
  /// What a passed SO_RCVTIMEO or SO_SNDTIMEO gives; EAGAIN unless it is set.
  void setTimeoutError(int error) { m_socket_timeout_error = error; }

  /// Makes attempts until one gives something else than -EAGAIN. >= 0, or -errno: the kernel's; EBADF: closed meanwhile; EAGAIN:
  /// timed out, or non-blocking after all; ECANCELED; ENOMEM, ENOSPC: it cannot be waited for now. `short_of` > 0: a plain read
  /// of that many bytes: on a TCP socket, fewer prove it empty, and where it is known to be empty it need not be asked.
  template <class Attempt>
  long run(Attempt attempt, size_t short_of = 0);

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
  Deadline nextLook();

  EpollEngine* m_engine = nullptr;
  Entry* m_entry = nullptr;
  const int m_fd;
  const Direction m_direction;
  bool m_first = true;  // the user's own attempt: what he closes meanwhile is his race, as in POSIX
  bool m_limits_known = false;
  uint32_t m_generation = 0;
  bool m_asks_again = false;
  bool m_passes_on = false;
  std::chrono::nanoseconds m_pause = std::chrono::milliseconds(1);
  int m_timeout_error = EAGAIN;
  int m_socket_timeout_error = EAGAIN;
  Deadline m_deadline = Deadline::never();  // computed once, where the call first blocks
};

template <class Attempt>
long IoCall::run(Attempt attempt, size_t short_of) {
  if (takeTurns(*m_engine)) m_first = false;
  for (;;) {
    const uint64_t edges_seen = m_entry->edges(m_direction);
    const bool would_block =
        short_of > 0 && !m_asks_again && m_entry->isPrivate() && m_entry->knownEmpty(m_direction, edges_seen);
    if (!would_block) {
      long done;
      if (m_first) {
        done = attempt();
      } else {
        if (!m_entry->pin(m_generation)) return -EBADF;
        done = attempt();
        m_entry->unpin();
      }
      if (done != -EAGAIN) {
        if (done > 0 && static_cast<size_t>(done) < short_of && m_entry->kind() == FdKind::kTcp && m_entry->registered() &&
            !m_entry->sticky()) {
          m_entry->setDrained(m_direction, edges_seen);
        }
        m_engine->countCall();
        return done;
      }
    }
    m_first = false;
    if (const int error = wait(edges_seen)) return error;
  }
}

}  // namespace sylar
