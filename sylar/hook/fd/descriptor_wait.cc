#include "sylar/hook/fd/descriptor_wait.h"

#include <new>
#include <utility>

#include "sylar/check.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {
namespace {

/// Returns the events of the engine that may make one of `events` true. epoll's bits are poll's.
uint32_t wakingEvents(short events) {
  uint32_t waking = static_cast<unsigned short>(events);
  if ((events & (POLLRDNORM | POLLRDBAND)) != 0) waking |= EPOLLIN;
  if ((events & (POLLWRNORM | POLLWRBAND)) != 0) waking |= EPOLLOUT;
  return waking;
}

}  // namespace

/// Sets up all that is to be watched. Returns false if there is no memory.
bool DescriptorWait::watchAll() {
  if (m_count > kFew) {
    m_many.reset(new (std::nothrow) Watched[2 * m_count + 1]);
    if (m_many == nullptr) return false;
    m_watched = m_many.get();
  }
  for (nfds_t i = 0; i < m_count; ++i) {
    constexpr short kWritable = POLLOUT | POLLWRNORM | POLLWRBAND;
    const short events = m_fds[i].events;
    if ((events & kWritable) != 0 && !watch(i, m_fds[i], Direction::kWrite)) return false;
    const bool reads = (events & ~kWritable) != 0 || events == 0;  // errors are reported in that direction as well
    if (reads && !watch(i, m_fds[i], Direction::kRead)) return false;
  }
  if (!m_signals.watch(m_mask)) return false;
  if (m_signals.fd() >= 0 && !watch(m_count, {m_signals.fd(), POLLIN, 0}, Direction::kRead)) return false;
  return !m_stays_with_files || stayAll();
}

/// Makes the wait stay with the files that are open now. Returns false if there is no memory.
bool DescriptorWait::stayAll() {
  m_stays.reset(new (std::nothrow) Stay[m_watched_count + 1]);
  if (m_stays == nullptr) return false;
  for (size_t i = 0; i < m_watched_count; ++i) m_stays[i].begin(m_watched[i].fd, m_watched[i].generation, m_engine);
  return true;
}

/// Goes on with other numbers for the open files whose numbers were closed. Returns false if one of them has none, or none was
/// closed.
bool DescriptorWait::followAll() {
  bool any = false;
  for (size_t i = 0; m_stays != nullptr && i < m_watched_count; ++i) {
    Watched& one = m_watched[i];
    if (!wasClosed(one)) continue;
    const int copy = m_stays[i].copy();
    if (copy == Stay::kNone || copy == one.fd) return false;
    one.fd = copy;
    one.entry = FdTable::at(copy);
    one.generation = Entry::generationOf(one.entry->life());
    one.edges_seen = one.entry->edges(one.direction);
    one.kernel_asked = false;
    any = m_has_moved = true;
  }
  return any;
}

/// Adds one direction to watch. The call comes after a close of the number that is under way. Returns false if there is no
/// memory.
bool DescriptorWait::watch(size_t index, const pollfd& asked, Direction direction) {
  Entry* const entry = FdTable::at(asked.fd);
  // A negative number is passed over, an absurd one is not open.
  if (entry == nullptr) return !FdTable::covers(asked.fd);
  SYLAR_DCHECK(m_watched_count < (m_many == nullptr ? std::size(m_few) : 2 * m_count + 1));
  m_watched[m_watched_count++] = {
      .index = index,
      .fd = asked.fd,
      .events = asked.events,
      .direction = direction,
      .entry = entry,
      .generation = Entry::generationOf(lifeAfterClose(*entry, asked.fd)),
  };
  return true;
}

void DescriptorWait::noteEdges() {
  for (Watched& one : watched()) one.edges_seen = one.entry->edges(one.direction);
}

/// Parks until there may be something to see. Returns 0 to look again, -errno, or kPassOn. A close is nothing to see if the wait
/// goes on with the open file; the registration of the copy reports what is there.
int DescriptorWait::park(Deadline until) {
  for (;;) {
    const int error = parkOnce(until);
    if (error != -EBADF || !followAll()) return error;
  }
}

int DescriptorWait::parkOnce(Deadline until) {
  SYLAR_DCHECK(!onThreadStack());
  const WaitEnd end = m_call.once(until, WaitsFor::kPoll, 0, [this](const Waker& waker) { return enqueueAll(waker); });
  if (end == WaitEnd::kInChild) return m_call.interrupted() ? -EINTR : kPassOn;  // in the child libc's call goes on
  if (end == WaitEnd::kNoMemory) return -ENOMEM;
  dequeueAll();
  if (end == WaitEnd::kRefused) {
    switch (const int error = m_call.refusal()) {
      case -EAGAIN: return 0;
      case -EBADF: return std::ranges::any_of(watched(), wasClosed) ? -EBADF : 0;  // else closed behind our back: look
      case -ENOMEM:
      case -ENOSPC: return -ENOMEM;  // these calls have no ENOSPC
      case -ECANCELED: return error;
      default: return kPassOn;
    }
  }
  if (end == WaitEnd::kClosed) return -EBADF;
  return end == WaitEnd::kCancelled ? -ECANCELED : 0;
}

int DescriptorWait::enqueueAll(const Waker& waker) {
  for (Watched& one : watched()) {
    SYLAR_DCHECK(!one.waiter.linked);
    one.waiter = {};
    one.waiter.waker = waker;
    one.waiter.engine = &m_engine;
    one.waiter.events = wakingEvents(one.events);
    // Once a call, as in IoCall::wait(): a second MOD would report what this call has left there, without end.
    const bool ask_kernel = !one.entry->isPrivate() && !std::exchange(one.kernel_asked, true);
    const int error = one.entry->enqueue(one.fd, one.generation, one.direction, one.edges_seen, ask_kernel, one.waiter);
    if (error != 0 && error != -EPERM) return error;  // EPERM means a file, to which nothing ever happens
  }
#ifdef SYLAR_THREAD_POINTER
  if (m_mask != nullptr) {
    FiberThread::mine().signal_wait = waker;
    if (isSentThrough(*m_mask)) {
      dequeueAll();
      return -EAGAIN;
    }
  }
#endif
  m_engine.refillBudget();
  return 0;
}

void DescriptorWait::dequeueAll() {
  for (Watched& one : watched()) one.entry->dequeue(one.direction, one.waiter);
}

bool DescriptorWait::pinAll() {
  size_t pinned = 0;
  while (pinned < m_watched_count && m_watched[pinned].entry->pin(m_watched[pinned].generation)) ++pinned;
  if (pinned == m_watched_count) return true;
  while (pinned > 0) m_watched[--pinned].entry->unpin();
  return false;
}

void DescriptorWait::unpinAll() {
  for (Watched& one : watched()) one.entry->unpin();
}

bool DescriptorWait::wasClosed(const Watched& one) {
  const uint64_t life = one.entry->life();
  return Entry::generationOf(life) != one.generation || Entry::isClosing(life);
}

int DescriptorWait::markClosed(pollfd* fds) const {
  int closed = 0;
  for (nfds_t i = 0; i < m_count; ++i) fds[i].revents = 0;
  for (const Watched& one : watched()) {
    if (!wasClosed(one)) continue;
    if (fds[one.index].revents == 0) ++closed;
    fds[one.index].revents = POLLNVAL;
  }
  return closed;
}

UntilReady untilReady(int64_t timeout_ns) {
  const Clock& clock = waitClock();
  const Deadline deadline = Deadline::after(std::chrono::nanoseconds(timeout_ns), clock);
  const Deadline until = withinScope(deadline);
  const bool has_ended = until < deadline && until.ns() <= clock.nowNs();
  return {has_ended ? ETIMEDOUT : 0, until};
}

int64_t timeoutNs(const timespec* timeout) { return timeout == nullptr ? kNever : attempt::toNs(*timeout); }

const timespec* timeLeft(Deadline deadline, timespec& left) {
  if (deadline.isNever()) return nullptr;
  const int64_t left_ns = std::max<int64_t>(deadline.ns() - waitClock().nowNs(), 0);
  left = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  return &left;
}

}  // namespace sylar::detail
