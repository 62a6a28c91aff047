// Drives a store of examples/jobs to its limit: how many jobs a second it takes, and how many it gives away and sees ended.
//
//     store_bench redis PORT JOBS FIBERS BATCH
//     store_bench postgres CONNINFO JOBS FIBERS BATCH
//
// All jobs are due. Each fiber claims up to BATCH of them and settles these, until none is left. Prints JSON.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "examples/jobs/postgres_store.h"
#include "examples/jobs/redis_store.h"
#include "sylar/iomanager.h"
#include "sylar/sync/task_group.h"

namespace {

using jobs::Micros;

std::unique_ptr<jobs::Store> make(const std::string& kind, const std::string& where) {
  if (kind == "postgres") return std::make_unique<jobs::PostgresStore>(jobs::PostgresTarget{where});
  return std::make_unique<jobs::RedisStore>(jobs::RedisTarget{"127.0.0.1", std::stoi(where)}, "bench");
}

/// Calls `body` in so many fibers, and returns how many seconds they took.
double seconds(size_t fibers, const std::function<void(size_t)>& body) {
  const auto begun = std::chrono::steady_clock::now();
  sylar::TaskGroup group;
  for (size_t i = 0; i < fibers; ++i) group.spawn([&body, i] { body(i); });
  group.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void put(jobs::Store& store, size_t first, size_t end) {
  for (; first < end; first += 1000) {
    std::vector<jobs::Job> batch;
    for (size_t i = first; i < std::min(first + 1000, end); ++i) {
      batch.push_back({"job:" + std::to_string(i), std::to_string(i), jobs::When::at(jobs::Time(static_cast<int64_t>(i)))});
    }
    store.put(batch);
  }
}

/// Returns how many jobs it had.
size_t drain(jobs::Store& store, size_t batch) {
  size_t all = 0;
  while (true) {
    const jobs::Claims claims = store.claim({batch, Micros(0), std::chrono::hours(1), 10});
    if (claims.taken.empty()) return all;
    std::vector<jobs::Outcome> outcomes;
    for (const jobs::Claim& each : claims.taken) outcomes.push_back({each.id, each.token});
    all += store.settle(outcomes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: store_bench redis|postgres WHERE JOBS FIBERS BATCH\n";
    return 2;
  }
  const size_t jobs = std::stoul(argv[3]);
  const size_t fibers = std::stoul(argv[4]);
  const size_t batch = std::stoul(argv[5]);
  const auto store = make(argv[1], argv[2]);
  int status = 1;
  {
    sylar::IOManager iom(1, false, "bench");
    iom.schedule([&] {
      const double putting = seconds(fibers, [&](size_t i) { put(*store, jobs * i / fibers, jobs * (i + 1) / fibers); });
      std::atomic<size_t> settled{0};
      const double draining = seconds(fibers, [&](size_t) { settled += drain(*store, batch); });
      std::cout << "{\"put_per_s\": " << static_cast<size_t>(static_cast<double>(jobs) / putting)
                << ", \"claimed_and_settled_per_s\": " << static_cast<size_t>(static_cast<double>(settled) / draining)
                << ", \"jobs\": " << settled << "}\n";
      status = settled == jobs ? 0 : 1;
    });
  }
  return status;
}
