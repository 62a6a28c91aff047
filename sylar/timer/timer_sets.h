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
#include <functional>
#include <memory>
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
  /// Returns the set in which the calling thread arms timers. It may outlive the manager. For functions that cannot suspend, nor are
  /// inlined into others that can.
  const std::shared_ptr<TimerCore>& own() const { return m_sets[ownNumber()]; }
  /// Returns the set of a timer with that id, or any if there is none.
  TimerCore& ofId(TimerId id) const { return *m_sets[id >> kIdShift & (m_sets.size() - 1)]; }

  // These do what TimerManager's functions of the same names do.

  uint64_t getNextTimer() SYLAR_EXCLUDES(m_looking);
  void listExpiredCb(std::vector<std::function<void()>>& cbs);
  bool hasTimer() const;
  bool anyWillFallDue() const;
  bool detectClockRollover() const;
  TimerStats getStats() const;
  const Clock& clock() const { return m_sets[0]->clock(); }
  int64_t nextDueNs() const { return next(0).due_ns; }
  int64_t observeNextDue() SYLAR_EXCLUDES(m_looking);
  bool collectDue(size_t budget, std::vector<Timer::ptr>& out);
  bool tryCollectDue(size_t budget, std::vector<Timer::ptr>& out);
  void close();

  /// Returns true in a forked child if the timers are its parent's, as TimerCore::isParents() does.
  bool isParents() const { return m_sets[0]->isParents(); }
  /// Returns when tryCollectDue() has something to do for the calling thread.
  int64_t nextDueHereNs() const { return next(kPatienceNs).due_ns; }

 private:
  static constexpr unsigned kIdShift = 24;  ///< an id tells its set in the bits that TimerPool leaves 0
  static constexpr size_t kMostSets = 256;
  static_assert(TimerPool<>::kMaxPages == 1 << 18, "64 timers a page: ids take 24 bits for the place");
  /// A thread that comes by serves timers of other sets only when they are this late, because their own workers are to have them first.
  static constexpr int64_t kPatienceNs = 100'000;

  struct Next {
    size_t set;
    int64_t due_ns;  ///< with the patience added
  };
  size_t ownNumber() const { return t_number & (m_sets.size() - 1); }
  Next next(int64_t patience_ns) const;

  [[gnu::tls_model("initial-exec")]] static constinit thread_local size_t t_number;

  std::vector<std::shared_ptr<TimerCore>> m_sets;  ///< a power of two of them
  OsMutex m_looking;                               ///< so that two looks at all sets cannot cross
};

}  // namespace sylar::detail
