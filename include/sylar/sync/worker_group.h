// Runs functions on a scheduler, so many at a time, and waits for all of them.
//
//   const auto group = sylar::WorkerGroup::Create(10);
//   for (const std::string& url : urls) group->schedule([url] { fetch(url); });
//   group->waitAll();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sylar/mutex.h"
#include "sylar/scheduler.h"
#include "sylar/sync/wait_group.h"

namespace sylar {

/// Thread safety: all calls from any thread, in fibers and outside. Source: sylar.
class WorkerGroup : public std::enable_shared_from_this<WorkerGroup> {
 public:
  using ptr = std::shared_ptr<WorkerGroup>;

  /// Makes a group that runs up to `batch_size` functions at a time on `scheduler`. Throws std::invalid_argument if `batch_size`
  /// is 0, or if `scheduler` is null, as it is outside of one.
  static ptr Create(uint32_t batch_size, Scheduler* scheduler = Scheduler::GetThis());
  /// Must be held by a shared_ptr, as by Create().
  explicit WorkerGroup(uint32_t batch_size, Scheduler* scheduler = Scheduler::GetThis());

  /// Schedules `cb`, on worker `thread` if that is not -1, once fewer than `batch_size` are running. Returns false, and `cb` will
  /// not run, if the scheduler refused it, or if the fiber was cancelled while it waited. An exception of `cb` reaches the
  /// exception handler of fibers. May suspend: yes. A plain thread blocks.
  bool schedule(std::function<void()> cb, int thread = -1);
  /// Waits until everything that was scheduled has ended. Returns false if the fiber was cancelled before. May suspend: yes. A
  /// plain thread blocks.
  bool waitAll() { return m_running.wait(); }

 private:
  class Call;

  Scheduler* const m_scheduler;
  Semaphore m_slots;
  WaitGroup m_running;
};

}  // namespace sylar
