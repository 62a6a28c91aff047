#include "memory_store.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "sylar/sync/event.h"

namespace jobs {

/// Holds the lock. At its end it tells the listeners if the first job is now earlier than it was.
class MemoryStore::Change {
 public:
  explicit Change(MemoryStore& store) : m_store(store), m_guard(store.m_lock), m_before(first()) {}
  ~Change() {
    const Time after = first();
    if (after >= m_before) return;
    for (const auto& each : m_store.m_listeners) each(after);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Time first() const { return m_store.m_order.empty() ? kNoTime : m_store.m_order.begin()->first; }

  MemoryStore& m_store;
  const std::lock_guard<sylar::Mutex> m_guard;
  const Time m_before;
};

MemoryStore::MemoryStore(const sylar::Clock& clock, Time now)
    : m_clock(clock), m_offset(now - std::chrono::duration_cast<Micros>(std::chrono::nanoseconds(clock.nowNs()))) {}

Time MemoryStore::wallClock() { return std::chrono::duration_cast<Time>(std::chrono::system_clock::now().time_since_epoch()); }

Time MemoryStore::now() const { return m_offset + std::chrono::duration_cast<Micros>(std::chrono::nanoseconds(m_clock.nowNs())); }

/// Moves a job, which may be nowhere yet, to its place in the order.
void MemoryStore::place(const std::string& id, Entry& entry, Time at) {
  m_order.erase({entry.at, id});
  m_dead.erase({entry.at, id});
  entry.at = at;
  m_order.insert({at, id});
}

void MemoryStore::bury(const std::string& id, Entry& entry) {
  m_order.erase({entry.at, id});
  entry.at = now();
  entry.token = 0;
  m_dead.insert({entry.at, id});
}

void MemoryStore::put(const std::vector<Job>& jobs) {
  const Change change(*this);
  for (const Job& job : jobs) {
    Entry& entry = m_entries[job.id];
    const Time due = job.when.time + (job.when.from_now ? now() : Time{0});
    entry = {.payload = job.payload, .due = due, .period = job.period, .run = ++m_last_number, .at = entry.at};
    place(job.id, entry, due);
  }
}

Cancelled MemoryStore::cancel(const std::string& id) {
  const Change change(*this);
  const auto found = m_entries.find(id);
  if (found == m_entries.end()) return Cancelled::kGone;
  const bool claimed = found->second.token != 0;
  m_order.erase({found->second.at, id});
  m_dead.erase({found->second.at, id});
  m_entries.erase(found);
  return claimed ? Cancelled::kClaimed : Cancelled::kWaiting;
}

Claims MemoryStore::claim(const ClaimOptions& options) {
  const Change change(*this);
  Claims claims{.taken = {}, .now = now()};
  const auto end = m_order.upper_bound({claims.now + options.ahead + Micros(1), ""});
  std::vector<std::pair<Time, std::string>> found;
  for (auto each = m_order.begin(); each != end && found.size() < options.limit; ++each) found.push_back(*each);
  for (const auto& [at, id] : found) {
    Entry& entry = m_entries[id];
    if (entry.attempts >= options.max_attempts) {
      entry.error = "no attempt came to an end";
      bury(id, entry);
      continue;
    }
    entry.token = ++m_last_number;
    ++entry.attempts;
    claims.taken.push_back({id, entry.payload, entry.due, at, entry.run, entry.token, entry.attempts});
    // Claims look ahead, so what is to be visible at a time has its place so much later.
    place(id, entry, std::max(at, claims.now) + options.visibility + options.ahead);
  }
  if (!m_order.empty()) claims.next = m_order.begin()->first;
  return claims;
}

size_t MemoryStore::settle(const std::vector<Outcome>& outcomes) {
  const Change change(*this);
  size_t valid = 0;
  for (const Outcome& outcome : outcomes) {
    const auto found = m_entries.find(outcome.id);
    if (found == m_entries.end() || found->second.token != outcome.token) continue;
    ++valid;
    Entry& entry = found->second;
    entry.token = 0;
    entry.error = outcome.error;
    if (outcome.verdict == Verdict::kRetry) {
      place(outcome.id, entry, now() + outcome.delay);
    } else if (outcome.verdict == Verdict::kDead) {
      bury(outcome.id, entry);
    } else if (entry.period > Micros(0)) {
      entry.due +=
          entry.period * std::max<int64_t>(1, (now() - entry.due) / entry.period + 1);  // rounds that were missed are left out
      entry.run = ++m_last_number;
      entry.attempts = 0;
      place(outcome.id, entry, entry.due);
    } else {
      m_order.erase({entry.at, outcome.id});
      m_entries.erase(found);
    }
  }
  return valid;
}

std::vector<DeadLetter> MemoryStore::deadLetters(size_t limit) {
  const std::lock_guard guard(m_lock);
  std::vector<DeadLetter> letters;
  for (auto each = m_dead.rbegin(); each != m_dead.rend() && letters.size() < limit; ++each) {
    const Entry& entry = m_entries[each->second];
    letters.push_back({each->second, entry.payload, entry.due, entry.attempts, entry.error});
  }
  return letters;
}

bool MemoryStore::retry(const std::string& id) {
  const Change change(*this);
  const auto found = m_entries.find(id);
  if (found == m_entries.end() || !m_dead.contains({found->second.at, id})) return false;
  found->second.attempts = 0;
  place(id, found->second, now());
  return true;
}

std::optional<size_t> MemoryStore::sweepDead(uint64_t fence, Micros keep, size_t limit) {
  const std::lock_guard guard(m_lock);
  if (fence < m_fence) return std::nullopt;
  m_fence = fence;
  size_t deleted = 0;
  while (deleted < limit && !m_dead.empty() && m_dead.begin()->first <= now() - keep) {
    m_entries.erase(m_dead.begin()->second);
    m_dead.erase(m_dead.begin());
    ++deleted;
  }
  return deleted;
}

StoreCounts MemoryStore::counts() {
  const std::lock_guard guard(m_lock);
  const auto late = std::distance(m_order.begin(), m_order.lower_bound({now(), ""}));
  return {.jobs = m_order.size(), .late = static_cast<uint64_t>(late), .dead = m_dead.size()};
}

void MemoryStore::listen(const std::function<void(Time)>& earlier) {
  const auto self = [&] {
    const std::lock_guard guard(m_lock);
    return m_listeners.insert(m_listeners.end(), earlier);
  }();
  earlier(Time{0});
  sylar::Event().wait();  // until the fiber is cancelled
  const std::lock_guard guard(m_lock);
  m_listeners.erase(self);
}

}  // namespace jobs
