// What a replica knows of the clock of its store, by which jobs are due, from the calls that it has made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "job.h"

namespace jobs {

/// A call was sent at one time of the replica's steady clock and answered at another, and the store read its own clock in between.
/// So the difference of the clocks is known up to the time that the call took. Several calls narrow it down; those of more than
/// ten seconds ago count no longer, because clocks drift.
///
/// Thread safety: none.
class StoreClock {
 public:
  void observe(int64_t sent_ns, Time store, int64_t received_ns) {
    const int64_t store_ns = store.count() * 1000;
    while (!m_samples.empty() && (m_samples.size() >= 32 || m_samples.front().taken_ns < received_ns - 10'000'000'000)) {
      m_samples.pop_front();
    }
    m_samples.push_back({received_ns, store_ns - received_ns, store_ns + 999 - sent_ns});
    narrow();
    if (m_least > m_most) {  // a clock was set
      m_samples.erase(m_samples.begin(), m_samples.end() - 1);
      narrow();
    }
  }

  /// The steady time at which the store's clock has reached `at` for certain. Nothing is early by it.
  int64_t localNs(Time at) const {
    if (at > kFarthest) return INT64_MAX;
    return at > Time(0) ? std::max<int64_t>(0, at.count() * 1000 - m_least) : 0;
  }
  /// What the store's clock shows at least.
  Time storeTime(int64_t local_ns) const { return Time((local_ns + m_least) / 1000); }
  /// By how much storeTime() may be too low.
  Micros uncertainty() const { return Micros((m_most - m_least) / 1000); }
  bool known() const { return !m_samples.empty(); }

 private:
  static constexpr Time kFarthest = Time(INT64_MAX / 2000);
  struct Sample {
    int64_t taken_ns;
    int64_t least;  // of the difference: store - local
    int64_t most;
  };

  void narrow() {
    m_least = INT64_MIN;
    m_most = INT64_MAX;
    for (const Sample& each : m_samples) {
      m_least = std::max(m_least, each.least);
      m_most = std::min(m_most, each.most);
    }
  }

  std::deque<Sample> m_samples;
  int64_t m_least = 0;
  int64_t m_most = 0;
};

}  // namespace jobs
