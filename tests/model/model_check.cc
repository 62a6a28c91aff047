// Runs scenarios of the core protocols through the model checker.
//
//   model_check                              all scenarios, both memories, preemption bound 2
//   model_check --bound 3 --memory tso fd    those whose names begin with "fd"
//   model_check --skip fd/close fd           those, but none whose name begins with "fd/close"
//   model_check --random 100000 --seed 7     random runs (PCT) instead of all orders
//   model_check --expect-failure NAME        exit 0 iff that scenario fails: for mutants
//
// One line a scenario; exit status 0: all passed, and --at-least executions were made in all.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/checker.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

struct Options {
  Plan plan;
  std::vector<MemoryModel> memories{MemoryModel::kTso, MemoryModel::kWeak};
  std::vector<std::string> names;
  std::vector<std::string> skipped;
  uint64_t at_least = 1;
  bool expect_failure = false;
};

[[noreturn]] void usage(const char* why) {
  fmt::print(stderr,
             "model_check: {}\nusage: model_check [--bound N] [--memory tso|weak] [--random RUNS] [--seed S] [--at-least N] "
             "[--skip scenario] [--expect-failure] [scenario...]\n",
             why);
  std::exit(2);
}

uint64_t number(const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') usage("not a number");
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  bool seeded = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&] {
      if (++i == argc) usage("a value is missing");
      return argv[i];
    };
    if (argument == "--bound") {
      options.plan.preemptions = static_cast<int>(number(value()));
    } else if (argument == "--random") {
      options.plan.random_runs = number(value());
    } else if (argument == "--seed") {
      options.plan.seed = number(value());
      seeded = true;
    } else if (argument == "--at-least") {
      options.at_least = number(value());
    } else if (argument == "--skip") {
      options.skipped.emplace_back(value());
    } else if (argument == "--expect-failure") {
      options.expect_failure = true;
    } else if (argument == "--memory") {
      const std::string_view memory = value();
      if (memory != "tso" && memory != "weak") usage("--memory is tso or weak");
      options.memories = {memory == "tso" ? MemoryModel::kTso : MemoryModel::kWeak};
    } else if (argument.starts_with("--")) {
      usage("no such option");
    } else {
      options.names.emplace_back(argument);
    }
  }
  if (options.plan.random_runs > 0 && !seeded) options.plan.seed = std::random_device{}();
  return options;
}

std::vector<Scenario> selected(const Options& options) {
  std::vector<Scenario> result;
  for (const Scenario& scenario : scenarios()) {
    const std::string_view name = scenario.name;
    bool wanted = options.names.empty() && (options.plan.random_runs > 0 || !scenario.large);
    for (const std::string& begin : options.names) wanted = wanted || name.starts_with(begin);
    const bool skipped =
        std::any_of(options.skipped.begin(), options.skipped.end(), [&](const auto& skip) { return name.starts_with(skip); });
    if (wanted && !skipped) result.push_back(scenario);
  }
  if (result.empty()) usage("no such scenario");
  return result;
}

int run(const Options& options) {
  uint64_t executions = 0;
  int failures = 0;
  if (options.plan.random_runs > 0) fmt::print("seed {}\n", options.plan.seed);
  for (const MemoryModel memory : options.memories) {
    for (const Scenario& scenario : selected(options)) {
      Plan plan = options.plan;
      plan.memory = memory;
      const auto begin = std::chrono::steady_clock::now();
      const Outcome outcome = explore(scenario.run, plan);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      executions += outcome.executions;
      failures += !outcome.failure.empty();
      fmt::print("{:<36} {:<5} {:>10} executions {:>12} steps {:>7.2f} s  {}\n", scenario.name,
                 memory == MemoryModel::kTso ? "tso" : "weak", outcome.executions, outcome.steps, took.count(),
                 outcome.failure.empty() ? "ok" : "FAILED");
      if (!outcome.failure.empty()) fmt::print("{}\n", outcome.failure);
      std::fflush(stdout);
    }
  }
  fmt::print("{} executions, {} failures\n", executions, failures);
  if (options.expect_failure) return failures > 0 ? 0 : 1;
  if (executions < options.at_least) fmt::print("fewer than the {} that are wanted\n", options.at_least);
  return failures == 0 && executions >= options.at_least ? 0 : 1;
}

}  // namespace
}  // namespace sylar::model

int main(int argc, char** argv) { return sylar::model::run(sylar::model::parse(argc, argv)); }
