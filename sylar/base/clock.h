// Time: a clock as a parameter, and a point in time as a value.
//
// Everything that waits or measures takes a `Clock`, so that tests drive time by hand: ManualClock here, for code that is asked
// what is due; VirtualTime (sylar/testing), for schedulers, whose workers it wakes. Times are nanoseconds on the clock's own
// scale (CLOCK_MONOTONIC for the steady clock); durations are std::chrono. Arithmetic saturates at `kNever`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace sylar {

class AutoAdvance;

/// A point in time that is never reached: about 292 years after the clock's zero.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// `base_ns` + `delta_ns`, held at kNever instead of overflowing. Both must be >= 0.
constexpr int64_t saturatingAdd(int64_t base_ns, int64_t delta_ns) {
  return base_ns > kNever - delta_ns ? kNever : base_ns + delta_ns;
}

/// Milliseconds as nanoseconds, held at kNever instead of overflowing.
constexpr int64_t msToNs(uint64_t ms) {
  return ms > static_cast<uint64_t>(kNever) / 1'000'000 ? kNever : static_cast<int64_t>(ms) * 1'000'000;
}

/// A source of time.
///
/// Thread safety: nowNs() may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Nanoseconds since the clock's zero; >= 0. Never suspends.
  virtual int64_t nowNs() const = 0;

  /// Internal: not null if the clock moves when all who run by it are at rest. Workers take part.
  virtual AutoAdvance* autoAdvance() const { return nullptr; }
};

/// CLOCK_MONOTONIC. Lives for ever, so it may be used before constructors run and after main. Source: clock_gettime(2).
const Clock& steadyClock();

/// A clock that stands still until it is told to move. For tests. Moving it wakes nobody: the workers of a scheduler see it when
/// they next turn. VirtualTime is the one for them.
///
/// Thread safety: all calls from any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::chrono::nanoseconds now = std::chrono::nanoseconds{0}) : m_now_ns(now.count()) {}

  int64_t nowNs() const override { return m_now_ns.load(std::memory_order_relaxed); }

  /// Moves time by `step`, which may be negative: a clock that steps back is what some tests are about.
  void advance(std::chrono::nanoseconds step) { m_now_ns.fetch_add(step.count(), std::memory_order_relaxed); }

  /// Sets the time.
  void set(std::chrono::nanoseconds now) { m_now_ns.store(now.count(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> m_now_ns;
};

/// A point in time by which a wait must end. Computed once, where a duration enters the library, then passed down, so that
/// retries do not extend it. A value type; all calls are thread safe.
class Deadline {
 public:
  /// Never reached.
  static constexpr Deadline never() { return Deadline(kNever); }

  /// `delay` from now on `clock`; a negative delay counts as 0; saturates to never().
  static Deadline after(std::chrono::nanoseconds delay, const Clock& clock = steadyClock()) {
    return Deadline(saturatingAdd(clock.nowNs(), delay.count() < 0 ? 0 : delay.count()));
  }

  /// The time `ns` on the clock that the waiter uses.
  static constexpr Deadline at(int64_t ns) { return Deadline(ns); }

  constexpr int64_t ns() const { return m_ns; }
  constexpr bool isNever() const { return m_ns == kNever; }
  friend constexpr auto operator<=>(Deadline, Deadline) = default;

 private:
  constexpr explicit Deadline(int64_t ns) : m_ns(ns) {}
  int64_t m_ns;
};

}  // namespace sylar
