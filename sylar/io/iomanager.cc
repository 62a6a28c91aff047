#include "sylar/iomanager.h"

#include <typeinfo>
#include <utility>

#include "sylar/io/fiber_run_waits.h"
#include "sylar/io/io_core.h"

namespace sylar {
namespace {

/// Returns how many workers get a set of timers of their own. On a clock that a test moves there is one set, so that all timers
/// have one order.
size_t timerSets(const SchedulerCore& scheduler) { return &scheduler.clock() == &steadyClock() ? scheduler.workers().size() : 1; }

}  // namespace

IOManager::IOManager(size_t threads, bool use_caller, const std::string& name)
    : IOManager(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

IOManager::IOManager(SchedulerOptions options, TimerQueueKind timer_queue)
    : Scheduler(std::move(options)),
      TimerManager(SchedulerCore::of(*this).clock(), timer_queue, fiberRunWaits(), timerSets(SchedulerCore::of(*this))),
      m_core(std::make_unique<IOCore>(*this)) {
  start();
}

IOManager::~IOManager() { stop(); }  // does nothing in a forked child

IOManager* IOManager::GetThis() {
  Scheduler* const scheduler = Scheduler::GetThis();
  const bool is_one = scheduler != nullptr && typeid(*scheduler) == typeid(IOManager);  // the class is final
  return is_one ? static_cast<IOManager*>(scheduler) : nullptr;
}

int IOManager::addEvent(int fd, Event event, std::function<void()> cb) { return m_core->addEvent(fd, event, std::move(cb)); }
bool IOManager::delEvent(int fd, Event event) { return m_core->delEvent(fd, event); }
bool IOManager::cancelEvent(int fd, Event event) { return m_core->cancelEvent(fd, event); }
bool IOManager::cancelAll(int fd) {
  const bool readers = cancelEvent(fd, READ);
  return cancelEvent(fd, WRITE) || readers;
}
IOTimerStats IOManager::getIOTimerStats() const { return m_core->getIOTimerStats(); }

bool IOManager::stopping() { return Scheduler::stopping() && m_core->nothingPending(); }
void IOManager::dropPending() {
  close();
  m_core->dropPending();
}
void IOManager::onTimerInsertedAtFront() { m_core->onTimerInsertedAtFront(); }
void IOManager::onLastTimerGone() {
  pendingEnded([] {});
}

}  // namespace sylar
