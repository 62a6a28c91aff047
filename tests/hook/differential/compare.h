// Compares what a plan gives with libc's functions on threads and through the hooks in fibers, and makes a plan that differs small.
#pragma once

#include <optional>

#include "tests/hook/differential/run.h"

namespace sylar::test::differential {

/// A plan whose outcome differs in a mode.
struct Difference {
  const Mode* mode;
  Plan plan;
  Transcript libc;
  Transcript hooked;
};

class Comparison {
 public:
  Comparison();

  /// Returns how the plan differs, if it does so each time. A plan that gives this and that on libc is no witness.
  std::optional<Difference> compare(const Plan& plan);
  /// Returns the difference with as few steps as show it.
  Difference shrink(Difference found);

  /// Returns in words what the plan gives on libc.
  std::string tell(const Plan& plan) const;

  uint64_t steps() const { return m_steps; }
  uint64_t dropped() const { return m_dropped; }

 private:
  std::optional<Difference> compareIn(const Mode& mode, const Plan& plan, const Transcript& libc,
                                      std::chrono::milliseconds patience) const;
  std::optional<Transcript> runOnLibc(const Plan& plan) const;

  IOManager m_one;
  IOManager m_two;
  const Calls m_hooked = hookedCalls();
  const Mode m_libc{"threads on libc", nullptr, libcCalls(), libcCalls()};
  const std::vector<Mode> m_modes;
  uint64_t m_steps = 0;
  uint64_t m_dropped = 0;
};

std::string describe(const Difference& difference);

}  // namespace sylar::test::differential
