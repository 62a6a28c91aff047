// How work is offered to a scheduler, placed and moved, and the scheduler's reports.
#include <new>
#include <ostream>
#include <span>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

constexpr const char* kNowhere = "no worker has this thread id";

class TargetWorker final : public MigrationTarget {
 public:
  TargetWorker(std::shared_ptr<SchedulerLink> link, int thread) : m_link(std::move(link)), m_thread(thread) {}
  bool accept(Fiber& fiber) override {
    Lock lock(m_link->mutex);
    return m_link->scheduler != nullptr && m_link->scheduler->admitMigrated(fiber, m_thread);
  }

 private:
  const std::shared_ptr<SchedulerLink> m_link;
  const int m_thread;
};

}  // namespace

bool SchedulerCore::offer(Fiber::ptr&& fiber, int thread) {
  if (fiber == nullptr) {
    log::error("scheduler {}: null work is refused", getName());
    return false;
  }
  if (sys::inForkedChild()) return false;  // and logs nothing, because the logger's lock may be held
  Worker* const target = thread == -1 ? nullptr : workerOfThread(thread);
  const bool nowhere = thread != -1 && target == nullptr;
  const FiberState state = stateOf(*fiber);
  const bool suspended_by_hand =
      (state == FiberState::kHeldByHand || state == FiberState::kReady) && ThreadFibers::homeOf(*fiber) == nullptr;
  const bool begins = (isUnstarted(state) || suspended_by_hand) && control(*fiber).tryMove(state, FiberState::kQueued);
  if (!begins) return nowhere ? refuse(*fiber, kNowhere) : offerStarted(fiber, target, thread);
  Fiber& begun = *fiber;
  ThreadFibers::keepAlive(std::move(fiber));
  if (!nowhere && (target != nullptr ? submitTo(*target, &control(begun)) : submit(begun))) return true;
  fiber = ThreadFibers::release(begun);
  ThreadFibers::refuse(*fiber, state);
  return refuse(*fiber, nowhere ? kNowhere : "the scheduler has stopped");
}

bool SchedulerCore::offerStarted(const Fiber::ptr& fiber, const Worker* target, int thread) {
  SYLAR_DCHECK(target == nullptr || thread > 0);
  const FiberState state = stateOf(*fiber);
  // A waker may always come too late, so there is nothing to report.
  if (isOver(state)) return false;
  if (!ThreadFibers::hasStarted(*fiber)) return true;  // it is queued already; one start is enough
  if (state != FiberState::kQueued && ThreadFibers::runsByHand(*fiber)) return refuse(*fiber, "it runs on a plain thread");
  FiberHome* const home = ThreadFibers::homeOf(*fiber);
  if (target != nullptr && home != &target->slot()) {
    ThreadFibers::setMigrationTarget(*fiber, migrationTarget(thread));
  }
  ThreadFibers::post(*fiber, FiberControl::kPermit);
  return true;
}

bool SchedulerCore::refuse(const Fiber& fiber, const char* why) const {
  log::error("scheduler {}: fiber {} is refused: {}", getName(), fiber.getId(), why);
  return false;
}

bool SchedulerCore::submit(Fiber& fiber) {
  SYLAR_DCHECK(stateOf(fiber) == FiberState::kQueued);
  Worker* const here = Worker::currentHere();
  if (here != nullptr && !here->detached() && &here->scheduler() == this) return here->pushSpawned(&control(fiber));
  const Pushed pushed = m_idle.injector().push(&control(fiber));
  if (pushed == Pushed::kFirst) m_scheduler.tickle();
  return pushed != Pushed::kRejected;
}

bool SchedulerCore::submitTo(Worker& worker, QueueNode* node) {
  SYLAR_DCHECK(node->kind == QueueNode::Kind::kFiber);
  bool notify = false;
  bool open = true;
  const auto push = [&] {
    open = !worker.detached();
    if (open) notify = worker.slot().mailbox.push(node);
  };
  if (!m_idle.injector().admit(push) || !open) return false;
  if (notify) worker.slot().notify();
  return true;
}

void SchedulerCore::awaitThread(SpawnNode& node, const void* pinned_to) {
  if (g_threads.await(*this, node, pinned_to)) ThreadLender::get()->call();
}

/// Queues work again that has waited for a thread. The scheduler may be about to end without it.
void SchedulerCore::goOn(SpawnNode& node, const void* pinned_to) {
  if (pinned_to != nullptr) {
    if (submitTo(*static_cast<Worker*>(const_cast<void*>(pinned_to)), &node)) return;
  } else {
    const Pushed pushed = m_idle.injector().push(&node);
    if (pushed == Pushed::kFirst) m_idle.wakeOne();
    if (pushed != Pushed::kRejected) return;
  }
  NodeList left;
  left.push(&node);
  AbandonedFibers abandoned;
  const NodeList never_begun = abandonAll(left, abandoned);
  {
    const Lock lock(m_stuck_mutex);
    m_stuck.takeAll(abandoned);
  }
  drop(never_begun);
}

/// Virtual time stood still for who waited for a thread, so it looks again behind the end, when this object may be gone.
void SchedulerCore::ended(const std::function<void()>& end) {
  const ClockHold looks_again(*m_options.clock);
  m_idle.pendingEnded(end);
}

Worker* SchedulerCore::workerOfThread(int thread) const {
  if (thread <= 0) return nullptr;
  for (size_t i = 0; i < m_workers.size(); ++i) {
    const bool is_caller = i == 0 && m_options.use_caller;
    if ((is_caller ? m_caller_id.load(std::memory_order_relaxed) : m_workers[i]->threadId()) == thread) return m_workers[i].get();
  }
  return nullptr;
}

/// Returns the running worker with the fewest placed functions. Its `placed` is null if none runs.
SchedulerCore::Place SchedulerCore::leastPlaced() const {
  const Worker* least = nullptr;
  for (const auto& worker : m_workers) {
    if (!worker->running()) continue;
    if (least == nullptr || *worker->placed() < *least->placed()) least = worker.get();
  }
  return least == nullptr ? Place{} : Place{least->threadId(), least->placed()};
}

// ---- Moving fibers. ----------------------------------------------------------------------------------------------------------

bool SchedulerCore::admitMigrated(Fiber& fiber, int thread) {
  SYLAR_DCHECK(stateOf(fiber) == FiberState::kQueued && ThreadFibers::coreOf(fiber) != nullptr);
  Worker* const target = thread == -1 ? nullptr : workerOfThread(thread);
  if (target != nullptr) return submitTo(*target, &control(fiber));
  if (thread != -1) return false;
  const Pushed pushed = m_idle.injector().push(&control(fiber));
  if (pushed == Pushed::kFirst) m_idle.wakeOne();  // not tickle(), because nothing foreign runs under the link's lock
  return pushed != Pushed::kRejected;
}

bool SchedulerCore::switchTo(int thread) {
  if (sys::inForkedChild()) return false;
  const FiberCore* const me = runningFiber();
  if (me == nullptr || !me->live || me->resumer != nullptr) {
    log::error("scheduler {}: switchTo refused, only a fiber of a scheduler can move", getName());
    return false;
  }
  const auto arrived = [this, thread] {
    const Worker* const here = Worker::current();
    return here->slot().scheduler == this && (thread == -1 || here->threadId() == thread);
  };
  if (arrived()) return true;
  if (thread != -1 && workerOfThread(thread) == nullptr) return refuse(*me->fiber, kNowhere);
  move(migrationTarget(thread));
  return arrived() || refuse(*runningFiber()->fiber, "the scheduler has stopped");
}

std::shared_ptr<MigrationTarget> SchedulerCore::migrationTarget(int thread) const {
  return std::make_shared<TargetWorker>(m_link, thread);
}

SYLAR_SWITCHES void SchedulerCore::move(std::shared_ptr<MigrationTarget> target) {
  ThreadFibers::setMigrationTarget(*runningFiber()->fiber, std::move(target));
  ThreadFibers::yield(SwitchReason::kMove);
}

void SchedulerCore::tickle() { m_idle.wakeOne(); }

void SchedulerCore::pendingEnded(const std::function<void()>& end) {
  if (!sys::inForkedChild()) m_idle.pendingEnded(end);
}

// ---- Reports. ----------------------------------------------------------------------------------------------------------------

WorkerStats SchedulerCore::getWorkerStats() const {
  WorkerStats sum;
  for (const auto& worker : m_workers) worker->addStats(sum);
  return sum;
}

std::ostream& SchedulerCore::dump(std::ostream& os) const {
  if (sys::inForkedChild()) return os << fmt::format("scheduler {}: the parent's\n", getName());
  os << fmt::format("scheduler {}: {} workers, {} asleep, {} functions wait for one\n", getName(), m_workers.size(),
                    m_idle.sleeping(), m_idle.injector().count());
  std::vector<FiberReport> all;
  std::vector<size_t> ends;  // of each worker's fibers
  for (const auto& worker : m_workers) {
    worker->list(all);
    ends.push_back(all.size());
  }
  const FiberReports reports(all);
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); begin = ends[i++]) {
    const std::span fibers(all.data() + begin, ends[i] - begin);
    os << fmt::format("  worker {} (thread {}): {} fibers, {} functions wait\n", m_workers[i]->name(), m_workers[i]->threadId(),
                      fibers.size(), m_workers[i]->spawned().count());
    reports.write(os, fibers);
  }
  reports.writeDeadlocks(os);
  return os;
}

}  // namespace sylar::detail
