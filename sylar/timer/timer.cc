#include "sylar/timer.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "sylar/timer/timer_core.h"
#include "sylar/timer/timer_sets.h"

namespace sylar {
namespace {

// A recurring timer without a delay would be due again in the pass that fires it.
uint64_t atLeastOneIf(bool recurring, uint64_t ms) { return recurring && ms == 0 ? 1 : ms; }

constinit const ThreadRunWaits<> s_threads;

// Rejects a delay that nobody means, a negative number that was converted. ~0ull, as sylar has it, means never.
uint64_t checkedDelay(uint64_t ms) {
  constexpr uint64_t kNegative = uint64_t{1} << 63;
  if (ms <= kNegative || ms == ~uint64_t{0}) return ms;
  throw std::invalid_argument("sylar: a timer's delay of " + std::to_string(static_cast<int64_t>(ms)) + " ms is negative");
}

Repeat repeatIf(bool recurring) { return recurring ? Repeat::kDelay : Repeat::kNo; }

}  // namespace

ArmedTimer::ArmedTimer(std::shared_ptr<TimerCore> core, uint64_t ms, Repeat repeat, std::function<void()> cb,
                       std::weak_ptr<void> condition, bool conditional)
    : ManagedTimer(false),
      m_core(std::move(core)),
      m_repeat(repeat),
      m_ms(atLeastOneIf(repeat != Repeat::kNo, ms)),
      m_action{.cb = std::move(cb), .condition = std::move(condition), .conditional = conditional} {}

bool Timer::cancel() {
  auto& timer = ArmedTimer::of(*this);
  // All of these are needed under the lock, from other cache lines than this one.
  __builtin_prefetch(&timer.m_self, 1);
  __builtin_prefetch(&timer.m_action.shares, 1);
  return !timer.m_core->isParents() && timer.m_core->cancel(timer);
}
bool Timer::refresh() {
  auto& timer = ArmedTimer::of(*this);
  return !timer.m_core->isParents() && timer.m_core->refresh(timer);
}
bool Timer::reset(uint64_t ms, bool from_now) {
  auto& timer = ArmedTimer::of(*this);
  return !timer.m_core->isParents() &&
         timer.m_core->reset(timer, atLeastOneIf(timer.m_repeat != Repeat::kNo, checkedDelay(ms)), from_now);
}

void Timer::rearm(Timer::ptr timer) noexcept {
  auto given = std::static_pointer_cast<ArmedTimer>(std::move(timer));
  TimerCore& core = *given->m_core;
  if (!core.isParents()) core.rearm(std::move(given));
}

TimerManager::TimerManager(const Clock& clock, TimerQueueKind queue) : TimerManager(clock, queue, s_threads, 1) {}
TimerManager::TimerManager(const Clock& clock, TimerQueueKind queue, const RunWaits& waits, size_t threads)
    : m_sets(std::make_unique<TimerSets>(*this, clock, queue, waits, threads)) {}
TimerManager::~TimerManager() { close(); }

Timer::ptr TimerManager::addTimer(uint64_t ms, std::function<void()> cb, bool recurring) {
  return addTimer(ms, std::move(cb), repeatIf(recurring));
}

Timer::ptr TimerManager::addTimer(uint64_t ms, std::function<void()> cb, Repeat repeat) {
  return add(ms, std::move(cb), {}, false, repeat);
}

Timer::ptr TimerManager::addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool recurring) {
  return addConditionTimer(ms, std::move(cb), std::move(weak_cond), repeatIf(recurring));
}

Timer::ptr TimerManager::addConditionTimer(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, Repeat repeat) {
  return add(ms, std::move(cb), std::move(weak_cond), true, repeat);
}

Timer::ptr TimerManager::add(uint64_t ms, std::function<void()> cb, std::weak_ptr<void> weak_cond, bool conditional,
                             Repeat repeat) {
  const std::shared_ptr<TimerCore>& set = m_sets->own();
  auto timer = std::make_shared<ArmedTimer>(set, checkedDelay(ms), repeat, std::move(cb), std::move(weak_cond), conditional);
  if (!set->isParents()) set->add(timer);
  return timer;
}

TimerId TimerManager::startTimer(std::chrono::nanoseconds after, TimerTask task, Repeat repeat) {
  TimerCore& set = *m_sets->own();
  return set.isParents() ? 0 : set.start(after.count(), std::move(task), repeat);
}
TimerStop TimerManager::stopTimer(TimerId id) {
  TimerCore& set = m_sets->ofId(id);
  return set.isParents() ? TimerStop::kGone : set.stop(id);
}
TimerStop TimerManager::stopTimerSync(TimerId id) {
  TimerCore& set = m_sets->ofId(id);
  return set.isParents() ? TimerStop::kGone : set.stopSync(id);
}

ScopedTimer::ScopedTimer(TimerManager& manager, std::chrono::nanoseconds after, TimerTask task, Repeat repeat)
    : m_core(manager.m_sets->own()), m_id(m_core->isParents() ? 0 : m_core->start(after.count(), std::move(task), repeat)) {}
ScopedTimer::ScopedTimer(ScopedTimer&& other) noexcept : m_core(std::move(other.m_core)), m_id(std::exchange(other.m_id, 0)) {}
ScopedTimer& ScopedTimer::operator=(ScopedTimer&& other) noexcept {
  if (this != &other) stop();
  std::swap(m_core, other.m_core);
  std::swap(m_id, other.m_id);
  return *this;
}
TimerStop ScopedTimer::stop() {
  return m_core == nullptr || m_core->isParents() ? TimerStop::kGone : m_core->stop(std::exchange(m_id, 0));
}

}  // namespace sylar
