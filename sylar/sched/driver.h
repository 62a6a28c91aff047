// Internal. The seam between a worker and the world that it waits for: `io` puts an epoll engine here, a plain Scheduler sleeps
// on its slot's wake-up descriptor.
#pragma once

#include <cstdint>
#include <memory>

#include "sylar/base/clock.h"
#include "sylar/sched/worker_slot.h"

namespace sylar {

/// Used by its worker only. WorkerSlot::notify() ends a poll from another thread.
class Driver {
 public:
  explicit Driver(bool waits_for_descriptors) : m_waits_for_descriptors(waits_for_descriptors) {}
  virtual ~Driver() = default;

  /// True: it is io's engine, and its fibers may wait for descriptors.
  bool waitsForDescriptors() const { return m_waits_for_descriptors; }

  /// Bounded upkeep, once a turn. True: there is more of it now.
  virtual bool serve(int64_t now_ns) = 0;

  /// Delivers what is ready; if nothing is, waits for it until `deadline_ns`. A deadline in the past never blocks. True: it was
  /// notified.
  virtual bool poll(int64_t now_ns, int64_t deadline_ns) = 0;

  /// Readable whenever poll() would find something. For workers on virtual time, which look without taking.
  virtual int fd() const = 0;
  /// When serve() has something to do, as far as poll() does not tell: on virtual time. Any thread.
  virtual int64_t nextDueNs() const { return kNever; }

  /// Its worker will never serve or poll again, though the driver stays: what is registered here goes elsewhere. Any thread.
  virtual void retire() {}

 private:
  const bool m_waits_for_descriptors;
};

/// Waits for notifications and deadlines only.
std::unique_ptr<Driver> makeSleepDriver(WorkerSlot& slot);

}  // namespace sylar
