// Internal. Who waits for a descriptor: fibers and callbacks of addEvent, in a queue for each direction; the events that they wait
// for, and the engine that reports these (protocol P3).
//
//   edges     counts the events of a direction; written by engines and openers, under the lock.
//   drained   1 + the `edges` at which a read proved the descriptor empty. Ready means: not drained at this edge. To wait for it
//             proves nothing. A stale value costs one call that says EAGAIN, nothing else, so it is stored relaxed.
//   sticky    event bits that stay true (RDHUP HUP ERR PRI): after them the call is always tried before parking.
//
// The lock is the entry's. It is held over epoll_ctl.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/wait_word.h"

namespace sylar::detail {

enum class Direction : uint8_t { kRead = 0, kWrite = 1 };

/// One wait of a fiber or a callback for one direction of a descriptor. A callback sets `fire` and leaves `waker` empty; a
/// fiber's waiter lies on its stack. Touched only under the entry's lock, except for a callback that was claimed.
template <class Engine>
struct FdWaiter {
  typename Engine::Waker waker;
  Engine* engine = nullptr;  ///< of the waiting worker; the registration moves there if its present engine ends
  void (*fire)(FdWaiter*, WakeReason) = nullptr;
  uint32_t events = ~0U;  ///< only these epoll events wake it
  bool linked = false;
  FdWaiter* next = nullptr;
  FdWaiter* prev = nullptr;
};

/// Collects waiters that are claimed under the lock for one reason, and delivers them after it, oldest first.
template <class Engine>
class Claimed {
 public:
  explicit Claimed(WakeReason reason, bool by_mail = false)
      : m_reason(reason), m_by_mail(by_mail || reason == WakeReason::kClosed) {}
  ~Claimed() { deliver(); }
  void add(FdWaiter<Engine>& waiter) {
    SYLAR_DCHECK(!waiter.linked);
    if (waiter.fire != nullptr) {
      waiter.next = nullptr;
      (m_callbacks == nullptr ? m_callbacks : m_last_callback->next) = &waiter;
      m_last_callback = &waiter;
    } else if (auto* const core = waiter.waker.core; waiter.waker.claim(m_reason)) {
      m_cores.push(core);
    }
  }
  void deliver() {
    while (QueueNode* node = m_cores.pop()) {
      auto& core = *static_cast<decltype(Engine::Waker::core)>(node);
      m_by_mail ? Engine::Waker::deliverByMail(core) : Engine::Waker::deliver(core);
    }
    while (FdWaiter<Engine>* waiter = m_callbacks) {
      m_callbacks = waiter->next;
      waiter->fire(waiter, m_reason);
    }
  }

 private:
  const WakeReason m_reason;
  const bool m_by_mail;
  NodeList m_cores;
  FdWaiter<Engine>* m_callbacks = nullptr;
  FdWaiter<Engine>* m_last_callback = nullptr;
};

/// The waiters of one descriptor. `Engine` is as FdEntry has it.
template <class Engine, class Memory>
class FdWaiters {
 public:
  using Waiter = FdWaiter<Engine>;

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
  bool registered() const { return registration() != nullptr; }

 protected:
  /// Returns the engine that reports the events, or null.
  Engine* registration() const { return m_engine.load(std::memory_order_relaxed); }
  Waiter* first(Direction direction) const SYLAR_REQUIRES(m_lock) { return at(direction).first; }
  bool anyWaits() const SYLAR_REQUIRES(m_lock) {
    return first(Direction::kRead) != nullptr || first(Direction::kWrite) != nullptr;
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

  /// Counts an event. A plain addition will do, because all writers hold the lock.
  void bump(Direction direction) SYLAR_REQUIRES(m_lock) {
    auto& counter = at(direction).edges;
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// Claims the waiters for any of `events`; hang-up and error are for all.
  void claimAll(Direction direction, Claimed<Engine>& claimed, uint32_t events = ~0U) SYLAR_REQUIRES(m_lock) {
    for (Waiter* waiter = first(direction); waiter != nullptr;) {
      Waiter* const following = waiter->next;
      if (((waiter->events | EPOLLERR | EPOLLHUP) & events) != 0) {
        unlink(direction, *waiter);
        claimed.add(*waiter);  // from here on a fiber that lost its wait to another waker may be gone
      }
      waiter = following;
    }
  }

  /// Notes the events that the engine reports, and claims those who wait for them.
  [[gnu::always_inline]] void claimFor(uint32_t events, Claimed<Engine>& claimed) SYLAR_REQUIRES(m_lock) {
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

  /// Ends all waits, and the registration.
  void endWaits(int fd, Claimed<Engine>& claimed) SYLAR_REQUIRES(m_lock) {
    claimAll(Direction::kRead, claimed);
    claimAll(Direction::kWrite, claimed);
    if (registered()) forget(fd);
  }

  /// Begins again for another descriptor, of whose readiness nothing is known.
  void renewEdges() SYLAR_REQUIRES(m_lock) {
    bump(Direction::kRead);
    bump(Direction::kWrite);
    m_sticky.store(0, std::memory_order_relaxed);
  }

  /// Makes events of `direction` reach an engine: `engine`, unless somebody waits at another one.
  int registerFor(int fd, uint32_t generation, Direction direction, bool ask_kernel, Engine& engine) SYLAR_REQUIRES(m_lock) {
    const uint32_t wanted = m_events | eventsOf(direction);
    if (registration() == &engine && wanted == m_events && !ask_kernel) return 0;  // the usual case
    return registerAnew(fd, generation, direction, ask_kernel, engine);
  }

  /// Ends the registration.
  void forget(int fd) SYLAR_REQUIRES(m_lock) {
    SYLAR_DCHECK(registered());
    registration()->remove(fd);
    m_engine.store(nullptr, std::memory_order_relaxed);
    m_events = 0;
  }

  /// Takes the waiters and the registration off `engine`, which is about to end. Drops the fibers that wait there, which have been
  /// abandoned. Moves the registration to the engine of another waiter, or ends it if there is none.
  void leaveEngine(int fd, uint32_t generation, const Engine& engine, Claimed<Engine>& claimed) SYLAR_REQUIRES(m_lock) {
    for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
      for (Waiter *waiter = first(direction), *following; waiter != nullptr; waiter = following) {
        following = waiter->next;
        if (waiter->engine == &engine && waiter->fire == nullptr) unlink(direction, *waiter);
      }
    }
    if (registration() != &engine) return;
    forget(fd);
    for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
      const Waiter* waiter = first(direction);
      while (waiter != nullptr && waiter->engine == &engine) waiter = waiter->next;
      if (waiter == nullptr || registerFor(fd, generation, direction, false, *waiter->engine) == 0) continue;
      // It cannot be waited for there. The waiters ask the kernel again and get that error.
      claimAll(direction, claimed);
    }
  }

 private:
  static constexpr uint32_t kLasting = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
  static constexpr uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLET;

  struct Side {
    typename Memory::template Atomic<uint64_t> edges;
    typename Memory::template Atomic<uint64_t> drained;
    Waiter* first;
    Waiter* last;
  };
  Side& at(Direction direction) { return m_sides[static_cast<size_t>(direction)]; }
  const Side& at(Direction direction) const { return m_sides[static_cast<size_t>(direction)]; }

  static uint8_t compress(uint32_t lasting) {
    return static_cast<uint8_t>((lasting & 0xff) | ((lasting & EPOLLRDHUP) != 0 ? 0x80 : 0));
  }

  static uint32_t eventsOf(Direction direction) {
    return kReadEvents | (direction == Direction::kWrite ? uint32_t{EPOLLOUT} : 0);
  }

  [[gnu::noinline]] int registerAnew(int fd, uint32_t generation, Direction direction, bool ask_kernel, Engine& engine)
      SYLAR_REQUIRES(m_lock) {
    Engine* at_engine = registration();
    if (at_engine != nullptr && at_engine != &engine && !anyWaits()) {
      forget(fd);
      at_engine = nullptr;
    }
    const uint32_t wanted = m_events | eventsOf(direction);
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

  Side m_sides[2];
  typename Memory::template Atomic<Engine*> m_engine;  // holds the registration; written under the lock
  uint32_t m_events SYLAR_GUARDED_BY(m_lock);

 protected:
  typename Memory::Mutex m_lock;

 private:
  typename Memory::template Atomic<uint8_t> m_sticky;  // the last, so that the entry's own flags stand beside it
};

}  // namespace sylar::detail
