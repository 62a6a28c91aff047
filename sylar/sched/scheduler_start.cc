// How a scheduler begins and is released. Its end is in scheduler_stop.cc.
#include <algorithm>
#include <new>
#include <stdexcept>

#include "sylar/base/log.h"
#include "sylar/base/memory_refused.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

constexpr size_t kMaxThreads = 1024;

/// The scheduler that uses this thread as its caller.
[[gnu::tls_model("initial-exec")]] constinit thread_local SchedulerCore* t_caller_of = nullptr;

}  // namespace

SchedulerCore::SchedulerCore(Scheduler& scheduler, SchedulerOptions options)
    : m_scheduler(scheduler),
      m_options(std::move(options)),
      m_caller(::pthread_self()),
      m_caller_id(sys::threadId()),
      m_link(std::make_shared<SchedulerLink>(this)),
      m_made_in_exit(ThreadFibers::inExit()) {
  if (m_options.threads == 0 || m_options.threads > kMaxThreads) {
    throw std::invalid_argument(
        fmt::format("sylar::Scheduler {}: threads is {}, it must be in [1, {}]", m_options.name, m_options.threads, kMaxThreads));
  }
  if (m_options.use_caller && m_options.clock->autoAdvance() != nullptr) {
    throw std::invalid_argument(fmt::format(
        "sylar::Scheduler {}: use_caller is true, on virtual time it must be false: work would wait for the caller unseen",
        m_options.name));
  }
  if (const Worker* const here = Worker::current(); m_options.use_caller && here != nullptr) {
    throw std::invalid_argument(fmt::format(
        "sylar::Scheduler {}: use_caller is true, but the calling thread is a worker already, {}: here it must be false",
        m_options.name, here->name()));
  }
  for (size_t i = 0; i < m_options.threads; ++i) {
    m_workers.push_back(std::make_unique<Worker>(*this, i, m_options.name + "_" + std::to_string(i)));
  }
  if (m_options.use_caller && t_caller_of == nullptr) t_caller_of = this;
}

SchedulerCore::~SchedulerCore() = default;

bool SchedulerCore::close() {
  if (isParents()) {
    forget();
    return true;
  }
  try {
    stop();
  } catch (const std::exception& e) {
    log::error("scheduler {}: what it was given is destroyed unrun: {}", getName(), e.what());
  }
  {
    const Lock shut(m_link->mutex);
    m_link->scheduler = nullptr;
  }
  m_idle.awaitPendingEnded();
  releaseCaller();
  for (auto& worker : m_workers) {
    if (!worker->detached()) continue;
    worker->slot().scheduler.store(nullptr, std::memory_order_release);
    (void)worker.release();  // its thread keeps it permanently
  }
  return !halts();
}

void SchedulerCore::leave(std::unique_ptr<SchedulerCore> core) {
  static constinit std::atomic<SchedulerCore*> last{nullptr};  // from where a leak checker sees all of them
  core->m_next_left = last.load(std::memory_order_relaxed);
  while (!last.compare_exchange_weak(core->m_next_left, core.get(), std::memory_order_acq_rel)) continue;
  (void)core.release();
}

bool SchedulerCore::isParents() const { return sys::inForkedChild() && m_started && !over(); }

/// For a forked child, where neither the threads nor what they used come to an end.
void SchedulerCore::forget() {
  SYLAR_DCHECK(isParents());
  for (auto& worker : m_workers) {
    worker->slot().scheduler.store(nullptr, std::memory_order_release);
    (void)worker->detach();  // the fiber that forked may go on, as a plain thread
    (void)worker.release();
  }
  for (auto& thread : m_threads) (void)thread.release();
  releaseCaller();
}

void SchedulerCore::releaseCaller() {
  if (t_caller_of == this) t_caller_of = nullptr;
}

[[gnu::noinline]] Scheduler* Scheduler::GetThis() {
  SchedulerCore* core = t_caller_of;
  if (Worker* const worker = Worker::currentHere()) core = worker->detached() ? nullptr : &worker->scheduler();
  return core == nullptr ? nullptr : &core->scheduler();
}

void SchedulerCore::start() {
  if (isParents()) throw std::logic_error("sylar: a scheduler of the parent process does not start in its forked child");
  if (m_started || done()) return;
  m_started = true;
  if (isCaller()) m_caller_id.store(sys::threadId(), std::memory_order_relaxed);
  try {
    sys::claimProcess();
    openThreads();
    m_threads.reserve(m_workers.size());  // a thread that was made must not be lost
    for (const auto& worker : m_workers) {
      worker->slot().open();
      worker->setDriver(m_make_driver(worker->slot()));
    }
    for (size_t i = m_options.use_caller ? 1 : 0; i < m_workers.size(); ++i) {
      Worker& worker = *m_workers[i];
      const auto run = [this, &worker] {
        try {
          ThreadFibers::current();
        } catch (const std::bad_alloc&) {
          m_threads_unfit.fetch_add(1, std::memory_order_relaxed);
        }
        m_threads_ready.fetch_add(1, std::memory_order_release);
        sys::futexWake(m_threads_ready, 1);
        while (m_start_signal.load(std::memory_order_acquire) == kWait) sys::futexWait(m_start_signal, kWait, kNever);
        if (m_start_signal.load(std::memory_order_relaxed) == kRun) worker.run();
      };
      m_threads.push_back(std::make_unique<Thread>(run, worker.name()));
    }
    for (uint32_t ready; (ready = m_threads_ready.load(std::memory_order_acquire)) < m_threads.size();)
      sys::futexWait(m_threads_ready, ready, kNever);
    if (m_threads_unfit.load(std::memory_order_relaxed) > 0)
      throw sys::MemoryRefused("memory for the fibers of a worker", ENOMEM);
    if (m_options.use_caller) ThreadFibers::current();
  } catch (...) {
    signalStart(kNeverRun);
    for (const auto& thread : m_threads) thread->join();
    m_threads.clear();
    closeThreads();
    NodeList unrun = m_idle.endUnrun();
    for (const auto& worker : m_workers) {  // what was pinned to the caller
      sortLeft(
          worker->slot().mailbox.drain(), [](QueueNode* message) { (void)FiberRequest::open(message); }, unrun);
    }
    drop(abandonAll(unrun, m_abandoned));
    releaseCaller();
    uint32_t state = kNotEnding;  // the end that has called this says itself when it is over
    m_end_state.compare_exchange_strong(state, kOver, std::memory_order_seq_cst);
    throw;
  }
  for (size_t i = 0; i < m_threads.size(); ++i) {
    m_workers[m_workers.size() - m_threads.size() + i]->setThread(m_threads[i]->getId());  // counts from here on for place()
  }
  signalStart(kRun);
}

/// Without hooks there is no lender. What a library keeps over a wait is at risk only where it waits in one.
void SchedulerCore::openThreads() {
  if (m_options.identity == FiberIdentity::kWorker) return;
  ThreadLender* const lender = ThreadLender::get();
  m_lends_threads = lender != nullptr && lender->open();
}

void SchedulerCore::closeThreads() {
  if (std::exchange(m_lends_threads, false)) ThreadLender::get()->close();
}

void SchedulerCore::signalStart(StartSignal how) {
  SYLAR_DCHECK(how != kWait && m_start_signal.load(std::memory_order_relaxed) == kWait);
  m_start_signal.store(how, std::memory_order_release);
  sys::futexWake(m_start_signal, INT32_MAX);
}

}  // namespace sylar
