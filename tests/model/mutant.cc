// One group of scenarios in one file: compiled once for each seeded defect, with the defective header in front of the true one.
#include "tests/model/house.cc"  // NOLINT
#include MODEL_SCENARIOS_FILE    // NOLINT

namespace sylar::model {

std::vector<Scenario> scenarios() { return MODEL_SCENARIOS(); }

}  // namespace sylar::model
