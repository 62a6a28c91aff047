#include "sylar/io/iomanager.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

UniqueFd openTimer() {
  const int fd = sys::timerFd();
  if (fd < 0) throw std::system_error(-fd, std::generic_category(), "sylar::IOManager: timerfd");
  return UniqueFd(fd);
}

/// Whether `event` is one direction, and which.
bool directionOf(IOManager::Event event, Direction* direction) {
  *direction = event == IOManager::READ ? Direction::kRead : Direction::kWrite;
  return event == IOManager::READ || event == IOManager::WRITE;
}

}  // namespace

/// What addEvent registered; lives until it fires or is taken back. A close only puts it on a list that the workers look at:
/// there may be a signal handler behind it, which must not allocate.
struct IOManager::Callback : FdWaiter<EpollEngine> {
  Callback(IOManager& owner, Fiber::ptr what) : iom(owner), fiber(std::move(what)) {
    fire = [](FdWaiter* waiter, WakeReason reason) {
      auto* const me = static_cast<Callback*>(waiter);
      reason == WakeReason::kClosed ? me->iom.addClosed(*me) : me->run();
    };
  }
  ~Callback() {
    fiber = nullptr;
    if (pending) iom.callbackEnded();
  }

  void run() {
    const std::unique_ptr<Callback> last(this);
    iom.schedule(std::move(fiber));
  }

  IOManager& iom;
  Fiber::ptr fiber;      ///< made where addEvent can still say that there is no memory for it
  bool pending = false;  ///< counted among the manager's callbacks
};

IOManager::IOManager(size_t threads, bool use_caller, const std::string& name)
    : IOManager(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

IOManager::IOManager(SchedulerOptions options, TimerQueueKind timer_queue)
    : Scheduler(std::move(options)), TimerManager(clock(), timer_queue) {
  if (&clock() == &steadyClock()) m_timer_fd = openTimer();
  start();
}

IOManager::~IOManager() { stop(); }

IOManager* IOManager::GetThis() { return dynamic_cast<IOManager*>(Scheduler::GetThis()); }

std::unique_ptr<Driver> IOManager::makeDriver(WorkerSlot& slot) {
  return std::make_unique<EpollEngine>(slot, static_cast<SharedUpkeep&>(*this));
}

// ---- Descriptors. ------------------------------------------------------------------------------------------------------------

int IOManager::addEvent(int fd, Event event, std::function<void()> cb) {
  Direction direction;
  Entry* const entry = FdTable::at(fd);
  const bool on_fiber = cb == nullptr;
  if (entry == nullptr || !directionOf(event, &direction) || (on_fiber && !mayPark())) {
    sys::errnoRef() = entry != nullptr ? EINVAL : FdTable::covers(fd) ? ENOMEM : EBADF;
    return -1;
  }
  std::unique_ptr<Callback> callback;
  try {
    callback = std::make_unique<Callback>(*this, on_fiber ? Fiber::GetThis() : std::make_shared<Fiber>(std::move(cb)));
  } catch (const std::bad_alloc&) {
    sys::errnoRef() = ENOMEM;
    return -1;
  }
  if (!rest().injector().admit([this] { m_callbacks.fetch_add(1, std::memory_order_relaxed); })) {
    sys::errnoRef() = ECANCELED;
    return -1;
  }
  callback->pending = true;
  callback->engine = &engineForHere();
  const int error = entry->enqueueAnew(fd, direction, *callback);
  if (error == 0) {
    (void)callback.release();
    return 0;
  }
  callback.reset();
  sys::errnoRef() = -error;
  return -1;
}

bool IOManager::delEvent(int fd, Event event) {
  Direction direction;
  Entry* const entry = FdTable::find(fd);
  if (entry == nullptr || !directionOf(event, &direction)) return false;
  bool any = false;
  entry->dequeueIf(
      direction,
      [this](const FdWaiter<EpollEngine>& waiter) {
        return waiter.fire != nullptr && &static_cast<const Callback&>(waiter).iom == this;
      },
      [&any](FdWaiter<EpollEngine>& waiter) {
        any = true;
        delete &static_cast<Callback&>(waiter);
      });
  return any;
}

bool IOManager::cancelEvent(int fd, Event event) {
  Direction direction;
  Entry* const entry = FdTable::find(fd);
  return entry != nullptr && directionOf(event, &direction) && entry->wakeAll(direction);
}

bool IOManager::cancelAll(int fd) {
  const bool readers = cancelEvent(fd, READ);
  return cancelEvent(fd, WRITE) || readers;
}

/// The worker's own; from outside any of those that run, in turn.
EpollEngine& IOManager::engineForHere() {
  Worker* worker = Worker::current();
  if (worker == nullptr || &worker->scheduler() != this) {
    const size_t turn = m_next_engine.fetch_add(1, std::memory_order_relaxed);
    worker = workers()[turn % workers().size()].get();
    for (size_t i = 0; i < workers().size() && !worker->running(); ++i) worker = workers()[i].get();
  }
  return static_cast<EpollEngine&>(worker->driver());
}

void IOManager::callbackEnded() {
  size_t pending = m_callbacks.load(std::memory_order_relaxed);
  while (pending > 1) {
    if (m_callbacks.compare_exchange_weak(pending, pending - 1, std::memory_order_acq_rel)) return;
  }
  pendingEnded([this] { m_callbacks.fetch_sub(1, std::memory_order_acq_rel); });
}

bool IOManager::stopping() { return Scheduler::stopping() && m_callbacks.load(std::memory_order_acquire) == 0 && !hasTimer(); }

void IOManager::dropPending() {
  close();
  // What an engine has claimed is on its way to schedule(), what another thread registers on its way in. While fibers run, more
  // may come: that is for the second call.
  do {
    runClosed();
    if (m_callbacks.load(std::memory_order_acquire) == 0) break;
    FdTable::forEach([this](int fd, const Entry&) {
      delEvent(fd, READ);
      delEvent(fd, WRITE);
    });
    StdMemory::yield();
  } while (rest().done());
  while (m_adding.load(std::memory_order_acquire) > 0) StdMemory::yield();
}

/// Safe in a signal handler. The callback may run and the manager's end begin while this is under way.
void IOManager::addClosed(Callback& callback) {
  m_adding.fetch_add(1, std::memory_order_relaxed);
  FdWaiter<EpollEngine>* first = m_closed.load(std::memory_order_relaxed);
  do {
    callback.next = first;
  } while (!m_closed.compare_exchange_weak(first, &callback, std::memory_order_seq_cst, std::memory_order_relaxed));
  wakeForUpkeep();
  m_adding.fetch_sub(1, std::memory_order_release);
}

/// One worker at least turns after this.
void IOManager::wakeForUpkeep() {
  for (const auto& worker : workers()) {
    if (worker->slot().wake()) return;
  }
  for (const auto& worker : workers()) {
    if (worker->running() && !worker->detached()) return worker->slot().notify();
  }
}

void IOManager::runClosed() {
  FdWaiter<EpollEngine>* latest = m_closed.exchange(nullptr, std::memory_order_acquire);
  FdWaiter<EpollEngine>* oldest = nullptr;
  while (latest != nullptr) {
    FdWaiter<EpollEngine>* const older = std::exchange(latest->next, oldest);
    oldest = std::exchange(latest, older);
  }
  while (oldest != nullptr) static_cast<Callback*>(std::exchange(oldest, oldest->next))->run();
}

void IOManager::serve(int64_t now_ns, bool timers_woken) {
  if (m_closed.load(std::memory_order_relaxed) != nullptr) runClosed();
  if (timers_woken || nextDueNs() <= now_ns) serveTimers(now_ns, timers_woken);
}

// ---- Public timers (protocol P4). --------------------------------------------------------------------------------------------

namespace {

/// A run that a fiber is to do. Without memory for the fiber, or for its stack, it goes back to the manager.
class DueTimer {
 public:
  explicit DueTimer(Timer::ptr timer) : m_timer(std::move(timer)) {}
  ~DueTimer() {
    if (m_timer != nullptr) Timer::giveBack(std::move(m_timer));
  }
  DueTimer(const DueTimer&) = delete;
  DueTimer& operator=(const DueTimer&) = delete;
  void run() { std::exchange(m_timer, nullptr)->fire(); }

 private:
  Timer::ptr m_timer;
};

}  // namespace

/// The next deadline is set before any callback runs.
void IOManager::serveTimers(int64_t now_ns, bool woken) {
  std::vector<Timer::ptr> due;
  const bool more = collect(now_ns, woken, due);
  if (due.empty() && !woken) return;  // somebody else is at it
  {
    Lock lock(m_arming);
    ++m_timer_stats.passes;
    m_timer_stats.passes_cut += more;
    setTimer(observeNextDue());
  }
  for (Timer::ptr& timer : due) {
    try {
      const auto run = std::make_shared<DueTimer>(std::move(timer));  // moves only once it has memory
      schedule([run] { run->run(); });
    } catch (const std::bad_alloc&) {
      if (timer != nullptr) Timer::giveBack(std::move(timer));  // else `run` did
    }
  }
}

/// One bounded pass; true if timers are left that are due. Who was woken waits for the queue's lock, who passes by does not.
bool IOManager::collect(int64_t now_ns, bool woken, std::vector<Timer::ptr>& due) {
  const size_t waiting = Worker::current()->fresh().count();
  size_t budget = waiting < kTimersPerPass / 8 ? kTimersPerPass : kTimersBehindOthers;
  const int64_t end_ns = saturatingAdd(now_ns, kNsPerPass);
  bool more = true;
  try {
    while (more && budget > 0 && (due.empty() || clock().nowNs() < end_ns)) {
      const size_t slice = std::min(budget, kTimersPerLook);
      budget -= slice;
      more = woken ? collectDue(slice, due) : tryCollectDue(slice, due);
    }
  } catch (const std::bad_alloc&) {  // what is not in `due` is still armed
  }
  return more;
}

void IOManager::onTimerInsertedAtFront() {
  Lock lock(m_arming);
  const int64_t due_ns = observeNextDue();
  const bool known = due_ns == m_armed_ns;
  ++(known ? m_timer_stats.tickles_suppressed : m_timer_stats.tickles_sent);
  if (!known) setTimer(due_ns);
  if (clock().autoAdvance() == nullptr) return;
  const Worker* const here = Worker::current();
  if (here == nullptr || &here->scheduler() != this) wakeForUpkeep();  // our own workers look before they rest
}

/// After an expiry also to what it is set to: that wakes the next sleeper for what is left.
void IOManager::setTimer(int64_t due_ns) {
  m_armed_ns = due_ns;
  if (!m_timer_fd.valid()) return;
  sys::timerFdSet(m_timer_fd.get(), due_ns);
  ++m_timer_stats.timer_fd_settings;
}

IOTimerStats IOManager::getIOTimerStats() const {
  Lock lock(m_arming);
  return m_timer_stats;
}

}  // namespace sylar
