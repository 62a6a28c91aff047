// A Scheduler whose fibers wait for descriptors and timers: what servers run on.
//
//   sylar::IOManager iom(2);                        // starts at once
//   iom.schedule([] { ... accept(), read(), sleep() suspend this fiber, not the thread ... });
//   iom.addTimer(1000, [] { ... }, true);
//
// With the hooks linked (sylar::hook), plain blocking calls do all the waiting, and addEvent is rarely needed.
// The destructor is stop(): it returns when nothing is left to do.
//
// Thread safety: addEvent, delEvent, cancelEvent, cancelAll, the timer functions and schedule from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/base/os_mutex.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_entry.h"
#include "sylar/sched/scheduler.h"
#include "sylar/timer/timer.h"

namespace sylar {

/// What an IOManager has done for its public timers so far.
struct IOTimerStats {
  uint64_t tickles_sent = 0;        ///< new fronts for which the timerfd was set
  uint64_t tickles_suppressed = 0;  ///< those that it was set to already, by another thread that saw them first
  uint64_t timer_fd_settings = 0;   ///< system calls, those after an expiry included
  uint64_t passes = 0;              ///< times that a worker took due timers, or was woken and found none; each sets the timerfd
  uint64_t passes_cut = 0;          ///< of those, the ones that left due timers for the next: budget or memory was exhausted
};

class IOManager final : public Scheduler, public TimerManager, private SharedUpkeep {
 public:
  using ptr = std::shared_ptr<IOManager>;

  /// Directions of a descriptor; the values are epoll's.
  enum Event { NONE = 0x0, READ = 0x1, WRITE = 0x4 };

  /// Starts the workers. With use_caller the calling thread is one of them, but works only inside stop().
  /// Throws std::invalid_argument for a thread count out of range, std::system_error if descriptors or threads run out,
  /// std::logic_error in a fork of a process that had started a scheduler, or tried to.
  explicit IOManager(size_t threads = 1, bool use_caller = true, const std::string& name = "");
  /// `timer_queue`: what keeps its public timers in order.
  explicit IOManager(SchedulerOptions options, TimerQueueKind timer_queue = kDefaultTimerQueue);
  /// stop(). From then on timers are dead and addEvent fails.
  ~IOManager() override;

  /// Runs `cb` once, in a fiber of this IOManager, when `fd` is ready for `event` (READ or WRITE), has an error, or was hung up.
  /// Without `cb` the running fiber is scheduled instead: follow with Fiber::YieldToHold(). Several may wait for the same
  /// event. 0, or -1 with errno: EBADF (no such descriptor), EPERM (it is always ready: a regular file), EINVAL (not one
  /// event, or no `cb` and no fiber of a worker), ECANCELED (after the end of stop()), ENOMEM, ENOSPC. Suspends: no. Source:
  /// sylar.
  int addEvent(int fd, Event event, std::function<void()> cb = nullptr);

  /// Takes back what addEvent registered with this IOManager for `fd` and `event`, without running it. True: there was something.
  bool delEvent(int fd, Event event);
  /// Runs at once what waits for `fd` and `event`; fibers that wait in hooked calls ask the kernel again. True: there was
  /// something.
  bool cancelEvent(int fd, Event event);
  /// The same for both directions.
  bool cancelAll(int fd);

  /// Of the timers themselves: TimerManager. Thread safety: any. Suspends: no.
  IOTimerStats getIOTimerStats() const;

  /// The IOManager whose worker the calling thread is, or which uses it as its caller; else null.
  static IOManager* GetThis();

 protected:
  std::unique_ptr<Driver> makeDriver(WorkerSlot& slot) override;
  bool stopping() override;
  void dropPending() override;
  void onTimerInsertedAtFront() override;
  void onLastTimerGone() override {
    pendingEnded([] {});
  }

 private:
  struct Callback;

  int timerFd() const override { return m_timer_fd.get(); }
  int64_t timersDueNs() const override { return nextDueNs(); }
  bool serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) override;
  bool serveTimers(int64_t now_ns, bool woken, std::shared_ptr<DueTimers>& batch);
  bool collect(int64_t now_ns, bool woken, std::vector<Timer::ptr>& due, bool* no_memory);
  void armTimer(int64_t due_ns) SYLAR_REQUIRES(m_arming);
  EpollEngine& engineForHere();
  void callbackEnded();
  void addClosed(Callback& callback);
  void wakeForUpkeep();
  void runClosed();

  UniqueFd m_timer_fd;
  mutable OsMutex m_arming;                                // so that two front inserts cannot cross between queue and descriptor
  int64_t m_armed_ns SYLAR_GUARDED_BY(m_arming) = kNever;  // what the descriptor is set to
  IOTimerStats m_timer_stats SYLAR_GUARDED_BY(m_arming);
  std::atomic<size_t> m_callbacks{0};
  std::atomic<size_t> m_adding{0};                        // calls of addClosed under way
  std::atomic<FdWaiter<EpollEngine>*> m_closed{nullptr};  // callbacks of closed descriptors, the latest first
  std::atomic<size_t> m_next_engine{0};
};

}  // namespace sylar
