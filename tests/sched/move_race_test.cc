// A fiber that several schedulers want at once. Bounded rounds.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;

#if defined(SYLAR_TSAN) || defined(SYLAR_ASAN)
constexpr int kRounds = 2'000;
#else
constexpr int kRounds = 8'000;
#endif

class MoveRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, MoveRaceTest, test::kWorkerCounts);

// Cause: "held" was read at one home and "no home" while it moved; then it was queued as unstarted while it had a home again.
TEST_P(MoveRaceTest, AHeldFiberIsScheduledWhileOthersMoveIt) {
  Scheduler first(workers(), false, "first");
  Scheduler second(workers(), false, "second");
  Scheduler third(workers(), false, "third");
  first.start();
  second.start();
  third.start();
  std::atomic<bool> end{false};
  std::atomic<int> rounds{0};
  const auto fiber = std::make_shared<Fiber>([&] {
    while (!end) {
      Fiber::YieldToHold();
      ++rounds;
    }
  });
  first.schedule(fiber);
  const int first_thread = coreOf(first).workers().back()->threadId();
  const int second_thread = coreOf(second).workers().back()->threadId();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!end) third.schedule(fiber);
    });
  }
  threads.emplace_back([&] {
    while (!end) {
      first.schedule(fiber, first_thread);
      second.schedule(fiber, second_thread);
    }
  });
  EXPECT_TRUE(eventually([&] { return rounds >= kRounds; }));
  end = true;
  for (std::thread& thread : threads) thread.join();
  fiber->cancel();  // it may hold once more
  fiber->join();
}

}  // namespace
}  // namespace sylar
