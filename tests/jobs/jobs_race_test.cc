// Two replicas on four workers, while many fibers schedule, cancel, and look.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/jobs/jobs.h"
#include "examples/jobs/memory_store.h"
#include "sylar/sync/task_group.h"
#include "sylar/testing/virtual_time.h"
#include "tests/support/seed.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr size_t kJobs = 2000;

// J-2, J-3
TEST(JobsRace, EachJobRunsOnceOrIsCancelled) {
  const uint64_t seed = sylar::test::seed();
  sylar::VirtualTime time;
  MemoryStore store(time, Time(0));
  std::vector<std::atomic<int>> runs(kJobs);
  std::vector<std::atomic<bool>> failed(kJobs);
  std::vector<std::atomic<Cancelled>> cancelled(kJobs);
  for (auto& each : cancelled) each = Cancelled::kGone;
  std::vector<std::unique_ptr<Jobs>> replicas;

  time.run(
      [&] {
        sylar::TaskGroup group;
        for (int i = 0; i < 2; ++i) {
          const auto handler = [&](const Claim& claim) {
            const size_t job = std::stoul(claim.id);
            usleep(job % 5 * 1000);
            if (job % 7 == 0 && !failed[job].exchange(true)) throw std::runtime_error("the first attempt fails");
            ++runs[job];
          };
          replicas.push_back(std::make_unique<Jobs>(*sylar::IOManager::GetThis(), store, handler, Options{}));
          group.spawn([&replica = *replicas.back()] { replica.run(); });
        }
        {
          sylar::TaskGroup users;
          for (size_t user = 0; user < 20; ++user) {
            users.spawn([&, user] {
              std::mt19937_64 chance(seed + user);
              for (size_t job = user; job < kJobs; job += 20) {
                replicas[job % 2]->schedule(std::to_string(job), When::in(Micros(chance() % 500'000)), "");
                usleep(chance() % 5000);
                if (chance() % 3 == 0) cancelled[job] = replicas[chance() % 2]->cancel(std::to_string(job));
                replicas[job % 2]->counts();
              }
            });
          }
        }
        sleep(10);
        for (const auto& each : replicas) each->drain();
        group.join();
        EXPECT_EQ(store.counts().jobs + store.counts().dead, 0U);
      },
      4);

  size_t waiting = 0;
  for (size_t job = 0; job < kJobs; ++job) {
    const Cancelled found = cancelled[job];
    waiting += found == Cancelled::kWaiting ? 1 : 0;
    EXPECT_LE(runs[job], found == Cancelled::kWaiting ? 0 : 1) << job;
    EXPECT_GE(runs[job], found == Cancelled::kGone ? 1 : 0) << job;
  }
  EXPECT_GT(waiting, 0U);
  EXPECT_EQ(replicas[0]->counts().claimed + replicas[1]->counts().claimed, 0U);
}

}  // namespace
}  // namespace jobs
