// The programs of topics `fiber` and `sync` share this: fibers on the workers of an IOManager, and the choice of a case.
#pragma once

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/stopwatch.h"
#include "sylar/iomanager.h"
#include "sylar/util.h"

namespace bench {

inline sylar::FiberIdentity identity = sylar::FiberIdentity::kWorker;  // as which threads the fibers run

inline sylar::SchedulerOptions options(int workers) {
  return {.threads = static_cast<size_t>(workers), .use_caller = false, .name = "bench", .identity = identity};
}

inline sylar::Fiber::ptr spawn(std::function<void()> work, size_t stack_bytes = 0) {
  auto fiber = std::make_shared<sylar::Fiber>(std::move(work), stack_bytes);
  sylar::IOManager::GetThis()->schedule(fiber);
  return fiber;
}

/// The same on the worker that the caller is on.
inline sylar::Fiber::ptr spawnHere(std::function<void()> work) {
  auto fiber = std::make_shared<sylar::Fiber>(std::move(work));
  sylar::IOManager::GetThis()->schedule(fiber, sylar::GetThreadId());
  return fiber;
}

inline void joinAll(const std::vector<sylar::Fiber::ptr>& fibers) {
  for (const auto& fiber : fibers) fiber->join();
}

/// Runs `work` in a fiber on each worker, all from the same moment on.
inline void onEachWorker(int workers, double operations, const std::function<void()>& work) {
  sylar::IOManager iom(options(workers));
  std::optional<Stopwatch> watch;
  std::barrier begin(workers, [&watch]() noexcept { watch.emplace(); });
  std::latch end(workers);
  for (int i = 0; i < workers; ++i) {
    iom.place([&] {
      begin.arrive_and_wait();  // blocks the worker: each has one of these to run
      work();
      end.count_down();
    });
  }
  end.wait();
  watch->print(operations);
}

/// What main() does: CASE N [WORKERS [own]]. Returns its status.
inline int runCase(int argc, char** argv, const std::map<std::string, void (*)(int, int)>& cases) {
  const auto found = argc > 2 ? cases.find(argv[1]) : cases.end();
  const int n = argc > 2 ? std::atoi(argv[2]) : 0;
  const int workers = argc > 3 ? std::atoi(argv[3]) : 1;
  if (argc > 4) identity = sylar::FiberIdentity::kOwn;
  if (found == cases.end() || n < 1 || workers < 1) {
    std::fprintf(stderr, "usage: %s CASE N [WORKERS [own]]\n", argv[0]);
    return 2;
  }
  found->second(n, workers);
  return 0;
}

}  // namespace bench
