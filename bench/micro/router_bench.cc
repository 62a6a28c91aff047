// What it costs to find a route among 200 patterns of 5 segments.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "sylar/web/path.h"
#include "sylar/web/pattern_table.h"

namespace sylar::http {
namespace {

constexpr int kPatterns = 200;

/// A number from 0 to 199 as three segments, of which the first has 2 values and the others 10 each, or 200 at the first.
std::string path(int number, const char* id, bool is_wide) {
  const std::string last = std::to_string(number % 10), middle = std::to_string(number / 10 % 10);
  const std::string first = is_wide ? "resource" + std::to_string(number) : "v" + std::to_string(number / 100);
  return "/" + first + "/items" + middle + "/" + id + "/parts/action" + last;
}

struct Routes {
  explicit Routes(bool is_wide) {
    for (int i = 0; i < kPatterns; ++i) {
      table.add(std::make_shared<RouteEntry>(RouteEntry{Pattern(path(i, "{id}", is_wide)), MethodSet::ordinary(), nullptr}));
      requests.emplace_back();
      requests.back().setPath(path(i, "12345", is_wide));
    }
  }

  PatternTable table;
  std::vector<HttpRequest> requests;
};

/// Goes round through all requests. `use` does with one what is measured.
template <class Use>
void goRound(benchmark::State& state, Routes& routes, Use use) {
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    use(routes.requests[i]);
    if (++i == routes.requests.size()) i = 0;
  }
}

void findRoute(benchmark::State& state) {
  Routes routes(state.range(0) != 0);
  goRound(state, routes, [&](HttpRequest& request) {
    const CanonicalPath canonical(request.getPath());
    benchmark::DoNotOptimize(routes.table.find(request, canonical.text()));
  });
}
BENCHMARK(findRoute)->ArgName("wide")->Arg(0)->Arg(1);

void findRouteAndName(benchmark::State& state) {
  Routes routes(state.range(0) != 0);
  goRound(state, routes, [&](HttpRequest& request) {
    const CanonicalPath canonical(request.getPath());
    routes.table.find(request, canonical.text()).entry->pattern.bind(canonical.text(), request);
  });
}
BENCHMARK(findRouteAndName)->ArgName("wide")->Arg(0)->Arg(1);

void missRoute(benchmark::State& state) {
  Routes routes(state.range(0) != 0);
  for (HttpRequest& request : routes.requests) request.setPath(request.getPath() + "x");
  goRound(state, routes, [&](HttpRequest& request) {
    const CanonicalPath canonical(request.getPath());
    benchmark::DoNotOptimize(routes.table.find(request, canonical.text()));
  });
}
BENCHMARK(missRoute)->ArgName("wide")->Arg(0)->Arg(1);

}  // namespace
}  // namespace sylar::http
