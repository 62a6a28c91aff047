#include "sylar/fiber/fiber_control.h"

#include <cxxabi.h>

#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_refused.h"
#include "sylar/fiber/started_state.h"

namespace sylar::detail {

const char* nameOf(FiberState state) {
  switch (state) {
    case FiberState::kInit: return "new";
    case FiberState::kRefused: return "refused by a scheduler";
    case FiberState::kQueued: return "in a scheduler's queue";
    case FiberState::kRunning: return "running";
    case FiberState::kResuming: return "waiting for a fiber that it resumed";
    case FiberState::kReady: return "ready";
    case FiberState::kHeldByHand:
    case FiberState::kHeld: return "held";
    case FiberState::kParked: return "parked";
    case FiberState::kEnded: return "ended";
    case FiberState::kFailed: return "ended by an exception";
    case FiberState::kAbandoned: return "abandoned";
  }
  return "?";
}

namespace {

struct Handler {
  OsMutex mutex;
  std::shared_ptr<const Fiber::ExceptionHandler> handler SYLAR_GUARDED_BY(mutex);
};
Handler& exceptionHandler() {
  alignas(Handler) static unsigned char s_memory[sizeof(Handler)];
  static Handler& handler = *::new (s_memory) Handler;  // never destroyed: fibers may end after main
  return handler;
}

void logException(uint64_t id, const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    log::error("fiber {} ended by an exception: {}", id, e.what());
  } catch (...) {
    log::error("fiber {} ended by an exception that is no std::exception", id);
  }
}

void tell(uint64_t id, const std::string& name, const std::exception_ptr& exception) {
  std::shared_ptr<const Fiber::ExceptionHandler> handler;
  {
    Lock lock(exceptionHandler().mutex);
    handler = exceptionHandler().handler;
  }
  if (handler != nullptr) {
    (*handler)(id, name, exception);
  } else {
    logException(id, exception);
  }
}

}  // namespace

void FiberControl::reportException(const std::string& told_name) {
  SYLAR_DCHECK(m_exception != nullptr);
  tell(fiber().getId(), told_name, std::exchange(m_exception, nullptr));
}

Fiber::ptr FiberControl::ownStack() { return Fiber::ptr(new Fiber(Fiber::OwnStack{})); }

FiberControl::Extras& FiberControl::extras() {
  Extras* now = ifExtras();
  if (now == nullptr) {
    auto made = std::make_unique<Extras>();
    if (m_extras.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) now = made.release();
  }
  return *now;
}

void FiberControl::setName(std::string name) {
  if (name.empty() && ifExtras() == nullptr) return;
  Extras& mine = extras();
  Lock lock(mine.lock);
  mine.name.swap(name);
  lock.unlock();  // the old name is destroyed outside the lock
}

std::string FiberControl::name() const {
  Extras* const mine = ifExtras();
  if (mine == nullptr) return "";
  Lock lock(mine->lock);
  return mine->name;
}

std::string FiberControl::takeName() noexcept {
  std::string taken;
  if (Extras* const mine = ifExtras()) {
    Lock lock(mine->lock);
    taken.swap(mine->name);
  }
  return taken;
}

size_t FiberControl::copyName(char* out, size_t size) const noexcept {
  SYLAR_CHECK(out != nullptr && size > 0);  // the 0 behind the name needs room
  size_t length = 0;
  Extras* const mine = ifExtras();
  if (mine != nullptr && mine->lock.tryLock()) {
    length = mine->name.copy(out, size - 1);
    mine->lock.unlock();
  }
  out[length] = 0;
  return length;
}

bool FiberControl::mayResume(FiberState now) const {
  if (isUnstarted(now)) return true;
  return (now == FiberState::kHeldByHand || now == FiberState::kReady) &&
         m_thread_id.load(std::memory_order_relaxed) == sys::threadId();
}

bool FiberControl::wantsToMigrate() const {
  Extras* const mine = ifExtras();
  if (mine == nullptr) return false;
  Lock lock(mine->lock);
  return mine->migration_target != nullptr;
}

void FiberControl::refuseThread() {
  SYLAR_DCHECK(m_exception == nullptr && state() == FiberState::kQueued);
  m_exception = std::make_exception_ptr(lastRefused());
}

void FiberControl::run() {
  SYLAR_DCHECK(m_cb != nullptr);
  try {
    m_cb();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    m_exception = std::current_exception();
  }
  m_cb = nullptr;  // destroys the captures here, on the fiber's stack, because that may block
  StartedState& mine = started();
  if (mine.locals != nullptr) endLocals(mine);
  if (mine.held.count() > 0) failHolding("ends");
}

/// Nobody could unlock it any more, and all who wait for it would wait forever.
[[gnu::cold]] void FiberControl::failHolding(const char* how) const {
  checkFailed(__FILE__, __LINE__, "no lock is held",
              fmt::format("fiber {} {} {}{}", fiber().getId(), name(), how, describeHeld()));
}

std::string FiberControl::describeHeld() const {
  if (m_started == nullptr) return "";
  const HeldLocks& held = m_started->held;
  const uint32_t count = held.count();
  if (count == 0) return "";
  const uintptr_t last = held.at(held.named() - 1);
  return fmt::format(", and holds the sylar lock at {:#x}{}{}", last & ~HeldLocks::kToRead,
                     (last & HeldLocks::kToRead) == 0 ? "" : " for reading",
                     count == 1 ? "" : fmt::format(" and {} more", count - 1));
}

[[gnu::noinline, gnu::cold]] void FiberControl::endLocals(StartedState& mine) {
  SYLAR_DCHECK(mine.locals != nullptr);
  mine.locals->end();  // while their destructors can still reach the others
  delete std::exchange(mine.locals, nullptr);
}

void FiberControl::end(FiberState how) {
  SYLAR_DCHECK(isOver(how) || how == FiberState::kRefused);
  if (how == FiberState::kRefused || how == FiberState::kAbandoned) return endUnfinished(how);
  m_ends.end(false, [&] { move(FiberState::kRunning, how); });
}

[[gnu::noinline]] void FiberControl::endUnfinished(FiberState how) {
  SYLAR_DCHECK(how == FiberState::kRefused || how == FiberState::kAbandoned);
  if (how == FiberState::kRefused) return m_ends.tell([this] { move(FiberState::kQueued, FiberState::kRefused); });
  m_ends.end(true, [this] { move(FiberState::kAbandoned); });
}

bool FiberControl::observeEnd(EndObserver& observer) {
  return m_ends.add(observer, [this] { return state() == FiberState::kRefused; });
}

[[gnu::noinline]] void FiberControl::throwException() {
  std::exception_ptr exception;
  {
    Lock lock(m_lock);
    exception = std::exchange(m_exception, nullptr);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
}

void FiberControl::blockUntilEnd() {
  struct Blocked : EndObserver {
    std::atomic<uint32_t> over{0};
  } blocked;
  blocked.claim = [](EndObserver*) { return true; };
  blocked.ended = [](EndObserver* observer) {
    auto& over = static_cast<Blocked*>(observer)->over;
    over.store(1, std::memory_order_release);
    sys::futexWake(over, 1);  // uses only the address
  };
  if (!observeEnd(blocked)) return;
  while (blocked.over.load(std::memory_order_acquire) == 0) sys::futexWait(blocked.over, 0, kNever);
}

FiberRequest* FiberRequest::make(Fiber::ptr fiber) noexcept {
  SYLAR_DCHECK(fiber != nullptr);
  // The thread that opens the fiber's own handles all that was asked before, wherever the fiber is by then. But if it is on its way
  // to a worker that the fiber has left, and that is busy, another one is faster.
  const bool has_own = !control(*fiber).m_own_is_away.exchange(true, std::memory_order_seq_cst);
  auto* const request = has_own ? &control(*fiber).m_own_request : new (std::nothrow) FiberRequest(false);
  if (request != nullptr) request->m_fiber = std::move(fiber);
  return request;
}

Fiber::ptr FiberRequest::open(QueueNode* request) {
  SYLAR_DCHECK(request != nullptr && request->kind == Kind::kMessage);
  auto* const opened = static_cast<FiberRequest*>(request);
  Fiber::ptr fiber = std::move(opened->m_fiber);
  SYLAR_DCHECK(fiber != nullptr);
  if (opened->m_is_own) {
    control(*fiber).m_own_is_away.exchange(false, std::memory_order_seq_cst);
  } else {
    delete opened;
  }
  return fiber;
}

namespace {

std::string describeSync(unsigned kind, uint64_t address) {
  constexpr const char* kWaits[] = {"locks Mutex",
                                    "locks RWMutex",
                                    "waits for Semaphore",
                                    "waits for ConditionVariable",
                                    "waits for Event",
                                    "waits for WaitGroup",
                                    "sends to Channel",
                                    "receives from Channel",
                                    "selects",
                                    "locks pthread_mutex",
                                    "locks pthread_rwlock",
                                    "waits for pthread_cond",
                                    "waits at pthread_barrier",
                                    "waits for sem_t",
                                    "waits for an initialization",
                                    "waits at futex"};
  SYLAR_CHECK_GE(std::size(kWaits), kind + 1);
  return address == 0 ? kWaits[kind] : fmt::format("{} {:#x}", kWaits[kind], address);
}

}  // namespace

std::string FiberControl::describe() const {
  const FiberState now = state();
  if (now != FiberState::kParked && now != FiberState::kAbandoned) return nameOf(now);
  const auto [what, where, has_deadline] = wants();
  switch (what) {
    case WaitsFor::kEvent: return "waits";
    case WaitsFor::kTime: return "sleeps";
    case WaitsFor::kRead: return fmt::format("reads descriptor {}", where);
    case WaitsFor::kWrite: return fmt::format("writes to descriptor {}", where);
    case WaitsFor::kPoll: return "polls";
    case WaitsFor::kFiber: return fmt::format("joins fiber {}", where);
    case WaitsFor::kHelper: return "waits for a helper thread";
    case WaitsFor::kFile: return "waits for a file";
    case WaitsFor::kMutex:
    case WaitsFor::kRWMutex: break;
  }
  return describeSync(static_cast<unsigned>(what) - static_cast<unsigned>(WaitsFor::kMutex), where);
}

void FiberControl::setExceptionHandler(Fiber::ExceptionHandler handler) {
  std::shared_ptr<const Fiber::ExceptionHandler> shared;
  if (handler != nullptr) shared = std::make_shared<const Fiber::ExceptionHandler>(std::move(handler));
  Lock lock(exceptionHandler().mutex);
  exceptionHandler().handler.swap(shared);
  lock.unlock();  // the old handler is destroyed outside the lock
}

}  // namespace sylar::detail
