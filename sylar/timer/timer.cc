#include "sylar/timer/timer.h"

#include <cxxabi.h>

#include <exception>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/timer/timer_core.h"

namespace sylar {
namespace {

// A recurring timer without a delay would be due again in the pass that fires it.
uint64_t atLeastOneIf(bool recurring, uint64_t ms) { return recurring && ms == 0 ? 1 : ms; }

}  // namespace

Timer::Timer(Key, std::shared_ptr<TimerCore> core, uint64_t ms, bool recurring, std::shared_ptr<const TimerAction> action)
    : m_core(std::move(core)), m_recurring(recurring), m_ms(atLeastOneIf(recurring, ms)), m_action(std::move(action)) {}

bool Timer::cancel() { return m_core->cancel(*this); }
bool Timer::refresh() { return m_core->refresh(*this); }
bool Timer::reset(uint64_t ms, bool from_now) { return m_core->reset(*this, atLeastOneIf(m_recurring, ms), from_now); }

void Timer::fire() {
  if (const auto action = m_core->claimDispatched(*this)) action->run();
}

void Timer::giveBack(Timer::ptr timer) noexcept {
  TimerCore& core = *timer->m_core;
  core.giveBack(std::move(timer));
}

TimerManager::TimerManager(const Clock& clock) : m_core(std::make_shared<TimerCore>(*this, clock)) {}
TimerManager::~TimerManager() { close(); }
void TimerManager::close() { m_core->close(); }

Timer::ptr TimerManager::addTimer(uint64_t ms, std::function<void()> cb, bool recurring) {
  return add(ms, std::make_shared<TimerAction>(TimerAction{.cb = std::move(cb), .condition = {}, .conditional = false}),
             recurring);
}

Timer::ptr TimerManager::addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool recurring) {
  return add(ms, std::make_shared<TimerAction>(TimerAction{std::move(cb), std::move(weak_cond), true}), recurring);
}

Timer::ptr TimerManager::add(uint64_t ms, std::shared_ptr<const TimerAction> action, bool recurring) {
  auto timer = std::make_shared<Timer>(Timer::Key{}, m_core, ms, recurring, std::move(action));
  m_core->add(timer);
  return timer;
}

uint64_t TimerManager::getNextTimer() { return m_core->nextTimerMs(); }
void TimerManager::listExpiredCb(std::vector<std::function<void()>>& cbs) { m_core->listExpired(cbs); }
bool TimerManager::hasTimer() { return m_core->hasTimer(); }
bool TimerManager::detectClockRollover() { return m_core->takeRollover(); }
int64_t TimerManager::nextDueNs() const { return m_core->nextDueNs(); }
int64_t TimerManager::observeNextDue() { return m_core->observeNextDue(); }
bool TimerManager::collectDue(size_t budget, std::vector<Timer::ptr>& out) { return m_core->collect(budget, out); }
bool TimerManager::tryCollectDue(size_t budget, std::vector<Timer::ptr>& out) { return m_core->tryCollect(budget, out); }

void TimerAction::run() const {
  const auto alive = condition.lock();
  if (!cb || (conditional && alive == nullptr)) return;
  try {
    cb();
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended: not ours to stop
  } catch (const std::exception& error) {
    log::error("a timer's callback threw: {}", error.what());
  } catch (...) {
    log::error("a timer's callback threw something that is no std::exception");
  }
}

}  // namespace sylar
