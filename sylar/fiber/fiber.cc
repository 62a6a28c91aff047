#include "sylar/fiber/fiber.h"

#include <cxxabi.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/clock.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar {
namespace {

constinit std::atomic<size_t> g_default_stack_size{kDefaultStackSize};

/// Ids are handed out in blocks, so that spawning threads do not share a cache line.
constexpr uint64_t kIdBlock = 1024;
constinit std::atomic<uint64_t> g_next_id_block{1};
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_next_id = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_last_id = 0;

uint64_t newId() {
  const tsan::Exempt of_this_thread;
  if (t_next_id == t_last_id) {
    t_next_id = g_next_id_block.fetch_add(kIdBlock, std::memory_order_relaxed);
    t_last_id = t_next_id + kIdBlock;
  }
  return t_next_id++;
}

const char* nameOf(Fiber::Life life) {
  switch (life) {
    case Fiber::Life::kInit: return "new";
    case Fiber::Life::kQueued: return "in a scheduler's queue";
    case Fiber::Life::kRunning: return "running";
    case Fiber::Life::kResuming: return "waiting for a fiber that it resumed";
    case Fiber::Life::kReady: return "ready";
    case Fiber::Life::kHeldByHand:
    case Fiber::Life::kHeld: return "held";
    case Fiber::Life::kParked: return "parked";
    case Fiber::Life::kEnded: return "ended";
    case Fiber::Life::kFailed: return "ended by an exception";
    case Fiber::Life::kAbandoned: return "given up";
  }
  return "?";
}

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

void reportException(uint64_t id, const std::string& name, const std::exception_ptr& exception) {
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

Fiber::Fiber(std::function<void()> cb, size_t stacksize, bool /*use_caller*/)
    : QueueNode(Kind::kFiber),
      m_id(newId()),
      m_cb(std::move(cb)),
      m_stack_size(stacksize != 0 ? stacksize : g_default_stack_size.load(std::memory_order_relaxed)) {
  if (m_cb == nullptr) throw std::invalid_argument("sylar::Fiber: the function is null");
  ThreadFibers::countFiber(1);
}

Fiber::Fiber(OwnStack) : QueueNode(Kind::kFiber), m_life(Life::kRunning), m_id(0), m_stack_size(0) {
  ThreadFibers::countFiber(1);
}

Fiber::~Fiber() {
  if (m_core != nullptr) ThreadFibers::current().discard(*this);
  if (m_exception != nullptr) reportException(m_id, m_name, m_exception);
  ThreadFibers::countFiber(-1);
}

Fiber::State Fiber::getState() const {
  switch (life()) {
    case Life::kInit: return INIT;
    case Life::kQueued:
    case Life::kReady: return READY;
    case Life::kRunning:
    case Life::kResuming: return EXEC;
    case Life::kHeldByHand:
    case Life::kHeld:
    case Life::kParked:
    case Life::kAbandoned: return HOLD;
    case Life::kEnded: return TERM;
    case Life::kFailed: return EXCEPT;
  }
  return EXCEPT;
}

void Fiber::reset(std::function<void()> cb) {
  if (cb == nullptr) throw std::invalid_argument("sylar::Fiber::reset: the function is null");
  const Life now = life();
  if (now != Life::kInit && now != Life::kEnded && now != Life::kFailed) {
    throw std::logic_error(fmt::format("sylar::Fiber::reset: fiber {} is {}", m_id, nameOf(now)));
  }
  if (m_exception != nullptr) {
    const std::string name = getName();
    reportException(m_id, name, std::exchange(m_exception, nullptr));
  }
  m_cb = std::move(cb);
  // Nobody's again: what is still on its way to its last home finds it gone.
  m_home.store(nullptr, std::memory_order_seq_cst);
  m_home_owner.store(0, std::memory_order_relaxed);
  m_thread_id.store(0, std::memory_order_relaxed);
  m_asked.store(0, std::memory_order_relaxed);
  (void)ThreadFibers::takeDestination(*this);
  {
    Lock lock(m_lock);
    m_given_up = false;
  }
  move(now, Life::kInit);
}

bool Fiber::mayResume(Life now) const {
  if (now == Life::kInit) return true;
  return (now == Life::kHeldByHand || now == Life::kReady) && m_thread_id.load(std::memory_order_relaxed) == sys::threadId();
}

void Fiber::resume() {
  ThreadFibers& thread = ThreadFibers::current();  // what may throw comes first
  const Life was = life();
  if (!mayResume(was) || !tryMove(was, Life::kRunning)) {
    const bool elsewhere = was == Life::kHeldByHand || was == Life::kReady;
    const char* const why = elsewhere            ? " on another thread"
                            : was == Life::kHeld ? ", it belongs to a scheduler: schedule() it"
                                                 : "";
    log::error("fiber {}: resume refused, it is {}{}", m_id, nameOf(was), why);
    return;
  }
  const ptr keep = weak_from_this().lock();  // the caller's own handle may go while it runs
  if (was == Life::kInit && !thread.start(*this)) {
    move(Life::kRunning, Life::kInit);
    throw std::bad_alloc();
  }
  if (was != Life::kInit) thread.adopt(*this);  // a worker may have begun or ended on this thread since
  FiberCore* const me = runningFiber();
  m_core->resumer = me;
  if (me != nullptr) me->fiber->move(Life::kRunning, Life::kResuming);
  FiberCore& back = thread.enter(*m_core);
  SYLAR_CHECK_EQ(back.fiber, this);
  if (me != nullptr) me->fiber->move(Life::kResuming, Life::kRunning);
  switch (back.request) {
    case Request::kReady: move(Life::kRunning, Life::kReady); return;
    case Request::kHold: move(Life::kRunning, Life::kHeldByHand); return;
    case Request::kDone: ThreadFibers::current().finish(back); return;
    case Request::kMove:
    case Request::kParked: SYLAR_CHECK(back.request == Request::kDone);  // those go to the thread's own stack
  }
}

void Fiber::yield() {
  FiberCore* const me = runningFiber();
  if (me == nullptr || me->fiber != this) {
    log::error("fiber {}: yield refused, it is {}", m_id, nameOf(life()));
    return;
  }
  YieldToHold();
}

[[gnu::noinline]] void Fiber::YieldToReady() {
  if (t_running != nullptr) ThreadFibers::yield(Request::kReady);
}

[[gnu::noinline]] void Fiber::YieldToHold() {
  FiberCore* const me = t_running;
  if (me == nullptr) return;
  if (!me->permit) {
    ThreadFibers::yield(Request::kHold);
  } else {
    me->permit = false;
    if (me->live && me->resumer == nullptr && me->fiber->wantsAway()) ThreadFibers::yield(Request::kMove);
  }
  tsan::acquire(me->fiber);  // what was before the schedule()
}

bool Fiber::wantsAway() const {
  Lock lock(m_lock);
  return m_destination != nullptr;
}

void Fiber::run() {
  try {
    m_cb();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    m_exception = std::current_exception();
  }
  m_cb = nullptr;  // what it captured ends here, on the fiber's stack: it may block
}

void Fiber::end(Life how) {
  // Under the lock to the end: an observer that gives up meanwhile must not leave while it is being told.
  Lock lock(m_lock);
  move(how == Life::kAbandoned ? life() : Life::kRunning, how);
  m_given_up |= how == Life::kAbandoned;
  tellObservers();
}

void Fiber::tellObservers() {
  while (m_observers != nullptr) {
    EndObserver* const told = std::exchange(m_observers, m_observers->next);
    told->ended(told);
  }
}

bool Fiber::observeEnd(EndObserver& observer) {
  Lock lock(m_lock);
  if (isOver(life()) || m_given_up) return false;
  observer.next = m_observers;
  m_observers = &observer;
  return true;
}

void Fiber::unobserveEnd(EndObserver& observer) {
  Lock lock(m_lock);
  for (EndObserver** at = &m_observers; *at != nullptr; at = &(*at)->next) {
    if (*at == &observer) {
      *at = observer.next;
      return;
    }
  }
}

void Fiber::join() {
  SYLAR_CHECK(m_id != 0);  // a thread's own stack: it ends only when nobody could join it any more
  const FiberCore* const me = runningFiber();
  SYLAR_CHECK(me == nullptr || me->fiber != this);
  FiberHost* const host = me == nullptr ? nullptr : ThreadFibers::current().host();
  if (host != nullptr) {
    host->awaitEnd(*this);
  } else {
    struct Blocked : EndObserver {
      std::atomic<uint32_t> over{0};
    } blocked;
    blocked.ended = [](EndObserver* observer) {
      auto& over = static_cast<Blocked*>(observer)->over;
      over.store(1, std::memory_order_release);
      sys::futexWake(over, 1);  // only the address is used
    };
    if (observeEnd(blocked)) {
      while (blocked.over.load(std::memory_order_acquire) == 0) sys::futexWait(blocked.over, 0, kNever);
    }
  }
  std::exception_ptr exception;
  bool given_up;
  {
    Lock lock(m_lock);
    given_up = m_given_up;
    if (!given_up) exception = std::exchange(m_exception, nullptr);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
  if (given_up) throw std::runtime_error(fmt::format("sylar: fiber {} was given up by its scheduler", m_id));
}

Fiber::Question* Fiber::Question::make(ptr fiber) noexcept {
  auto* question = new (std::nothrow) Question(false);
  if (question == nullptr) {
    // Whoever opens it looks at all that was asked before, wherever the fiber is then.
    if (fiber->m_spare_is_away.exchange(true, std::memory_order_seq_cst)) return nullptr;
    question = &fiber->m_spare_question;
  }
  question->m_fiber = std::move(fiber);
  return question;
}

Fiber::ptr Fiber::Question::open(QueueNode* question) {
  auto* const opened = static_cast<Question*>(question);
  ptr fiber = std::move(opened->m_fiber);
  if (opened->m_spare) {
    fiber->m_spare_is_away.exchange(false, std::memory_order_seq_cst);
  } else {
    delete opened;
  }
  return fiber;
}

void Fiber::cancel() {
  if (!isOver(life())) ThreadFibers::ask(*this, kCancel);
}

void Fiber::setName(std::string name) {
  Lock lock(m_lock);
  m_name.swap(name);
  lock.unlock();  // the old one ends outside
}

std::string Fiber::getName() const {
  Lock lock(m_lock);
  return m_name;
}

size_t Fiber::copyName(char* out, size_t size) const noexcept {
  size_t length = 0;
  if (m_lock.tryLock()) {
    length = m_name.copy(out, size - 1);
    m_lock.unlock();
  }
  out[length] = 0;
  return length;
}

std::string Fiber::describe() const {
  const Life now = life();
  if (now != Life::kParked && now != Life::kAbandoned) return nameOf(now);
  const uint64_t waits_for = m_waits_for.load(std::memory_order_relaxed);
  const auto fd = static_cast<int>(static_cast<uint32_t>(waits_for));
  switch (static_cast<WaitsFor>(waits_for >> 32)) {
    case WaitsFor::kEvent: return "waits";
    case WaitsFor::kTime: return "sleeps";
    case WaitsFor::kRead: return fmt::format("reads descriptor {}", fd);
    case WaitsFor::kWrite: return fmt::format("writes to descriptor {}", fd);
    case WaitsFor::kPoll: return "polls";
    case WaitsFor::kFiber: return "joins a fiber";
    case WaitsFor::kHelper: return "waits for a helper thread";
  }
  return "?";
}

Fiber::ptr Fiber::GetThis() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->shared_from_this() : ThreadFibers::current().ownStackHandle();
}

uint64_t Fiber::GetFiberId() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->m_id : 0;
}

bool this_fiber::cancelled() {
  FiberCore* const me = runningFiber();
  return me != nullptr && (me->cancelled || me->fiber->askedToEnd());
}

this_fiber::CancelShield::CancelShield() : m_core(runningFiber()), m_outer(m_core != nullptr && m_core->shielded) {
  if (m_core != nullptr) m_core->shielded = true;
}

this_fiber::CancelShield::~CancelShield() {
  if (m_core != nullptr) m_core->shielded = m_outer;
}

uint64_t Fiber::TotalFibers() { return ThreadFibers::countedFibers(); }

void Fiber::SetExceptionHandler(ExceptionHandler handler) {
  std::shared_ptr<const ExceptionHandler> shared;
  if (handler != nullptr) shared = std::make_shared<const ExceptionHandler>(std::move(handler));
  Lock lock(exceptionHandler().mutex);
  exceptionHandler().handler.swap(shared);
  lock.unlock();  // the old one ends outside
}

void Fiber::SetDefaultStackSize(size_t bytes) {
  g_default_stack_size.store(std::clamp(bytes, kMinStackSize, kMaxStackSize), std::memory_order_relaxed);
}

}  // namespace sylar
