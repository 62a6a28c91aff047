// Internal. Gives back to the kernel what a worker's waiting fibers do not need of their stacks: the pages below their frames,
// which a deeper call has touched once and which would stay for as long as the fiber lives.
//
// A sweep looks at all fibers of the worker, some at a time, and begins when the set time has passed since the end of the last one.
// So a fiber that still is in the wait in which the last sweep found it has waited for that time at least. It is trimmed, once for
// each wait. Sweeps end when no fiber has run between two of them, so an idle process rests.
//
// Thread safety: belongs to the worker's thread. Source: madvise(2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/counter.h"
#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/sched/live_fibers.h"

namespace sylar::detail {

class StackTrimmer {
 public:
  /// Trims fibers that have waited for `after_ns`, or none if that is 0.
  explicit StackTrimmer(int64_t after_ns) : m_after_ns(after_ns) {}

  /// Does a part of a sweep if it is time. `switches` says how often fibers were given the thread so far. Returns true if the sweep
  /// has not ended.
  bool run(const Clock& clock, uint64_t switches, LiveFibers& fibers) { return m_after_ns > 0 && sweep(clock, switches, fibers); }
  /// Returns when the next sweep begins, or kNever.
  int64_t nextNs() const { return m_next_ns; }
  /// Returns how many stacks were trimmed. Any thread.
  const Counter& trimmed() const { return m_trimmed; }

 private:
  static constexpr size_t kAtOnce = 64;  // system calls that a turn of the worker's loop makes for this, at most

  bool sweep(const Clock& clock, uint64_t switches, LiveFibers& fibers);
  void look(FiberCore& core);
  void trim(const FiberCore& core);

  const int64_t m_after_ns;
  int64_t m_next_ns = kNever;
  bool m_under_way = false;
  uint64_t m_switches = 0;  // at the begin of the last sweep
  bool m_again = false;     // fibers have run since the sweep before that
  Counter m_trimmed;
};

}  // namespace sylar::detail
