// Internal. The sets of timers of one manager. Most managers have one. An IOManager on the steady clock has one for each of its
// workers, so that workers that arm and stop timers wait neither for each other's lock nor for each other's cache lines.
//
// A timer is in the set of the thread that armed it. Any thread may stop it, and any worker may serve it, under that set's lock.
// Timers come out in the order (deadline, arming) within a set. Between sets there is no order.
//
// Thread safety: all calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/timer_core.h"
#include "sylar/timer_stats.h"

namespace sylar::detail {

class TimerSets {
 public:
  /// Makes a set for each of `threads` >= 1 threads, as far as ids can tell them apart. May throw std::bad_alloc.
  TimerSets(TimerManager& manager, const Clock& clock, TimerQueueKind queue, const RunWaits& waits, size_t threads);
  TimerSets(const TimerSets&) = delete;
  TimerSets& operator=(const TimerSets&) = delete;

  static TimerSets& of(const TimerManager& manager) { return *manager.m_sets; }

  /// Gives the calling thread the set of this number, modulo how many a manager has. Threads that never call this have set 0.
  static void setOwn(size_t number);
  /// Returns the set in which the calling thread arms timers. It may outlive the manager. For functions that cannot suspend, nor
  /// are inlined into others that can.
  const std::shared_ptr<TimerCore>& own() const { return m_sets[ownNumber()]; }
  /// Returns the set of a timer with that id, or any if there is none.
  TimerCore& ofId(TimerId id) const { return *m_sets[id >> kIdShift & (m_sets.size() - 1)]; }

  /// Returns all sets, or none in a forked child if the timers are its parent's. Then TimerCore::isParents() says so of each.
  std::span<const std::shared_ptr<TimerCore>> live() const {
    if (m_sets[0]->isParents()) return {};
    return m_sets;
  }
  const Clock& clock() const { return m_sets[0]->clock(); }
  /// Held over a look at all sets, so that two of them cannot cross.
  OsMutex& looking() { return m_looking; }

  struct Next {
    size_t set;
    int64_t due_ns;
  };
  /// Returns the set that is due first, if those that are not the calling thread's wait for `patience_ns` longer.
  Next next(int64_t patience_ns) const;
  /// Returns the set that tryCollectDue() serves next on the calling thread, and when.
  Next nextHere() const { return next(kPatienceNs); }

 private:
  static constexpr unsigned kIdShift = 24;  ///< an id tells its set in the bits that TimerPool leaves 0
  static constexpr size_t kMostSets = 256;
  static_assert(TimerPool<>::kMaxPages == 1 << 18, "64 timers a page: ids take 24 bits for the place");
  /// A thread that comes by serves timers of other sets only when they are this late, because their own workers are to have them
  /// first.
  static constexpr int64_t kPatienceNs = 100'000;

  size_t ownNumber() const { return t_number & (m_sets.size() - 1); }

  [[gnu::tls_model("initial-exec")]] static constinit thread_local size_t t_number;

  std::vector<std::shared_ptr<TimerCore>> m_sets;  ///< a power of two of them
  OsMutex m_looking;
};

}  // namespace sylar::detail
