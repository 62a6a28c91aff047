// A fiber that joins another one lets it run next, and goes on next when that has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/scheduler.h"

namespace sylar {
namespace {

/// One worker on a clock that stands still unless the test moves it.
class JoinOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    SchedulerOptions options;
    options.threads = 1;
    options.use_caller = false;
    options.name = "joins";
    options.clock = &clock;
    scheduler = std::make_unique<Scheduler>(options);
    scheduler->start();
  }

  /// Runs `main` in a fiber, before the scheduler stops, and then all that comes of it.
  void run(const std::function<void()>& main) {
    std::latch ended(1);
    scheduler->schedule([&] {
      main();
      ended.count_down();
    });
    ended.wait();
    scheduler->stop();
  }
  Fiber::ptr spawn(std::function<void()> work) const {
    auto fiber = std::make_shared<Fiber>(std::move(work));
    scheduler->schedule(fiber);
    return fiber;
  }
  Fiber::ptr spawn(char name) {
    return spawn([this, name] { order += name; });
  }

  /// A binary tree in which each fiber joins its two children. Counts those that have begun and not ended.
  void grow(int depth) {
    most_alive = std::max(most_alive, ++alive);
    if (depth > 0) {
      const Fiber::ptr left = spawn([this, depth] { grow(depth - 1); });
      const Fiber::ptr right = spawn([this, depth] { grow(depth - 1); });
      left->join();
      right->join();
    } else {
      if (at_leaf) at_leaf();
      ++leaves;
    }
    --alive;
  }

  ManualClock clock{std::chrono::hours(1)};
  std::unique_ptr<Scheduler> scheduler;
  std::string order;
  std::function<void()> at_leaf;
  int alive = 0;
  int most_alive = 0;
  int leaves = 0;
};

// P-12
TEST_F(JoinOrderTest, TheJoinedFiberRunsBeforeOlderWork) {
  run([this] {
    spawn('a');
    spawn('b');
    const Fiber::ptr joined = spawn('c');
    spawn('d');
    joined->join();
    order += '!';
  });
  EXPECT_EQ(order, "c!abd");
}

// P-12
TEST_F(JoinOrderTest, ATreeGrowsInDepthAndNeedsAsManyStacksAsItIsDeep) {
  run([this] { grow(12); });
  EXPECT_EQ(leaves, 4096);
  EXPECT_LE(most_alive, 6 * 13);  // the oldest work has had its turn five times
}

// P-12, FM-46
TEST_F(JoinOrderTest, ATreeDoesNotKeepOtherWorkWaiting) {
  int leaves_before = -1;
  at_leaf = [this] { clock.advance(std::chrono::milliseconds(1)); };
  run([&] {
    spawn([&] { leaves_before = leaves; });
    grow(10);
  });
  EXPECT_EQ(leaves, 1024);
  EXPECT_LE(leaves_before, 64);  // it was queued first, and 10 ms are for the tree
}

// P-12, FM-46
TEST_F(JoinOrderTest, ATreeDoesNotKeepRunnableFibersWaiting) {
  int turns = 0;
  int longest = 0;
  run([&] {
    bool begun = false;
    bool over = false;
    const Fiber::ptr other = spawn([&] {
      begun = true;
      while (!over) {
        const int before = leaves;
        Fiber::YieldToReady();
        longest = std::max(longest, leaves - before);
        ++turns;
      }
    });
    while (!begun) Fiber::YieldToReady();
    grow(10);
    over = true;
    other->join();
  });
  EXPECT_EQ(leaves, 1024);
  // Each turn of it lets another branch begin, and takes its place behind all of them, of which each ends eight leaves or so.
  EXPECT_GT(turns, 10);
  EXPECT_LE(longest, 10 * turns);
}

// FM-46: nor does a chain in which each fiber joins the next.
TEST_F(JoinOrderTest, AChainDoesNotKeepRunnableFibersWaiting) {
  int begun = 0;
  int longest = 0;
  const std::function<void(int)> chain = [&](int left) {
    ++begun;
    if (left > 0) spawn([&chain, left] { chain(left - 1); })->join();
  };
  run([&] {
    int turns = 0;
    bool over = false;
    const Fiber::ptr other = spawn([&] {
      while (!over) {
        const int before = begun;
        Fiber::YieldToReady();
        longest = std::max(longest, begun - before);
        ++turns;
      }
    });
    while (turns == 0) Fiber::YieldToReady();
    chain(500);
    over = true;
    other->join();
  });
  EXPECT_EQ(begun, 501);
  EXPECT_LE(longest, 20);
}

// FM-46: time does not move on this clock, so the bound cannot be a time alone.
TEST_F(JoinOrderTest, JoinsWithoutEndDoNotKeepOtherWorkWaiting) {
  int joins = 0;
  run([&] {
    bool has_run = false;
    spawn([&has_run] { has_run = true; });
    while (!has_run) {
      spawn([] {})->join();
      ++joins;
    }
  });
  EXPECT_LE(joins, 4096);
}

// FM-46: nor does work that comes from outside prolong it.
TEST_F(JoinOrderTest, WorkFromOutsideDoesNotProlongTheWaitOfOlderWork) {
  int joins = 0;
  std::atomic<bool> has_run{false};
  std::thread outside([&] {
    while (!has_run) (void)scheduler->trySchedule([] {});
  });
  run([&] {
    spawn([&has_run] { has_run = true; });
    while (!has_run) {
      spawn([] {})->join();
      ++joins;
    }
  });
  outside.join();
  EXPECT_LE(joins, 4096);
}

// An exception handler runs in the worker's loop, between two fibers. What it resumes there is its own.
TEST_F(JoinOrderTest, AFiberThatTheLoopResumesByHandComesBackToTheLoop) {
  Fiber::SetExceptionHandler([this](uint64_t, const std::string&, const std::exception_ptr&) {
    const auto inner = std::make_shared<Fiber>([this] {
      order += 'a';
      Fiber::YieldToHold();
      order += 'c';
    });
    inner->resume();
    order += 'b';
    inner->resume();
  });
  run([this] {
    for (int i = 0; i < 2; ++i) {
      spawn([] {
        for (int k = 0; k < 20; ++k) Fiber::YieldToReady();
      });
    }
    spawn([] { throw std::runtime_error("on purpose"); });
    Fiber::YieldToReady();
    Fiber::YieldToReady();
  });
  Fiber::SetExceptionHandler(nullptr);
  EXPECT_EQ(order, "abc");
}

// Three fibers join a fourth one: all go on, in the order in which they came.
TEST_F(JoinOrderTest, JoinersGoOnInTheirOrder) {
  run([this] {
    const Fiber::ptr joined = spawn([this] {
      for (int i = 0; i < 10; ++i) Fiber::YieldToReady();  // all have joined it
      order += 'x';
    });
    for (const char name : {'1', '2', '3'}) {
      spawn([this, name, joined] {
        joined->join();
        order += name;
      });
    }
  });
  EXPECT_EQ(order, "x123");
}

// A fiber that is joined before anybody schedules it is not in the queue, and nothing is brought forward.
TEST_F(JoinOrderTest, AJoinComesBeforeTheSchedule) {
  run([this] {
    const auto late = std::make_shared<Fiber>([this] { order += 'l'; });
    spawn([this, late] {
      order += 's';
      scheduler->schedule(late);
    });
    Fiber::YieldToReady();
    late->join();
    order += '!';
  });
  EXPECT_EQ(order, "sl!");
}

// Pinned work stands in the run queue, and a join does not move it.
TEST_F(JoinOrderTest, PinnedWorkKeepsItsPlace) {
  run([this] {
    const auto pin = [this](char name) {
      auto fiber = std::make_shared<Fiber>([this, name] { order += name; });
      scheduler->schedule(fiber, sys::threadId());
      return fiber;
    };
    pin('a');
    const Fiber::ptr joined = pin('b');
    joined->join();
    order += '!';
  });
  EXPECT_EQ(order, "ab!");
}

}  // namespace
}  // namespace sylar
