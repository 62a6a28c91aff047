// sylar's rate limiter. The caller reports how much it has copied or sent, and sleeps as long as that takes at the limit.
//
//   sylar::SpeedLimit limit(1 << 20);  // bytes per second
//   while (...) limit.add(copySome());
//
// Thread safety: belongs to one thread or fiber at a time.
#pragma once

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "sylar/clock.h"

namespace sylar {

class SpeedLimit {
 public:
  /// Limits the rate to `per_second`; 0 means no limit.
  explicit SpeedLimit(uint32_t per_second, const Clock& clock = steadyClock()) : m_per_second(per_second), m_clock(clock) {}

  /// Returns when the limit allows `amount` and everything that was added before. Time that was not used is not made up for
  /// later. May suspend: yes, as nanosleep(2) does with the hooks. Without them it blocks the thread.
  void add(uint32_t amount) {
    const std::chrono::nanoseconds delay = take(amount);
    timespec rest{delay.count() / 1'000'000'000, static_cast<long>(delay.count() % 1'000'000'000)};
    while (delay.count() > 0 && ::nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
  }

  /// Adds `amount`, and returns how long add() would sleep instead of sleeping. May suspend: no.
  [[nodiscard]] std::chrono::nanoseconds take(uint32_t amount) {
    if (m_per_second == 0) return {};
    const int64_t now_ns = m_clock.nowNs();
    const auto takes_ns = static_cast<int64_t>(uint64_t{amount} * 1'000'000'000 / m_per_second);
    m_free_ns = saturatingAdd(std::max(m_free_ns, now_ns), takes_ns);
    return std::chrono::nanoseconds(m_free_ns - now_ns);
  }

 private:
  const uint32_t m_per_second;
  const Clock& m_clock;
  int64_t m_free_ns = 0;  // when all that was added has passed
};

}  // namespace sylar
