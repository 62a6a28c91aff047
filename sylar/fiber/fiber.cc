#include "sylar/fiber.h"

#include <cxxabi.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/base/worker_local.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber/fiber_refused.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar {
namespace {

constinit std::atomic<size_t> g_default_stack_size{kDefaultStackSize};

/// Ids are handed out in blocks, so that spawning threads do not share a cache line.
constexpr uint64_t kIdBlock = 1024;
constinit std::atomic<uint64_t> g_next_id_block{1};
struct IdBlock {
  uint64_t next = 0;
  uint64_t end = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local IdBlock t_ids;

uint64_t newId() {
  const tsan::Exempt of_this_thread;
  IdBlock& ids = detail::ofWorker(t_ids);
  if (ids.next == ids.end) {
    ids.next = g_next_id_block.fetch_add(kIdBlock, std::memory_order_relaxed);
    ids.end = ids.next + kIdBlock;
  }
  return ids.next++;
}

}  // namespace

Fiber::Fiber(std::function<void()> cb, size_t stacksize, bool /*use_caller*/)
    : m_control(FiberControl::make(*this, std::move(cb), stacksize)) {
  ThreadFibers::countFiber(1);
}

Fiber::Fiber(OwnStack) : m_control(new FiberControl(*this, 0, nullptr, 0, FiberState::kRunning)) { ThreadFibers::countFiber(1); }

FiberControl* FiberControl::make(Fiber& fiber, std::function<void()>&& cb, size_t stack_size) {
  if (cb == nullptr) throw std::invalid_argument("sylar::Fiber: the function is null");
  stack_size = stack_size != 0 ? std::min(stack_size, kMaxStackSize) : g_default_stack_size.load(std::memory_order_relaxed);
  return new FiberControl(fiber, newId(), std::move(cb), stack_size, FiberState::kInit);
}

Fiber::~Fiber() {
  FiberControl& mine = control(*this);
  if (mine.core() != nullptr) ThreadFibers::current().discard(*this);
  if (mine.m_exception != nullptr) mine.reportException(mine.takeName());
  ThreadFibers::countFiber(-1);  // before its captures end: they may tell others to look
  delete &mine;
}

uint64_t Fiber::getId() const { return control(*this).m_id; }

Fiber::State Fiber::getState() const {
  switch (stateOf(*this)) {
    case FiberState::kInit:
    case FiberState::kRefused: return INIT;
    case FiberState::kQueued:
    case FiberState::kReady: return READY;
    case FiberState::kRunning:
    case FiberState::kResuming: return EXEC;
    case FiberState::kHeldByHand:
    case FiberState::kHeld:
    case FiberState::kParked:
    case FiberState::kAbandoned: return HOLD;
    case FiberState::kEnded: return TERM;
    case FiberState::kFailed: return EXCEPT;
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
    log::error("fiber {}: yield refused, it is {}", getId(), nameOf(stateOf(*this)));
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
  if (!isOver(stateOf(*this))) ThreadFibers::post(*this, FiberControl::kCancel);
}

void Fiber::setIdentity(FiberIdentity identity) { m_control->setIdentity(identity); }
void Fiber::setName(std::string name) { control(*this).setName(std::move(name)); }
std::string Fiber::getName() const { return control(*this).name(); }
size_t Fiber::copyName(char* out, size_t size) const noexcept { return control(*this).copyName(out, size); }

Fiber::ptr Fiber::GetThis() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->shared_from_this() : ThreadFibers::current().ownStackHandle();
}

uint64_t Fiber::GetFiberId() {
  FiberCore* const me = runningFiber();
  return me != nullptr ? me->fiber->getId() : 0;
}

[[gnu::noinline]] bool this_fiber::cancelled() {
  const FiberCore* const me = t_running;
  return me != nullptr && (me->isCancelledForGood() || control(*me->fiber).cancelRequested() || FiberControl::inFiredScope(*me));
}

namespace {

Deadline scopeOf(const FiberCore& core) {
  return core.in_deadline_scope ? Deadline::at(core.started().scope_deadline_ns) : Deadline::never();
}

void enterScope(FiberCore& core, Deadline deadline) {
  core.in_deadline_scope = !deadline.isNever();
  core.started().scope_deadline_ns = deadline.ns();
}

}  // namespace

[[gnu::noinline]] this_fiber::CancelShield::CancelShield()
    : m_core(t_running),
      m_outer(m_core != nullptr && t_running->shielded),
      m_hidden(m_core != nullptr ? scopeOf(*t_running) : Deadline::never()) {
  if (m_core == nullptr) return;
  t_running->shielded = true;
  t_running->in_deadline_scope = false;
}

this_fiber::CancelShield::~CancelShield() {
  if (m_core == nullptr) return;
  SYLAR_DCHECK(m_core == runningFiber() && runningFiber()->shielded);  // in the fiber that made it, in the reverse order
  FiberCore& core = *static_cast<FiberCore*>(m_core);
  core.shielded = m_outer;
  if (!m_hidden.isNever()) enterScope(core, m_hidden);
}

[[gnu::noinline]] Deadline this_fiber::deadline() {
  const tsan::Exempt of_this_thread;
  Deadline earliest = Deadline::never();
  for (const FiberCore* core = t_running; core != nullptr; core = core->shielded ? nullptr : core->resumer) {
    earliest = std::min(earliest, scopeOf(*core));
  }
  return earliest;
}

[[gnu::noinline]] this_fiber::DeadlineScope::DeadlineScope(Deadline deadline)
    : m_core(t_running), m_outer(m_core != nullptr ? scopeOf(*t_running) : Deadline::never()) {
  if (m_core != nullptr) enterScope(*t_running, std::min(deadline, m_outer));
}

this_fiber::DeadlineScope::~DeadlineScope() {
  if (m_core == nullptr) return;
  SYLAR_CHECK(m_core == runningFiber());  // in the fiber that made it
  enterScope(*static_cast<FiberCore*>(m_core), m_outer);
}

uint64_t Fiber::TotalFibers() { return ThreadFibers::countedFibers(); }

void Fiber::SetExceptionHandler(ExceptionHandler handler) { FiberControl::setExceptionHandler(std::move(handler)); }

void Fiber::SetDefaultStackSize(size_t bytes) {
  g_default_stack_size.store(std::clamp(bytes, kMinStackSize, kMaxStackSize), std::memory_order_relaxed);
}

// ---- Functions that involve the thread. --------------------------------------------------------------------------------------

void FiberControl::reset(std::function<void()> cb) {
  const FiberState now = state();
  if (!isUnstarted(now) && now != FiberState::kEnded && now != FiberState::kFailed) {
    throw std::logic_error(fmt::format("sylar::Fiber::reset: fiber {} is {}", fiber().getId(), nameOf(now)));
  }
  if (m_exception != nullptr) reportException(name());
  m_cb = std::move(cb);
  // The fiber has no home again. A message that is still on its way to the last home finds that.
  m_requests.clear();
  m_thread_id.store(0, std::memory_order_relaxed);
  (void)ThreadFibers::takeMigrationTarget(fiber());
  m_ends.clear();
  move(now, FiberState::kInit);
}

void FiberControl::resume() {
  ThreadFibers& thread = ThreadFibers::current();  // first, because it may throw
  const FiberState was = state();
  if (!mayResume(was) || !tryMove(was, FiberState::kRunning)) {
    const bool elsewhere = was == FiberState::kHeldByHand || was == FiberState::kReady;
    const char* const why = elsewhere                  ? " on another thread"
                            : was == FiberState::kHeld ? ", it belongs to a scheduler: schedule() it"
                                                       : "";
    log::error("fiber {}: resume refused, it is {}{}", fiber().getId(), nameOf(was), why);
    return;
  }
  const Fiber::ptr keep = fiber().weak_from_this().lock();  // the caller's own handle may be dropped while it runs
  if (isUnstarted(was) && thread.start(fiber(), false) != ThreadFibers::Started::kYes) {
    move(FiberState::kRunning, was);
    throw detail::lastRefused();
  }
  if (!isUnstarted(was)) thread.adopt(fiber());  // a worker may have begun or ended on this thread since
  FiberCore* const me = runningFiber();
  FiberHost* const host = thread.host();
  FiberCore& mine = *core();
  SYLAR_DCHECK(!mine.live && mine.fiber == &fiber());
  mine.resumer = me;
  if (me != nullptr) control(*me->fiber).move(FiberState::kRunning, FiberState::kResuming);
  if (host != nullptr) host->resumes(mine);
  FiberCore& back = thread.enter(mine);
  if (host != nullptr) host->hasResumed(back);
  SYLAR_CHECK_EQ(back.fiber, &fiber());
  if (me != nullptr) control(*me->fiber).move(FiberState::kResuming, FiberState::kRunning);
  back.resumer = nullptr;  // which may end before it; from here on the scopes of the resumer are not its own
  back.setCancelledByScope(inFiredScope(back));
  if (back.cancelled == 0) back.cancelled_waits = FiberCore::kCancelledWaits;
  switch (back.switch_reason) {
    case SwitchReason::kReady: move(FiberState::kRunning, FiberState::kReady); return;
    case SwitchReason::kHold: move(FiberState::kRunning, FiberState::kHeldByHand); return;
    case SwitchReason::kDone: (void)ThreadFibers::current().finish(back); return;
    case SwitchReason::kMove:
    case SwitchReason::kParked: SYLAR_CHECK(back.switch_reason == SwitchReason::kDone);  // those two go to the thread's own stack
  }
}

void FiberControl::join() {
  const uint64_t id = fiber().getId();
  SYLAR_CHECK(id != 0);  // the handle of a thread's own stack ends only when nobody could join it any more
  const FiberCore* const me = runningFiber();
  if (me != nullptr && me->fiber == &fiber()) {
    checkFailed(__FILE__, __LINE__, "me != this", fmt::format("fiber {} {} joins itself", id, name()));
  }
  if (sys::inForkedChild() && !isOver(state())) {
    throw std::logic_error(fmt::format("sylar: fiber {} is not joined in a forked child: it ends in the parent, if at all", id));
  }
  FiberHost* const host = me == nullptr ? nullptr : ThreadFibers::current().host();
  FiberState now;
  bool refused;
  bool abandoned;
  do {  // again for a fiber that was refused and then queued after all
    host != nullptr ? host->awaitEnd(fiber()) : blockUntilEnd();
    now = state();
    refused = now == FiberState::kRefused;
    abandoned = m_ends.abandoned();
    if (isOver(now)) break;
  } while (!refused && !abandoned);
  if (abandoned) throw std::runtime_error(fmt::format("sylar: fiber {} was abandoned by its scheduler", id));
  if (refused) throw std::runtime_error(fmt::format("sylar: fiber {} was refused by its scheduler", id));
  if (now == FiberState::kFailed) throwException();
}

}  // namespace sylar
