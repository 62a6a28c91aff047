#include "sylar/scheduler.h"

#include <utility>

#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/scheduler_core.h"

namespace sylar {

Scheduler::Scheduler(size_t threads, bool use_caller, const std::string& name)
    : Scheduler(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

Scheduler::Scheduler(SchedulerOptions options) : m_core(std::make_unique<SchedulerCore>(*this, std::move(options))) {}

Scheduler::~Scheduler() {
  if (!m_core->close()) detail::SchedulerCore::leave(std::move(m_core));
}

Fiber* Scheduler::GetMainFiber() { return ThreadFibers::current().ownStackHandle().get(); }

const std::string& Scheduler::getName() const { return m_core->getName(); }
void Scheduler::start() { m_core->start(); }
void Scheduler::stop() { m_core->stop(); }
StopResult Scheduler::stop(Deadline deadline) { return m_core->stop(deadline); }
bool Scheduler::offer(Fiber::ptr&& fiber, int thread) { return m_core->offer(std::move(fiber), thread); }
bool Scheduler::place(std::function<void()> cb) {
  return cb == nullptr ? m_core->offer(nullptr, -1) : m_core->place(std::move(cb));
}
bool Scheduler::switchTo(int thread) { return m_core->switchTo(thread); }
WorkerStats Scheduler::getWorkerStats() const { return m_core->getWorkerStats(); }
std::ostream& Scheduler::dump(std::ostream& os) const { return m_core->dump(os); }

void Scheduler::tickle() { m_core->tickle(); }
bool Scheduler::stopping() { return m_core->isStopping(); }
bool Scheduler::hasIdleThreads() const { return m_core->idle().anySleeping(); }
void Scheduler::pendingEnded(const std::function<void()>& end) { m_core->pendingEnded(end); }

WorkGuard::WorkGuard(Scheduler& scheduler) : m_link(SchedulerCore::of(scheduler).link()) {
  m_link->guards.fetch_add(1, std::memory_order_relaxed);
}

WorkGuard::WorkGuard(const WorkGuard& other) : m_link(other.m_link) {
  if (m_link != nullptr) m_link->guards.fetch_add(1, std::memory_order_relaxed);
}

void WorkGuard::reset() {
  const std::shared_ptr<SchedulerLink> link = std::move(m_link);
  if (link == nullptr || sys::inForkedChild()) return;
  const auto end = [guards = &link->guards] { guards->fetch_sub(1, std::memory_order_acq_rel); };
  Lock lock(link->mutex);  // keeps the scheduler until it has been told
  link->scheduler != nullptr ? link->scheduler->pendingEnded(end) : end();
}

SchedulerSwitcher::SchedulerSwitcher(Scheduler* target) {
  Scheduler* const from = Scheduler::GetThis();
  if (target == nullptr || target == from) return;
  auto return_target = from == nullptr ? nullptr : SchedulerCore::of(*from).migrationTarget(-1);
  if (target->switchTo()) m_return_target = std::move(return_target);
}

SchedulerSwitcher::~SchedulerSwitcher() {
  if (m_return_target != nullptr && !sys::inForkedChild()) SchedulerCore::move(std::move(m_return_target));
}

}  // namespace sylar
