#include "sylar/io/iomanager.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

// A pass ends at the first of these, and so does its callbacks' first turn.
constexpr size_t kTimersPerPass = 2000;
constexpr int64_t kNsPerPass = 500'000;
constexpr size_t kTimersPerLook = 128;      // at the clock
constexpr int64_t kNoMemoryNs = 1'000'000;  // until the next look at timers for whose list there was none

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

/// Whether the running fiber is as it began: a callback has left nothing in it for the next one, and nobody has a handle by
/// which what is meant for the one would reach the other.
bool fiberIsAsNew() {
  const tsan::Exempt of_this_thread;
  const FiberCore& me = *runningFiber();
  return me.hook_enabled && !me.cancelled && !me.permit && me.fiber->weak_from_this().use_count() == 1 &&
         me.fiber->getName().empty();
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

IOManager* IOManager::GetThis() {
  Scheduler* const scheduler = Scheduler::GetThis();
  const bool is_one = scheduler != nullptr && typeid(*scheduler) == typeid(IOManager);  // the class is final
  return is_one ? static_cast<IOManager*>(scheduler) : nullptr;
}

std::unique_ptr<Driver> IOManager::makeDriver(WorkerSlot& slot) {
  const bool real_time = &clock() == &steadyClock();
  return std::make_unique<EpollEngine>(slot, static_cast<SharedUpkeep&>(*this), real_time ? spinNs() : 0);
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

bool IOManager::serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) {
  if (m_closed.load(std::memory_order_relaxed) != nullptr) runClosed();
  return (timers_woken || nextDueNs() <= now_ns) && serveTimers(now_ns, timers_woken, batch);
}

// ---- Public timers (protocol P4). --------------------------------------------------------------------------------------------

/// What a worker collected in one pass. One fiber runs the callbacks, one after the other. Behind it a second one is queued,
/// fresh: it goes on where the first is kept by a callback that waits, or beside it, on a worker that has nothing to do. Whoever
/// begins queues the next. It also goes on where a callback leaves the fiber other than new. What finds no memory for its fiber,
/// or for that one's stack, goes back to the manager.
class DueTimers : public std::enable_shared_from_this<DueTimers> {
 public:
  DueTimers(IOManager& iom, std::vector<Timer::ptr> timers) : m_iom(iom), m_timers(std::move(timers)) {}
  DueTimers(const DueTimers&) = delete;
  DueTimers& operator=(const DueTimers&) = delete;

  bool begun() const { return m_next.load(std::memory_order_relaxed) >= m_timers.size(); }

  void queueFiber() noexcept {
    try {
      const auto turn = std::make_shared<Turn>(shared_from_this());
      m_iom.schedule([turn] { std::exchange(turn->batch, nullptr)->run(); });
    } catch (const std::bad_alloc&) {
      giveBack();
    }
  }
  void giveBack() noexcept {
    while (Timer::ptr timer = take()) Timer::giveBack(std::move(timer));
  }

 private:
  /// A fiber's right to run; it may be destroyed unused.
  struct Turn {
    explicit Turn(std::shared_ptr<DueTimers> of) : batch(std::move(of)) {}
    ~Turn() {
      if (batch != nullptr) batch->giveBack();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    std::shared_ptr<DueTimers> batch;
  };

  Timer::ptr take() noexcept {
    const size_t at = m_next.fetch_add(1, std::memory_order_relaxed);
    return at < m_timers.size() ? std::exchange(m_timers[at], nullptr) : nullptr;
  }

  void run() {
    Timer::ptr timer = take();
    if (timer == nullptr) return;
    Worker& worker = *Worker::current();
    if (!begun()) {
      queueFiber();
      worker.shareFresh();
    }
    const uint64_t switches = worker.switches();
    const int64_t end_ns = saturatingAdd(worker.clock().nowNs(), kNsPerPass);
    for (; timer != nullptr; timer = take()) {
      std::exchange(timer, nullptr)->fire();
      if (Worker::current() != &worker || worker.switches() != switches) return;  // it waited: the next fiber is at it
      if (worker.detached()) return;  // a stop did not wait for it: the manager may be gone
      if (worker.clock().nowNs() >= end_ns) return worker.endTurn();
      if (!fiberIsAsNew()) return;  // likewise
    }
  }

  IOManager& m_iom;
  std::vector<Timer::ptr> m_timers;
  std::atomic<size_t> m_next{0};
};

/// True: more is due. The next deadline is set before any callback runs. While callbacks wait for their turn no more are taken:
/// they would pile up.
bool IOManager::serveTimers(int64_t now_ns, bool woken, std::shared_ptr<DueTimers>& batch) {
  if (batch != nullptr && !batch->begun()) return false;
  batch.reset();
  std::vector<Timer::ptr> due;
  bool no_memory = false;
  const bool more = collect(now_ns, woken, due, &no_memory);
  if (due.empty() && !woken) return false;  // somebody else is at it
  {
    Lock lock(m_arming);
    ++m_timer_stats.passes;
    m_timer_stats.passes_cut += more;
    const int64_t next_ns = observeNextDue();
    armTimer(no_memory ? saturatingAdd(now_ns, kNoMemoryNs) : next_ns);
  }
  if (due.empty()) return more && !no_memory;
  try {
    batch = std::make_shared<DueTimers>(*this, std::move(due));
  } catch (const std::bad_alloc&) {
    for (Timer::ptr& timer : due) Timer::giveBack(std::move(timer));
    return more;
  }
  batch->queueFiber();
  return more;
}

/// One bounded pass; true if timers are left that are due. Who was woken waits for the queue's lock, who passes by does not.
/// `no_memory`: there was none for the first of them.
bool IOManager::collect(int64_t now_ns, bool woken, std::vector<Timer::ptr>& due, bool* no_memory) {
  size_t budget = kTimersPerPass;
  const int64_t end_ns = saturatingAdd(now_ns, kNsPerPass);
  bool more = true;
  try {
    while (more && budget > 0 && (due.empty() || clock().nowNs() < end_ns)) {
      const size_t slice = std::min(budget, kTimersPerLook);
      budget -= slice;
      more = woken ? collectDue(slice, due) : tryCollectDue(slice, due);
    }
  } catch (const std::bad_alloc&) {  // what is not in `due` is still armed
    *no_memory = due.empty();
  }
  return more;
}

void IOManager::onTimerInsertedAtFront() {
  Lock lock(m_arming);
  const int64_t due_ns = observeNextDue();
  const bool known = due_ns == m_armed_ns;
  ++(known ? m_timer_stats.tickles_suppressed : m_timer_stats.tickles_sent);
  if (!known) armTimer(due_ns);
  if (clock().autoAdvance() == nullptr) return;
  const Worker* const here = Worker::current();
  if (here == nullptr || &here->scheduler() != this) wakeForUpkeep();  // our own workers look before they rest
}

/// After an expiry also to what it is set to: that wakes the next sleeper for what is left.
void IOManager::armTimer(int64_t due_ns) {
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
