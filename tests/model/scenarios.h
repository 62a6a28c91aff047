// All scenarios of the core protocols, by name.
#pragma once

#include <vector>

namespace sylar::model {

struct Scenario {
  const char* name;
  void (*run)();
};

extern const std::vector<Scenario> kWaitScenarios;   ///< wait_word.h, waker.h (P1)
extern const std::vector<Scenario> kSleepScenarios;  ///< mailbox.h, fresh_queue.h, own_fresh.h, rest.h (P2)
extern const std::vector<Scenario> kStopScenarios;   ///< rest.h: the end
extern const std::vector<Scenario> kFdScenarios;     ///< fd_entry.h (P3)

}  // namespace sylar::model
