#include "sylar/sched/scheduler.h"

#include <algorithm>
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

class PermitMessage final : public Message {
 public:
  explicit PermitMessage(Fiber::ptr fiber) : m_fiber(std::move(fiber)) {}
  void run(Worker& worker) override { worker.permit(*m_fiber); }

 private:
  const Fiber::ptr m_fiber;
};

}  // namespace

Scheduler::Scheduler(size_t threads, bool use_caller, const std::string& name)
    : Scheduler(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

Scheduler::Scheduler(SchedulerOptions options) : m_options(std::move(options)), m_caller(sys::threadId()) {
  if (m_options.threads == 0 || m_options.threads > kMaxThreads) {
    throw std::invalid_argument(
        fmt::format("sylar::Scheduler {}: threads is {}, it must be in [1, {}]", m_options.name, m_options.threads, kMaxThreads));
  }
  if (m_options.use_caller && t_caller_of == nullptr) t_caller_of = this;
}

Scheduler::~Scheduler() {
  try {
    stop();
  } catch (const std::exception& e) {
    log::error("scheduler {}: what it was given is destroyed unrun: {}", getName(), e.what());
  }
  const Lock last(m_stop_mutex);  // nobody is inside pendingEnded any more
  if (t_caller_of == this) t_caller_of = nullptr;
  // Only after a failed start() is anything left.
  size_t left;
  while (QueueNode* node = m_injector.take(&left)) ThreadFibers::release(*static_cast<Fiber*>(node));
}

Scheduler* Scheduler::GetThis() {
  Worker* const worker = Worker::current();
  return worker != nullptr ? &worker->scheduler() : t_caller_of;
}

std::unique_ptr<Driver> Scheduler::makeDriver(WorkerSlot& slot) { return makeSleepDriver(slot); }

void Scheduler::start() {
  if (m_started) return;
  m_started = true;
  try {
    for (size_t i = 0; i < m_options.threads; ++i) {
      m_workers.push_back(std::make_unique<Worker>(*this, m_options.name + "_" + std::to_string(i)));
    }
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      Worker& worker = *m_workers[i];
      m_threads.push_back(std::make_unique<Thread>([&worker] { worker.run(); }, worker.name()));
      worker.setThread(m_threads.back()->getId());  // counts from here on for place(), although it may not have begun
    }
  } catch (...) {
    m_done.store(true, std::memory_order_seq_cst);
    wakeAll();
    for (const auto& thread : m_threads) thread->join();
    throw;
  }
}

void Scheduler::stop() {
  Worker* const inside = Worker::current();
  SYLAR_CHECK(inside == nullptr || &inside->scheduler() != this);
  if (done()) return;
  SYLAR_CHECK(!m_options.use_caller || m_caller == sys::threadId());
  if (!m_started && m_injector.closeIfEmpty([] { return true; })) {  // never used, or half made: there is nothing to run
    m_done.store(true, std::memory_order_seq_cst);
    return;
  }
  start();
  m_stopping.store(true, std::memory_order_seq_cst);
  wakeAll();
  if (m_options.use_caller) m_workers.front()->run();
  for (const auto& thread : m_threads) thread->join();
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
  const bool fresh = life == Fiber::Life::kInit || (life == Fiber::Life::kHeld && fiber->workerId() == 0);
  if (!fresh) return offerStarted(fiber, target);
  if (!fiber->tryMove(life, Fiber::Life::kQueued)) return refuse(*fiber, "somebody else is about to run it");
  ThreadFibers::keepAlive(*fiber);
  if (target != nullptr ? submitTo(*target, fiber.get()) : submit(*fiber)) return true;
  ThreadFibers::release(*fiber);
  fiber->move(Fiber::Life::kQueued, life);
  return refuse(*fiber, "the scheduler has stopped");
}

bool Scheduler::offerStarted(const Fiber::ptr& fiber, const Worker* target) {
  const Fiber::Life life = fiber->life();
  if (life == Fiber::Life::kEnded || life == Fiber::Life::kFailed) return refuse(*fiber, "it has ended");
  if (fiber->workerId() == 0) {
    return life == Fiber::Life::kQueued || refuse(*fiber, "it runs on a plain thread");  // one start is enough
  }
  Worker* const home = workerOf(*fiber);
  if (home == nullptr) return refuse(*fiber, "it has started in another scheduler");
  if (target != nullptr && target != home) return refuse(*fiber, "it has started on another thread");
  auto message = std::make_unique<PermitMessage>(fiber);
  if (!submitTo(*home, message.get())) return refuse(*fiber, "the scheduler has stopped");
  (void)message.release();
  return true;
}

bool Scheduler::refuse(const Fiber& fiber, const char* why) {
  log::error("scheduler {}: fiber {} is refused: {}", getName(), fiber.getId(), why);
  return false;
}

bool Scheduler::submit(Fiber& fiber) {
  Worker* const here = Worker::current();
  if (here != nullptr && &here->scheduler() == this) return here->pushFresh(&fiber);
  const Pushed pushed = m_injector.push(&fiber);
  if (pushed == Pushed::kFirst) wakeOne();
  return pushed != Pushed::kRejected;
}

bool Scheduler::submitTo(Worker& worker, QueueNode* node) {
  bool notify = false;
  if (!m_injector.admit([&] { notify = worker.slot().mailbox.push(node); })) return false;
  if (notify) worker.slot().notify();
  return true;
}

Worker* Scheduler::workerOfThread(int thread) const {
  for (size_t i = 0; i < m_workers.size(); ++i) {
    const bool is_caller = i == 0 && m_options.use_caller;
    if ((is_caller ? m_caller : m_workers[i]->threadId()) == thread) return m_workers[i].get();
  }
  return nullptr;
}

Worker* Scheduler::workerOf(const Fiber& fiber) const {
  const uint64_t id = fiber.workerId();
  const auto at = std::find_if(m_workers.begin(), m_workers.end(), [id](const auto& worker) { return worker->id() == id; });
  return at == m_workers.end() ? nullptr : at->get();
}

bool Scheduler::place(std::function<void()> cb) {
  Worker* best = nullptr;
  for (const auto& worker : m_workers) {
    if (!worker->running()) continue;
    if (best == nullptr || worker->placed().load(std::memory_order_relaxed) < best->placed().load(std::memory_order_relaxed)) {
      best = worker.get();
    }
  }
  if (best == nullptr) return trySchedule(std::move(cb));  // no thread runs yet: whoever is first
  if (cb == nullptr) return trySchedule(Fiber::ptr());
  /// Counts for as long as the function exists, run or not.
  struct Place {
    explicit Place(Worker& where) : worker(where) { worker.placed().fetch_add(1, std::memory_order_relaxed); }
    ~Place() { worker.placed().fetch_sub(1, std::memory_order_relaxed); }
    Worker& worker;
  };
  auto fiber = std::make_shared<Fiber>([place = std::make_shared<Place>(*best), cb = std::move(cb)] { cb(); });
  ThreadFibers::keepAlive(*fiber);
  fiber->move(Fiber::Life::kInit, Fiber::Life::kQueued);
  if (submitTo(*best, fiber.get())) return true;
  ThreadFibers::release(*fiber);
  fiber->move(Fiber::Life::kQueued, Fiber::Life::kInit);
  return refuse(*fiber, "the scheduler has stopped");
}

// ---- Sleeping and waking. ----------------------------------------------------------------------------------------------------

bool Scheduler::anyFresh() const {
  if (m_injector.count() > 0) return true;
  return std::any_of(m_workers.begin(), m_workers.end(), [](const auto& worker) { return worker->fresh().count() > 0; });
}

void Scheduler::wakeOne() {
  const size_t start = m_next_woken.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < m_workers.size(); ++i) {
    if (m_workers[(start + i) % m_workers.size()]->slot().wake()) return;
  }
}

void Scheduler::wakeAll() {
  for (const auto& worker : m_workers) worker->slot().wake();
}

int64_t Scheduler::waitCap(int64_t now_ns) const {
  const int64_t cap_ns = std::chrono::nanoseconds(m_options.max_wait).count();
  return cap_ns == 0 ? kNever : saturatingAdd(now_ns, cap_ns);
}

// ---- The end. While stopping, every sleep is published under one lock: the last sleeper sees all workers at rest. -------------

Scheduler::Sleeper::Sleeper(Scheduler& scheduler)
    : m_scheduler(scheduler),
      m_stopping(
          (scheduler.m_sleepers.fetch_add(1, std::memory_order_seq_cst), scheduler.m_stopping.load(std::memory_order_seq_cst))) {
  if (!m_stopping) return;
  Lock lock(m_scheduler.m_stop_mutex);
  m_decided = ++m_scheduler.m_asleep == m_scheduler.m_workers.size() && m_scheduler.decide();
}

Scheduler::Sleeper::~Sleeper() {
  if (m_stopping) {
    Lock lock(m_scheduler.m_stop_mutex);
    --m_scheduler.m_asleep;
  }
  m_scheduler.m_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

/// All workers are at rest. True: there is a next step, and everybody was woken for it.
bool Scheduler::decide() {
  size_t waiting = 0;
  size_t uncancelled = 0;
  size_t live = 0;
  for (const auto& worker : m_workers) {
    waiting += worker->waiting();
    uncancelled += worker->uncancelled();
    live += worker->live();
  }
  if (waiting > 0 || !nothingLeft()) return false;
  if (uncancelled > 0) {  // held, or waiting for one another: nobody will wake them
    m_cancel_round.fetch_add(1, std::memory_order_release);
  } else {
    if (live > 0) return false;  // joiners of what runs elsewhere
    if (!m_injector.closeIfEmpty([this] { return nothingLeft(); })) return false;
    m_done.store(true, std::memory_order_seq_cst);
  }
  wakeAll();
  return true;
}

bool Scheduler::nothingLeft() {
  const auto at_rest = [](const auto& worker) { return worker->slot().mailbox.sleeping() && worker->fresh().count() == 0; };
  return m_injector.count() == 0 && std::all_of(m_workers.begin(), m_workers.end(), at_rest) && !hasPending();
}

}  // namespace sylar
