#include "sylar/sync/worker_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using test::waiterOn;

class WorkerGroupTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, WorkerGroupTest, test::kWorkerCounts);

TEST_P(WorkerGroupTest, RunsSoManyAtATimeAndWaitsForAll) {
  std::atomic<int> running{0}, most{0}, ran{0};
  test::inFiber(
      [&] {
        const WorkerGroup::ptr group = WorkerGroup::Create(3);
        for (int i = 0; i < 50; ++i) {
          EXPECT_TRUE(group->schedule([&] {
            const int now = ++running;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
            Fiber::YieldToReady();
            --running;
            ++ran;
          }));
        }
        EXPECT_TRUE(group->waitAll());
        EXPECT_EQ(ran, 50);
      },
      workers());
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST_P(WorkerGroupTest, WhatThrowsHasEnded) {
  Fiber::SetExceptionHandler([](uint64_t, const std::string&, const std::exception_ptr&) {});
  test::inFiber(
      [&] {
        const auto group = WorkerGroup::Create(1);
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(group->schedule([] { throw std::runtime_error("of a worker"); }));
        EXPECT_TRUE(group->waitAll());
      },
      workers());
  Fiber::SetExceptionHandler(nullptr);
}

TEST_P(WorkerGroupTest, ACancelEndsTheWaitForASlot) {
  IOManager iom(workers(), false, "cancel");
  std::atomic<bool> go_on{false};
  const auto group = WorkerGroup::Create(1, &iom);
  EXPECT_TRUE(group->schedule([&] {
    while (!go_on) Fiber::YieldToReady();
  }));
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    EXPECT_FALSE(group->schedule([] { ADD_FAILURE(); }));
    EXPECT_FALSE(group->waitAll());
  });
  fiber->cancel();
  fiber->join();
  go_on = true;
  EXPECT_TRUE(group->waitAll());
}

TEST(WorkerGroup, WhatItsSchedulerRefusesIsNotWaitedFor) {
  IOManager iom(1, false, "over");
  const auto group = WorkerGroup::Create(1, &iom);
  iom.stop();
  EXPECT_FALSE(group->schedule([] { ADD_FAILURE(); }));
  EXPECT_FALSE(group->schedule([] { ADD_FAILURE(); }));
  EXPECT_TRUE(group->waitAll());
}

TEST_P(WorkerGroupTest, TheFunctionIsGoneWhenItHasEnded) {
  test::inFiber(
      [] {
        const auto group = WorkerGroup::Create(3);
        const auto owned = std::make_shared<int>(0);
        for (int i = 0; i < 100; ++i) {
          for (int k = 0; k < 5; ++k) group->schedule([owned] { Fiber::YieldToReady(); });
          EXPECT_TRUE(group->waitAll());
          ASSERT_EQ(owned.use_count(), 1);
        }
      },
      workers());
}

TEST(WorkerGroup, OneThatNoSharedPointerHoldsTakesNothing) {
  IOManager iom(1, false, "stack");
  WorkerGroup group(1, &iom);
  EXPECT_THROW(group.schedule([] {}), std::bad_weak_ptr);
  EXPECT_TRUE(group.waitAll());
}

TEST(WorkerGroup, NoSlotsOrNoSchedulerIsRefused) {
  EXPECT_THROW(WorkerGroup::Create(1), std::invalid_argument);
  IOManager iom(1, false, "group");
  EXPECT_THROW(WorkerGroup::Create(0, &iom), std::invalid_argument);
}

}  // namespace
}  // namespace sylar
