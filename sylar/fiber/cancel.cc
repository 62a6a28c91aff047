#include "sylar/cancel.h"

#include <memory>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar {

bool FiberControl::inFiredScope(const FiberCore& core) {
  const tsan::Exempt of_this_thread;
  for (const FiberCore* one = &core; one != nullptr && (one == &core || !one->shielded); one = one->resumer) {
    if (!one->in_cancel_scope) continue;
    for (const auto* scope = one->started().cancel_scope; scope != nullptr; scope = scope->m_outer) {
      if (scope->m_fired.load(std::memory_order_acquire)) return true;
    }
  }
  return false;
}

void FiberControl::dropStarted() {
  StartedState& mine = started();
  if (mine.locals != nullptr) endLocals(mine);
  if (!mine.core.in_cancel_scope) return;
  for (auto* scope = mine.cancel_scope; scope != nullptr; scope = scope->m_outer) scope->forget();
  mine.core.in_cancel_scope = false;
}

namespace this_fiber {

[[gnu::noinline]] CancelReason cancelReason() {
  const FiberCore* const me = t_running;
  if (!cancelled()) return CancelReason::kNone;
  if ((me->cancelled & FiberCore::kByStop) != 0) return CancelReason::kStop;
  const bool by_request = me->isCancelledForGood() || control(*me->fiber).cancelRequested();
  return by_request ? CancelReason::kFiber : CancelReason::kToken;
}

/// Runs on the thread that asks for the stop. The scope's destructor waits for its end.
void CancelScope::Fire::operator()() const {
  SYLAR_DCHECK(scope->m_core != nullptr);
  scope->m_fired.store(true, std::memory_order_release);
  ThreadFibers::post(*static_cast<FiberCore*>(scope->m_core)->fiber, FiberControl::kScopeFired);
}

[[gnu::noinline]] CancelScope::CancelScope(std::stop_token token) : m_core(t_running) {
  if (m_core == nullptr) return;
  {
    const tsan::Exempt of_this_thread;
    FiberCore& core = *t_running;
    m_outer = core.in_cancel_scope ? core.started().cancel_scope : nullptr;
    core.in_cancel_scope = true;
    core.started().cancel_scope = this;
    if (token.stop_requested()) {
      m_fired.store(true, std::memory_order_relaxed);
      core.setCancelledByScope(true);
      return;
    }
  }
  m_callback = ::new (m_storage) Callback(std::move(token), Fire{this});
}

/// In a forked child the thread that asks for the stop may be missing, and this would wait for it.
void CancelScope::forget() {
  if (m_callback != nullptr && !sys::inForkedChild()) std::destroy_at(m_callback);
  m_callback = nullptr;
}

CancelScope::~CancelScope() {
  if (m_core == nullptr) return;
  forget();
  const tsan::Exempt of_this_thread;
  FiberCore& core = *static_cast<FiberCore*>(m_core);
  SYLAR_CHECK(&core == runningFiber());  // in the fiber that made it
  SYLAR_CHECK(core.started().cancel_scope == this);
  core.in_cancel_scope = m_outer != nullptr;
  core.started().cancel_scope = m_outer;
  core.setCancelledByScope(FiberControl::inFiredScope(core));
  if (core.cancelled == 0) core.cancelled_waits = FiberCore::kCancelledWaits;
}

}  // namespace this_fiber
}  // namespace sylar
