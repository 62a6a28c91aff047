// Clocks, which are passed as parameters, and points in time, which are values.
//
// Everything that waits or measures takes a `Clock`, so that tests can drive time by hand. ManualClock (here) suits code that
// is asked what is due; VirtualTime (sylar/testing) suits schedulers, because it wakes their workers. Times are nanoseconds on
// the clock's own scale (CLOCK_MONOTONIC for the steady clock); durations are std::chrono. Arithmetic saturates at `kNever`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace sylar {

namespace detail {
class AutoAdvance;
}

/// A point in time that is never reached: about 292 years after the clock's zero.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Returns `base_ns` + `delta_ns`, limited to kNever instead of overflowing. Both must be >= 0.
constexpr int64_t saturatingAdd(int64_t base_ns, int64_t delta_ns) {
  return base_ns > kNever - delta_ns ? kNever : base_ns + delta_ns;
}

/// Converts milliseconds to nanoseconds, limited to kNever instead of overflowing.
constexpr int64_t msToNs(uint64_t ms) {
  return ms > static_cast<uint64_t>(kNever) / 1'000'000 ? kNever : static_cast<int64_t>(ms) * 1'000'000;
}

/// A source of time.
///
/// A TimerManager and an IdleList call nowNs() under their spinlocks, because times that were read before the lock would reach
/// them out of order. So an implementation must be brief, take no lock that is held for longer than a few instructions, and
/// call nothing that uses these objects.
///
/// Thread safety: nowNs() may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Returns the nanoseconds since the clock's zero; >= 0. Never suspends, throws or blocks.
  virtual int64_t nowNs() const = 0;

  /// Returns non-null if the clock moves by itself when all workers that run by it are idle, as VirtualTime does. Returns null
  /// for other clocks.
  virtual detail::AutoAdvance* autoAdvance() const { return nullptr; }
};

/// Returns the clock of CLOCK_MONOTONIC. It is never destroyed, so it may be used before constructors run and after main.
/// Source: clock_gettime(2).
const Clock& steadyClock();

/// A clock for tests, which stands still until it is told to move. Moving it wakes no thread: the workers of a scheduler see it
/// in the next iteration of their loops. Choose VirtualTime for schedulers.
///
/// Thread safety: all calls from any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::chrono::nanoseconds now = std::chrono::nanoseconds{0}) : m_now_ns(now.count()) {}

  int64_t nowNs() const override { return m_now_ns.load(std::memory_order_relaxed); }

  /// Moves time by `step`, which may be negative for tests of a clock that steps back.
  void advance(std::chrono::nanoseconds step) { m_now_ns.fetch_add(step.count(), std::memory_order_relaxed); }

  /// Sets the time.
  void set(std::chrono::nanoseconds now) { m_now_ns.store(now.count(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> m_now_ns;
};

/// A point in time by which a wait must end. It is computed once, where a duration enters the library, and then passed down, so
/// that retries do not extend it. A value type; all calls are thread safe.
class Deadline {
 public:
  /// Returns a deadline that is never reached.
  static constexpr Deadline never() { return Deadline(kNever); }

  /// Returns the time `delay` from now on `clock`. A negative delay counts as 0, and the result saturates to never().
  static Deadline after(std::chrono::nanoseconds delay, const Clock& clock = steadyClock()) {
    return Deadline(saturatingAdd(clock.nowNs(), delay.count() < 0 ? 0 : delay.count()));
  }

  /// Returns the deadline at time `ns` on the clock that the waiter uses.
  static constexpr Deadline at(int64_t ns) { return Deadline(ns); }

  constexpr int64_t ns() const { return m_ns; }
  constexpr bool isNever() const { return m_ns == kNever; }
  friend constexpr auto operator<=>(Deadline, Deadline) = default;  // NOLINT(modernize-use-nullptr): the compiler's 0

 private:
  constexpr explicit Deadline(int64_t ns) : m_ns(ns) {}
  int64_t m_ns;
};

}  // namespace sylar
