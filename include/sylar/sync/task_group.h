// A scope for fibers: what it has spawned has ended when the scope ends.
//
//   sylar::TaskGroup group;                                     // in a fiber
//   for (const Upstream& upstream : upstreams) group.spawn([&] { ask(upstream); });
//   group.join();                                               // throws the first exception of a task
//
// So tasks may use what the scope owns. If a task throws, the others are cancelled, but not the fiber that owns the scope.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/mutex.h"
#include "sylar/scheduler.h"
#include "sylar/sync/wait_group.h"

namespace sylar {

/// Thread safety: all calls from any thread, in fibers and outside. Source: structured concurrency, as in Trio and Go's errgroup.
class TaskGroup {
 public:
  /// The tasks run on `scheduler`, up to `limit` of them at a time; 0: as many as are spawned. Throws std::invalid_argument if
  /// `scheduler` is null, as it is outside of one. On the thread that a scheduler uses as its caller, tasks may run no sooner
  /// than in stop(). A task that a stop with a deadline abandons never ends, and the group waits for it, because its stack may
  /// use what the scope owns.
  explicit TaskGroup(size_t limit = 0, Scheduler* scheduler = Scheduler::GetThis());
  /// Waits for all tasks. Cancels them first if the scope is left by an exception, and when join() would. An exception of a task
  /// that no join() has thrown is logged. May suspend: yes. A plain thread blocks.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Runs `task` in a fiber of its own, once fewer than the limit are running, with the deadline of the caller's DeadlineScope.
  /// Returns false, and the task will not run, if the group was cancelled, if the scheduler refused it, or if the fiber was
  /// cancelled or its deadline passed while it waited. Throws std::bad_alloc. May suspend: only at the limit. A plain thread
  /// blocks then. A task that spawns at the limit may wait for its own end.
  bool spawn(std::function<void()> task);
  /// The same for a task that can only be moved.
  template <class Task>
  requires(std::invocable<Task&> && !std::copy_constructible<Task>) bool spawn(Task task) {
    return spawn([moved = std::make_shared<Task>(std::move(task))] { (*moved)(); });
  }
  /// Waits for all tasks, and throws the first exception of a task, once. If the fiber is cancelled meanwhile, or the deadline of
  /// its DeadlineScope passes, the tasks are cancelled, and it still waits for them. Then it throws std::system_error with
  /// ECANCELED or ETIMEDOUT, unless a task threw. Throws std::logic_error in a forked child. To call it from one of the tasks is a
  /// programmer error. May suspend: yes. A plain thread blocks.
  void join();
  /// Waits as join() does, but not beyond `deadline`. Returns false if it has passed, and the tasks go on.
  bool join(Deadline deadline);
  /// Cancels all tasks, and refuses those that come. May suspend: no.
  void cancel();

 private:
  struct Entry {
    std::weak_ptr<Fiber> fiber;
    uint64_t id = 0;
    bool cancelled = false;
  };
  class Task;

  Fiber::ptr nextToCancel();
  void fail(std::exception_ptr exception);
  int awaitAll();
  void checkIsNoTask();
  void joinAny();
  void rethrow();

  Scheduler* const m_scheduler;
  const int m_exceptions_before;
  std::optional<Semaphore> m_slots;  // if there is a limit
  ThreadMutex m_lock;
  std::list<Entry> m_entries;  // those that were cancelled are last
  bool m_cancelled = false;
  std::exception_ptr m_exception;  // the first
  WaitGroup m_running;
};

/// Calls `function(i)` for each i in [begin, end), in up to `limit` fibers of the caller's scheduler at a time, and returns when
/// all calls have. Throws what TaskGroup::join() does; after an exception no further call begins. Throws std::system_error with
/// ECANCELED if not all calls were made, because the scheduler stops or a fiber was cancelled, and std::invalid_argument outside
/// of a scheduler, or if `limit` is 0. May suspend: yes. Source: Go's errgroup, oneTBB's parallel_for.
template <class Function>
void parallelFor(size_t begin, size_t end, size_t limit, Function function) {
  if (limit == 0) throw std::invalid_argument("sylar::parallelFor: the limit is 0");
  std::atomic<size_t> next{begin};
  const auto take = [&next, end](size_t& i) {
    i = next.load(std::memory_order_relaxed);
    while (i < end && !next.compare_exchange_weak(i, i + 1, std::memory_order_relaxed)) continue;
    return i < end;
  };
  TaskGroup group;
  for (size_t fiber = 0, calls = end > begin ? end - begin : 0; fiber < std::min(limit, calls); ++fiber) {
    group.spawn([&] {
      for (size_t i; !this_fiber::cancelled() && take(i);) function(i);
    });
  }
  group.join();
  if (next < end) throw std::system_error(ECANCELED, std::generic_category(), "sylar::parallelFor");
}

}  // namespace sylar
