// What the programs of this folder share: clocks, quantiles, a line of JSON.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/loopback.h"

namespace bench {

inline int64_t readClock(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}
inline int64_t now() { return readClock(CLOCK_MONOTONIC); }

constexpr int64_t kMs = 1'000'000;

/// By how much each of many waits was late, in ns; less than 0 is early.
class Lateness {
 public:
  void add(int64_t ns) { m_late_ns.push_back(ns); }
  size_t count() const { return m_late_ns.size(); }
  int64_t early() const {
    return std::count_if(m_late_ns.begin(), m_late_ns.end(), [](int64_t ns) { return ns < 0; });
  }
  double us(double quantile) {
    if (m_late_ns.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(m_late_ns.size() - 1));
    std::nth_element(m_late_ns.begin(), m_late_ns.begin() + at, m_late_ns.end());
    return static_cast<double>(m_late_ns[static_cast<size_t>(at)]) / 1e3;
  }
  /// As members of a JSON object. The histogram: how many were late by less than 1, 2, 4, ... us, each bin by itself.
  std::string json() {
    std::vector<size_t> bins;
    for (const int64_t ns : m_late_ns) {
      size_t bin = 0;
      while (ns >= int64_t{1'000} << bin) ++bin;
      if (bins.size() <= bin) bins.resize(bin + 1);
      ++bins[bin];
    }
    char text[160];
    std::snprintf(text, sizeof text, "\"n\": %zu, \"early\": %lld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, ",
                  count(), static_cast<long long>(early()), us(0.50), us(0.99), us(1));
    std::string out = text;
    out += "\"histogram\": [";
    for (size_t i = 0; i < bins.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(bins[i]);
    return out + "]";
  }

 private:
  std::vector<int64_t> m_late_ns;
};

}  // namespace bench
