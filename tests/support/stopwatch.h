// For tests: how long something took, and how much of a promised bound a busy machine excuses.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace sylar::test {

/// For how long some task of this machine has been ready to run and had no processor, or has waited for a disk, since the machine
/// started (`some` of /proc/pressure, Documentation/accounting/psi.rst). Zero if the kernel does not count it.
inline std::chrono::microseconds machineStalled() {
  int64_t total_us = 0;
  for (const char* const resource : {"cpu", "io"}) {
    std::ifstream file(std::string("/proc/pressure/") + resource);
    std::string line;
    std::getline(file, line);
    const size_t at = line.find("total=");
    if (at != std::string::npos) total_us += std::stoll(line.substr(at + 6));
  }
  return std::chrono::microseconds(total_us);
}

/// Runs from its construction. A bound is exact on a machine with a processor for everybody. On a busier one it grows by the time
/// in which some task had to wait, up to kMostExcused times the bound, so that it never says nothing.
class Stopwatch {
 public:
  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - m_begin; }

  /// `bound`, and what the machine excuses up to now. Read elapsed() first.
  std::chrono::nanoseconds allows(std::chrono::nanoseconds bound) const {
    return bound + std::min<std::chrono::nanoseconds>(stalled(), kMostExcused * bound);
  }
  std::chrono::microseconds stalled() const { return machineStalled() - m_stalled; }

 private:
  static constexpr int kMostExcused = 20;
  const std::chrono::microseconds m_stalled = machineStalled();
  const std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
};

}  // namespace sylar::test

/// `call` takes no longer than `bound` on a machine that has a processor for it; see Stopwatch.
#define EXPECT_WITHIN(bound, call)                                                                              \
  do {                                                                                                          \
    const ::sylar::test::Stopwatch expect_within;                                                               \
    call;                                                                                                       \
    const auto expect_within_took = expect_within.elapsed();                                                    \
    EXPECT_LT(expect_within_took.count(), expect_within.allows(bound).count()) << "ns; " #bound " is promised"; \
  } while (false)
