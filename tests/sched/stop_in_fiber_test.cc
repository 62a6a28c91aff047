// A fiber that stops another scheduler, or destroys one, waits as for anything else: its worker goes on.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "sylar/base/sanitizers.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::Gate;
using test::LeakCheck;

/// A scheduler whose only function blocks its thread until `go_on` is opened.
std::unique_ptr<Scheduler> blocked(Gate& runs, Gate& go_on, bool& ended) {
  auto scheduler = std::make_unique<Scheduler>(1, false, "other");
  scheduler->start();
  scheduler->schedule([&] {
    runs.open();
    EXPECT_TRUE(go_on.wait());
    ended = true;
  });
  EXPECT_TRUE(runs.wait());
  return scheduler;
}

class StopInFiberTest : public ::testing::TestWithParam<std::function<void(std::unique_ptr<Scheduler>& other)>> {};
INSTANTIATE_TEST_SUITE_P(Ways, StopInFiberTest,
                         ::testing::Values([](std::unique_ptr<Scheduler>& other) { other->stop(); },
                                           [](std::unique_ptr<Scheduler>& other) {
                                             EXPECT_TRUE(other->stop(Deadline::after(test::kPatience)).clean);
                                           },
                                           [](std::unique_ptr<Scheduler>& other) { other = nullptr; }));

// It held the only worker, which the other scheduler was waiting for.
TEST_P(StopInFiberTest, OthersOfItsWorkerRun) {
  const LeakCheck leaks;
  Gate runs, go_on;
  bool ended = false;
  Scheduler scheduler(1, false, "stopping");
  scheduler.start();
  scheduler.schedule([&] {
    std::unique_ptr<Scheduler> other = blocked(runs, go_on, ended);
    scheduler.schedule([&] { go_on.open(); });
    GetParam()(other);
    EXPECT_TRUE(ended);
  });
  scheduler.stop();
  EXPECT_TRUE(ended);
}

TEST_P(StopInFiberTest, ACancelDoesNotEndTheWait) {
  const LeakCheck leaks;
  Gate runs, go_on;
  bool ended = false;
  Scheduler scheduler(1, false, "stopping");
  scheduler.start();
  const auto fiber = std::make_shared<Fiber>([&] {
    std::unique_ptr<Scheduler> other = blocked(runs, go_on, ended);
    scheduler.schedule([&, self = Fiber::GetThis()] {
      self->cancel();
      scheduler.schedule([&] { go_on.open(); });
    });
    GetParam()(other);
    EXPECT_TRUE(ended);
    EXPECT_TRUE(this_fiber::cancelled());
  });
  scheduler.schedule(fiber);
  fiber->join();
}

// Cause: each had a thread for it, of which the end woke one. Both would have joined the workers.
TEST_P(StopInFiberTest, TheOneThatAnotherFiberIsStoppingIsWaitedFor) {
  const LeakCheck leaks;
  for (int round = 0; round < 50; ++round) {
    Gate runs, go_on;
    bool ended = false;
    std::unique_ptr<Scheduler> other = blocked(runs, go_on, ended);
    int stopped = 0;
    Scheduler scheduler(1, false, "stopping");
    scheduler.start();
    scheduler.schedule([&] {
      const auto stop = [&] {
        other->stop();
        EXPECT_TRUE(ended);
        ++stopped;
      };
      const auto first = std::make_shared<Fiber>(stop);
      const auto second = std::make_shared<Fiber>(stop);
      scheduler.schedule(first);
      scheduler.schedule(second);
      scheduler.schedule([&] { go_on.open(); });
      first->join();
      second->join();
      GetParam()(other);
    });
    scheduler.stop();
    EXPECT_EQ(stopped, 2);
  }
}

// A destructor that runs in the end of a scheduler does not wait for that end.
TEST(StopInFiber, WhatTheEndDestroysMayStopItAgain) {
  const LeakCheck leaks;
  struct Dropping : Scheduler {
    Dropping() : Scheduler(1, false, "other") {}
    ~Dropping() override { stop(); }
    void dropPending() override {
      stop();
      dropped = true;
    }
    bool dropped = false;
  };
  Scheduler scheduler(1, false, "stopping");
  scheduler.schedule([] {
    Dropping other;
    other.start();
    other.stop();
    EXPECT_TRUE(other.dropped);
  });
  scheduler.stop();
}

#ifndef SYLAR_TSAN  // for which the thread is leaked that the abandoned fiber would have joined
// The thread that ends the other one uses what the fiber has on its stack.
TEST(StopInFiber, OneThatIsAbandonedMeanwhileLeavesItsStack) {
  static Gate runs, go_on;
  static bool ended = false;
  static Scheduler* const other = blocked(runs, go_on, ended).release();  // outlives the fiber
  Gate waits;
  Scheduler scheduler(1, false, "stopping");
  scheduler.start();
  scheduler.schedule([&] {
    scheduler.schedule([&] { waits.open(); });
    other->stop();
    ADD_FAILURE() << "it is abandoned";
  });
  ASSERT_TRUE(waits.wait());
  const StopResult result = scheduler.stop(Deadline::after(std::chrono::seconds(0)));
  ASSERT_EQ(result.abandoned.size(), 1u);
  go_on.open();
  EXPECT_TRUE(test::eventually([] { return !other->trySchedule([] {}); })) << "it has ended";
}
#endif

TEST(StopInFiber, OneWithoutWorkEnds) {
  const LeakCheck leaks;
  Scheduler scheduler(1, false, "stopping");
  scheduler.schedule([] {
    Scheduler other(2, false, "other");
    other.stop();
    Scheduler started(2, false, "started");
    started.start();
    started.stop();
    EXPECT_TRUE(started.stop(Deadline::never()).clean);
  });
  scheduler.stop();
}

}  // namespace
}  // namespace sylar
