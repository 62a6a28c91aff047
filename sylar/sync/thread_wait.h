// Internal. The word on which a plain thread waits (protocol P5). A fiber has its wait word instead.
//
//   state      who moves it there                          order
//   kOpen      the thread: start value
//   kClaimed   any waker: claim(); the thread, to give up    acq_rel CAS from kOpen
//   kTold      the waker that has claimed it: tell()         release store
//
// The word lies on the thread's stack. A waker must not touch it any more when it has told the thread.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/clock.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class ThreadWait {
 public:
  using Word = typename Memory::template Atomic<uint32_t>;

  explicit ThreadWait(Word& word) : m_word(word) {}

  /// Decides the wait. Returns true for the one winner, which owes tell() if it is not the thread itself.
  [[nodiscard]] bool claim() {
    uint32_t open = kOpen;
    return m_word.compare_exchange_strong(open, kClaimed, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  /// Lets the thread go on.
  void tell() {
    Word& word = m_word;
    word.store(kTold, std::memory_order_release);
    Memory::futexWakeOne(word);  // of memory that may be somebody else's by now, who is then woken once for nothing
  }

  // For the thread itself.

  /// Blocks until somebody has claimed and told the wait, and returns true; or until `deadline`, and returns false.
  bool park(Deadline deadline) {
    while (m_word.load(std::memory_order_acquire) == kOpen) {
      if (!Memory::futexWaitUntil(m_word, kOpen, deadline) && claim()) return false;
    }
    awaitTold();
    return true;
  }
  /// Ends the wait and returns true if nobody has claimed it. Otherwise waits until it is told, and returns false.
  bool withdraw() {
    if (claim()) return true;
    awaitTold();
    return false;
  }

 private:
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kClaimed = 1;
  static constexpr uint32_t kTold = 2;

  void awaitTold() {
    while (m_word.load(std::memory_order_acquire) != kTold) Memory::futexWait(m_word, kClaimed);
  }

  Word& m_word;
};

}  // namespace sylar::detail
