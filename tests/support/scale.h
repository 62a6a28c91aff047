// How long a race test runs: as long as a test should, or SYLAR_TEST_SCALE times that; scripts/soak.sh sets it. Sanitizers make a
// round many times as long, so with them a test runs a quarter of its rounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/support/sanitized.h"

namespace sylar::test {

inline uint64_t scaled(uint64_t rounds) {
  if (kSanitized) rounds = std::max<uint64_t>(rounds / 4, 1);
  const char* const given = std::getenv("SYLAR_TEST_SCALE");
  return given == nullptr ? rounds : rounds * std::max<uint64_t>(std::strtoull(given, nullptr, 10), 1);
}

}  // namespace sylar::test
