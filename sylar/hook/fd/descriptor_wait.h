// Internal. The wait of poll, select and epoll_wait: until a look at the kernel finds something, on any of many descriptors.
//
//   CallWait call(EndedBy::kAny);
//   DescriptorWait wait(fds, count, *engine, call);
//   const int ready = wait.run(until, [&] { return real::poll(fds, count, 0); });
//
// It queues one waiter in the entry of each descriptor and direction, all with the same waker. The first event wakes the fiber to
// look again.
#pragma once

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <span>

#include "sylar/base/internal.h"
#include "sylar/hook/core/call_wait.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/fd/pending_signals.h"

namespace sylar::detail {

class DescriptorWait {
 public:
  /// Stands for a descriptor that cannot be waited for, and for a forked child, so that libc's call is the right one.
  static constexpr int kPassOn = INT_MIN;

  /// `fds` must stay as it is, apart from `revents`, which is not used.
  DescriptorWait(const pollfd* fds, nfds_t count, EpollEngine& engine, CallWait& call)
      : m_fds(fds), m_count(count), m_engine(engine), m_call(call) {}

  /// Lets the wait go on with the open files when numbers are closed, if setHookClose() says so. As in the kernel, the looks are
  /// still at the numbers, except for one that asks for number().
  void stayWithFiles() { m_stays_with_files = isOn(PosixMode::kClose); }
  /// Returns the number of the first descriptor's open file.
  int number() const { return m_watched_count > 0 ? m_watched[0].fd : m_fds[0].fd; }
  /// Returns true if a number was closed and the wait goes on without it.
  bool hasMoved() const { return m_has_moved; }
  /// Waits also for the signals that the thread blocks and `mask` does not, which the looks take.
  void lookAlsoFor(const sigset_t* mask) { m_mask = mask; }
  /// Waits also for those signals, and lets them through after each look that finds nothing. `mask` may be null.
  void letThrough(const sigset_t* mask) { m_mask = m_lets_through = mask; }

  /// Waits until `look` returns something else than 0, and returns that; 0 if `deadline` has passed; or -errno: EBADF if a
  /// descriptor was closed, ECANCELED, EINTR, ENOMEM; or kPassOn. `look` asks the kernel without waiting and without a mask, and
  /// returns -errno if that failed.
  template <class Look>
  int run(Deadline deadline, Look look) {
    if (!watchAll()) return -ENOMEM;
    m_call.begin();
    noteEdges();
    int found = look();
    for (bool in_time = true; found == 0 && in_time;) {
      if (const int error = park(deadline)) return error;
      in_time = deadline.isNever() || waitClock().nowNs() < deadline.ns();  // events that bring nothing do not prolong the wait
      noteEdges();
      found = lookAgain(look);
      if (found == 0 && m_call.interrupted()) return -EINTR;
    }
    return found;
  }

  /// Sets `revents` of the numbers that were closed to POLLNVAL and of the others to 0, and returns how many were closed. The
  /// kernel is not asked about them, because they may be somebody else's by now.
  int markClosed(pollfd* fds) const;

 private:
  /// One descriptor and direction.
  struct Watched {
    size_t index = 0;  // in the caller's array
    int fd = -1;
    short events = 0;
    Direction direction = Direction::kRead;
    Entry* entry = nullptr;
    uint32_t generation = 0;
    uint64_t edges_seen = 0;
    bool kernel_asked = false;  // to report readiness again
    Entry::Waiter waiter = {};
  };

  std::span<Watched> watched() { return {m_watched, m_watched_count}; }
  std::span<const Watched> watched() const { return {m_watched, m_watched_count}; }
  static bool wasClosed(const Watched& one);
  bool watchAll();
  bool watch(size_t index, const pollfd& asked, Direction direction);
  bool stayAll();
  bool followAll();
  void noteEdges();
  int park(Deadline until);
  int parkOnce(Deadline until);
  int enqueueAll(const Waker& waker);
  void dequeueAll();
  bool pinAll();
  void unpinAll();

  /// Looks with the numbers pinned, because one that was closed since may be somebody else's. Only then are signals let through,
  /// since a handler that jumps away would leave the pins.
  template <class Look>
  int lookAgain(Look look) {
    while (!pinAll()) {
      if (!followAll()) return -EBADF;
    }
    const int found = look();
    unpinAll();
    return found == 0 && m_lets_through != nullptr ? letSignalsThrough(m_lets_through) : found;
  }

  const pollfd* const m_fds;
  const nfds_t m_count;
  EpollEngine& m_engine;
  CallWait& m_call;
  const sigset_t* m_mask = nullptr;
  const sigset_t* m_lets_through = nullptr;
  bool m_stays_with_files = false;
  bool m_has_moved = false;
  PendingSignals m_signals;
  static constexpr nfds_t kFew = 4;
  Watched m_few[2 * kFew + 1];
  std::unique_ptr<Watched[]> m_many;
  Watched* m_watched = m_few;
  size_t m_watched_count = 0;
  std::unique_ptr<Stay[]> m_stays;  // one for each that is watched
};

/// Says until when a call may wait, or why it may not.
struct UntilReady {
  int error = 0;
  Deadline until = Deadline::never();
};
/// Returns when `timeout_ns` (kNever = none) from now or the fiber's DeadlineScope ends. ETIMEDOUT if the scope has ended, because
/// a loop that only waits again would go round.
UntilReady untilReady(int64_t timeout_ns);

/// Returns a timeout in nanoseconds, kNever for null.
int64_t timeoutNs(const timespec* timeout);
/// Returns what is left until `deadline`, in `left`, or null if it never comes; as a timeout for libc's call.
const timespec* timeLeft(Deadline deadline, timespec& left);

}  // namespace sylar::detail
