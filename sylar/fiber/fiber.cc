#include "sylar/fiber.h"

#include <cxxabi.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/clock.h"
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

}  // namespace

Fiber::Fiber(std::function<void()> cb, size_t stacksize, bool /*use_caller*/) : m_id(newId()) {
  if (cb == nullptr) throw std::invalid_argument("sylar::Fiber: the function is null");
  const size_t stack_size = stacksize != 0 ? stacksize : g_default_stack_size.load(std::memory_order_relaxed);
  ::new (m_control) FiberControl(std::move(cb), stack_size, FiberLife::kInit);
  ThreadFibers::countFiber(1);
}

Fiber::Fiber(OwnStack) : m_id(0) {
  ::new (m_control) FiberControl(nullptr, 0, FiberLife::kRunning);
  ThreadFibers::countFiber(1);
}

Fiber::~Fiber() {
  FiberControl& mine = control(*this);
  if (mine.m_core != nullptr) ThreadFibers::current().discard(*this);
  if (mine.m_exception != nullptr) mine.reportException(mine.m_name);
  ThreadFibers::countFiber(-1);  // before its captures end: they may tell others to look
  std::destroy_at(&mine);
}

Fiber::State Fiber::getState() const {
  switch (lifeOf(*this)) {
    case FiberLife::kInit:
    case FiberLife::kRefused: return INIT;
    case FiberLife::kQueued:
    case FiberLife::kReady: return READY;
    case FiberLife::kRunning:
    case FiberLife::kResuming: return EXEC;
    case FiberLife::kHeldByHand:
    case FiberLife::kHeld:
    case FiberLife::kParked:
    case FiberLife::kAbandoned: return HOLD;
    case FiberLife::kEnded: return TERM;
    case FiberLife::kFailed: return EXCEPT;
  }
  return EXCEPT;
}

void Fiber::reset(std::function<void()> cb) {
  if (cb == nullptr) throw std::invalid_argument("sylar::Fiber::reset: the function is null");
  control(*this).reset(std::move(cb));
}

void Fiber::resume() { control(*this).resume(); }

void Fiber::yield() {
  FiberCore* const me = runningFiber();
  if (me == nullptr || me->fiber != this) {
    log::error("fiber {}: yield refused, it is {}", m_id, nameOf(lifeOf(*this)));
    return;
  }
  YieldToHold();
}

[[gnu::noinline]] void Fiber::YieldToReady() {
  if (t_running != nullptr) ThreadFibers::yield(SwitchReason::kReady);
}

[[gnu::noinline]] void Fiber::YieldToHold() {
  FiberCore* const me = t_running;
  if (me == nullptr) return;
  if (!me->permit) {
    ThreadFibers::yield(SwitchReason::kHold);
  } else {
    me->permit = false;
    if (me->live && me->resumer == nullptr && control(*me->fiber).wantsToMigrate()) ThreadFibers::yield(SwitchReason::kMove);
  }
  tsan::acquire(me->fiber);  // sees what came before the schedule()
}

void Fiber::join() { control(*this).join(); }

void Fiber::cancel() {
  if (!isOver(lifeOf(*this))) ThreadFibers::post(*this, FiberControl::kCancel);
}

void Fiber::setName(std::string name) { control(*this).setName(std::move(name)); }
std::string Fiber::getName() const { return control(*this).name(); }
size_t Fiber::copyName(char* out, size_t size) const noexcept { return control(*this).copyName(out, size); }

Fiber::ptr Fiber::GetThis() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->shared_from_this() : ThreadFibers::current().ownStackHandle();
}

uint64_t Fiber::GetFiberId() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->m_id : 0;
}

[[gnu::noinline]] bool this_fiber::cancelled() {
  const FiberCore* const me = t_running;
  return me != nullptr && (me->cancelled || control(*me->fiber).cancelRequested());
}

[[gnu::noinline]] this_fiber::CancelShield::CancelShield()
    : m_core(t_running), m_outer(m_core != nullptr && t_running->shielded) {
  if (m_core != nullptr) t_running->shielded = true;
}

this_fiber::CancelShield::~CancelShield() {
  if (m_core != nullptr) static_cast<FiberCore*>(m_core)->shielded = m_outer;
}

uint64_t Fiber::TotalFibers() { return ThreadFibers::countedFibers(); }

void Fiber::SetExceptionHandler(ExceptionHandler handler) { FiberControl::setExceptionHandler(std::move(handler)); }

void Fiber::SetDefaultStackSize(size_t bytes) {
  g_default_stack_size.store(std::clamp(bytes, kMinStackSize, kMaxStackSize), std::memory_order_relaxed);
}

// ---- Functions that involve the thread. --------------------------------------------------------------------------------------

void FiberControl::reset(std::function<void()> cb) {
  const FiberLife now = life();
  if (!isUnstarted(now) && now != FiberLife::kEnded && now != FiberLife::kFailed) {
    throw std::logic_error(fmt::format("sylar::Fiber::reset: fiber {} is {}", fiber().getId(), nameOf(now)));
  }
  if (m_exception != nullptr) reportException(name());
  m_cb = std::move(cb);
  // The fiber has no home again. A message that is still on its way to the last home finds that.
  m_requests.clear();
  m_thread_id.store(0, std::memory_order_relaxed);
  (void)ThreadFibers::takeMigrationTarget(fiber());
  m_ends.clear();
  move(now, FiberLife::kInit);
}

void FiberControl::resume() {
  ThreadFibers& thread = ThreadFibers::current();  // first, because it may throw
  const FiberLife was = life();
  if (!mayResume(was) || !tryMove(was, FiberLife::kRunning)) {
    const bool elsewhere = was == FiberLife::kHeldByHand || was == FiberLife::kReady;
    const char* const why = elsewhere                 ? " on another thread"
                            : was == FiberLife::kHeld ? ", it belongs to a scheduler: schedule() it"
                                                      : "";
    log::error("fiber {}: resume refused, it is {}{}", fiber().getId(), nameOf(was), why);
    return;
  }
  const Fiber::ptr keep = fiber().weak_from_this().lock();  // the caller's own handle may be dropped while it runs
  if (isUnstarted(was) && !thread.start(fiber())) {
    move(FiberLife::kRunning, was);
    throw std::bad_alloc();
  }
  if (!isUnstarted(was)) thread.adopt(fiber());  // a worker may have begun or ended on this thread since
  FiberCore* const me = runningFiber();
  FiberHost* const host = thread.host();
  m_core->resumer = me;
  if (me != nullptr) control(*me->fiber).move(FiberLife::kRunning, FiberLife::kResuming);
  if (host != nullptr) host->resumes(*m_core);
  FiberCore& back = thread.enter(*m_core);
  if (host != nullptr) host->hasResumed(back);
  SYLAR_CHECK_EQ(back.fiber, &fiber());
  if (me != nullptr) control(*me->fiber).move(FiberLife::kResuming, FiberLife::kRunning);
  switch (back.switch_reason) {
    case SwitchReason::kReady: move(FiberLife::kRunning, FiberLife::kReady); return;
    case SwitchReason::kHold: move(FiberLife::kRunning, FiberLife::kHeldByHand); return;
    case SwitchReason::kDone: (void)ThreadFibers::current().finish(back); return;
    case SwitchReason::kMove:
    case SwitchReason::kParked: SYLAR_CHECK(back.switch_reason == SwitchReason::kDone);  // those two go to the thread's own stack
  }
}

void FiberControl::join() {
  const uint64_t id = fiber().getId();
  SYLAR_CHECK(id != 0);  // the handle of a thread's own stack ends only when nobody could join it any more
  const FiberCore* const me = runningFiber();
  SYLAR_CHECK(me == nullptr || me->fiber != &fiber());
  if (sys::inForkedChild() && !isOver(life())) {
    throw std::logic_error(fmt::format("sylar: fiber {} is not joined in a forked child: it ends in the parent, if at all", id));
  }
  FiberHost* const host = me == nullptr ? nullptr : ThreadFibers::current().host();
  FiberLife now;
  bool refused;
  bool abandoned;
  do {  // again for a fiber that was refused and then queued after all
    host != nullptr ? host->awaitEnd(fiber()) : blockUntilEnd();
    now = life();
    refused = now == FiberLife::kRefused;
    abandoned = m_ends.abandoned();
    if (isOver(now)) break;
  } while (!refused && !abandoned);
  if (abandoned) throw std::runtime_error(fmt::format("sylar: fiber {} was abandoned by its scheduler", id));
  if (refused) throw std::runtime_error(fmt::format("sylar: fiber {} was refused by its scheduler", id));
  if (now == FiberLife::kFailed) throwException();
}

}  // namespace sylar
