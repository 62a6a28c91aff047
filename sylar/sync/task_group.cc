#include "sylar/sync/task_group.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/park.h"
#include "sylar/sync/future.h"

namespace sylar {

TaskGroup::TaskGroup(size_t limit, Scheduler* scheduler)
    : m_scheduler(scheduler), m_exceptions_before(std::uncaught_exceptions()) {
  if (scheduler == nullptr) throw std::invalid_argument("sylar::TaskGroup: no scheduler");
  if (limit > 0) m_slots.emplace(limit);
}

TaskGroup::~TaskGroup() {
  if (sys::inForkedChild()) return;  // the tasks are the parent's
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
  Task(TaskGroup& group, std::function<void()>&& function) : m_group(group), m_function(std::move(function)), m_mine(1) {
    m_group.m_running.add();
  }
  ~Task() {
    // First, because the owner goes on when it counts as ended:
    m_function = nullptr;
    m_inherited.reset();
    if (m_entered) {
      const ThreadMutex::Lock lock(m_group.m_lock);
      m_mine.splice(m_mine.end(), m_group.m_entries, m_place);
    }
    if (m_has_slot && m_group.m_slots) m_group.m_slots->notify();
    m_group.m_running.done();  // the group may be gone
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Lets `fiber`, which will run the task, be cancelled with the group. Returns false if the group was cancelled, or if the wait
  /// for a slot ended in vain.
  bool enter(const Fiber::ptr& fiber) {
    m_has_slot = !m_group.m_slots || m_group.m_slots->wait();
    if (!m_has_slot) return false;
    const ThreadMutex::Lock lock(m_group.m_lock);
    if (m_group.m_cancelled) return false;
    m_place = m_mine.begin();
    m_place->fiber = fiber;
    m_place->id = fiber->getId();
    m_group.m_entries.splice(m_group.m_entries.begin(), m_mine);
    return m_entered = true;
  }
  void run() {
    try {
      m_inherited->install();
      const this_fiber::DeadlineScope scope(m_deadline);
      m_function();
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {
      m_group.fail(std::current_exception());
    }
    m_function = nullptr;
    detail::FiberLocals::endHere();
  }

 private:
  TaskGroup& m_group;
  std::function<void()> m_function;
  std::optional<detail::InheritedLocals> m_inherited{std::in_place};
  const Deadline m_deadline = withinScope(Deadline::never());  // of the fiber that spawns
  std::list<Entry> m_mine;
  std::list<Entry>::iterator m_place;
  bool m_has_slot = false;
  bool m_entered = false;
};

bool TaskGroup::spawn(std::function<void()> function) {
  if (function == nullptr) return false;
  const auto task = std::make_shared<Task>(*this, std::move(function));
  auto fiber = std::make_shared<Fiber>([task] { task->run(); });
  return task->enter(fiber) && m_scheduler->trySchedule(std::move(fiber));
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
  if (sys::inForkedChild()) throw std::logic_error("sylar::TaskGroup::join: the tasks run in the parent");
  const int error = awaitAll();
  rethrow();
  if (error != 0) throw std::system_error(error, std::generic_category(), "sylar::TaskGroup::join");
}

bool TaskGroup::join(Deadline deadline) {
  checkIsNoTask();
  if (!sys::inForkedChild() && !m_running.wait(deadline)) {
    const bool own = deadline <= withinScope(Deadline::never()) && detail::errorOfWait(deadline) == ETIMEDOUT;
    if (own) return false;
  }
  join();
  return true;
}

/// Waits for all tasks. If that would end in vain, cancels them and goes on waiting. Returns the error that ended the first wait,
/// or 0.
int TaskGroup::awaitAll() {
  checkIsNoTask();
  int error = ENOMEM;
  try {
    if (m_running.wait()) return 0;
    error = detail::errorOfWait(Deadline::never());
  } catch (const std::bad_alloc&) {  // for the deadline of a scope
  }
  cancel();
  const this_fiber::CancelShield shield;
  // The last phases of a stop end this wait, too, but spare a fiber that joins another until that is over.
  while (!m_running.wait()) joinAny();
  return error;
}

/// Ends the process if the caller is one of the tasks, because it would wait for its own end.
void TaskGroup::checkIsNoTask() {
  const uint64_t me = Fiber::GetFiberId();
  if (me == 0 || sys::inForkedChild()) return;
  const ThreadMutex::Lock lock(m_lock);
  if (std::none_of(m_entries.begin(), m_entries.end(), [me](const Entry& entry) { return entry.id == me; })) return;
  const std::string name = Fiber::GetThis()->getName();
  detail::checkFailed(
      __FILE__, __LINE__, "me is no task",
      fmt::format("fiber {}{}{} joins the sylar::TaskGroup that it is a task of", me, name.empty() ? "" : " ", name));
}

void TaskGroup::joinAny() {
  Fiber::ptr fiber;
  {
    const ThreadMutex::Lock lock(m_lock);
    for (const Entry& entry : m_entries) {
      if ((fiber = entry.fiber.lock()) != nullptr) break;
    }
  }
  try {
    if (fiber != nullptr) fiber->join();
  } catch (...) {  // it was abandoned
  }
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
