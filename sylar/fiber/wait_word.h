// Internal. The word for which all wakers of a fiber compete (protocol P1).
//
//   bits 0-2 state, bits 3-63 epoch. The epoch never wraps and goes on when the slot is reused, so a late waker always meets a
//   valid word and a wrong epoch.
//
//   state             who moves it there                        order
//   kNone             the fiber: start value; withdraw()          acq_rel CAS from kOpen
//   kOpen             the fiber: prepare(), a new epoch         release store
//   a reason          any waker: claim(), once an epoch         acq_rel CAS from kOpen of its own epoch
//
// Each claim is delivered once, through a queue, and consumed by the fiber: an epoch ends by that or by a won withdraw().
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"

namespace sylar::detail {

/// Why a wait ended.
enum class WakeReason : uint8_t { kReady = 2, kTimeout = 3, kCanceled = 4, kClosed = 5 };

template <class Memory = StdMemory>
class WaitWord {
 public:
  constexpr WaitWord() = default;

  /// Opens a new epoch and returns it. For the fiber itself, which must have no open wait.
  uint64_t prepare() {
    const uint64_t last = m_word.load(std::memory_order_relaxed);
    SYLAR_DCHECK((last & kStateMask) != kOpen);
    const uint64_t epoch = (last >> kStateBits) + 1;
    m_word.store(epoch << kStateBits | kOpen, std::memory_order_release);
    return epoch;
  }

  /// Decides the wait `epoch` if it is still open. Returns true for the one winner, which now owes the delivery. Any thread.
  bool claim(uint64_t epoch, WakeReason reason) { return close(epoch, static_cast<uint64_t>(reason)); }

  /// Closes a wait that turned out needless. Returns false if a waker was faster; its delivery must then be consumed by parking.
  bool withdraw(uint64_t epoch) { return close(epoch, kNone); }

  /// Returns why the last wait ended. For the fiber itself, after its delivery, which the queue ordered.
  WakeReason reason() const {
    const uint64_t state = m_word.load(std::memory_order_relaxed) & kStateMask;
    SYLAR_DCHECK(state > kOpen);
    return static_cast<WakeReason>(state);
  }

  /// Returns true while a wait is open and undecided. Only a hint, except for the fiber itself.
  bool isOpen() const { return (m_word.load(std::memory_order_relaxed) & kStateMask) == kOpen; }

  /// Returns the present or last epoch. For the fiber itself or its home worker.
  uint64_t epoch() const { return m_word.load(std::memory_order_relaxed) >> kStateBits; }

 private:
  static constexpr unsigned kStateBits = 3;
  static constexpr uint64_t kStateMask = (1 << kStateBits) - 1;
  static constexpr uint64_t kNone = 0;
  static constexpr uint64_t kOpen = 1;

  bool close(uint64_t epoch, uint64_t state) {
    uint64_t open = epoch << kStateBits | kOpen;
    return m_word.compare_exchange_strong(open, epoch << kStateBits | state, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }

  typename Memory::template Atomic<uint64_t> m_word{0};
};

}  // namespace sylar::detail
