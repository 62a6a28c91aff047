// Internal. One entry per descriptor number: its life (fd_life.h), its waiters (fd_waiters.h), and what the hooks know of it.
//
// A small lock guards generation, registration, waiters and the writes of `edges`; it is held over epoll_ctl. All else is read and
// written without it. All-zero memory is a valid entry (open, ready, unregistered, of unknown kind), so a table chunk costs no page
// before its use.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/io/fd_life.h"
#include "sylar/io/fd_waiters.h"

namespace sylar::detail {

/// The kind of a descriptor, as far as calls on it differ. Learned once per generation.
enum class FdKind : uint8_t {
  kUnknown = 0,
  kPipe,      ///< pipe or FIFO
  kMessages,  ///< datagram and sequenced-packet sockets
  kPolled,    ///< eventfd, timerfd, signalfd, inotify, other devices: poll tells whether a call would wait
  // Stream sockets.
  kTcp,     ///< a TCP socket, on which a short read proves that it is empty
  kStream,  ///< any other stream socket
  // From here on a read is more than one attempt, or none.
  kMarkedStream,  ///< a stream socket with SO_RCVLOWAT: its reads wait for more than the first byte
  kTerminal,      ///< terminal, either side of a pseudoterminal
  // From here on poll tells nothing.
  kFile,      ///< a regular file or block device, of which no more is known yet
  kDiskFile,  ///< one that tells what the page cache has of it, and whose writes end there
  kSyncFile,  ///< the same, but its writes wait for the disk
  kSlowFile,  ///< one of a network, or that bypasses the page cache: each call may wait
  kFuseFile,  ///< one of a process: the same
  kOther,     ///< a file that does not tell, such as those in memory, or a device that never waits: calls go to libc
};
inline bool isFile(FdKind kind) { return kind >= FdKind::kFile; }

/// `Engine` provides:
///
///   Waker                                                    a type, as sched's
///   int add(int fd, uint32_t generation, uint32_t events)    returns 0 or -errno; `modify` is alike
///   void remove(int fd)
///   bool retired()                                           true if it ends; detachEngine() visits every entry after that
///   static void closeNumber(int fd)                          closes the number for a signal handler that could not
///   static bool isOpen(int fd)                               asks the kernel
///   static void closing(int fd, uint32_t generation)         called when a number begins to be closed: it is still open, and those
///                                                            who wait for it have not been told yet
template <class Engine, class Memory = StdMemory>
class alignas(64) FdEntry : public FdLife<FdEntry<Engine, Memory>, Engine, Memory>, public FdWaiters<Engine, Memory> {
  using Life = FdLife<FdEntry, Engine, Memory>;
  using Waiters = FdWaiters<Engine, Memory>;

 public:
  using typename Waiters::Waiter;

  using Life::generationOf;
  using Life::interrupting;
  using Life::isClosing;
  using Life::life;
  using Waiters::edges;
  using Waiters::registered;

  /// Returns false if the entry says no more than that a number may be open.
  bool known() const { return registered() || isPrivate() || kind() != FdKind::kUnknown; }

  // State that the hooks remember. The flags and timeouts are kept correct for private entries only.
  FdKind kind() const { return m_kind.load(std::memory_order_relaxed); }
  void setKind(FdKind kind) { m_kind.store(kind, std::memory_order_relaxed); }
  bool isPrivate() const { return m_private.load(std::memory_order_relaxed); }
  void share() { m_private.store(false, std::memory_order_relaxed); }
  bool nonblocking() const { return m_nonblocking.load(std::memory_order_relaxed); }
  void setNonblocking(bool on) { m_nonblocking.store(on, std::memory_order_relaxed); }
  /// Returns SO_RCVTIMEO or SO_SNDTIMEO, 0 if there is none.
  int64_t timeoutNs(Direction direction) const { return timeout(direction).load(std::memory_order_relaxed); }
  void setTimeoutNs(Direction direction, int64_t ns) { timeout(direction).store(ns, std::memory_order_relaxed); }
  /// Held over the poll and the accept of a blocking listener, so that nobody else takes the connection between the two.
  typename Memory::Mutex& acceptLock() { return m_accept_lock; }

  // ---- Waiting. ------------------------------------------------------------------------------------------------------------

  /// Queues `waiter`, after `edges_seen` was read and a call said that it would block. Returns 0 if it was queued, -EAGAIN if an
  /// event came since (ask the kernel again), -EBADF if the number was closed since, -ECANCELED if a stop has left the fiber
  /// behind, else -errno of epoll_ctl: the descriptor cannot be waited for.
  /// `ask_kernel` says that the number may belong to another open file than we think.
  [[nodiscard]] int enqueue(int fd, uint32_t generation, Direction direction, uint64_t edges_seen, bool ask_kernel,
                            Waiter& waiter) {
    Section section(*this);
    const uint64_t now = life();
    if (generationOf(now) != generation || isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // no worker would serve it or take it out
    const int error = registerFor(fd, generation, direction, ask_kernel, *waiter.engine);
    if (error < 0) return error;
    if (edges(direction) != edges_seen) return -EAGAIN;
    append(direction, waiter);
    return 0;
  }

  /// Queues `waiter` for the close of the number and for wakeAll(), and for no event but errors, if it is the only one of its
  /// direction. If it is the only one at all, it ends the registration, because each byte would be an event. The next enqueue()
  /// makes it again.
  /// Returns 0 if it was queued, -EBUSY if others wait, or -EBADF or -ECANCELED as enqueue() does.
  [[nodiscard]] int enqueueForClose(int fd, uint32_t generation, Direction direction, Waiter& waiter) {
    Section section(*this);
    const uint64_t now = life();
    if (generationOf(now) != generation || isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
    if (first(direction) != nullptr) return -EBUSY;
    if (registered() && !anyWaits()) forget(fd);
    waiter.events = 0;
    append(direction, waiter);
    return 0;
  }

  /// Queues `waiter` whatever the state, and makes the kernel report readiness again. Returns 0, or -EBADF or -errno of epoll_ctl
  /// if the waiter was not queued.
  [[nodiscard]] int enqueueAnew(int fd, Direction direction, Waiter& waiter) {
    Section section(*this);
    const uint64_t now = life();
    if (isClosing(now)) return -EBADF;
    const int error = registerFor(fd, generationOf(now), direction, true, *waiter.engine);
    if (error == 0) append(direction, waiter);  // the event comes through onEvent(), which waits for the lock
    return error;
  }

  /// Removes a waiter that will not be woken. Has no effect if it was claimed or removed before.
  void dequeue(Direction direction, Waiter& waiter) {
    Section section(*this);
    if (waiter.linked) unlink(direction, waiter);
  }

  /// Removes the waiters for which `wanted` holds, without waking them, and passes each to `removed` after releasing the lock.
  template <class Wanted, class Removed>
  void dequeueIf(Direction direction, Wanted wanted, Removed removed) {
    Waiter* found = nullptr;
    {
      Section section(*this);
      for (Waiter* waiter = first(direction); waiter != nullptr;) {
        Waiter* const following = waiter->next;
        if (wanted(*waiter)) {
          unlink(direction, *waiter);
          waiter->next = found;
          found = waiter;
        }
        waiter = following;
      }
    }
    while (found != nullptr) {
      Waiter* const waiter = found;
      found = waiter->next;
      removed(*waiter);
    }
  }

  /// Wakes all waiters of `direction`, which then ask the kernel again. Returns true if there were any. `by_mail` says that the
  /// caller may be a signal handler, though not one that is interrupting().
  bool wakeAll(Direction direction, bool by_mail = false) {
    Claimed<Engine> claimed(WakeReason::kReady, by_mail);  // its destructor delivers, after the lock
    const Section section(*this);
    const bool any = first(direction) != nullptr;
    bump(direction);
    claimAll(direction, claimed);
    return any;
  }

  // ---- The engine. ---------------------------------------------------------------------------------------------------------

  /// Handles an event of the registration that was made in `generation`. Inlined into the engine's loop, where what it claims
  /// stays in registers.
  [[gnu::always_inline]] void onEvent(uint32_t generation, uint32_t events) {
    Claimed<Engine> claimed(WakeReason::kReady);  // its destructor delivers, after the lock
    const Section section(*this);
    const uint64_t now = life();
    if (generationOf(now) == generation && !isClosing(now)) claimFor(events, claimed);
  }

  /// Takes the entry off `engine`, which is about to end.
  void detachEngine(int fd, const Engine& engine) {
    Claimed<Engine> claimed(WakeReason::kReady);
    const Section section(*this);
    leaveEngine(fd, generationOf(life()), engine, claimed);
  }

  // ---- Opening and closing. ------------------------------------------------------------------------------------------------

  /// Called by the hook of a creator: the number belongs to a new descriptor.
  void open(int fd, FdKind kind, bool is_private, bool nonblocking) {
    if (interrupting()) {  // a number of which nothing is known will do
      deferClose(fd, false);
      return;
    }
    Claimed<Engine> claimed(WakeReason::kClosed);
    const Section section(*this);
    endWaits(fd, claimed);  // left over from a descriptor that was closed behind our back
    nextGeneration();
    renewEdges();
    remember(kind, is_private, nonblocking);
  }

 private:
  friend Life;
  using Life::deferClose;
  using Life::enter;
  using Life::forgetCloser;
  using Life::leave;
  using Life::nextGeneration;
  using Waiters::anyWaits;
  using Waiters::append;
  using Waiters::bump;
  using Waiters::claimAll;
  using Waiters::claimFor;
  using Waiters::endWaits;
  using Waiters::first;
  using Waiters::forget;
  using Waiters::leaveEngine;
  using Waiters::m_lock;
  using Waiters::registerFor;
  using Waiters::renewEdges;
  using Waiters::unlink;

  /// Holds the lock.
  class SYLAR_SCOPED_CAPABILITY Section {
   public:
    explicit Section(FdEntry& entry) SYLAR_ACQUIRE(entry.m_lock) : m_entry(entry) {
      enter();
      entry.m_lock.lock();
    }
    ~Section() SYLAR_RELEASE() {
      m_entry.m_lock.unlock();
      leave();
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    FdEntry& m_entry;
  };

  // For the life, when a close has begun and when it ends.
  uint32_t endWaitsForClose(int fd) {
    Claimed<Engine> claimed(WakeReason::kClosed);
    const Section section(*this);
    endWaits(fd, claimed);
    return generationOf(life());
  }
  void endClosing(uint32_t generation) {
    const Section section(*this);
    if (generationOf(life()) != generation) return;  // a creator has reused the number
    forgetCloser();
    nextGeneration();
    renewEdges();
    remember(FdKind::kUnknown, false, false);
  }

  void remember(FdKind kind, bool is_private, bool nonblocking) {
    setKind(kind);
    m_private.store(is_private, std::memory_order_relaxed);
    setNonblocking(nonblocking);
    setTimeoutNs(Direction::kRead, 0);
    setTimeoutNs(Direction::kWrite, 0);
  }

  auto& timeout(Direction direction) { return m_timeout_ns[static_cast<size_t>(direction)]; }
  const auto& timeout(Direction direction) const { return m_timeout_ns[static_cast<size_t>(direction)]; }

  typename Memory::template Atomic<FdKind> m_kind;
  typename Memory::template Atomic<bool> m_private;
  typename Memory::template Atomic<bool> m_nonblocking;
  typename Memory::Mutex m_accept_lock;
  typename Memory::template Atomic<int64_t> m_timeout_ns[2];
};

}  // namespace sylar::detail
