// poll. It asks the kernel without waiting. If nothing is ready, it queues one waiter in the entry of each descriptor and
// direction, all with the same waker, and the first event wakes the fiber to ask again. Source: poll(2).
#include <poll.h>

#include <chrono>
#include <memory>
#include <new>
#include <span>

#include "sylar/base/sys.h"
#include "sylar/hook/real.h"
#include "sylar/hook/wait_loop.h"

namespace sylar {
namespace {

/// Returns the kernel's present answer, as libc's poll gives it.
int pollNow(pollfd* fds, nfds_t count) {
  long ready;
  do {
    ready = attempt::keepingErrno([=] { return real::poll(fds, count, 0); });
  } while (ready == -EINTR);  // nothing is ready and a signal handler has run, which does not interrupt a call that would park
  return static_cast<int>(IoCall::result(ready));
}

/// One descriptor and direction of a poll call.
struct Watched {
  size_t index = 0;  // in the caller's array
  int fd = -1;
  Direction direction = Direction::kRead;
  Entry* entry = nullptr;
  uint32_t generation = 0;
  uint64_t edges_seen = 0;
  Entry::Waiter waiter = {};
};

class PollCall {
 public:
  PollCall(pollfd* fds, nfds_t count, EpollEngine& engine) : m_fds(fds), m_count(count), m_engine(engine) {}

  int run(Deadline deadline) {
    if (!watchAll()) return static_cast<int>(IoCall::result(-ENOMEM));
    for (bool first = true;; first = false) {
      for (Watched& one : watched()) one.edges_seen = one.entry->edges(one.direction);
      if (const int ready = first ? pollNow(m_fds, m_count) : askAgain()) return ready;
      if (!reserveTimeout(deadline)) return static_cast<int>(IoCall::result(-ENOMEM));
      Wait wait(WaitsFor::kPoll);
      if (const int error = enqueueAll(wait)) {
        wait.withdraw();
        dequeueAll();
        if (error == -EAGAIN) continue;
        if (error == -EBADF) {
          if (const int closed = closedMeanwhile()) return closed;
          continue;  // closed behind our back; the kernel will say so
        }
        if (error == -ENOMEM || error == -ENOSPC) return static_cast<int>(IoCall::result(-ENOMEM));  // poll has no ENOSPC
        if (error == -ECANCELED) return static_cast<int>(IoCall::result(error));
        return real::poll(m_fds, m_count, timeoutMs(deadline));  // a descriptor that cannot be waited for
      }
      const WakeReason reason = wait.park(deadline);
      dequeueAll();
      switch (reason) {
        case WakeReason::kReady: break;
        case WakeReason::kClosed: return closedMeanwhile();
        case WakeReason::kTimeout: return 0;
        case WakeReason::kCanceled: return static_cast<int>(IoCall::result(-ECANCELED));
      }
      // Events that bring nothing do not prolong the wait.
      if (!deadline.isNever() && waitClock().nowNs() >= deadline.ns()) return askAgain();
    }
  }

 private:
  std::span<Watched> watched() { return {m_watched, m_watched_count}; }

  /// Sets up all that is to be watched. Returns false if there is no memory.
  bool watchAll() {
    if (m_count > kFew) {
      m_many.reset(new (std::nothrow) Watched[2 * m_count]);
      if (m_many == nullptr) return false;
      m_watched = m_many.get();
    }
    for (nfds_t i = 0; i < m_count; ++i) {
      constexpr short kWritable = POLLOUT | POLLWRNORM | POLLWRBAND;
      const short events = m_fds[i].events;
      if ((events & kWritable) != 0 && !watch(i, Direction::kWrite)) return false;
      const bool reads = (events & ~kWritable) != 0 || events == 0;  // errors are reported in that direction as well
      if (reads && !watch(i, Direction::kRead)) return false;
    }
    return true;
  }

  /// Adds one direction to watch. The call comes after a close of the number that is under way. Returns false if there is no
  /// memory.
  bool watch(size_t index, Direction direction) {
    Entry* const entry = FdTable::at(m_fds[index].fd);
    // A negative number is passed over, an absurd one is not open.
    if (entry == nullptr) return !FdTable::covers(m_fds[index].fd);
    m_watched[m_watched_count++] = {
        .index = index,
        .fd = m_fds[index].fd,
        .direction = direction,
        .entry = entry,
        .generation = Entry::generationOf(entry->awaitOpen(m_fds[index].fd)),
    };
    return true;
  }

  /// Asks the kernel with the numbers pinned, because one that was closed since may be somebody else's.
  int askAgain() {
    size_t pinned = 0;
    while (pinned < m_watched_count && m_watched[pinned].entry->pin(m_watched[pinned].generation)) ++pinned;
    const bool all = pinned == m_watched_count;
    const int ready = all ? pollNow(m_fds, m_count) : 0;
    while (pinned > 0) m_watched[--pinned].entry->unpin();
    return all ? ready : closedMeanwhile();
  }

  int enqueueAll(const Wait& wait) {
    for (Watched& one : watched()) {
      one.waiter = {};
      one.waiter.waker = wait.waker();
      one.waiter.engine = &m_engine;
      one.waiter.events = wakingEvents(m_fds[one.index].events);
      const bool ask_kernel = !one.entry->isPrivate();
      const int error = one.entry->enqueue(one.fd, one.generation, one.direction, one.edges_seen, ask_kernel, one.waiter);
      if (error != 0 && error != -EPERM) return error;  // EPERM means a file, to which nothing ever happens
    }
    return 0;
  }

  void dequeueAll() {
    for (Watched& one : watched()) one.entry->dequeue(one.direction, one.waiter);
  }

  /// Reports the numbers that were closed. Does not ask the kernel about them, because they may be somebody else's by now.
  int closedMeanwhile() {
    int closed = 0;
    for (nfds_t i = 0; i < m_count; ++i) m_fds[i].revents = 0;
    for (const Watched& one : watched()) {
      const uint64_t life = one.entry->life();
      if (Entry::generationOf(life) == one.generation && !Entry::isClosing(life)) continue;
      if (m_fds[one.index].revents == 0) ++closed;
      m_fds[one.index].revents = POLLNVAL;
    }
    return closed;
  }

  /// Returns the events of the engine that may make one of `events` true. epoll's bits are poll's.
  static uint32_t wakingEvents(short events) {
    uint32_t waking = static_cast<unsigned short>(events);
    if ((events & (POLLRDNORM | POLLRDBAND)) != 0) waking |= EPOLLIN;
    if ((events & (POLLWRNORM | POLLWRBAND)) != 0) waking |= EPOLLOUT;
    return waking;
  }

  static int timeoutMs(Deadline deadline) {
    if (deadline.isNever()) return -1;
    const int64_t left_ns = deadline.ns() - waitClock().nowNs();
    return left_ns <= 0 ? 0 : static_cast<int>(std::min<int64_t>((left_ns + 999'999) / 1'000'000, INT32_MAX));
  }

  pollfd* const m_fds;
  const nfds_t m_count;
  EpollEngine& m_engine;
  static constexpr nfds_t kFew = 4;
  Watched m_few[2 * kFew];
  std::unique_ptr<Watched[]> m_many;
  Watched* m_watched = m_few;
  size_t m_watched_count = 0;
};

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  count = static_cast<unsigned>(count);  // as the kernel does
  EpollEngine* const engine = hookEngine();
  if (engine != nullptr && timeout_ms == 0) engine->chargeCall();
  if (engine == nullptr || timeout_ms == 0) return real::poll(fds, count, timeout_ms);
  yieldIfBudgetIsSpent(*engine);
  // The first look also proves the array readable.
  if (const int ready = pollNow(fds, count)) {
    engine->chargeCall();
    return ready;
  }
  const Clock& clock = waitClock();
  const Deadline deadline = timeout_ms < 0 ? Deadline::never() : Deadline::after(std::chrono::milliseconds(timeout_ms), clock);
  const Deadline until = withinScope(deadline);
  if (until < deadline && until.ns() <= clock.nowNs()) {  // a loop that only polls again would not end
    engine->chargeCall();
    return static_cast<int>(IoCall::result(-ETIMEDOUT));
  }
  engine->refillBudget();
  return PollCall(fds, count, *engine).run(until);
}

int __poll(pollfd* fds, nfds_t count, int timeout_ms) { return poll(fds, count, timeout_ms); }

int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size_bytes) {
  if (size_bytes / sizeof *fds < count) __chk_fail();
  return poll(fds, count, timeout_ms);
}

}  // extern "C"
