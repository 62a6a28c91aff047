#include "jobs.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "plain_text.h"
#include "sylar/fiber.h"
#include "sylar/log.h"
#include "sylar/sync/task_group.h"

namespace jobs {

static auto g_logger = SYLAR_LOG_NAME("jobs");

namespace {

int64_t nanoseconds(Micros time) { return time.count() * 1000; }

}  // namespace

Jobs::Jobs(sylar::IOManager& iom, Store& store, Handler handler, Options options)
    : m_iom(iom),
      m_steady(iom.timerClock()),
      m_store(store),
      m_handler(std::move(handler)),
      m_options(options),
      m_alarm(iom.timerClock()) {}

void Jobs::schedule(const std::string& id, When when, const std::string& payload) { m_store.put({{id, payload, when}}); }

void Jobs::every(const std::string& id, Micros period, const std::string& payload) {
  m_store.put({{id, payload, When::in(period), period}});
}

void Jobs::run() {
  sylar::TaskGroup listener;
  listener.spawn([this] { listenLoop(); });
  {
    sylar::TaskGroup settler;
    settler.spawn([this] { settleLoop(); });
    claimLoop();
  }
  listener.cancel();
}

void Jobs::drain() {
  m_draining = true;
  m_alarm.ring();
}

// ---- Claiming.

void Jobs::claimLoop() {
  uint32_t failures = 0;
  while (true) {
    m_alarm.clear();
    if (m_draining) break;
    const size_t limit = room();
    try {
      const int64_t sent_ns = nowNs();
      if (limit > 0) {
        take(m_store.claim({limit, m_options.ahead, m_options.visibility, m_options.max_attempts}), sent_ns);
        failures = 0;
        m_claims_fail = false;
      }
    } catch (const StoreError& failure) {
      m_claims_fail = true;
      if (++failures == 1) SYLAR_LOG_WARN(g_logger) << "cannot claim: " << failure.what();
      m_alarm.set(nowNs() + pauseAfter(failures, m_options.reconnect).count());
    }
    if (!m_alarm.wait()) break;
  }
  const std::lock_guard guard(m_lock);
  m_claims_over = true;
  m_to_settle.notify_all();
}

/// How many jobs to ask for. Few free places are not worth a call.
size_t Jobs::room() const {
  const std::lock_guard guard(m_lock);
  const size_t free = m_options.max_claimed - std::min<size_t>(m_options.max_claimed, m_counts.claimed);
  return free > m_options.max_claimed / 4 ? free : 0;
}

void Jobs::release(size_t claims) {
  const size_t worth = m_options.max_claimed / 4;
  const size_t free_before = m_options.max_claimed - m_counts.claimed;
  m_counts.claimed -= claims;
  if (free_before <= worth && free_before + claims > worth) m_alarm.ring();
}

/// Arms a timer for each claim, and sets the alarm for what is left.
void Jobs::take(Claims claims, int64_t sent_ns) {
  const int64_t received_ns = nowNs();
  const std::lock_guard guard(m_lock);
  m_clock.observe(sent_ns, claims.now, received_ns);
  m_alarm.set(std::min(wakeNs(claims.next), received_ns + nanoseconds(m_options.sweep)));
  m_counts.claimed += claims.taken.size();
  for (Claim& claim : claims.taken) {
    const int64_t lease_end_ns = sent_ns + nanoseconds(std::max(Micros(0), claim.at - claims.now) + m_options.visibility);
    const int64_t due_ns = m_clock.localNs(claim.at);
    m_iom.startTimer(std::chrono::nanoseconds(due_ns - received_ns),
                     [this, claim = std::move(claim), due_ns, lease_end_ns] { runOne(claim, due_ns, lease_end_ns); });
  }
}

/// When to claim for a job at that time. Half of the time ahead is left for the call; the other half brings jobs that follow.
int64_t Jobs::wakeNs(Time at) const {
  if (!m_clock.known()) return 0;
  const int64_t local_ns = m_clock.localNs(at);
  return local_ns == sylar::kNever ? sylar::kNever : std::max<int64_t>(0, local_ns - nanoseconds(m_options.ahead) / 2);
}

void Jobs::listenLoop() {
  uint32_t failures = 0;
  while (!sylar::this_fiber::cancelled()) {
    try {
      m_store.listen([this, &failures](Time at) {
        const std::lock_guard guard(m_lock);
        failures = 0;
        m_alarm.set(wakeNs(at));
      });
    } catch (const StoreError& failure) {
      if (sylar::this_fiber::cancelled()) return;
      if (++failures == 1) SYLAR_LOG_WARN(g_logger) << "cannot listen: " << failure.what();
      m_alarm.ring();  // a claim shows whether the store is there
      std::this_thread::sleep_for(pauseAfter(failures, m_options.reconnect));
    }
  }
}

// ---- Running.

void Jobs::runOne(const Claim& claim, int64_t due_ns, int64_t lease_end_ns) {
  {
    const std::lock_guard guard(m_lock);
    const int64_t now_ns = nowNs();
    if (now_ns >= lease_end_ns) {  // this process has stood still, and another replica has the job
      ++m_counts.lost;
      release(1);
      m_to_settle.notify_all();
      return;
    }
    if (claim.attempt == 1) m_lags.add(Micros((now_ns - due_ns) / 1000));
  }
  Outcome outcome = attempt(claim, lease_end_ns);
  const std::lock_guard guard(m_lock);
  m_outcomes.push_back(std::move(outcome));
  m_to_settle.notify_all();
}

Outcome Jobs::attempt(const Claim& claim, int64_t lease_end_ns) {
  std::string error;
  try {
    const int64_t end_ns = std::min(lease_end_ns, nowNs() + nanoseconds(m_options.handler_timeout));
    sylar::withDeadline(sylar::Deadline::at(end_ns), [&] { m_handler(claim); });
    return {claim.id, claim.token};
  } catch (const std::exception& failure) {
    error = failure.what();
  } catch (...) {
    error = "an exception of an unknown type";
  }
  if (claim.attempt >= m_options.max_attempts) return {claim.id, claim.token, Verdict::kDead, Micros(0), plainText(error)};
  const auto delay = std::chrono::duration_cast<Micros>(pauseAfter(claim.attempt, m_options.retry));
  return {claim.id, claim.token, Verdict::kRetry, delay, plainText(error)};
}

std::chrono::nanoseconds Jobs::pauseAfter(uint32_t failures, const Backoff& backoff) {
  const std::lock_guard guard(m_lock);
  return backoff.after(failures, m_random);
}

// ---- Settling.

/// Tells the store what has become of claims, until none is left and none will come. What it could not tell it tells again.
void Jobs::settleLoop() {
  std::vector<Outcome> telling;
  uint32_t failures = 0;
  while (true) {
    {
      std::unique_lock lock(m_lock);
      const auto isReady = [this, &telling] {
        return !telling.empty() || !m_outcomes.empty() || (m_claims_over && m_counts.claimed == 0);
      };
      if (!m_to_settle.wait(lock, isReady)) return;  // cancelled
      if (telling.empty()) telling.swap(m_outcomes);
    }
    if (telling.empty()) return;
    try {
      noteSettled(telling, m_store.settle(telling));
      telling.clear();
      failures = 0;
      m_settles_fail = false;
      std::this_thread::sleep_for(m_options.settle_pause);
    } catch (const StoreError& failure) {
      m_settles_fail = true;
      if (++failures == 1) SYLAR_LOG_WARN(g_logger) << "cannot settle: " << failure.what();
      std::this_thread::sleep_for(pauseAfter(failures, m_options.reconnect));
      if (sylar::this_fiber::cancelled()) return;
    }
  }
}

void Jobs::noteSettled(const std::vector<Outcome>& outcomes, size_t valid) {
  const std::lock_guard guard(m_lock);
  for (const Outcome& each : outcomes) {
    m_counts.done += each.verdict == Verdict::kDone ? 1 : 0;
    m_counts.failed += each.verdict == Verdict::kDone ? 0 : 1;
    m_counts.buried += each.verdict == Verdict::kDead ? 1 : 0;
  }
  m_counts.lost += outcomes.size() - std::min(valid, outcomes.size());
  release(outcomes.size());
}

Counts Jobs::counts() const {
  const std::lock_guard guard(m_lock);
  Counts counts = m_counts;
  counts.lag_p50 = m_lags.quantile(0.5);
  counts.lag_p99 = m_lags.quantile(0.99);
  const auto wall = std::chrono::duration_cast<Time>(std::chrono::system_clock::now().time_since_epoch());
  if (m_clock.known()) counts.skew = m_clock.storeTime(nowNs()) - wall;
  counts.skew_uncertainty = m_clock.uncertainty();
  counts.damage = m_store.damage();
  return counts;
}

}  // namespace jobs
