// Internal. The parts of an IOManager besides its scheduler and its timers: waits for descriptors by addEvent (io_core.cc), and
// the passes over its timers (io_timers.cc, protocol P4).
//
// Thread safety: as IOManager's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sylar/base/fd.h"
#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_entry.h"
#include "sylar/io/timer_arming.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"

namespace sylar::detail {

class IOCore final : public SharedUpkeep {
 public:
  /// Gives each worker of the scheduler an EpollEngine to wait in. Throws std::system_error if there is no descriptor for the
  /// timers.
  explicit IOCore(IOManager& iom);
  IOCore(const IOCore&) = delete;
  IOCore& operator=(const IOCore&) = delete;

  // These implement IOManager's functions of the same names.
  int addEvent(int fd, IOManager::Event event, std::function<void()> cb);
  bool delEvent(int fd, IOManager::Event event);
  bool cancelEvent(int fd, IOManager::Event event);
  IOTimerStats getIOTimerStats() const;
  void dropPending();
  void onTimerInsertedAtFront();

  /// Returns true if nobody waits with addEvent, and no timer is armed that will fall due.
  bool nothingPending();

  int timerFd() const override { return m_timer_fd.get(); }
  int64_t timersDueNs() const override { return m_iom.nextDueNs(); }
  bool serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) override;
  void beforeSleep() override;

 private:
  struct Callback;
  struct Pass;

  const Clock& clock() const { return m_scheduler.clock(); }
  bool oweArming();
  int64_t lookAtFront() SYLAR_REQUIRES(m_arming);
  void armTimer(int64_t due_ns) SYLAR_REQUIRES(m_arming);
  EpollEngine& engineForHere();
  void callbackEnded();
  void addClosed(Callback& callback);
  void wakeForUpkeep();
  void runClosed();

  IOManager& m_iom;
  SchedulerCore& m_scheduler;  // the manager's
  UniqueFd m_timer_fd;
  TimerArming<> m_timers_front;
  mutable OsMutex m_arming;                                // so that two front inserts cannot cross between queue and descriptor
  int64_t m_armed_ns SYLAR_GUARDED_BY(m_arming) = kNever;  // the time that the descriptor is set to
  IOTimerStats m_timer_stats SYLAR_GUARDED_BY(m_arming);
  std::atomic<size_t> m_callbacks{0};
  std::atomic<size_t> m_adding{0};                        // calls of addClosed under way
  std::atomic<FdWaiter<EpollEngine>*> m_closed{nullptr};  // callbacks of closed descriptors, the latest first
  std::atomic<size_t> m_next_engine{0};
};

}  // namespace sylar::detail
