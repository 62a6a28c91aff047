// One step, made with a set of functions.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "tests/hook/differential/plan.h"
#include "tests/hook/support.h"

namespace sylar::test::differential {

/// A step that is under way: what it works on, and what it gave.
struct Work {
  Step step;
  int index;  ///< in its plan; what it writes depends on it
  int fd = -1;
  int other = -1;
  std::array<int, 2> made{-1, -1};
  /// What a drain waits for: the writer that it makes room for is through.
  const std::atomic<bool>* until = nullptr;
  std::string gave;
  bool tells_flags = true;  ///< whether O_NONBLOCK belongs to what it gives
};

/// Makes the step. `make` creates descriptors, `call` does everything else.
void perform(Work& work, const Calls& make, const Calls& call);

}  // namespace sylar::test::differential
