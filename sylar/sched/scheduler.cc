// Offering work, placing it, moving it; stopping is in scheduler_stop.cc.
#include "sylar/sched/scheduler.h"

#include <algorithm>
#include <new>
#include <ostream>
#include <stdexcept>

#include "sylar/base/check.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

constexpr size_t kMaxThreads = 1024;

/// The scheduler that uses this thread as its caller.
[[gnu::tls_model("initial-exec")]] constinit thread_local Scheduler* t_caller_of = nullptr;

}  // namespace

/// By which fibers come in that decided to move while the scheduler existed, and arrive when it may be gone.
struct Scheduler::Door {
  explicit Door(Scheduler* scheduler) : behind(scheduler) {}
  OsMutex mutex;
  Scheduler* behind SYLAR_GUARDED_BY(mutex);
};

class Scheduler::Route final : public FiberDestination {
 public:
  Route(std::shared_ptr<Door> door, int thread) : m_door(std::move(door)), m_thread(thread) {}
  bool accept(Fiber& fiber) override {
    Lock lock(m_door->mutex);
    return m_door->behind != nullptr && m_door->behind->admitMoved(fiber, m_thread);
  }

 private:
  const std::shared_ptr<Door> m_door;
  const int m_thread;
};

Scheduler::Scheduler(size_t threads, bool use_caller, const std::string& name)
    : Scheduler(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

Scheduler::Scheduler(SchedulerOptions options)
    : m_options(std::move(options)),
      m_caller(::pthread_self()),
      m_caller_id(sys::threadId()),
      m_door(std::make_shared<Door>(this)) {
  if (m_options.threads == 0 || m_options.threads > kMaxThreads) {
    throw std::invalid_argument(
        fmt::format("sylar::Scheduler {}: threads is {}, it must be in [1, {}]", m_options.name, m_options.threads, kMaxThreads));
  }
  if (m_options.use_caller && m_options.clock->autoAdvance() != nullptr) {
    throw std::invalid_argument(fmt::format(
        "sylar::Scheduler {}: use_caller is true, on virtual time it must be false: work would wait for the caller unseen",
        m_options.name));
  }
  for (size_t i = 0; i < m_options.threads; ++i) {
    m_workers.push_back(std::make_unique<Worker>(*this, m_options.name + "_" + std::to_string(i)));
  }
  if (m_options.use_caller && t_caller_of == nullptr) t_caller_of = this;
}

Scheduler::~Scheduler() {
  try {
    stop();
  } catch (const std::exception& e) {
    log::error("scheduler {}: what it was given is destroyed unrun: {}", getName(), e.what());
  }
  {
    const Lock shut(m_door->mutex);
    m_door->behind = nullptr;
  }
  m_rest.awaitPendingEnded();
  if (t_caller_of == this) t_caller_of = nullptr;
  for (auto& worker : m_workers) {
    if (!worker->detached()) continue;
    worker->slot().scheduler.store(nullptr, std::memory_order_release);
    (void)worker.release();  // its thread keeps it for ever
  }
}

Scheduler* Scheduler::GetThis() {
  Worker* const worker = Worker::current();
  if (worker == nullptr) return t_caller_of;
  return worker->detached() ? nullptr : &worker->scheduler();
}

Fiber* Scheduler::GetMainFiber() { return ThreadFibers::current().ownStackHandle().get(); }

std::unique_ptr<Driver> Scheduler::makeDriver(WorkerSlot& slot) { return makeSleepDriver(slot); }

void Scheduler::start() {
  if (m_started || done()) return;
  m_started = true;
  if (isCaller()) m_caller_id.store(sys::threadId(), std::memory_order_relaxed);
  try {
    sys::claimProcess();
    m_threads.reserve(m_workers.size());  // a thread that was made must not be lost
    for (const auto& worker : m_workers) {
      worker->slot().open();
      worker->setDriver(makeDriver(worker->slot()));
    }
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      Worker& worker = *m_workers[i];
      const auto run = [this, &worker] {
        try {
          ThreadFibers::current();
        } catch (const std::bad_alloc&) {
          m_unfit.fetch_add(1, std::memory_order_relaxed);
        }
        m_ready.fetch_add(1, std::memory_order_release);
        sys::futexWake(m_ready, 1);
        while (m_go.load(std::memory_order_acquire) == kWait) sys::futexWait(m_go, kWait, kNever);
        if (m_go.load(std::memory_order_relaxed) == kRun) worker.run();
      };
      m_threads.push_back(std::make_unique<Thread>(run, worker.name()));
    }
    for (uint32_t ready; (ready = m_ready.load(std::memory_order_acquire)) < m_threads.size();)
      sys::futexWait(m_ready, ready, kNever);
    if (m_unfit.load(std::memory_order_relaxed) > 0) throw std::bad_alloc();
    if (m_options.use_caller) ThreadFibers::current();
  } catch (...) {
    letGo(kNeverRun);
    for (const auto& thread : m_threads) thread->join();
    m_threads.clear();
    giveUp(m_rest.endUnrun(), m_leftovers);
    throw;
  }
  for (size_t i = 0; i < m_threads.size(); ++i) {
    m_workers[m_workers.size() - m_threads.size() + i]->setThread(m_threads[i]->getId());  // counts from here on for place()
  }
  letGo(kRun);
}

void Scheduler::letGo(Go how) {
  m_go.store(how, std::memory_order_release);
  sys::futexWake(m_go, INT32_MAX);
}

// ---- Offering work. ----------------------------------------------------------------------------------------------------------

bool Scheduler::offer(Fiber::ptr fiber, int thread) {
  if (fiber == nullptr) {
    log::error("scheduler {}: null work is refused", getName());
    return false;
  }
  Worker* const target = thread == -1 ? nullptr : workerOfThread(thread);
  if (thread != -1 && target == nullptr) return refuse(*fiber, "no worker has this thread id");
  const Fiber::Life life = fiber->life();
  const bool at_rest_by_hand =
      (life == Fiber::Life::kHeldByHand || life == Fiber::Life::kReady) && ThreadFibers::homeOf(*fiber) == nullptr;
  const bool begins = (life == Fiber::Life::kInit || at_rest_by_hand) && fiber->tryMove(life, Fiber::Life::kQueued);
  if (!begins) return offerStarted(fiber, target, thread);
  Fiber& begun = *fiber;
  ThreadFibers::keepAlive(std::move(fiber));
  if (target != nullptr ? submitTo(*target, &begun) : submit(begun)) return true;
  fiber = ThreadFibers::release(begun);
  fiber->move(Fiber::Life::kQueued, life);
  return refuse(*fiber, "the scheduler has stopped");
}

bool Scheduler::offerStarted(const Fiber::ptr& fiber, const Worker* target, int thread) {
  const Fiber::Life life = fiber->life();
  if (Fiber::isOver(life)) return refuse(*fiber, "it has ended");
  if (!ThreadFibers::hasStarted(*fiber)) return true;  // it is queued already; one start is enough
  if (life != Fiber::Life::kQueued && ThreadFibers::runsByHand(*fiber)) return refuse(*fiber, "it runs on a plain thread");
  FiberHome* const home = ThreadFibers::homeOf(*fiber);
  if (target != nullptr && home != &target->slot()) {
    ThreadFibers::setDestination(*fiber, std::make_shared<Route>(m_door, thread));
  }
  ThreadFibers::ask(*fiber, Fiber::kPermit);
  return true;
}

bool Scheduler::refuse(const Fiber& fiber, const char* why) const {
  log::error("scheduler {}: fiber {} is refused: {}", getName(), fiber.getId(), why);
  return false;
}

bool Scheduler::submit(Fiber& fiber) {
  Worker* const here = Worker::current();
  if (here != nullptr && !here->detached() && &here->scheduler() == this) return here->pushFresh(&fiber);
  const Pushed pushed = m_rest.injector().push(&fiber);
  if (pushed == Pushed::kFirst) tickle();
  return pushed != Pushed::kRejected;
}

bool Scheduler::submitTo(Worker& worker, QueueNode* node) {
  bool notify = false;
  bool open = true;
  const auto push = [&] {
    open = !worker.detached();
    if (open) notify = worker.slot().mailbox.push(node);
  };
  if (!m_rest.injector().admit(push) || !open) return false;
  if (notify) worker.slot().notify();
  return true;
}

Worker* Scheduler::workerOfThread(int thread) const {
  if (thread <= 0) return nullptr;
  for (size_t i = 0; i < m_workers.size(); ++i) {
    const bool is_caller = i == 0 && m_options.use_caller;
    if ((is_caller ? m_caller_id.load(std::memory_order_relaxed) : m_workers[i]->threadId()) == thread) return m_workers[i].get();
  }
  return nullptr;
}

bool Scheduler::place(std::function<void()> cb) {
  Worker* best = nullptr;
  for (const auto& worker : m_workers) {
    if (!worker->running()) continue;
    if (best == nullptr || *worker->placed() < *best->placed()) best = worker.get();
  }
  if (best == nullptr) return trySchedule(std::move(cb));  // no thread runs yet: whoever is first
  if (cb == nullptr) return trySchedule(nullptr);
  /// Counts for as long as the function exists, run or not.
  struct Place {
    explicit Place(std::shared_ptr<std::atomic<uint32_t>> counter) : count(std::move(counter)) { count->fetch_add(1); }
    ~Place() { count->fetch_sub(1); }
    const std::shared_ptr<std::atomic<uint32_t>> count;
  };
  return offer(std::make_shared<Fiber>([place = std::make_shared<Place>(best->placed()), cb = std::move(cb)] { cb(); }),
               best->threadId());
}

// ---- Moving fibers. ----------------------------------------------------------------------------------------------------------

bool Scheduler::admitMoved(Fiber& fiber, int thread) {
  Worker* const target = thread == -1 ? nullptr : workerOfThread(thread);
  if (target != nullptr) return submitTo(*target, &fiber);
  if (thread != -1) return false;
  const Pushed pushed = m_rest.injector().push(&fiber);
  if (pushed == Pushed::kFirst) m_rest.wakeOne();  // not tickle(): under the door's lock nothing foreign runs
  return pushed != Pushed::kRejected;
}

bool Scheduler::switchTo(int thread) {
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
  if (thread != -1 && workerOfThread(thread) == nullptr) return refuse(*me->fiber, "no worker has this thread id");
  ThreadFibers::setDestination(*me->fiber, std::make_shared<Route>(m_door, thread));
  ThreadFibers::yield(Request::kMove);
  return arrived() || refuse(*runningFiber()->fiber, "the scheduler has stopped");
}

SchedulerSwitcher::SchedulerSwitcher(Scheduler* target) {
  Scheduler* const from = Scheduler::GetThis();
  if (target == nullptr || target == from) return;
  auto way_back = from == nullptr ? nullptr : std::make_shared<Scheduler::Route>(from->m_door, -1);
  if (target->switchTo()) m_way_back = std::move(way_back);
}

SchedulerSwitcher::~SchedulerSwitcher() {
  if (m_way_back == nullptr) return;
  ThreadFibers::setDestination(*runningFiber()->fiber, std::move(m_way_back));
  ThreadFibers::yield(Request::kMove);
}

void Scheduler::tickle() { m_rest.wakeOne(); }

void Scheduler::pendingEnded(const std::function<void()>& end) { m_rest.pendingEnded(end); }

// ---- Reports. ----------------------------------------------------------------------------------------------------------------

WorkerStats Scheduler::getWorkerStats() const {
  WorkerStats sum;
  for (const auto& worker : m_workers) worker->addStats(sum);
  return sum;
}

std::ostream& Scheduler::dump(std::ostream& os) const {
  os << fmt::format("scheduler {}: {} workers, {} asleep, {} functions wait for one\n", getName(), m_workers.size(),
                    m_rest.sleeping(), m_rest.injector().count());
  for (const auto& worker : m_workers) {
    std::vector<FiberInfo> fibers;
    worker->list(fibers);
    os << fmt::format("  worker {} (thread {}): {} fibers, {} functions wait\n", worker->name(), worker->threadId(),
                      fibers.size(), worker->fresh().count());
    for (const FiberInfo& fiber : fibers) os << fmt::format("    fiber {} {}: {}\n", fiber.id, fiber.name, fiber.waits_for);
  }
  return os;
}

}  // namespace sylar
