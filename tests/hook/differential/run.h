// A plan is run in a forced order: a step is begun when the one before has ended or waits, and all that it woke has ended or
// waits again. The first run, with libc's functions on threads, decides which steps are taken at all. The other runs take the same
// ones, and wait for each end that the first run saw.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "tests/hook/differential/perform.h"

namespace sylar::test::differential {

/// What became of a step.
struct Outcome {
  static constexpr int kWaits = -1;
  bool taken = false;
  int ended_at = kWaits;  ///< the step during which it ended
  std::string gave;
  bool operator==(const Outcome&) const = default;
};
using Transcript = std::vector<Outcome>;

/// Where the steps run, and with which functions.
struct Mode {
  const char* name;
  IOManager* workers;  ///< null: on threads
  const Calls& make;
  const Calls& call;
  HookClose closes = HookClose::kWake;
};

/// Runs the plan. `script` is the transcript of the first run, or null. A step that does not end within `patience`, though it did
/// in the first run, ends the run, and its outcome differs.
Transcript run(const Plan& plan, const Mode& mode, const Transcript* script, std::chrono::milliseconds patience);

}  // namespace sylar::test::differential
