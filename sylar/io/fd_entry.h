// Internal. One entry per descriptor number: its waiters, readiness, registration and life (protocol P3).
//
// A small lock guards generation, registration, waiters and the writes of `edges`; it is held over epoll_ctl. Read without it:
//
//   life      generation << 32 | closing << 31 | pins. A creator's hook opens a new generation. `closing` is set
//             without the lock, by the one who closes, and spans from before the waiters are told until after the real close. A
//             pin keeps the number from being closed during the library's own retry; pinned calls never block.
//   edges     counts the events of a direction; written by engines and openers, under the lock.
//   drained   1 + the `edges` at which a read proved the descriptor empty. Ready means: not drained at this edge. To wait for it
//             proves nothing. A stale value costs one call that says EAGAIN, nothing else, so it is stored relaxed.
//   sticky    event bits that stay true (RDHUP HUP ERR PRI): after them the call is always tried before parking.
//
// Signal handlers may open and close. A handler that interrupted a section (the lock) or a pin of its own thread waits for
// nothing. It marks the number as closing and leaves the rest to the end of the section or pin that it interrupted, whatever
// entry that was in. So two threads cannot wait for each other through their handlers either. The wakes of a close go by mail,
// because the handler may have interrupted the worker at its run queue.
//
// All-zero memory is a valid entry (open, ready, unregistered, of unknown kind), so a table chunk costs no page before its use.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/io/fd_waiter.h"

namespace sylar::detail {

enum class Direction : uint8_t { kRead = 0, kWrite = 1 };

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

/// What a close may do to the calls that wait for its number.
enum class AtClose : uint8_t {
  kMayGoOn,  ///< leave them with the open file, if Engine::closing() says so
  kEnd,      ///< end them
};

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
class alignas(64) FdEntry {
 public:
  using Waiter = FdWaiter<Engine>;

  // ---- Without the lock. ---------------------------------------------------------------------------------------------------

  uint64_t life() const { return m_life.load(std::memory_order_acquire); }
  static bool isClosing(uint64_t life) { return (life & kClosing) != 0; }
  static uint32_t generationOf(uint64_t life) { return static_cast<uint32_t>(life >> 32); }

  uint64_t edges(Direction direction) const { return at(direction).edges.load(std::memory_order_acquire); }
  bool knownEmpty(Direction direction, uint64_t edges_seen) const {
    return at(direction).drained.load(std::memory_order_relaxed) == edges_seen + 1 && !sticky();
  }
  /// Records that a read proved the descriptor empty at some moment after `edges_seen` was read.
  void setDrained(Direction direction, uint64_t edges_seen) {
    at(direction).drained.store(edges_seen + 1, std::memory_order_relaxed);
  }
  void clearDrained(Direction direction) { at(direction).drained.store(0, std::memory_order_relaxed); }
  bool sticky() const { return m_sticky.load(std::memory_order_relaxed) != 0; }
  /// Returns false if the entry says no more than that a number may be open.
  bool known() const { return registered() || isPrivate() || kind() != FdKind::kUnknown; }
  bool registered() const { return m_engine.load(std::memory_order_relaxed) != nullptr; }

  /// Keeps the number open for a call that does not block. Returns false if the number no longer belongs to `generation`.
  [[nodiscard, gnu::always_inline]] inline bool pin(uint32_t generation) {
    enter();
    const uint64_t before = m_life.fetch_add(1, std::memory_order_acq_rel);
    if (generationOf(before) == generation && !isClosing(before)) return true;
    unpin();
    return false;
  }
  void unpin() {
    m_life.fetch_sub(1, std::memory_order_release);
    leave();
  }

  // State that the hooks remember. The flags and timeouts are kept correct for private entries only.
  FdKind kind() const { return m_kind.load(std::memory_order_relaxed); }
  void setKind(FdKind kind) { m_kind.store(kind, std::memory_order_relaxed); }
  bool isPrivate() const { return m_private.load(std::memory_order_relaxed); }
  void share() { m_private.store(false, std::memory_order_relaxed); }
  bool nonblocking() const { return m_nonblocking.load(std::memory_order_relaxed); }
  void setNonblocking(bool on) { m_nonblocking.store(on, std::memory_order_relaxed); }
  /// Returns SO_RCVTIMEO or SO_SNDTIMEO, 0 if there is none.
  int64_t timeoutNs(Direction direction) const { return at(direction).timeout_ns.load(std::memory_order_relaxed); }
  void setTimeoutNs(Direction direction, int64_t ns) { at(direction).timeout_ns.store(ns, std::memory_order_relaxed); }
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
    const int error = registerFor(fd, direction, ask_kernel, *waiter.engine);
    if (error < 0) return error;
    if (edges(direction) != edges_seen) return -EAGAIN;
    append(direction, waiter);
    return 0;
  }

  /// Queues `waiter` for the close of the number and for wakeAll(), and for no event but errors, if it is the only one of its direction.
  /// If it is the only one at all, it ends the registration, because each byte would be an event. The next enqueue() makes it anew.
  /// Returns 0 if it was queued, -EBUSY if others wait, or -EBADF or -ECANCELED as enqueue() does.
  [[nodiscard]] int enqueueForClose(int fd, uint32_t generation, Direction direction, Waiter& waiter) {
    Section section(*this);
    const uint64_t now = life();
    if (generationOf(now) != generation || isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
    if (at(direction).first != nullptr) return -EBUSY;
    if (registered() && !anyWaits()) forget(fd);
    waiter.events = 0;
    append(direction, waiter);
    return 0;
  }

  /// Queues `waiter` whatever the state, and makes the kernel report readiness again. Returns 0, or -EBADF or -errno of epoll_ctl
  /// if the waiter was not queued.
  [[nodiscard]] int enqueueAnew(int fd, Direction direction, Waiter& waiter) {
    Section section(*this);
    if (isClosing(life())) return -EBADF;
    const int error = registerFor(fd, direction, true, *waiter.engine);
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
      for (Waiter* waiter = at(direction).first; waiter != nullptr;) {
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
    const bool any = at(direction).first != nullptr;
    bump(direction);
    claimAll(direction, claimed);
    return any;
  }

  // ---- The engine. ---------------------------------------------------------------------------------------------------------

  /// Handles an event of the registration that was made in `generation`. Inlined into the engine's loop, where what it claims stays in
  /// registers.
  [[gnu::always_inline]] void onEvent(uint32_t generation, uint32_t events) {
    Claimed<Engine> claimed(WakeReason::kReady);  // its destructor delivers, after the lock
    const Section section(*this);
    const uint64_t now = life();
    if (generationOf(now) != generation || isClosing(now)) return;
    if (const uint32_t lasting = events & kLasting) {
      m_sticky.store(static_cast<uint8_t>(m_sticky.load(std::memory_order_relaxed) | compress(lasting)),
                     std::memory_order_relaxed);
    }
    const bool both = (events & (EPOLLERR | EPOLLHUP)) != 0;
    if (both || (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP)) != 0) {
      bump(Direction::kRead);
      claimAll(Direction::kRead, claimed, events);
    }
    if (both || (events & EPOLLOUT) != 0) {
      bump(Direction::kWrite);
      claimAll(Direction::kWrite, claimed, events);
    }
  }

  /// Takes the entry off `engine`, which is about to end. Drops the fibers that wait there, which have been abandoned. Moves the
  /// registration to the engine of another waiter, or ends it if there is none.
  void detachEngine(int fd, const Engine& engine) {
    Claimed<Engine> claimed(WakeReason::kReady);
    const Section section(*this);
    for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
      for (Waiter *waiter = at(direction).first, *following; waiter != nullptr; waiter = following) {
        following = waiter->next;
        if (waiter->engine == &engine && waiter->fire == nullptr) unlink(direction, *waiter);
      }
    }
    if (m_engine.load(std::memory_order_relaxed) != &engine) return;
    forget(fd);
    for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
      const Waiter* waiter = at(direction).first;
      while (waiter != nullptr && waiter->engine == &engine) waiter = waiter->next;
      if (waiter == nullptr || registerFor(fd, direction, false, *waiter->engine) == 0) continue;
      // It cannot be waited for there. The waiters ask the kernel again and get that error.
      claimAll(direction, claimed);
    }
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
    remember(kind, is_private, nonblocking);
  }

  /// Runs `real_close` while nobody waits for the number or retries on it, and nobody can begin to. In a signal handler that
  /// interrupted a section `real_close` comes first, and the waiters learn of it when that section has ended.
  template <class RealClose>
  int close(int fd, RealClose real_close, AtClose waiters = AtClose::kMayGoOn) {
    if (interrupting()) {
      const int result = real_close();
      deferClose(fd, false);
      return result;
    }
    while (!beginClosing()) {
      if (isClosing(awaitOpen(fd)))
        return real_close();  // another closer is at work, and the number is free: EBADF, unless it is dup2
    }
    if (waiters == AtClose::kMayGoOn) Engine::closing(fd, generationOf(life()));
    return finishClosing(fd, real_close);
  }

  /// Makes a scope a section in which a signal handler's close must not wait for its own thread, as one that holds the lock is.
  class Uninterrupted {
   public:
    Uninterrupted() { enter(); }
    ~Uninterrupted() { leave(); }
    Uninterrupted(const Uninterrupted&) = delete;
    Uninterrupted& operator=(const Uninterrupted&) = delete;
  };
  /// Returns true if the caller is a signal handler that interrupted a section or a pin of its own thread.
  static bool interrupting() { return Memory::marks().inside > 0; }

  /// For an interrupting() handler: has the number closed when the interrupted section or pin ends. Returns false if the number
  /// is being closed already.
  bool closeLater(int fd) { return deferClose(fd, true); }

  /// Returns the life of the number for a call that begins now, and so comes after a close that is under way. If nothing is open
  /// there, returns at once with `closing` set, because a close that lingers (SO_LINGER) frees the number long before it ends.
  /// Otherwise waits for the end of the close, because the open file is about to be closed, or belongs to a new owner that no
  /// hook has told of. Never waits for a close of the calling thread itself, which the caller has interrupted as a signal
  /// handler.
  uint64_t awaitOpen(int fd) const {
    while (mustAwaitClose(fd)) Memory::yield();
    return life();
  }
  /// Returns true while awaitOpen() would wait.
  bool mustAwaitClose(int fd) const {
    return isClosing(life()) && !interrupting() && m_closer.load(std::memory_order_relaxed) != Memory::self() &&
           Engine::isOpen(fd);
  }

 private:
  static constexpr uint64_t kClosing = uint64_t{1} << 31;
  static constexpr uint64_t kPins = kClosing - 1;
  static constexpr uint32_t kLasting = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
  static constexpr uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLET;

  struct Side {
    typename Memory::template Atomic<uint64_t> edges;
    typename Memory::template Atomic<uint64_t> drained;
    Waiter* first;
    Waiter* last;
    typename Memory::template Atomic<int64_t> timeout_ns;
  };

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

  static void enter() {
    const tsan::Exempt of_this_thread;
    ++Memory::marks().inside;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  static void leave() {
    const tsan::Exempt of_this_thread;
    auto& marks = Memory::marks();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    SYLAR_DCHECK(marks.inside > 0);
    --marks.inside;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // from here on a handler does its work itself
    if (marks.left.load(std::memory_order_relaxed) != nullptr && marks.inside == 0) closeLeft(marks.left);
  }

  bool beginClosing() {
    enter();
    const bool mine = !isClosing(m_life.fetch_or(kClosing, std::memory_order_acq_rel));
    if (mine) m_closer.store(Memory::self(), std::memory_order_relaxed);
    leave();
    return mine;
  }

  template <class RealClose>
  int finishClosing(int fd, RealClose real_close) {
    uint32_t generation;
    {
      Claimed<Engine> claimed(WakeReason::kClosed);
      const Section section(*this);
      generation = generationOf(life());
      endWaits(fd, claimed);
    }
    while ((m_life.load(std::memory_order_acquire) & kPins) != 0) Memory::yield();
    const ClosingEnd end{*this, generation};
    return real_close();
  }

  /// Ends a close, even one in which a cancellation point does not return. The number may still be open then, and nothing is
  /// known of it.
  struct ClosingEnd {
    FdEntry& entry;
    const uint32_t generation;
    ~ClosingEnd() { entry.endClosing(generation); }
  };
  void endClosing(uint32_t generation) {
    const Section section(*this);
    if (generationOf(life()) != generation) return;  // a creator has reused the number
    m_closer.store(0, std::memory_order_relaxed);
    nextGeneration();
    remember(FdKind::kUnknown, false, false);
  }

  bool deferClose(int fd, bool close_number) {
    SYLAR_DCHECK(interrupting());
    if (isClosing(m_life.fetch_or(kClosing, std::memory_order_acq_rel))) return false;
    m_closer.store(Memory::self(), std::memory_order_relaxed);
    m_left_fd = close_number ? fd : ~fd;
    auto& first = Memory::marks().left;
    m_left_next = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(m_left_next, this, std::memory_order_relaxed)) continue;  // a nested handler
    return true;
  }

  [[gnu::noinline, gnu::cold]] static void closeLeft(std::atomic<void*>& left) {
    auto* entry = static_cast<FdEntry*>(left.exchange(nullptr, std::memory_order_relaxed));
    while (entry != nullptr) {
      FdEntry& one = *entry;
      entry = static_cast<FdEntry*>(one.m_left_next);
      const bool close_number = one.m_left_fd >= 0;
      const int fd = close_number ? one.m_left_fd : ~one.m_left_fd;
      if (!isClosing(one.life())) continue;  // a creator was faster
      if (close_number) Engine::closing(fd, generationOf(one.life()));
      one.finishClosing(fd, [fd, close_number] {
        if (close_number) Engine::closeNumber(fd);
        return 0;
      });
    }
  }

  static uint8_t compress(uint32_t lasting) {
    return static_cast<uint8_t>((lasting & 0xff) | ((lasting & EPOLLRDHUP) != 0 ? 0x80 : 0));
  }

  Side& at(Direction direction) { return m_sides[static_cast<size_t>(direction)]; }
  const Side& at(Direction direction) const { return m_sides[static_cast<size_t>(direction)]; }

  /// Counts an event. A plain addition will do, because all writers hold the lock.
  void bump(Direction direction) SYLAR_REQUIRES(m_lock) {
    auto& counter = at(direction).edges;
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  void append(Direction direction, Waiter& waiter) SYLAR_REQUIRES(m_lock) {
    SYLAR_DCHECK(!waiter.linked && waiter.engine != nullptr);
    Side& side = at(direction);
    waiter.linked = true;
    waiter.next = nullptr;
    waiter.prev = side.last;
    (side.last == nullptr ? side.first : side.last->next) = &waiter;
    side.last = &waiter;
  }

  void unlink(Direction direction, Waiter& waiter) SYLAR_REQUIRES(m_lock) {
    Side& side = at(direction);
    SYLAR_DCHECK(waiter.linked);
    SYLAR_DCHECK((waiter.prev == nullptr) == (side.first == &waiter) && (waiter.next == nullptr) == (side.last == &waiter));
    waiter.linked = false;
    (waiter.prev == nullptr ? side.first : waiter.prev->next) = waiter.next;
    (waiter.next == nullptr ? side.last : waiter.next->prev) = waiter.prev;
  }

  /// Claims the waiters for any of `events`; hang-up and error are for all.
  void claimAll(Direction direction, Claimed<Engine>& claimed, uint32_t events = ~0U) SYLAR_REQUIRES(m_lock) {
    for (Waiter* waiter = at(direction).first; waiter != nullptr;) {
      Waiter* const following = waiter->next;
      if (((waiter->events | EPOLLERR | EPOLLHUP) & events) != 0) {
        unlink(direction, *waiter);
        claimed.add(*waiter);  // from here on a fiber that lost its wait to another waker may be gone
      }
      waiter = following;
    }
  }

  /// Makes events of `direction` reach an engine: `engine`, unless somebody waits at another one.
  int registerFor(int fd, Direction direction, bool ask_kernel, Engine& engine) SYLAR_REQUIRES(m_lock) {
    const uint32_t wanted = m_events | eventsOf(direction);
    if (m_engine.load(std::memory_order_relaxed) == &engine && wanted == m_events && !ask_kernel) return 0;  // the usual case
    return registerAnew(fd, direction, ask_kernel, engine);
  }

  static uint32_t eventsOf(Direction direction) {
    return kReadEvents | (direction == Direction::kWrite ? uint32_t{EPOLLOUT} : 0);
  }

  [[gnu::noinline]] int registerAnew(int fd, Direction direction, bool ask_kernel, Engine& engine) SYLAR_REQUIRES(m_lock) {
    Engine* at_engine = m_engine.load(std::memory_order_relaxed);
    if (at_engine != nullptr && at_engine != &engine && !anyWaits()) {
      forget(fd);
      at_engine = nullptr;
    }
    const uint32_t wanted = m_events | eventsOf(direction);
    const uint32_t generation = generationOf(life());
    int error = 0;
    if (at_engine == nullptr) {
      at_engine = &engine;
      error = engine.add(fd, generation, wanted);
      if (error == -EEXIST) error = engine.modify(fd, generation, wanted);
    } else if (wanted != m_events || ask_kernel) {
      error = at_engine->modify(fd, generation, wanted);
      if (error == -ENOENT) error = at_engine->add(fd, generation, wanted);
    }
    if (error < 0) return error;
    m_engine.store(at_engine, std::memory_order_relaxed);
    m_events = wanted;
    return 0;
  }

  bool anyWaits() const SYLAR_REQUIRES(m_lock) {
    return at(Direction::kRead).first != nullptr || at(Direction::kWrite).first != nullptr;
  }

  void endWaits(int fd, Claimed<Engine>& claimed) SYLAR_REQUIRES(m_lock) {
    claimAll(Direction::kRead, claimed);
    claimAll(Direction::kWrite, claimed);
    if (m_engine.load(std::memory_order_relaxed) != nullptr) forget(fd);
  }

  void forget(int fd) SYLAR_REQUIRES(m_lock) {
    SYLAR_DCHECK(registered());
    m_engine.load(std::memory_order_relaxed)->remove(fd);
    m_engine.store(nullptr, std::memory_order_relaxed);
    m_events = 0;
  }

  /// Uses one fetch_add, because a failing pin may be in flight.
  void nextGeneration() SYLAR_REQUIRES(m_lock) {
    const uint64_t closing = m_life.load(std::memory_order_relaxed) & kClosing;
    m_life.fetch_add((uint64_t{1} << 32) - closing, std::memory_order_acq_rel);
    bump(Direction::kRead);
    bump(Direction::kWrite);
    m_sticky.store(0, std::memory_order_relaxed);
  }

  void remember(FdKind kind, bool is_private, bool nonblocking) {
    setKind(kind);
    m_private.store(is_private, std::memory_order_relaxed);
    setNonblocking(nonblocking);
    setTimeoutNs(Direction::kRead, 0);
    setTimeoutNs(Direction::kWrite, 0);
  }

  typename Memory::template Atomic<uint64_t> m_life;
  typename Memory::Mutex m_lock;
  typename Memory::template Atomic<uint8_t> m_sticky;
  typename Memory::template Atomic<FdKind> m_kind;
  typename Memory::template Atomic<bool> m_private;
  typename Memory::template Atomic<bool> m_nonblocking;
  typename Memory::template Atomic<Engine*> m_engine;  // holds the registration; written under the lock
  uint32_t m_events SYLAR_GUARDED_BY(m_lock);
  typename Memory::Mutex m_accept_lock;
  Side m_sides[2];
  typename Memory::template Atomic<uint32_t> m_closer;  // the thread that made it closing
  // Left by a signal handler, read by the thread that it interrupted.
  int m_left_fd;  // ~fd if the number itself is not to be closed
  void* m_left_next;
};

}  // namespace sylar::detail
