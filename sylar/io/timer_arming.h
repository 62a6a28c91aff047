// Internal. When the descriptor of the public timers is set (protocol P4): at once while a worker sleeps, else by the worker that
// sleeps next. A busy server that arms and stops timers makes no system call for them.
//
//   who sets     notes that the descriptor is owed a time, then looks whether anybody sleeps
//   who sleeps   declares that it sleeps, then looks whether the descriptor is owed a time
//
// One of the two sees the other.
//
// Thread safety: as said at each function; "locked" means that the caller holds the arming lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/memory.h"
#include "sylar/clock.h"

namespace sylar {

template <class Memory = StdMemory>
class TimerArming {
 public:
  /// Locked. Returns true if `due_ns` is what the descriptor was set to, or is owed.
  bool knows(int64_t due_ns) const { return m_due_ns == due_ns; }

  /// Locked. The descriptor is to be set to `due_ns`. Returns true if the caller must do it, false if whoever sleeps next will.
  template <class AnySleeping>
  bool owe(int64_t due_ns, AnySleeping anySleeping) {
    m_due_ns = due_ns;
    m_owed.store(true, std::memory_order_seq_cst);
    return anySleeping();
  }
  /// Locked, for whoever has set it to `due_ns`.
  void wasSet(int64_t due_ns) {
    m_due_ns = due_ns;
    m_owed.store(false, std::memory_order_relaxed);
  }

  /// Not locked, for a worker that has declared that it sleeps. If true, it takes the lock, asks again, and sets the descriptor.
  bool owed() const { return m_owed.load(std::memory_order_seq_cst); }

 private:
  int64_t m_due_ns = kNever;
  typename Memory::template Atomic<bool> m_owed{false};
};

}  // namespace sylar
