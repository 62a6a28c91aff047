#include "sylar/io/io_core.h"

#include <new>
#include <system_error>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

UniqueFd openTimer() {
  const int fd = sys::timerFd();
  if (fd < 0) throw std::system_error(-fd, std::generic_category(), "sylar::IOManager: timerfd");
  return UniqueFd(fd);
}

/// Returns true if `event` is one direction, and stores which.
bool directionOf(IOManager::Event event, Direction* direction) {
  *direction = event == IOManager::READ ? Direction::kRead : Direction::kWrite;
  return event == IOManager::READ || event == IOManager::WRITE;
}

}  // namespace

/// One registration by addEvent; lives until it fires or is taken back. A close only puts it on a list that the workers look at,
/// because the closer may be a signal handler, which must not allocate.
struct IOCore::Callback : FdWaiter<EpollEngine> {
  Callback(IOCore& owner, Fiber::ptr what) : core(owner), fiber(std::move(what)) {
    fire = [](FdWaiter* waiter, WakeReason reason) {
      auto* const me = static_cast<Callback*>(waiter);
      reason == WakeReason::kClosed ? me->core.addClosed(*me) : me->run();
    };
  }
  ~Callback() {
    fiber = nullptr;
    if (pending) core.callbackEnded();
  }

  void run() {
    SYLAR_DCHECK(fiber != nullptr && pending && !linked);
    const std::unique_ptr<Callback> last(this);
    core.m_iom.schedule(std::move(fiber));
  }

  IOCore& core;
  Fiber::ptr fiber;      ///< made where addEvent can still report a lack of memory
  bool pending = false;  ///< counted among the manager's callbacks
};

IOCore::IOCore(IOManager& iom) : m_iom(iom), m_scheduler(SchedulerCore::of(iom)) {
  const bool real_time = &clock() == &steadyClock();
  if (real_time) m_timer_fd = openTimer();
  m_scheduler.setDriverFactory([this, real_time](WorkerSlot& slot) {
    return std::make_unique<EpollEngine>(slot, *this, real_time ? m_scheduler.spinNs() : 0);
  });
}

int IOCore::addEvent(int fd, IOManager::Event event, std::function<void()> cb) {
  if (sys::inForkedChild()) {  // the workers' epolls are shared with the parent
    sys::errnoRef() = ECANCELED;
    return -1;
  }
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
  if (!m_scheduler.idle().injector().admit([this] { m_callbacks.fetch_add(1, std::memory_order_relaxed); })) {
    sys::errnoRef() = ECANCELED;
    return -1;
  }
  SYLAR_DCHECK(!callback->pending && callback->fiber != nullptr);
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

bool IOCore::delEvent(int fd, IOManager::Event event) {
  Direction direction;
  Entry* const entry = FdTable::find(fd);
  if (entry == nullptr || !directionOf(event, &direction)) return false;
  bool any = false;
  entry->dequeueIf(
      direction,
      [this](const FdWaiter<EpollEngine>& waiter) {
        return waiter.fire != nullptr && &static_cast<const Callback&>(waiter).core == this;
      },
      [&any](FdWaiter<EpollEngine>& waiter) {
        any = true;
        delete &static_cast<Callback&>(waiter);
      });
  return any;
}

bool IOCore::cancelEvent(int fd, IOManager::Event event) {
  Direction direction;
  Entry* const entry = FdTable::find(fd);
  return entry != nullptr && directionOf(event, &direction) && entry->wakeAll(direction);
}

/// Returns the engine of the calling worker; outside one, the engine of a running worker, in rotation.
EpollEngine& IOCore::engineForHere() {
  SYLAR_DCHECK(!m_scheduler.workers().empty());
  Worker* worker = Worker::current();
  if (worker == nullptr || &worker->scheduler() != &m_scheduler) {
    const size_t next = m_next_engine.fetch_add(1, std::memory_order_relaxed);
    worker = m_scheduler.workers()[next % m_scheduler.workers().size()].get();
    for (size_t i = 0; i < m_scheduler.workers().size() && !worker->running(); ++i) worker = m_scheduler.workers()[i].get();
  }
  return static_cast<EpollEngine&>(worker->driver());
}

void IOCore::callbackEnded() {
  size_t pending = m_callbacks.load(std::memory_order_relaxed);
  SYLAR_DCHECK(pending > 0);
  while (pending > 1) {
    if (m_callbacks.compare_exchange_weak(pending, pending - 1, std::memory_order_acq_rel)) return;
  }
  m_scheduler.pendingEnded([this] { m_callbacks.fetch_sub(1, std::memory_order_acq_rel); });
}

bool IOCore::nothingPending() { return m_callbacks.load(std::memory_order_acquire) == 0 && !m_iom.anyWillFallDue(); }

void IOCore::dropPending() {
  // A callback that an engine has claimed is on its way to schedule(); one that another thread registers is on its way in. While
  // fibers run, more may come, which the second call takes.
  do {
    runClosed();
    if (m_callbacks.load(std::memory_order_acquire) == 0) break;
    FdTable::forEach([this](int fd, const Entry&) {
      delEvent(fd, IOManager::READ);
      delEvent(fd, IOManager::WRITE);
    });
    StdMemory::yield();
  } while (m_scheduler.idle().done());
  while (m_adding.load(std::memory_order_acquire) > 0) StdMemory::yield();
}

/// Adds a callback of a closed descriptor to the list. Safe in a signal handler. The callback may run, and the manager's end
/// begin, while this is under way.
void IOCore::addClosed(Callback& callback) {
  SYLAR_DCHECK(&callback.core == this && !callback.linked);
  m_adding.fetch_add(1, std::memory_order_relaxed);
  FdWaiter<EpollEngine>* first = m_closed.load(std::memory_order_relaxed);
  do {
    callback.next = first;
  } while (!m_closed.compare_exchange_weak(first, &callback, std::memory_order_seq_cst, std::memory_order_relaxed));
  wakeForUpkeep();
  m_adding.fetch_sub(1, std::memory_order_release);
}

/// Makes at least one worker begin an iteration after this.
void IOCore::wakeForUpkeep() {
  for (const auto& worker : m_scheduler.workers()) {
    if (worker->slot().wake()) return;
  }
  for (const auto& worker : m_scheduler.workers()) {
    if (worker->running() && !worker->detached()) return worker->slot().notify();
  }
}

void IOCore::runClosed() {
  FdWaiter<EpollEngine>* latest = m_closed.exchange(nullptr, std::memory_order_acquire);
  FdWaiter<EpollEngine>* oldest = nullptr;
  while (latest != nullptr) {
    FdWaiter<EpollEngine>* const older = std::exchange(latest->next, oldest);
    oldest = std::exchange(latest, older);
  }
  while (oldest != nullptr) static_cast<Callback*>(std::exchange(oldest, oldest->next))->run();
}

}  // namespace sylar::detail
