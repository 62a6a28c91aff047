// For the tests of locks under hooks.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace sylar::test {

/// A time on CLOCK_REALTIME.
inline timespec realTimeIn(std::chrono::nanoseconds delay) {
  timespec time;
  ::clock_gettime(CLOCK_REALTIME, &time);
  const int64_t ns = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec + delay.count();
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

}  // namespace sylar::test
