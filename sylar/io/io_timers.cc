// The passes of an IOManager's workers over its timers (protocol P4).
#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/io/io_core.h"
#include "sylar/io/timer_pass.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"
#include "sylar/timer/timer_sets.h"

namespace sylar::detail {
namespace {

// A pass ends at the first of these limits, and so does the first batch of its callbacks.
constexpr size_t kTimersPerPass = 2000;
constexpr int64_t kNsPerPass = 500'000;
constexpr size_t kTimersPerLook = 128;      // timers between two looks at the clock
constexpr size_t kTimersOfALook = 16;       // what a look costs that brings fewer, of a set that has no more
constexpr int64_t kNoMemoryNs = 1'000'000;  // until the next pass, if there was no memory for the list

/// Returns true if the running fiber is as it began: no callback has left anything in it for the next one, and nobody has a
/// handle through which a call meant for one callback would reach the next.
bool fiberIsAsNew() {
  const tsan::Exempt of_this_thread;
  SYLAR_DCHECK(runningFiber() != nullptr);
  const FiberCore& me = *runningFiber();
  return me.hook_enabled && me.cancelled == 0 && !me.permit && me.started().locals == nullptr && me.started().held.count() == 0 &&
         me.fiber->weak_from_this().use_count() == 1 && me.fiber->getName().empty();
}

}  // namespace

/// The timers that a worker collected in one pass. One fiber runs their callbacks one after the other. A second, unstarted
/// fiber is queued behind it. The second fiber goes on when a callback waits and so keeps the first, or when a callback leaves
/// the first other than as new, or beside the first on an idle worker. Each fiber queues the next when it begins. Timers that
/// find no memory for their fiber, or for its stack, go back to the manager.
class DueTimers : public std::enable_shared_from_this<DueTimers> {
 public:
  DueTimers(IOManager& iom, std::vector<Timer::ptr> timers) : m_iom(iom), m_timers(std::move(timers)) {}
  DueTimers(const DueTimers&) = delete;
  DueTimers& operator=(const DueTimers&) = delete;

  bool begun() const { return m_next.load(std::memory_order_relaxed) >= m_timers.size(); }

  void queueFiber() noexcept {
    try {
      const auto job = std::make_shared<BatchJob>(shared_from_this());
      m_iom.schedule([job] { std::exchange(job->batch, nullptr)->run(); });
    } catch (const std::bad_alloc&) {
      rearm();
    }
  }
  void rearm() noexcept {
    while (Timer::ptr timer = take()) Timer::rearm(std::move(timer));
  }

 private:
  /// The job of one fiber: to run the callbacks; may be destroyed unused.
  struct BatchJob {
    explicit BatchJob(std::shared_ptr<DueTimers> of) : batch(std::move(of)) {}
    ~BatchJob() {
      if (batch != nullptr) batch->rearm();
    }
    BatchJob(const BatchJob&) = delete;
    BatchJob& operator=(const BatchJob&) = delete;
    std::shared_ptr<DueTimers> batch;
  };

  Timer::ptr take() noexcept {
    const size_t at = m_next.fetch_add(1, std::memory_order_relaxed);
    return at < m_timers.size() ? std::exchange(m_timers[at], nullptr) : nullptr;
  }

  void run() {
    Timer::ptr timer = take();
    if (timer == nullptr) return;
    SYLAR_DCHECK(mayPark() && Worker::current() != nullptr);
    Worker& worker = *Worker::current();
    if (!begun()) queueFiber();
    const uint64_t switches = worker.switches();
    const int64_t end_ns = saturatingAdd(worker.clock().nowNs(), kNsPerPass);
    for (; timer != nullptr; timer = take()) {
      std::exchange(timer, nullptr)->fire();
      if (Worker::current() != &worker || worker.switches() != switches) return;  // it waited, and the next fiber goes on
      if (worker.detached()) return;  // a stop did not wait for it, and the manager may be gone
      if (worker.clock().nowNs() >= end_ns) return worker.endBatch();
      if (!fiberIsAsNew()) return;  // the next fiber goes on
    }
  }

  IOManager& m_iom;
  std::vector<Timer::ptr> m_timers;
  std::atomic<size_t> m_next{0};
};

/// One pass of a worker, for passOverTimers().
struct IOCore::Pass {
  bool begun() const { return batch == nullptr || batch->begun(); }
  size_t queued() const {
    SYLAR_DCHECK(Worker::current() != nullptr);
    return Worker::current()->spawned().count();
  }
  /// A worker that was woken waits for the lock of the timers, a worker that comes by does not.
  bool collect() {
    size_t budget = kTimersPerPass;
    const int64_t end_ns = saturatingAdd(now_ns, kNsPerPass);
    try {
      for (more = true; more && budget > 0 && (due.empty() || core.clock().nowNs() < end_ns);) {
        const size_t slice = std::min(budget, kTimersPerLook);
        const size_t before = due.size();
        more = woken ? core.m_iom.collectDue(slice, due) : core.m_iom.tryCollectDue(slice, due);
        budget -= std::min(budget, std::max(due.size() - before, kTimersOfALook));
      }
    } catch (const std::bad_alloc&) {  // timers that are not in `due` are still armed
      no_memory = due.empty();
    }
    return more && !no_memory;
  }
  bool found() const { return !due.empty(); }
  void rearm() {
    SYLAR_DCHECK(found() || woken);
    const bool set = core.oweArming() || woken || no_memory;  // who was woken: the descriptor is readable until it is set
    Lock lock(core.m_arming);
    ++core.m_timer_stats.passes;
    core.m_timer_stats.passes_cut += more;
    if (!set) return;
    const int64_t next_ns = core.lookAtFront();
    core.armTimer(no_memory ? saturatingAdd(now_ns, kNoMemoryNs) : next_ns);
  }
  void queue() {
    SYLAR_DCHECK(found());
    try {
      batch = std::make_shared<DueTimers>(core.m_iom, std::move(due));
    } catch (const std::bad_alloc&) {
      for (Timer::ptr& timer : due) Timer::rearm(std::move(timer));
      return;
    }
    batch->queueFiber();
  }

  IOCore& core;
  const int64_t now_ns;
  const bool woken;
  std::shared_ptr<DueTimers>& batch;
  std::vector<Timer::ptr> due = {};
  bool more = false;
  bool no_memory = false;  ///< not even for the first timer
};

/// Makes a pass, if something is due, and returns true if more is. Sets the next deadline before any callback runs.
bool IOCore::serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) {
  if (m_closed.load(std::memory_order_relaxed) != nullptr) runClosed();
  if (!timers_woken && TimerSets::of(m_iom).nextHere().due_ns > now_ns) return false;
  Pass pass{.core = *this, .now_ns = now_ns, .woken = timers_woken, .batch = batch};
  return passOverTimers(pass, timers_woken);
}

void IOCore::onTimerInsertedAtFront() {
  const bool virtual_time = clock().autoAdvance() != nullptr;  // its workers do not look before they sleep
  if (oweArming() || virtual_time) {
    Lock lock(m_arming);
    const int64_t due_ns = lookAtFront();
    const bool known = due_ns == m_armed_ns;
    ++(known ? m_timer_stats.tickles_suppressed : m_timer_stats.tickles_sent);
    if (!known) armTimer(due_ns);
  }
  if (!virtual_time) return;
  const Worker* const here = Worker::current();
  if (here == nullptr || &here->scheduler() != &m_scheduler) wakeForUpkeep();  // our own workers look before they rest
}

/// Returns true if the caller must look at the front and set the descriptor, because a worker sleeps.
bool IOCore::oweArming() {
  return m_timers_front.owe([this] { return m_scheduler.idle().anySleeping(); });
}

/// The worker has declared that it sleeps.
void IOCore::beforeSleep() {
  if (!m_timers_front.owed()) return;
  Lock lock(m_arming);
  if (m_timers_front.owed()) armTimer(lookAtFront());
}

int64_t IOCore::lookAtFront() {
  m_timers_front.settle();
  return m_iom.observeNextDue();
}

/// Sets the descriptor, after an expiry even to the time that it has already: that wakes the next sleeper for the timers that are
/// left.
void IOCore::armTimer(int64_t due_ns) {
  m_armed_ns = due_ns;
  if (!m_timer_fd.valid()) return;
  sys::timerFdSet(m_timer_fd.get(), due_ns);
  ++m_timer_stats.timer_fd_settings;
}

IOTimerStats IOCore::getIOTimerStats() const {
  if (sys::inForkedChild()) return {};
  Lock lock(m_arming);
  return m_timer_stats;
}

}  // namespace sylar::detail
