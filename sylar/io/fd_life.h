// Internal. The life of a descriptor number: which descriptor it belongs to, who keeps it open, and how it is closed (protocol P3).
//
// The life is one word, generation << 32 | closing << 31 | pins. A creator's hook opens a new generation. `closing` is set without
// the entry's lock, by the one who closes, and spans from before the waiters are told until after the real close. A pin keeps the
// number from being closed during the library's own retry; pinned calls never block.
//
// Signal handlers may open and close. A handler that interrupted a section (the entry's lock) or a pin of its own thread waits for
// nothing. It marks the number as closing and leaves the rest to the end of the section or pin that it interrupted, whatever
// entry that was in. So two threads cannot wait for each other through their handlers either. The wakes of a close go by mail,
// because the handler may have interrupted the worker at its run queue.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"

namespace sylar::detail {

/// What a close may do to the calls that wait for its number.
enum class AtClose : uint8_t {
  kMayGoOn,  ///< leave them with the open file, if Engine::closing() says so
  kEnd,      ///< end them
};

/// The part of `Entry` that is said above. The entry derives from this and provides, for close():
///
///   uint32_t endWaitsForClose(int fd)        tells the waiters, whom nobody joins any more; returns the generation
///   void endClosing(uint32_t generation)     begins the next generation, unless a creator has done so
///
/// `Engine` is the entry's: closeNumber(), isOpen() and closing().
template <class Entry, class Engine, class Memory>
class FdLife {
 public:
  uint64_t life() const { return m_life.load(std::memory_order_acquire); }
  static bool isClosing(uint64_t life) { return (life & kClosing) != 0; }
  static uint32_t generationOf(uint64_t life) { return static_cast<uint32_t>(life >> 32); }

  /// Keeps the number open for a call that does not block. Returns false if the number no longer belongs to `generation`.
  [[nodiscard, gnu::always_inline]] inline bool pin(uint32_t generation) {
    enter();
    const uint64_t before = m_life.fetch_add(1, std::memory_order_acq_rel);
    if (generationOf(before) == generation && !isClosing(before)) return true;
    unpin();
    return false;
  }
  [[gnu::always_inline]] inline void unpin() {
    m_life.fetch_sub(1, std::memory_order_release);
    leave();
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

 protected:
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

  /// Locked. Begins the next generation by one fetch_add, because a failing pin may be in flight.
  void nextGeneration() {
    const uint64_t closing = m_life.load(std::memory_order_relaxed) & kClosing;
    m_life.fetch_add((uint64_t{1} << 32) - closing, std::memory_order_acq_rel);
  }
  /// Locked. No thread closes the number any more.
  void forgetCloser() { m_closer.store(0, std::memory_order_relaxed); }

  /// For an interrupting() handler: leaves the close, with `close_number` that of the number itself too, to whom it interrupted.
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

 private:
  static constexpr uint64_t kClosing = uint64_t{1} << 31;
  static constexpr uint64_t kPins = kClosing - 1;

  bool beginClosing() {
    enter();
    const bool mine = !isClosing(m_life.fetch_or(kClosing, std::memory_order_acq_rel));
    if (mine) m_closer.store(Memory::self(), std::memory_order_relaxed);
    leave();
    return mine;
  }

  template <class RealClose>
  int finishClosing(int fd, RealClose real_close) {
    auto& entry = static_cast<Entry&>(*this);
    const uint32_t generation = entry.endWaitsForClose(fd);
    while ((m_life.load(std::memory_order_acquire) & kPins) != 0) Memory::yield();
    const ClosingEnd end{entry, generation};
    return real_close();
  }

  /// Ends a close, even one in which a cancellation point does not return. The number may still be open then, and nothing is
  /// known of it.
  struct ClosingEnd {
    Entry& entry;
    const uint32_t generation;
    ~ClosingEnd() { entry.endClosing(generation); }
  };

  [[gnu::noinline, gnu::cold]] static void closeLeft(std::atomic<void*>& left) {
    auto* next = static_cast<FdLife*>(left.exchange(nullptr, std::memory_order_relaxed));
    while (next != nullptr) {
      FdLife& one = *next;
      next = static_cast<FdLife*>(one.m_left_next);
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

  typename Memory::template Atomic<uint64_t> m_life;
  typename Memory::template Atomic<uint32_t> m_closer;  // the thread that made it closing
  // Left by a signal handler, read by the thread that it interrupted.
  int m_left_fd;  // ~fd if the number itself is not to be closed
  void* m_left_next;
};

}  // namespace sylar::detail
