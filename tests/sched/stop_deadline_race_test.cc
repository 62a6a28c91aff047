// Rounds of start, work and stop(deadline) with workers that do not come back, while others schedule, place, pin, cancel and
// join. The thread and the stacks of a worker that is left behind stay as long as the process, so rounds run in child
// processes. SYLAR_TEST_SCALE multiplies their number: 50 makes 5 000 rounds.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr uint64_t kRoundsAtOnce = 5;  // most of a round is spent on waiting for those that do not come back
constexpr uint64_t kRoundsInARow = 5;
constexpr uint64_t kProcesses = 4;
constexpr unsigned kPatienceSeconds = 300;  // of a process: far above what its rounds need on a loaded machine

/// Outlives its round: fibers that were left behind look at it.
struct Round {
  std::atomic<bool> over{false};
  std::atomic<size_t> stuck{0};

  void compute() {
    ++stuck;
    while (!over) sched_yield();
  }
};

/// Its destructor does not come back, where it is not run by a fiber that has ended its function.
struct BlocksInDestructor {
  explicit BlocksInDestructor(std::shared_ptr<Round> of) : round(std::move(of)) {}
  BlocksInDestructor(const BlocksInDestructor&) = delete;
  BlocksInDestructor& operator=(const BlocksInDestructor&) = delete;
  ~BlocksInDestructor() { round->compute(); }
  const std::shared_ptr<Round> round;
};

/// A function that keeps its worker until the round is over, and then goes on in one of several ways.
std::function<void()> stuckFunction(std::mt19937_64& random, const std::shared_ptr<Round>& round) {
  switch (random() % 5) {
    case 0: return [round] { round->compute(); };
    case 1:
      return [round] {
        round->compute();
        Fiber::YieldToReady();
      };
    case 2:
      return [round] {
        round->compute();
        Wait wait;
        wait.park();
      };
    case 3:
      return [round] {
        const auto inner = std::make_shared<Fiber>([round] {
          round->compute();
          parkUntil(Deadline::after(1ms));
        });
        inner->resume();
      };
    default: return [held = std::make_shared<BlocksInDestructor>(round)] {};
  }
}

/// A function that waits in one of several ways, until it is cancelled or longer.
std::function<void()> waitingFunction(std::mt19937_64& random, const Fiber::ptr& before) {
  switch (random() % 7) {
    case 0:
      return [] {
        while (!this_fiber::cancelled()) Fiber::YieldToHold();
      };
    case 1:
      return [] {
        while (!this_fiber::cancelled()) parkUntil(Deadline::after(1ms));
      };
    case 2:
      return [] {
        for (;;) {  // abandoned
          Wait wait;
          wait.park();
        }
      };
    case 3:
      return [] {
        const auto inner = std::make_shared<Fiber>([] {
          while (!this_fiber::cancelled()) parkUntil(Deadline::after(1ms));
          Fiber::YieldToHold();
        });
        inner->resume();
        if (stateOf(*inner) == FiberState::kHeldByHand) inner->resume();
      };
    case 4:
      return [] {
        const this_fiber::CancelShield shield;
        Wait wait;
        wait.park();
      };
    case 5:
      return [before] {
        try {
          if (before != nullptr) before->join();
        } catch (const std::runtime_error&) {  // abandoned
        }
      };
    default:
      return [] {
        while (!this_fiber::cancelled()) {
          if (Scheduler* const scheduler = Scheduler::GetThis()) scheduler->trySchedule(std::make_shared<Fiber>([] {}));
          Fiber::YieldToReady();
        }
      };
  }
}

pid_t someThread(std::mt19937_64& random, const Scheduler& scheduler) {
  return coreOf(scheduler).workers()[random() % coreOf(scheduler).workers().size()]->threadId();
}

/// The work of another thread meanwhile. `token` counts the functions that it has given away.
void meddle(std::mt19937_64& random, Scheduler& scheduler, const std::vector<Fiber::ptr>& fibers,
            const std::shared_ptr<int>& token) {
  const Fiber::ptr& fiber = fibers[random() % fibers.size()];
  switch (random() % 8) {
    case 0:
    case 1:
      if (!isOver(stateOf(*fiber))) scheduler.trySchedule(fiber);
      break;
    case 2:
      if (!isOver(stateOf(*fiber))) scheduler.trySchedule(fiber, someThread(random, scheduler));
      break;
    case 3: fiber->cancel(); break;
    case 4: scheduler.place([token] {}); break;
    case 5: scheduler.trySchedule([token] {}); break;
    case 6: scheduler.trySchedule([token] {}, someThread(random, scheduler)); break;
    default: {
      std::ostringstream out;
      scheduler.dump(out);
    }
  }
}

void runRound(uint64_t seed) {
  SCOPED_TRACE("round with seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto round = std::make_shared<Round>();
  const auto token = std::make_shared<int>(0);
  const size_t workers = size_t{1} << random() % 3;
  const size_t stuck = random() % (workers + 1);
  std::unique_ptr<Scheduler> scheduler;
  if (random() % 2 == 0) {
    scheduler = std::make_unique<IOManager>(workers, false, "io");
  } else {
    scheduler = std::make_unique<Scheduler>(workers, false, "plain");
  }
  scheduler->start();
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 12; ++i) {
    const Fiber::ptr before = fibers.empty() ? nullptr : fibers[random() % fibers.size()];
    auto fiber = std::make_shared<Fiber>(waitingFunction(random, before));
    const bool pinned = random() % 2 == 0;
    if (scheduler->trySchedule(fiber, pinned ? someThread(random, *scheduler) : -1)) fibers.push_back(std::move(fiber));
  }
  std::atomic<bool> stopped{false};
  std::thread meddler([&, mine = std::mt19937_64(random())]() mutable {
    for (int step = 0; step < 20 || (!stopped && step < 20'000); ++step) meddle(mine, *scheduler, fibers, token);
  });
  for (size_t i = 0; i < stuck; ++i)
    scheduler->trySchedule(stuckFunction(random, round), coreOf(*scheduler).workers()[i]->threadId());
  EXPECT_TRUE(eventually([&] { return round->stuck >= stuck; }));
  const StopResult result = scheduler->stop(Deadline::after(std::chrono::microseconds(random() % 2'000)));
  stopped = true;
  meddler.join();
  const auto detached = [](const auto& worker) { return worker->detached(); };
  const auto& all = coreOf(*scheduler).workers();
  const auto left_behind = static_cast<size_t>(std::count_if(all.begin(), all.end(), detached));
  EXPECT_GE(left_behind, stuck);
  EXPECT_EQ(result.clean, result.abandoned.empty());
  size_t abandoned = 0;
  for (const Fiber::ptr& fiber : fibers) {  // whatever became of it, this returns
    try {
      fiber->join();
    } catch (const std::runtime_error&) {
      ++abandoned;
    }
  }
  EXPECT_LE(abandoned, result.abandoned.size());
  // A worker that was merely late may be left behind in a function that is about to use its scheduler.
  left_behind == stuck ? scheduler.reset() : void(scheduler.release());  // NOLINT(bugprone-unused-return-value)
  round->over = true;
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; }));  // all that was taken has run, or was destroyed
}

int runProcess(uint64_t seed) {
  ::alarm(kPatienceSeconds);
  std::vector<std::thread> lanes;
  for (uint64_t lane = 0; lane < kRoundsAtOnce; ++lane) {
    lanes.emplace_back([=] {
      for (uint64_t i = 0; i < kRoundsInARow; ++i) runRound(seed + lane * kRoundsInARow + i);
    });
  }
  for (std::thread& lane : lanes) lane.join();
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(StopDeadlineRace, EverythingEndsOrIsToldHoweverManyWorkersAreStuck) {
  const uint64_t seed = test::seed();
  for (uint64_t process = 0; process < test::scaled(kProcesses); ++process) {
    const uint64_t mine = seed + process * kRoundsAtOnce * kRoundsInARow;
    std::cout.flush();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const int code = runProcess(mine);
      std::cout.flush();
      ::_exit(code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "SYLAR_TEST_SEED=" << mine << " repeats it; SIGALRM: somebody waits for ever";
  }
}

}  // namespace
}  // namespace sylar
