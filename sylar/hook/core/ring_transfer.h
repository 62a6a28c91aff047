// Internal. A transfer of a socket that the worker's ring makes while its fiber waits (setIOEngine).
//
// It begins at the end of the worker's turn, together with those of the other fibers, and takes one call into the kernel with them.
// Whatever else ends the wait, a deadline, a cancel, a close of the number or a signal, also ends the transfer, and the fiber goes
// on when the kernel has told what came of it. So bytes that it has moved are never lost.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/linger.h"
#include "sylar/io/fd_table.h"
#include "sylar/io/ring.h"

namespace sylar::detail {

/// Returns the worker's ring if it should carry out this receive or send with `flags`, else null. Only plain byte transfers on TCP
/// sockets qualify. A fiber that sends again before it has waited for an answer
/// makes the call itself, because a send by the ring takes a turn.
inline Ring* transferRing(EpollEngine& engine, const Entry& entry, Direction direction, size_t size, int flags) {
  constexpr int kOrdinary = MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_MORE;
  if (!engine.transfers()) return nullptr;
  if (entry.kind() != FdKind::kTcp || size == 0 || (flags & ~kOrdinary) != 0) return nullptr;
  FiberCore& me = *t_running;
  if (direction == Direction::kRead) {
    engine.countReceive();
    me.sent_by_ring = false;
  } else if (me.sent_by_ring) {
    return nullptr;
  }
  return engine.transferRing(entry.registered());
}

class RingTransfer final : Ring::Transfer {
 public:
  /// `its_call` is as one of liburing's io_uring_prep functions leaves it, without the number. It must stay, and so must what it
  /// names.
  RingTransfer(Ring& ring, io_uring_sqe& its_call) : m_ring(ring) { call = &its_call; }

  /// Begins it with the number `fd`, for the wait that `waiter` ends when the number is closed. Returns 0 or -errno; -EBUSY if
  /// the wait is the epoll's: others wait for the same, and the ring would wake all of them for each byte; or closes may linger,
  /// because a transfer holds its file, whose end would come on the worker; or the kernel has refused transfers.
  [[nodiscard]] int begin(int fd, Entry& entry, uint32_t generation, Direction direction, Entry::Waiter& waiter) {
    const auto any_lingers = [] { return g_any_lingers.load(std::memory_order_relaxed); };
    if (any_lingers() || !m_ring.takesTransfers()) return -EBUSY;
    const uint32_t events = waiter.events;
    if (const int error = entry.enqueueForClose(fd, generation, direction, waiter)) return error;
    if (any_lingers()) {  // it was set after the first look, and the waiters of this entry may have been woken by then
      entry.dequeue(direction, waiter);
      waiter.events = events;
      return -EBUSY;
    }
    begin(fd, entry, generation, waiter.waker);
    return 0;
  }
  /// Begins one that the kernel ends at once. Nobody else ends it, so it is not in the entry.
  void begin(int fd, Entry& entry, uint32_t generation, const Waker& its_waker) {
    static_cast<Ring::Operation&>(*this) = {};
    submitted = false;
    waker = its_waker;
    call->fd = fd;
    m_entry = &entry;
    m_generation = generation;
    m_ring.begin(*this);
  }
  /// Ends it after the wait, and returns what the call gave, or -ECANCELED if the kernel did not get to it, or has not told of it
  /// in a forked child. May suspend: yes.
  long end(Direction direction, Entry::Waiter& waiter) {
    if (!sys::inForkedChild()) m_entry->dequeue(direction, waiter);
    return end();
  }
  long end() {
    if (!sys::inForkedChild()) m_ring.end(*this);
    if (sys::inForkedChild() && !done) return -ECANCELED;
    if (result == -ENOBUFS) m_entry->clearDrained(Direction::kRead);  // there are bytes, which the fiber's own call gets
    const bool not_made = result == -EAGAIN || result == -EINTR || result == -ENOBUFS || result == -ENOMEM;
    return not_made ? -ECANCELED : result;
  }
  /// Returns the bytes that the last wait has brought in the ring's memory, or null.
  const char* lent() const { return Ring::Transfer::lent; }

 private:
  bool pin() override { return m_entry->pin(m_generation); }
  void unpin() override { m_entry->unpin(); }

  Ring& m_ring;
  Entry* m_entry = nullptr;
  uint32_t m_generation = 0;
};

}  // namespace sylar::detail
