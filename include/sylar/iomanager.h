// An IOManager is a Scheduler whose fibers can also wait for descriptors and timers. Servers run on it.
//
//   sylar::IOManager iom(2);                        // starts at once
//   iom.schedule([] { ... accept(), read(), sleep() suspend this fiber, not the thread ... });
//   iom.addTimer(1000, [] { ... }, true);
//
// With the hooks linked (sylar::hook), plain blocking calls do all the waiting, and addEvent is rarely needed. The destructor
// calls stop(): it returns when nothing is left to do.
//
// In a forked child addEvent fails; delEvent, cancelEvent and cancelAll find nothing; and timers are dead. See scheduler.h and
// timer.h.
//
// Thread safety: addEvent, delEvent, cancelEvent, cancelAll, the timer functions and schedule may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sylar/mutex.h"
#include "sylar/scheduler.h"
#include "sylar/timer.h"

namespace sylar {

namespace detail {
class IOCore;
}

/// Chooses what makes the calls of fibers. Workers sleep in their epoll with each value.
enum class IOEngine : uint8_t {
  /// As kUring for files. For sockets it is as kUring while several of a worker's are ready at a time, and else as kEpoll, which
  /// costs less for one alone. Where there is no io_uring (Linux 6.1, and no filter that forbids it) it is kEpoll, and the log says
  /// so once.
  kAuto,
  kEpoll,  ///< Helper threads make calls that wait for files (setHookFiles, BlockingLimits); the worker makes all others itself.
  /// An io_uring of each worker makes the calls that wait for files, and receives and sends on TCP sockets. Sends of up to 16 KiB
  /// go out together when the worker's turn ends. So a fiber that computes for long in that turn delays them, and one that blocks
  /// the thread holds them back. On virtual time sockets are as with kEpoll. Where there is no io_uring it is kEpoll, with a
  /// warning.
  kUring,
};
/// Sets the engine; kAuto is the initial value. A call gives the same result with each, but may give it later. The ring makes only
/// those calls on files that it makes exactly as the kernel's own; helper threads make the others. Thread safety: any thread;
/// affects workers that start afterwards, and for files calls that begin afterwards. May suspend: no. Source: io_uring(7).
void setIOEngine(IOEngine engine);
/// Returns what setIOEngine() has set. Thread safety: any thread. May suspend: no.
IOEngine ioEngine();

/// Counts what an IOManager has done for its public timers so far.
struct IOTimerStats {
  uint64_t tickles_sent = 0;        ///< new earliest timers for which the timerfd was set
  uint64_t tickles_suppressed = 0;  ///< new earliest timers for which another thread had already set the timerfd
  uint64_t timer_fd_settings = 0;   ///< system calls that set the timerfd, including those after an expiry and before a sleep
  uint64_t passes = 0;              ///< times that a worker took due timers, or was woken and found none; each sets the timerfd
  uint64_t passes_cut = 0;          ///< passes that left due timers for the next one, because budget or memory was exhausted
};

/// A Scheduler whose fibers can also wait for descriptors and timers.
class IOManager final : public Scheduler, public TimerManager {
 public:
  using ptr = std::shared_ptr<IOManager>;

  /// The directions of a descriptor; the values are epoll's.
  enum Event { NONE = 0x0, READ = 0x1, WRITE = 0x4 };

  /// Starts the workers. With use_caller the calling thread is one of them, but works only inside stop(). Throws
  /// std::invalid_argument if the thread count is out of range, or for use_caller in a fiber of a scheduler; std::system_error
  /// if descriptors or threads run out; std::logic_error in a fork of a process that had started a scheduler, or tried to.
  explicit IOManager(size_t threads = 1, bool use_caller = true, const std::string& name = "");
  /// Starts the workers. `timer_queue` selects the structure that keeps the public timers in order.
  explicit IOManager(SchedulerOptions options, TimerQueueKind timer_queue = kDefaultTimerQueue);
  /// Calls stop(). From then on timers are dead and addEvent fails.
  ~IOManager() override;

  /// Runs `cb` once, in a fiber of this IOManager, when `fd` is ready for `event` (READ or WRITE), has an error, or was hung
  /// up. Without `cb` the running fiber is scheduled instead; follow the call with Fiber::YieldToHold(). Several callbacks and
  /// fibers may wait for the same event. Returns 0, or -1 with errno: EBADF (no such descriptor), EPERM (it is always ready, as
  /// a regular file is), EINVAL (not exactly one event, or no `cb` and no fiber of a worker), ECANCELED (after the end of
  /// stop(), or in a forked child), ENOMEM, ENOSPC. May suspend: no. Source: sylar.
  int addEvent(int fd, Event event, std::function<void()> cb = nullptr);

  /// Removes what addEvent registered with this IOManager for `fd` and `event`, without running it. Returns true if there was
  /// something.
  bool delEvent(int fd, Event event);
  /// Immediately runs everything that waits for `fd` and `event`; fibers that wait in hooked calls ask the kernel again.
  /// Returns true if there was something.
  bool cancelEvent(int fd, Event event);
  /// Does what cancelEvent() does, for both directions.
  bool cancelAll(int fd);

  /// Returns these counts; TimerManager::getStats() counts the timers themselves. Thread safety: any thread. May suspend: no.
  IOTimerStats getIOTimerStats() const;

  /// Returns the IOManager of which the calling thread is a worker, or which uses the thread as its caller and has not stopped;
  /// otherwise null.
  static IOManager* GetThis();

 protected:
  bool stopping() override;
  void dropPending() override;
  void onTimerInsertedAtFront() override;
  void onLastTimerGone() override;

 private:
  friend class detail::IOCore;

  const std::unique_ptr<detail::IOCore> m_core;
};

}  // namespace sylar
