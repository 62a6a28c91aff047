#include "sylar/sync/future.h"

#include <cxxabi.h>

#include <future>
#include <system_error>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/fiber_local.h"
#include "sylar/sched/park.h"
#include "sylar/scheduler.h"

namespace sylar::detail {
namespace {

void logUnasked(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    log::error("nobody asked for a future that ended by an exception: {}", e.what());
  } catch (...) {
    log::error("nobody asked for a future that ended by an exception that is no std::exception");
  }
}

}  // namespace

Scheduler* schedulerHere() { return Scheduler::GetThis(); }

int endOfWait(Deadline deadline) {
  const bool parks = mayPark();
  if (parks && !runningFiber()->shielded && this_fiber::cancelled()) return ECANCELED;
  const Deadline earliest = withinScope(deadline);
  return !earliest.isNever() && (parks ? waitClock() : steadyClock()).nowNs() >= earliest.ns() ? ETIMEDOUT : 0;
}

Outcome::~Outcome() {
  if (m_exception != nullptr && !m_asked.load(std::memory_order_relaxed)) logUnasked(m_exception);
}

void Outcome::retrieve() {
  if (std::exchange(m_retrieved, true)) throw std::future_error(std::future_errc::future_already_retrieved);
}

void Outcome::claim() {
  if (m_claimed.exchange(true, std::memory_order_relaxed)) throw std::future_error(std::future_errc::promise_already_satisfied);
}

void Outcome::fail(std::exception_ptr exception) {
  claim();
  SYLAR_CHECK(exception != nullptr);
  m_exception = std::move(exception);
  m_ended.set();
}

void Outcome::breakOff() noexcept {
  if (m_claimed.exchange(true, std::memory_order_relaxed)) return;
  m_asked.store(true, std::memory_order_relaxed);  // not worth a line of the log
  m_exception = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
  m_ended.set();
}

void Outcome::await() {
  if (!m_ended.wait()) throw std::system_error(errorOfWait(Deadline::never()), std::generic_category(), "sylar::Future");
}

void Outcome::rethrow() {
  m_asked.store(true, std::memory_order_relaxed);
  if (m_exception != nullptr) std::rethrow_exception(m_exception);
}

void PromisedCall::start(Scheduler& scheduler, std::shared_ptr<PromisedCall> call) {
  scheduler.schedule([call = std::move(call), inherited = InheritedLocals()]() mutable {
    inherited.install();
    call->run(true);
  });
}

void PromisedCall::run(bool ends_locals) {
  m_ends_locals = ends_locals;
  try {
    call();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    end();
    m_outcome->fail(std::current_exception());
  }
}

void PromisedCall::end() {
  dropFunction();
  if (m_ends_locals) FiberLocals::endHere();
}

}  // namespace sylar::detail
