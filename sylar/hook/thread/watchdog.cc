#include "sylar/watchdog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/hook/thread/thread_probe.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/thread.h"

namespace sylar {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class Watchdog::Impl {
 public:
  Impl(Scheduler& scheduler, milliseconds limit, Report report, Report is_back)
      : m_scheduler(coreOf(scheduler)),
        m_limit_ns(nanoseconds(limit).count()),
        m_report(std::move(report)),
        m_is_back(std::move(is_back)),
        m_seen(m_scheduler.workers().size()),
        m_thread([this] { watch(); }, "watchdog") {}

  ~Impl() {
    {
      const std::lock_guard lock(m_mutex);
      m_over = true;
    }
    m_ended.notify_one();
    m_thread.join();
  }

 private:
  /// What the last looks at a worker have shown.
  struct Seen {
    uint64_t switches = 0;
    int64_t since_ns = 0;  // the first of the looks that found the same fiber
    std::optional<HeldWorker> told;
  };

  void watch() {
    std::unique_lock lock(m_mutex);
    while (!m_ended.wait_for(lock, nanoseconds(std::max<int64_t>(m_limit_ns / 4, 1)), [this] { return m_over; })) {
      lock.unlock();
      for (size_t i = 0; i < m_seen.size(); ++i) look(*m_scheduler.workers()[i], m_seen[i]);
      lock.lock();
    }
  }

  /// A worker that gives its thread to nobody else, and does not come back to its loop, is held.
  void look(Worker& worker, Seen& seen) {
    WorkerStats stats;
    worker.addStats(stats);
    const int64_t now_ns = steadyClock().nowNs();
    const bool may_be_held = worker.running() && !worker.inLoop();
    const milliseconds held = std::chrono::duration_cast<milliseconds>(nanoseconds(now_ns - seen.since_ns));
    if (!may_be_held || stats.switches != seen.switches) {
      if (seen.told.has_value() && worker.running()) tellItIsBack(*seen.told, held);
      seen = {stats.switches, now_ns, {}};
    } else if (!seen.told.has_value() && now_ns - seen.since_ns > m_limit_ns) {
      tell(worker, seen.told.emplace(), held);
    }
  }

  static void nameFiber(Worker& worker, HeldWorker& out) {
    char name[64] = "";
    worker.visitRunning([&](const Fiber& fiber) {
      out.fiber_id = fiber.getId();
      fiber.copyName(name, sizeof name);
    });
    out.fiber_name = name;
  }

  void tell(Worker& worker, HeldWorker& out, milliseconds held) noexcept try {
    out.worker = worker.name();
    out.thread = worker.threadId();
    out.held = held;
    const WaitingCall call = waitingCallOf(out.thread);
    out.call = call.name();
    nameFiber(worker, out);
    ThreadAnswer answer;
    if (call.bearsSignal() && askThread(out.thread, answer)) out.backtrace = answer.backtrace();
    m_report(out);
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }

  void tellItIsBack(HeldWorker& was_held, milliseconds held) const {
    was_held.held = held;
    if (m_is_back != nullptr) m_is_back(was_held);
  }

  SchedulerCore& m_scheduler;
  const int64_t m_limit_ns;
  const Report m_report;
  const Report m_is_back;
  std::vector<Seen> m_seen;  // one for each worker; belongs to the thread
  std::mutex m_mutex;
  std::condition_variable m_ended;
  bool m_over = false;
  Thread m_thread;  // the last member, because it uses the others
};

Watchdog::Watchdog(Scheduler& scheduler, milliseconds limit, Report report, Report is_back) {
  if (limit <= milliseconds(0)) throw std::invalid_argument("sylar: the limit of a watchdog must be positive");
  enableAskThread();
  m_impl = std::make_unique<Impl>(scheduler, limit, std::move(report), std::move(is_back));
}

/// A forked child has no thread that watches, and none that could end.
Watchdog::~Watchdog() {
  if (sys::inForkedChild()) (void)m_impl.release();
}

namespace {

std::string nameOfHolder(const HeldWorker& held) {
  return held.fiber_id == 0 ? "an unknown fiber" : fmt::format("fiber {} {}", held.fiber_id, held.fiber_name);
}

}  // namespace

void logHeldWorker(const HeldWorker& held) {
  log::warn("{} (thread {}) is held for {} ms by {}, {}{}{}", held.worker, held.thread, held.held.count(), nameOfHolder(held),
            held.call.empty() ? "which computes" : "in " + held.call, held.backtrace.empty() ? "" : "\n    ",
            fmt::join(held.backtrace, "\n    "));
}

void logWorkerIsBack(const HeldWorker& was_held) {
  log::warn("{} (thread {}) is back, it was held for {} ms by {}", was_held.worker, was_held.thread, was_held.held.count(),
            nameOfHolder(was_held));
}

}  // namespace sylar
