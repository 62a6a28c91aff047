// How long to wait before the next attempt: twice as long each time, and by chance up to half of it less, so that those who failed
// together do not come back together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "job.h"

namespace jobs {

struct Backoff {
  Micros first{1'000'000};
  Micros longest{300'000'000};

  /// The delay after `failures` >= 1 failures in a row.
  template <class Random>
  Micros after(uint32_t failures, Random& random) const {
    const auto doublings = std::min(failures - 1, 40U);
    const int64_t whole = first.count() > (longest.count() >> doublings) ? longest.count() : first.count() << doublings;
    return Micros(std::uniform_int_distribution<int64_t>(whole - whole / 2, whole)(random));
  }
};

}  // namespace jobs
