// Internal. The fibers of a worker, in two lists: those that the worker must bring to their end, and those that run because a
// fiber has resumed them by hand. The latter are in the first list while they are parked.
//
// Thread safety: only the worker's thread changes the lists, under the lock, and walks them without it. Other threads walk them
// under the lock. After the worker was detached, the thread that it stands for still changes the lists.
//
// The lock spins, because each begin and end of a fiber takes it and hardly ever finds another thread there. Behind a long walk the
// worker sleeps, a millisecond longer than the walk at most.
#pragma once

#include <cstddef>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/sched/fiber_report.h"

namespace sylar::detail {

class LiveFibers {
 public:
  // ---- The worker's thread. --------------------------------------------------------------------------------------------------

  void add(FiberCore& core) {
    Lock lock(m_lock);
    SYLAR_DCHECK(!core.live && !core.by_hand);
    core.live = true;
    link(m_first, core);
    ++m_count;
    m_cancelled += core.isCancelledForGood();
  }
  void remove(FiberCore& core) {
    const tsan::Exempt of_this_thread;
    if (m_walk == &core) m_walk = core.live_next;
    Lock lock(m_lock);
    SYLAR_DCHECK(core.live && m_count > 0);
    core.live = false;
    unlink(m_first, core);
    --m_count;
    m_cancelled -= core.isCancelledForGood();
  }
  void addResumed(FiberCore& core) {
    const tsan::Exempt of_this_thread;
    Lock lock(m_lock);
    SYLAR_DCHECK(!core.live && !core.by_hand);
    core.by_hand = true;
    link(m_first_resumed, core);
  }
  void removeResumed(FiberCore& core) {
    const tsan::Exempt of_this_thread;
    Lock lock(m_lock);
    SYLAR_DCHECK(core.by_hand && !core.live);
    core.by_hand = false;
    unlink(m_first_resumed, core);
  }
  void markCancelled(FiberCore& core, uint8_t by) {
    if (core.cancelForGood(by)) m_cancelled += core.live;
  }

  /// Returns the first fiber to bring to its end, or null. `live_next` leads to the others.
  FiberCore* first() const { return m_first; }
  /// Begins a walk over these fibers, during which some may come and go. Those that come are left out.
  void beginWalk() { m_walk = m_first; }
  /// Returns the walk's next fiber, or null at its end.
  FiberCore* walk() {
    FiberCore* const core = m_walk;
    if (core != nullptr) m_walk = core->live_next;
    return core;
  }
  size_t count() const { return m_count; }
  /// Returns how many of them are not cancelled.
  size_t uncancelled() const {
    SYLAR_DCHECK(m_cancelled <= m_count);
    return m_count - m_cancelled;
  }

  // ---- Any thread. -----------------------------------------------------------------------------------------------------------

  /// Appends the fibers to bring to their end to `out`. Throws std::bad_alloc.
  void list(std::vector<FiberReport>& out);

  /// Calls `resumed` and `live` with each fiber of the two lists, under the lock. They must not change the lists.
  template <class Resumed, class Live>
  void visit(Resumed resumed, Live live) {
    Lock lock(m_lock);
    for (FiberCore* core = m_first_resumed; core != nullptr; core = core->live_next) resumed(*core);
    for (FiberCore* core = m_first; core != nullptr; core = core->live_next) live(*core);
  }

 private:
  static void link(FiberCore*& first, FiberCore& core) {
    SYLAR_DCHECK(first != &core && (first == nullptr || first->live_prev == nullptr));
    core.live_prev = nullptr;
    core.live_next = first;
    if (first != nullptr) first->live_prev = &core;
    first = &core;
  }
  static void unlink(FiberCore*& first, FiberCore& core) {
    SYLAR_DCHECK((core.live_prev == nullptr) == (first == &core));
    (core.live_prev == nullptr ? first : core.live_prev->live_next) = core.live_next;
    if (core.live_next != nullptr) core.live_next->live_prev = core.live_prev;
  }

  Spinlock m_lock;
  FiberCore* m_first = nullptr;
  FiberCore* m_first_resumed = nullptr;
  FiberCore* m_walk = nullptr;
  size_t m_count = 0;      // of the first list
  size_t m_cancelled = 0;  // of those
};

}  // namespace sylar::detail
