// Lets fibers and threads go on when a number of them has arrived.
//
//   sylar::Latch ready(workers);
//   for (size_t i = 0; i < workers; ++i) iom.schedule([&] { prepare(); ready.arrive_and_wait(); work(); });
#pragma once

#include <cstddef>

#include "sylar/sync/wait_group.h"

namespace sylar {

/// Counts down to 0, once. To count up as well, take a WaitGroup.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: std::latch.
class Latch {
 public:
  explicit Latch(size_t count) { m_group.add(count); }

  /// Counts down by `count`. With 0 all who wait go on. Below 0 is a programmer error. May suspend: no.
  void count_down(size_t count = 1) { m_group.done(count); }
  /// Returns true if the count is 0. May suspend: no.
  [[nodiscard]] bool try_wait() const { return m_group.isDone(); }
  /// Waits until the count is 0. Returns false if `deadline` passed or the fiber was cancelled before. Throws std::bad_alloc if
  /// there is no memory for a deadline. May suspend: yes. A plain thread blocks.
  bool wait(Deadline deadline = Deadline::never()) { return m_group.wait(deadline); }
  /// Counts down by `count` and waits, in one step, so that the latch may go with the last. May suspend: yes. A plain thread
  /// blocks.
  bool arrive_and_wait(size_t count = 1, Deadline deadline = Deadline::never()) { return m_group.doneAndWait(count, deadline); }

 private:
  WaitGroup m_group;
};

}  // namespace sylar
