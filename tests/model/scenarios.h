// All scenarios of the core protocols, by name.
#pragma once

#include <vector>

namespace sylar::model {

struct Scenario {
  const char* name;
  void (*run)();
  bool large = false;  ///< too large for all orders: random runs only
};

std::vector<Scenario> waitScenarios();   ///< wait_word.h, waker.h (P1)
std::vector<Scenario> sleepScenarios();  ///< mailbox.h, fresh_queue.h, own_fresh.h, rest.h (P2)
std::vector<Scenario> stopScenarios();   ///< rest.h: the end
std::vector<Scenario> fdScenarios();     ///< fd_entry.h (P3)
std::vector<Scenario> timerScenarios();  ///< timer_state.h

/// Those of the program.
std::vector<Scenario> scenarios();

}  // namespace sylar::model
