// Durable timers: jobs that a Store holds and N replicas run, each when it is due, at least once.
//
//   jobs::MemoryStore store;
//   jobs::Jobs jobs(iom, store, [](const jobs::Claim& job) { send(job.payload); }, {});
//   iom.schedule([&] { jobs.run(); });                                     // one fiber; returns after drain()
//   jobs.schedule("mail:7", jobs::When::in(std::chrono::hours(24)), "...");
//
// A replica asks the store for the jobs that are due soon, claims them, and arms a timer of its IOManager for each. Then it sleeps
// until the next job comes near. It does not poll: the store tells it of each job that becomes the first of all.
// Everything is one claim for many jobs, and one call for many outcomes, as much as has come together while the last call was out.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "alarm.h"
#include "backoff.h"
#include "lags.h"
#include "store.h"
#include "store_clock.h"
#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/condition_variable.h"

namespace jobs {

/// Runs an attempt of a job, in a fiber of its own. An exception of it is a failure, and another attempt follows. May suspend: yes.
using Handler = std::function<void(const Claim&)>;

struct Options {
  Micros ahead = std::chrono::milliseconds(100);        ///< jobs are claimed at most so long before they are due, at least half
  Micros visibility = std::chrono::seconds(30);         ///< after which the job of a replica that is silent goes to another
  Micros handler_timeout = std::chrono::seconds(10);    ///< shorter than the visibility
  Micros sweep = std::chrono::seconds(120);             ///< asks the store so often if nothing happens
  Micros settle_pause = std::chrono::milliseconds(10);  ///< between two calls that settle, so that one ends many claims
  size_t max_claimed = 256;                             ///< jobs that are claimed at a time
  uint32_t max_attempts = 10;
  Backoff retry{};                                                            ///< of jobs
  Backoff reconnect{std::chrono::milliseconds(50), std::chrono::seconds(2)};  ///< of the store
};

/// What this replica has done so far.
struct Counts {
  uint64_t claimed = 0;  ///< at present
  uint64_t done = 0;     ///< attempts
  uint64_t failed = 0;   ///< attempts
  uint64_t buried = 0;   ///< jobs that became dead letters after their last attempt
  uint64_t lost = 0;     ///< claims that were another's before they were run or settled
  Micros lag_p50{0};     ///< of first attempts
  Micros lag_p99{0};
  Micros skew{0};              ///< of the store's clock, against the time of day here
  Micros skew_uncertainty{0};  ///< how far that may be off
  Damage damage;               ///< that it has found in the store
};

/// Thread safety: all calls from any thread, in fibers; run() once.
class Jobs {
 public:
  /// Handlers run on `iom`. The store must outlive it, and it the fibers of `iom`.
  Jobs(sylar::IOManager& iom, Store& store, Handler handler, Options options);

  /// Runs `payload` once, at `when`, in place of what the job was to do. May throw StoreError, as all calls here; to schedule again
  /// is then right in any case. May suspend: yes.
  void schedule(const std::string& id, When when, const std::string& payload);
  /// Runs `payload` every `period`, for the first time in one period. Runs do not overlap, and those that were missed are left out.
  void every(const std::string& id, Micros period, const std::string& payload);
  Cancelled cancel(const std::string& id) { return m_store.cancel(id); }
  /// The rest of what the store can do.
  Store& store() { return m_store; }

  /// Claims and runs jobs. Returns when drain() was called, and all that was claimed has been run and settled, or when the fiber is
  /// cancelled. In a fiber of the IOManager. May suspend: yes.
  void run();
  /// Claims no more. May suspend: no.
  void drain();
  /// Returns whether it takes part: it does not drain, and its last calls of the store have not failed. May suspend: no.
  bool ready() const { return !m_draining && !m_claims_fail && !m_settles_fail; }
  Counts counts() const;

 private:
  void claimLoop();
  void settleLoop();
  void listenLoop();
  size_t room() const;
  void take(Claims claims, int64_t sent_ns);
  void runOne(const Claim& claim, int64_t due_ns, int64_t lease_end_ns);
  Outcome attempt(const Claim& claim, int64_t lease_end_ns);
  void noteSettled(const std::vector<Outcome>& outcomes, size_t valid);
  void release(size_t claims);
  int64_t wakeNs(Time at) const;
  int64_t nowNs() const { return m_steady.nowNs(); }
  std::chrono::nanoseconds pauseAfter(uint32_t failures, const Backoff& backoff);

  sylar::IOManager& m_iom;
  const sylar::Clock& m_steady;  // of its timers
  Store& m_store;
  const Handler m_handler;
  const Options m_options;
  Alarm m_alarm;  // when the store is asked next
  std::atomic<bool> m_draining{false};
  std::atomic<bool> m_claims_fail{false};   // until one does not
  std::atomic<bool> m_settles_fail{false};  // the same

  mutable sylar::Mutex m_lock;  // guards all below
  StoreClock m_clock;
  Lags m_lags;
  Counts m_counts;
  bool m_claims_over = false;
  std::vector<Outcome> m_outcomes;  // that the store does not know yet
  sylar::ConditionVariable m_to_settle;
  std::mt19937_64 m_random{std::random_device{}()};
};

}  // namespace jobs
