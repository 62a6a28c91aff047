#include "tests/model/scenarios.h"

namespace sylar::model {

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  for (const auto& group : {waitScenarios(), sleepScenarios(), stopScenarios(), fdScenarios(), transferScenarios(),
                            lifeScenarios(), runQueueScenarios(), lendScenarios(), timerScenarios(), serveScenarios(),
                            coreScenarios(), syncScenarios(), lotScenarios()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace sylar::model
