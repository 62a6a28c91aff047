#include "sylar/sync/task_group.h"

#include <cxxabi.h>

#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"

namespace sylar {

TaskGroup::TaskGroup(size_t limit, Scheduler* scheduler)
    : m_scheduler(scheduler), m_exceptions_before(std::uncaught_exceptions()) {
  if (scheduler == nullptr) throw std::invalid_argument("sylar::TaskGroup: no scheduler");
  if (limit > 0) m_slots.emplace(limit);
}

TaskGroup::~TaskGroup() {
  if (std::uncaught_exceptions() > m_exceptions_before) cancel();
  awaitAll();
  try {
    rethrow();
  } catch (const std::exception& e) {
    log::error("a task of a group ended by an exception that no join() has thrown: {}", e.what());
  } catch (...) {
    log::error("a task of a group ended by an exception that no join() has thrown, and that is no std::exception");
  }
}

/// A task of the group, from spawn() until its function is destroyed, whether that has run or was refused.
class TaskGroup::Task {
 public:
  Task(TaskGroup& group, const Fiber::ptr& fiber) : m_group(group) {
    m_mine.push_back({fiber});
    m_group.m_running.add();
  }
  ~Task() {
    if (m_entered) {
      const ThreadMutex::Lock lock(m_group.m_lock);
      m_mine.splice(m_mine.end(), m_group.m_entries, m_place);
    }
    if (m_has_slot && m_group.m_slots) m_group.m_slots->notify();
    m_group.m_running.done();  // the group may be gone
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Returns false if the group was cancelled, or the fiber while it waited.
  bool enter() {
    m_has_slot = !m_group.m_slots || m_group.m_slots->wait();
    if (!m_has_slot) return false;
    const ThreadMutex::Lock lock(m_group.m_lock);
    if (m_group.m_cancelled) return false;
    m_place = m_mine.begin();
    m_group.m_entries.splice(m_group.m_entries.begin(), m_mine);
    return m_entered = true;
  }
  void run(const std::function<void()>& function) {
    try {
      const this_fiber::DeadlineScope scope(m_deadline);
      function();
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {
      m_group.fail(std::current_exception());
    }
  }

 private:
  TaskGroup& m_group;
  const Deadline m_deadline = this_fiber::deadline();  // of the fiber that spawns
  std::list<Entry> m_mine;
  std::list<Entry>::iterator m_place;
  bool m_has_slot = false;
  bool m_entered = false;
};

bool TaskGroup::spawn(std::function<void()> task) {
  if (task == nullptr) return false;
  auto fiber = std::make_shared<Fiber>([] {});
  auto entry = std::make_shared<Task>(*this, fiber);
  if (!entry->enter()) return false;
  fiber->reset([entry = std::move(entry), task = std::move(task)] { entry->run(task); });
  return m_scheduler->trySchedule(std::move(fiber));
}

void TaskGroup::fail(std::exception_ptr exception) {
  {
    const ThreadMutex::Lock lock(m_lock);
    if (m_exception == nullptr) m_exception = std::move(exception);
  }
  cancel();
}

void TaskGroup::cancel() {
  {
    const ThreadMutex::Lock lock(m_lock);
    m_cancelled = true;
  }
  while (const Fiber::ptr fiber = nextToCancel()) fiber->cancel();
}

/// Returns a fiber that was not cancelled yet, or null if there is none.
Fiber::ptr TaskGroup::nextToCancel() {
  const ThreadMutex::Lock lock(m_lock);
  while (!m_entries.empty() && !m_entries.front().cancelled) {
    m_entries.front().cancelled = true;
    m_entries.splice(m_entries.end(), m_entries, m_entries.begin());
    if (Fiber::ptr fiber = m_entries.back().fiber.lock()) return fiber;
  }
  return nullptr;
}

void TaskGroup::join() {
  awaitAll();
  rethrow();
}

bool TaskGroup::join(Deadline deadline) {
  if (!m_running.wait(deadline)) {
    if (!this_fiber::cancelled()) return false;
    awaitAll();
  }
  rethrow();
  return true;
}

void TaskGroup::awaitAll() {
  if (m_running.wait()) return;
  cancel();  // as this fiber was, or its time is up
  const this_fiber::CancelShield shield;
  while (!m_running.wait()) continue;  // behind the deadline of a stop, until the fiber is abandoned
}

void TaskGroup::rethrow() {
  std::exception_ptr exception;
  {
    const ThreadMutex::Lock lock(m_lock);
    exception = std::exchange(m_exception, nullptr);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
}

}  // namespace sylar
