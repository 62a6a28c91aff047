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

uint64_t TimerSets::getNextTimer() {
  Lock lock(m_looking);
  uint64_t first_ms = ~0ULL;
  for (const auto& set : m_sets) first_ms = std::min(first_ms, set->nextTimerMs());
  return first_ms;
}

void TimerSets::listExpiredCb(std::vector<std::function<void()>>& cbs) {
  for (const auto& set : m_sets) set->listExpired(cbs);
}

bool TimerSets::hasTimer() const {
  return std::any_of(m_sets.begin(), m_sets.end(), [](const auto& set) { return set->hasTimer(); });
}

/// Asks all sets at one moment. Otherwise a timer is overlooked that a thread arms in a set that has been asked, before it stops
/// another one in a set that has not.
bool TimerSets::anyWillFallDue() const SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& set : m_sets) set->mutex().lock();
  bool any = false;
  for (const auto& set : m_sets) any |= set->awaitLast();
  for (const auto& set : m_sets) set->mutex().unlock();
  return any;
}

/// Each set notices by itself, and each is asked, so that none tells of the same step later.
bool TimerSets::detectClockRollover() const {
  bool any = false;
  for (const auto& set : m_sets) any |= set->takeRollover();
  return any;
}

TimerStats TimerSets::getStats() const {
  TimerStats sum;
  for (const auto& set : m_sets) addStats(set->stats(), sum);
  return sum;
}

int64_t TimerSets::observeNextDue() {
  if (m_sets.size() == 1) return m_sets[0]->observeNextDue();
  Lock lock(m_looking);
  return lookAtAll(m_sets);
}

bool TimerSets::collectDue(size_t budget, std::vector<Timer::ptr>& out) {
  const bool more = m_sets[next(0).set]->collect(budget, out);
  return more || (m_sets.size() > 1 && nextDueNs() <= clock().nowNs());
}

/// Another thread that holds the lock of a late set serves it, or will soon.
bool TimerSets::tryCollectDue(size_t budget, std::vector<Timer::ptr>& out) {
  const Next latest = next(kPatienceNs);
  const bool is_late = latest.set != ownNumber() && latest.due_ns <= clock().nowNs();
  bool more = false;
  const bool served = (is_late && m_sets[latest.set]->tryCollect(budget, out, &more)) || own()->tryCollect(budget, out, &more);
  return more || (served && m_sets.size() > 1 && nextDueHereNs() <= clock().nowNs());
}

void TimerSets::close() {
  for (const auto& set : m_sets) set->close();
}

}  // namespace sylar::detail
