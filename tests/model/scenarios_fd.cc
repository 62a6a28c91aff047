#include "tests/model/scenarios.h"
namespace sylar::model { const std::vector<Scenario> kFdScenarios{}; }
