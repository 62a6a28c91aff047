// Prints what a case of topics `fiber` and `sync` took, as one line of JSON for the driver.
#pragma once

#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace bench {

class Stopwatch {
 public:
  /// Of the time since it was made: nanoseconds for each of `operations`, of the wall and of all threads' CPUs.
  void print(double operations) const {
    std::printf("{\"ns\": %.2f, \"cpu_ns\": %.2f, \"operations\": %.0f}\n",
                static_cast<double>(read(CLOCK_MONOTONIC) - m_wall_ns) / operations,
                static_cast<double>(read(CLOCK_PROCESS_CPUTIME_ID) - m_cpu_ns) / operations, operations);
  }

 private:
  static int64_t read(clockid_t clock) {
    timespec time = {};
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
  }

  int64_t m_wall_ns = read(CLOCK_MONOTONIC);
  int64_t m_cpu_ns = read(CLOCK_PROCESS_CPUTIME_ID);
};

inline int64_t residentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long long pages = 0;
  if (file == nullptr || std::fscanf(file, "%*d %lld", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

inline void printMemory(int64_t bytes, int64_t fibers) {
  std::printf("{\"bytes\": %.0f, \"operations\": %lld}\n", static_cast<double>(bytes) / static_cast<double>(fibers),
              static_cast<long long>(fibers));
}

/// Keeps a core busy for about `rounds` ns, without memory.
inline void compute(int rounds) {
  uint64_t x = 88172645463325252ULL;
  for (int i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    __asm__ volatile("" : "+r"(x));
  }
}

}  // namespace bench
