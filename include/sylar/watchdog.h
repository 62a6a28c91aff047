// Tells what holds a worker, so that its other fibers get no thread: a call that is not hooked, a lock, or plain computing.
//
//   sylar::Watchdog watchdog(iom, std::chrono::milliseconds(100));
//
// With that, a fiber that keeps its worker for more than 100 ms is logged, with its name, the system call in which its thread
// waits, and a backtrace. Another line tells for how long, when it lets go. Services get it by the setting `hook.watchdog_ms`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sylar {

class Scheduler;

/// A worker that did not get back to its other fibers.
struct HeldWorker {
  std::string worker;                ///< name of the worker
  pid_t thread = 0;                  ///< kernel id of its thread
  std::chrono::milliseconds held{};  ///< for how long, by the wall clock
  uint64_t fiber_id = 0;             ///< the fiber that holds it; 0 for code outside fibers, such as a destructor in the loop
  std::string fiber_name;
  std::string call;  ///< name of the system call in which the thread waits, such as "fsync"; "" if it computes, or if
                     ///< /proc does not tell
  std::vector<std::string> backtrace;  ///< one line for each frame, innermost first; may be empty
};

/// Logs `held` as a warning. Thread safety: any thread.
void logHeldWorker(const HeldWorker& held);
/// Logs as a warning that `was_held` is back, and for how long it was held. Thread safety: any thread.
void logWorkerIsBack(const HeldWorker& was_held);

/// Watches the workers of one scheduler.
///
/// A thread of its own looks at them four times in each limit. It asks the thread of a held worker for a backtrace by a signal
/// (SIGRTMAX - 3, SA_RESTART) if that computes, or waits in a call that goes on after a signal as if there had been none, such as
/// fsync, or the wait for a lock with hooks off. A thread in another call, such as read, write, nanosleep or poll, gets no signal,
/// and the report has no backtrace. A thread that computes may come to such a call before the signal arrives. Then the signal acts
/// on it as any handler with SA_RESTART does: nanosleep fails with EINTR, a write returns what it has written. The time is that of
/// the wall clock, so a machine that gives the process no CPU makes workers late as well.
///
/// Thread safety: none; an object belongs to the thread that made it.
class Watchdog {
 public:
  using Report = std::function<void(const HeldWorker& held)>;

  /// Logs what holds the workers of `scheduler`, which has started and must outlive the object. Throws std::invalid_argument if
  /// `limit` is not positive, std::system_error if there is no thread, and std::bad_alloc.
  Watchdog(Scheduler& scheduler, std::chrono::milliseconds limit) : Watchdog(scheduler, limit, logHeldWorker, logWorkerIsBack) {}
  /// Calls `report` instead, once each time that a worker is held for longer than `limit`, and `is_back`, unless it is null, when
  /// that worker has let go: with what `report` got, except that `held` is the whole time then, to within a quarter of the limit.
  /// For a worker that is held to the end of the scheduler or of this object there is no such call. The watching thread makes
  /// both. They must not throw.
  Watchdog(Scheduler& scheduler, std::chrono::milliseconds limit, Report report, Report is_back = nullptr);
  /// Waits until a report in progress has been made.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar
