// Internal. The seam between a worker and the events that it waits for. `io` puts an epoll engine here; a plain Scheduler sleeps
// on its slot's wake-up descriptor.
#pragma once

#include <cstdint>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/sched/worker_slot.h"

namespace sylar::detail {

struct FiberCore;

/// Collects events for one worker, and is used by that worker only. WorkerSlot::notify() ends a poll from another thread.
class Driver {
 public:
  explicit Driver(bool waits_for_descriptors) : m_waits_for_descriptors(waits_for_descriptors) {}
  virtual ~Driver() = default;

  /// Returns true if this is io's engine, whose fibers may wait for descriptors.
  bool waitsForDescriptors() const { return m_waits_for_descriptors; }

  /// Does bounded upkeep, once an iteration. Returns true if there is more of it now.
  virtual bool serve(int64_t now_ns) = 0;

  /// Delivers what is ready. If nothing is, waits for it until `deadline_ns`; a deadline in the past never blocks. Returns true
  /// if it was notified.
  virtual bool poll(int64_t now_ns, int64_t deadline_ns) = 0;

  /// Submits to the kernel what the fibers of this turn have begun, and delivers what is done of it.
  virtual void submit() {}

  /// Returns a descriptor that is readable whenever poll() would find something. For workers on virtual time, which look without
  /// taking.
  virtual int fd() const = 0;
  /// Returns when serve() has something to do, as far as poll() does not tell. For virtual time. Any thread.
  virtual int64_t nextDueNs() const { return kNever; }

  /// Called when the worker will never serve or poll again, though the driver stays. Everything registered here goes elsewhere.
  /// Any thread.
  virtual void retire() {}
  /// Called by the worker's thread before it first serves, and when it will never serve or poll again.
  virtual void enter() {}
  virtual void leave() {}
  /// Called by the worker's thread for a fiber that it abandons.
  virtual void abandon(const FiberCore& /*core*/) {}
  /// Returns true if the kernel keeps the worker's thread from ending until somebody else lets it: a disk that does not answer.
  /// Called when the worker has ended.
  virtual bool holdsThread() const { return false; }

 private:
  const bool m_waits_for_descriptors;
};

/// Makes a driver that waits for notifications and deadlines only.
std::unique_ptr<Driver> makeSleepDriver(WorkerSlot& slot);

}  // namespace sylar::detail
