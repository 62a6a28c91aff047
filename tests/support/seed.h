// The seed of a random test: new in each run and printed, or the one given in SYLAR_TEST_SEED to repeat a run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace sylar::test {

inline uint64_t seed() {
  const char* given = std::getenv("SYLAR_TEST_SEED");
  const uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "SYLAR_TEST_SEED=" << value << "\n";
  return value;
}

}  // namespace sylar::test
