// The statistics of a TimerManager: plain numbers, counted under the lock that is held anyway.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sylar {

/// Counts how late timers were handed out, by powers of two of a nanosecond. A value type of 328 bytes.
struct LatenessHistogram {
  static constexpr size_t kBuckets = 40;

  /// Bucket 0 counts timers that were on time to the nanosecond. Bucket i counts from 2^(i-1) ns to less than 2^i ns, and the
  /// last one 275 s and more.
  std::array<uint64_t, kBuckets> buckets{};
  int64_t max_ns = 0;

  /// Counts one timer. `late_ns` must be >= 0.
  void add(int64_t late_ns) {
    ++buckets[std::min<size_t>(static_cast<size_t>(std::bit_width(static_cast<uint64_t>(late_ns))), kBuckets - 1)];
    max_ns = std::max(max_ns, late_ns);
  }

  uint64_t count() const {
    uint64_t sum = 0;
    for (const uint64_t bucket : buckets) sum += bucket;
    return sum;
  }

  /// Returns a bound that at most (1 - `share`) of the timers exceed, 0 < share <= 1. It is less than twice the true quantile
  /// and never more than the largest value. Returns 0 if nothing was counted.
  int64_t quantileNs(double share) const {
    const auto wanted = static_cast<double>(count()) * share;
    uint64_t seen = 0;
    for (size_t i = 0; i + 1 < kBuckets; ++i) {
      seen += buckets[i];
      if (static_cast<double>(seen) >= wanted) return std::min(max_ns, (int64_t{1} << i) - 1);
    }
    return max_ns;
  }
};

/// Counts since the manager was made. At each moment armed == fired + dropped + cancelled + resident.
struct TimerStats {
  uint64_t armed = 0;      ///< timers made, and next rounds of recurring ones
  uint64_t fired = 0;      ///< due and handed out to the driver
  uint64_t dropped = 0;    ///< due but not handed out, because the condition is gone or the last run has not begun
  uint64_t cancelled = 0;  ///< taken out before they were due, by cancel, stop or the end of the manager
  uint64_t recalled = 0;   ///< handed out, then cancelled or stopped before they began; counted in `fired`, but never ran
  uint64_t pushed = 0;     ///< refreshed or reset to the same or a later deadline, of which the sleeper is not told
  uint64_t relinked = 0;   ///< refreshed or reset in any direction, and so moved within the queue
  uint64_t cascaded = 0;   ///< moved to a lower level of a wheel; 0 for other structures
  uint64_t budget_exhausted =
      0;  ///< calls of collectDue() that left due timers behind; a pass of an IOManager makes several, for one worker's timers each
  uint64_t clamps = 0;         ///< smaller steps back of the clock, which were compensated
  uint64_t rollovers = 0;      ///< steps back by more than an hour, after which all timers were due
  size_t resident = 0;         ///< armed now
  LatenessHistogram lateness;  ///< lateness of those in `fired`; with a wheel up to a tick even if the driver is on time
};

}  // namespace sylar
