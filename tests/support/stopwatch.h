// For tests: how long something took, and how much of a promised bound a busy machine excuses.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace sylar::test {

/// For how long some task of this machine has been ready to run and had no processor, or has waited for a disk, since the machine
/// started (`some` of /proc/pressure, Documentation/accounting/psi.rst). None if the kernel does not count it.
inline std::optional<std::chrono::microseconds> machineStalled() {
  int64_t total_us = 0;
  for (const char* const resource : {"cpu", "io"}) {
    std::ifstream file(std::string("/proc/pressure/") + resource);
    std::string line;
    std::getline(file, line);
    const size_t at = line.find("total=");
    if (at == std::string::npos) return std::nullopt;
    total_us += std::stoll(line.substr(at + 6));
  }
  return std::chrono::microseconds(total_us);
}

/// A thread that sleeps for 1 ms again and again, and adds up by how much it wakes late: what a thread that is ready had to wait.
class LatenessProbe {
 public:
  std::chrono::microseconds late() const { return std::chrono::microseconds(m_late_us.load(std::memory_order_relaxed)); }

 private:
  void run(const std::stop_token& stopped) {
    using Clock = std::chrono::steady_clock;
    while (!stopped.stop_requested()) {
      const Clock::time_point due = Clock::now() + std::chrono::milliseconds(1);
      const timespec moment{0, 1'000'000};
      ::syscall(SYS_nanosleep, &moment, nullptr);  // the test's fibers may have hooks
      m_late_us.fetch_add(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - due).count(),
                          std::memory_order_relaxed);
    }
  }

  std::atomic<int64_t> m_late_us{0};
  std::jthread m_thread{[this](const std::stop_token& stopped) { run(stopped); }};
};

/// Runs from its construction. A bound is exact on a machine with a processor for everybody. On a busier one it grows by the time
/// in which some task had to wait, up to kMostExcused times the bound, so that it never says nothing. Where the kernel does not
/// count that time, a thread of its own measures it.
class Stopwatch {
 public:
  Stopwatch() {
    if (!m_stalled) m_probe.emplace();
  }

  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - m_begin; }

  /// `bound`, and what the machine excuses up to now. Read elapsed() first.
  std::chrono::nanoseconds allows(std::chrono::nanoseconds bound) const {
    return bound + std::min<std::chrono::nanoseconds>(stalled(), kMostExcused * bound);
  }
  std::chrono::microseconds stalled() const {
    return m_probe ? m_probe->late() : machineStalled().value_or(*m_stalled) - *m_stalled;
  }
  /// Says how long others had to wait, and who measured it.
  std::string excuse() const {
    return std::to_string(stalled().count()) + (m_probe ? " us late by a thread of its own" : " us stalled by /proc/pressure");
  }

 private:
  static constexpr int kMostExcused = 20;
  const std::optional<std::chrono::microseconds> m_stalled = machineStalled();
  std::optional<LatenessProbe> m_probe;
  const std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
};

}  // namespace sylar::test

/// `call` takes no longer than `bound` on a machine that has a processor for it; see Stopwatch.
#define EXPECT_WITHIN(bound, call)                                             \
  do {                                                                         \
    const ::sylar::test::Stopwatch expect_within;                              \
    call;                                                                      \
    const auto expect_within_took = expect_within.elapsed();                   \
    EXPECT_LT(expect_within_took.count(), expect_within.allows(bound).count()) \
        << "ns; " #bound " is promised; " << expect_within.excuse();           \
  } while (false)
