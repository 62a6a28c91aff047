// Internal. When the descriptor of the public timers is set (protocol P4): at once while a worker sleeps, else by the worker that
// sleeps next. A busy server that arms and stops timers makes no system call for them.
//
//   who arms a timer   has put it into the queue; notes that the descriptor is owed a look at it; asks whether anybody sleeps
//   who sleeps         declares that it sleeps; asks whether the descriptor is owed a look
//   who settles it     notes that nothing is owed; looks at the queue; sets the descriptor
//
// Of the first two, one sees the other. A timer that comes after the look is owed again.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class TimerArming {
 public:
  /// For whoever has changed the front of the queue. Returns true if the caller must settle it, false if whoever sleeps next will.
  template <class AnySleeping>
  bool owe(AnySleeping anySleeping) {
    m_owed.store(true, std::memory_order_seq_cst);
    return anySleeping();
  }
  /// For a worker that has declared that it sleeps. If true, the caller must settle it.
  bool owed() const { return m_owed.load(std::memory_order_seq_cst); }
  /// Comes before the look at the queue, whose lock orders it.
  void settle() { m_owed.store(false, std::memory_order_relaxed); }

 private:
  typename Memory::template Atomic<bool> m_owed{false};
};

}  // namespace sylar::detail
