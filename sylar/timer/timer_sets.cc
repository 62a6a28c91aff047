#include "sylar/timer/timer_sets.h"

#include <algorithm>
#include <bit>

#include "sylar/check.h"
#include "sylar/timer/front_news.h"

namespace sylar::detail {
namespace {

void add(const TimerStats& more, TimerStats& sum) {
  sum.armed += more.armed;
  sum.fired += more.fired;
  sum.dropped += more.dropped;
  sum.cancelled += more.cancelled;
  sum.recalled += more.recalled;
  sum.pushed += more.pushed;
  sum.relinked += more.relinked;
  sum.cascaded += more.cascaded;
  sum.budget_exhausted += more.budget_exhausted;
  sum.clamps += more.clamps;
  sum.rollovers += more.rollovers;
  sum.resident += more.resident;
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
  for (const auto& set : m_sets) add(set->stats(), sum);
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
