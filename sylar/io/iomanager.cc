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
  Callback(IOManager& owner, std::function<void()> function, Fiber::ptr held)
      : iom(owner), cb(std::move(function)), fiber(std::move(held)) {
    fire = [](FdWaiter* waiter, WakeReason reason) {
      auto* const me = static_cast<Callback*>(waiter);
      reason == WakeReason::kClosed ? me->iom.addClosed(*me) : me->run();
    };
  }
  ~Callback() {
    cb = nullptr;
    fiber = nullptr;
    if (pending) iom.callbackEnded();
  }

  void run() {
    const std::unique_ptr<Callback> last(this);
    if (cb != nullptr) {
      iom.schedule(std::move(cb));
    } else {
      iom.schedule(std::move(fiber));
    }
  }

  IOManager& iom;
  std::function<void()> cb;
  Fiber::ptr fiber;
  bool pending = false;  ///< counted among the manager's callbacks
};

IOManager::IOManager(size_t threads, bool use_caller, const std::string& name)
    : IOManager(SchedulerOptions{.threads = threads, .use_caller = use_caller, .name = name}) {}

IOManager::IOManager(SchedulerOptions options) : Scheduler(std::move(options)), TimerManager(clock()) {
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
    sys::errnoRef() = entry == nullptr ? EBADF : EINVAL;
    return -1;
  }
  auto callback = std::make_unique<Callback>(*this, std::move(cb), on_fiber ? Fiber::GetThis() : nullptr);
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

bool IOManager::stopping() {
  return Scheduler::stopping() && m_callbacks.load(std::memory_order_acquire) == 0 && !hasTimer() &&
         !m_has_unserved.load(std::memory_order_acquire);
}

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
  const bool due = nextDueNs() <= now_ns || m_has_unserved.load(std::memory_order_relaxed);
  if (timers_woken || due) serveTimers(timers_woken);
}

// ---- Public timers (protocol P4). --------------------------------------------------------------------------------------------

/// Who was woken waits for the queue's lock, who passes by does not. The next deadline is set before any callback runs. Those for
/// which there is no memory come first the next time.
void IOManager::serveTimers(bool woken) {
  std::vector<Timer::ptr> due;
  if (m_has_unserved.load(std::memory_order_relaxed)) {
    Lock lock(m_arming);
    due.swap(m_unserved);
    m_has_unserved.store(false, std::memory_order_relaxed);
  }
  try {
    woken ? collectDue(kTimersPerPass, due) : tryCollectDue(kTimersPerPass, due);
  } catch (const std::bad_alloc&) {  // what is not in `due` is still armed
  }
  if (due.empty() && !woken) return;  // somebody else is at it
  armTimer();
  size_t begun = 0;
  try {
    for (; begun < due.size(); ++begun) schedule([timer = due[begun]] { timer->fire(); });
  } catch (const std::bad_alloc&) {
    due.erase(due.begin(), due.begin() + static_cast<std::ptrdiff_t>(begun));
    while (!keepUnserved(due)) StdMemory::yield();
    armTimer();
  }
}

/// False: there is no memory to put them behind those of another worker.
bool IOManager::keepUnserved(std::vector<Timer::ptr>& timers) {
  Lock lock(m_arming);
  try {
    m_unserved.insert(m_unserved.end(), timers.begin(), timers.end());
  } catch (const std::bad_alloc&) {
    if (!m_unserved.empty()) return false;
    m_unserved.swap(timers);
  }
  m_has_unserved.store(true, std::memory_order_relaxed);
  return true;
}

void IOManager::armTimer() {
  constexpr int64_t kAgainNs = 1'000'000;
  Lock lock(m_arming);
  int64_t due_ns = observeNextDue();
  if (m_has_unserved.load(std::memory_order_relaxed)) due_ns = std::min(due_ns, clock().nowNs() + kAgainNs);
  if (m_timer_fd.valid()) sys::timerFdSet(m_timer_fd.get(), due_ns);
}

}  // namespace sylar
