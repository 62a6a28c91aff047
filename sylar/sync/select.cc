#include "sylar/sync/select.h"

#include <cerrno>
#include <stdexcept>

#include "sylar/base/sys.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/sync/future.h"
#include "sylar/sync/select_steps.h"
#include "sylar/sync/sync_steps.h"

namespace sylar::detail {
namespace {

struct SelectTypes : WaitTypes {
  using Case = SelectCase;
  static bool isOwnTimeout(Deadline deadline) {
    return deadline <= withinScope(Deadline::never()) && endOfWait(deadline) == ETIMEDOUT;
  }
  static bool hasPassed(Deadline deadline) {
    return !deadline.isNever() && (mayPark() ? waitClock() : steadyClock()).nowNs() >= deadline.ns();
  }
};

}  // namespace

bool select(std::span<SelectCase* const> cases, std::span<SelectCase*> ordered) {
  return SelectSteps<SelectTypes>::select(cases, ordered);
}

Deadline deadlineIn(std::chrono::nanoseconds from_now) {
  return Deadline::after(from_now, mayPark() ? waitClock() : steadyClock());
}

// ---- Cases. ------------------------------------------------------------------------------------------------------------------

bool EventCase::enqueue(SyncWait& wait) {
  const ThreadMutex::Lock lock(m_event.m_lock);
  if (m_event.m_set) return false;
  m_event.m_waiters.enqueue(m_waiter, wait);
  return true;
}

void EventCase::dequeue() {
  const ThreadMutex::Lock lock(m_event.m_lock);
  m_event.m_waiters.dequeue(m_waiter);
}

struct FiberCase::Observer : EndObserver {
  SyncWait* wait = nullptr;
};

FiberCase::FiberCase(Fiber::ptr fiber) : m_fiber(std::move(fiber)), m_observer(std::make_unique<Observer>()) {
  if (m_fiber == nullptr) throw std::invalid_argument("sylar::onEnd: the fiber is null");
  m_observer->claim = [](EndObserver* observer) {
    SyncWait* const wait = static_cast<Observer*>(observer)->wait;
    return wait != nullptr && wait->claim();
  };
  m_observer->ended = [](EndObserver* observer) {
    SyncWakes wakes;
    wakes.add(*static_cast<Observer*>(observer)->wait);
  };
}

FiberCase::~FiberCase() = default;

bool FiberCase::tryNow() {
  if (sys::inForkedChild() && !isOver(stateOf(*m_fiber))) {
    throw std::logic_error("sylar::select: in a forked child no other fiber ends");
  }
  m_observer->wait = nullptr;
  if (!control(*m_fiber).observeEnd(*m_observer)) return true;
  control(*m_fiber).unobserveEnd(*m_observer);
  return false;
}

bool FiberCase::enqueue(SyncWait& wait) {
  m_observer->wait = &wait;
  return control(*m_fiber).observeEnd(*m_observer);
}

void FiberCase::dequeue() { control(*m_fiber).unobserveEnd(*m_observer); }

}  // namespace sylar::detail
