// The whole model in one file: compiled once for each mutant, with its header in front of the true one.
#include "tests/model/house.cc"              // NOLINT
#include "tests/model/model_check.cc"        // NOLINT
#include "tests/model/scenarios_fd.cc"       // NOLINT
#include "tests/model/scenarios_sleep.cc"    // NOLINT
#include "tests/model/scenarios_stop.cc"     // NOLINT
#include "tests/model/scenarios_wait.cc"     // NOLINT
