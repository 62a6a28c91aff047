#include "sylar/timer/timer_sets.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sylar/check.h"
#include "sylar/timer/front_news.h"

namespace sylar::detail {
namespace {

constexpr std::array kCounts{&TimerStats::armed,     &TimerStats::fired,     &TimerStats::dropped,
                             &TimerStats::cancelled, &TimerStats::recalled,  &TimerStats::pushed,
                             &TimerStats::relinked,  &TimerStats::cascaded,  &TimerStats::budget_exhausted,
                             &TimerStats::clamps,    &TimerStats::rollovers, &TimerStats::resident};
static_assert(sizeof(TimerStats) == sizeof(uint64_t) * kCounts.size() + sizeof(LatenessHistogram), "a count is missing above");
static_assert(sizeof(LatenessHistogram) == sizeof(LatenessHistogram::buckets) + sizeof(int64_t), "addStats() must add all of it");

void addStats(const TimerStats& more, TimerStats& sum) {
  for (const auto count : kCounts) sum.*count += more.*count;
  for (size_t i = 0; i < sum.lateness.buckets.size(); ++i) sum.lateness.buckets[i] += more.lateness.buckets[i];
  sum.lateness.max_ns = std::max(sum.lateness.max_ns, more.lateness.max_ns);
}

}  // namespace

[[gnu::tls_model("initial-exec")]] constinit thread_local size_t TimerSets::t_number = 0;

TimerSets::TimerSets(TimerManager& manager, const Clock& clock, TimerQueueKind queue, const RunWaits& waits, size_t threads) {
  SYLAR_DCHECK(threads > 0);
  const size_t count = std::bit_ceil(std::min(threads, kMostSets));
  for (TimerId set = 0; set < count; ++set) {
    m_sets.push_back(std::make_shared<TimerCore>(manager, clock, queue, waits, set << kIdShift));
  }
}

[[gnu::noinline]] void TimerSets::setOwn(size_t number) { t_number = number; }

/// The sets are asked one after the other, and each tells what it says without its lock. So this is a hint, as of one set.
TimerSets::Next TimerSets::next(int64_t patience_ns) const {
  const size_t own = ownNumber();
  Next first{.set = own, .due_ns = m_sets[own]->nextDueNs()};
  for (size_t i = 0; i < m_sets.size(); ++i) {
    const int64_t due_ns = saturatingAdd(m_sets[i]->nextDueNs(), i == own ? 0 : patience_ns);
    if (due_ns < first.due_ns) first = {.set = i, .due_ns = due_ns};
  }
  return first;
}

}  // namespace sylar::detail

// What a TimerManager asks of all its sets.
namespace sylar {

uint64_t TimerManager::getNextTimer() {
  const auto sets = m_sets->live();
  if (sets.empty()) return ~0ULL;
  Lock lock(m_sets->looking());
  uint64_t first_ms = ~0ULL;
  for (const auto& set : sets) first_ms = std::min(first_ms, set->nextTimerMs());
  return first_ms;
}

void TimerManager::listExpiredCb(std::vector<std::function<void()>>& cbs) {
  for (const auto& set : m_sets->live()) set->listExpired(cbs);
}

bool TimerManager::hasTimer() {
  return std::ranges::any_of(m_sets->live(), [](const auto& set) { return set->hasTimer(); });
}

/// Asks all sets at one moment. Otherwise a timer is overlooked that a thread arms in a set that has been asked, before it stops
/// another one in a set that has not.
bool TimerManager::anyWillFallDue() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  const auto sets = m_sets->live();
  for (const auto& set : sets) set->mutex().lock();
  bool any = false;
  for (const auto& set : sets) any |= set->awaitLast();
  for (const auto& set : sets) set->mutex().unlock();
  return any;
}

/// Each set notices by itself, and each is asked, so that none tells of the same step later.
bool TimerManager::detectClockRollover() {
  bool any = false;
  for (const auto& set : m_sets->live()) any |= set->takeRollover();
  return any;
}

TimerStats TimerManager::getStats() const {
  TimerStats sum;
  for (const auto& set : m_sets->live()) addStats(set->stats(), sum);
  return sum;
}

const Clock& TimerManager::timerClock() const { return m_sets->clock(); }

int64_t TimerManager::nextDueNs() const { return m_sets->next(0).due_ns; }

int64_t TimerManager::observeNextDue() {
  const auto sets = m_sets->live();
  if (sets.empty()) return kNever;
  if (sets.size() == 1) return sets.front()->observeNextDue();
  Lock lock(m_sets->looking());
  return lookAtAll(sets);
}

bool TimerManager::collectDue(size_t budget, std::vector<Timer::ptr>& out) {
  const auto sets = m_sets->live();
  if (sets.empty()) return false;
  const bool more = sets[m_sets->next(0).set]->collect(budget, out);
  return more || (sets.size() > 1 && nextDueNs() <= timerClock().nowNs());
}

/// Another thread that holds the lock of a late set serves it, or will soon.
bool TimerManager::tryCollectDue(size_t budget, std::vector<Timer::ptr>& out) {
  const auto sets = m_sets->live();
  if (sets.empty()) return false;
  TimerCore& own = *m_sets->own();
  const TimerSets::Next latest = m_sets->nextHere();
  const bool is_late = sets[latest.set].get() != &own && latest.due_ns <= timerClock().nowNs();
  bool more = false;
  const bool served = (is_late && sets[latest.set]->tryCollect(budget, out, &more)) || own.tryCollect(budget, out, &more);
  return more || (served && sets.size() > 1 && m_sets->nextHere().due_ns <= timerClock().nowNs());
}

void TimerManager::close() {
  for (const auto& set : m_sets->live()) set->close();
}

}  // namespace sylar
