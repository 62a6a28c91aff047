#include "sylar/sync/task_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/event.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class TaskGroupTest : public test::OverWorkers {
 protected:
  /// Runs `body` in a fiber, with a group of the same scheduler.
  template <class Body>
  void inGroup(Body body) {
    test::inFiber(
        [&] {
          TaskGroup group;
          body(group);
        },
        workers());
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, TaskGroupTest, test::kWorkerCounts);

TEST_P(TaskGroupTest, JoinWaitsForAll) {
  inGroup([](TaskGroup& group) {
    std::atomic<int> ran{0};
    group.join();
    for (int round = 1; round <= 2; ++round) {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(group.spawn([&] {
          Fiber::YieldToReady();
          ++ran;
        }));
      }
      group.join();
      EXPECT_EQ(ran, 100 * round);
    }
  });
}

TEST_P(TaskGroupTest, LeavingTheScopeWaitsForAll) {
  std::atomic<int> ran{0};
  test::inFiber(
      [&] {
        {
          TaskGroup group;
          for (int i = 0; i < 20; ++i) {
            group.spawn([&] {
              Fiber::YieldToReady();
              ++ran;
            });
          }
        }
        EXPECT_EQ(ran, 20);
      },
      workers());
}

TEST_P(TaskGroupTest, TheFirstExceptionCancelsTheOthersAndIsThrown) {
  inGroup([](TaskGroup& group) {
    Event never;
    std::atomic<int> cancelled{0};
    for (int i = 0; i < 20; ++i) group.spawn([&] { cancelled += never.wait() ? 0 : 1; });
    group.spawn([] { throw std::runtime_error("the first"); });
    try {
      group.join();
      ADD_FAILURE();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "the first");
    }
    EXPECT_EQ(cancelled, 20);
    EXPECT_FALSE(group.spawn([] { ADD_FAILURE(); })) << "it was cancelled";
    group.join();  // thrown once
  });
}

TEST_P(TaskGroupTest, AScopeLeftByAnExceptionCancelsItsTasks) {
  test::inFiber(
      [] {
        Event never;
        std::atomic<int> cancelled{0};
        try {
          TaskGroup group;
          for (int i = 0; i < 5; ++i) group.spawn([&] { cancelled += never.wait() ? 0 : 1; });
          throw std::runtime_error("out");
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(cancelled, 5);
      },
      workers());
}

TEST_P(TaskGroupTest, ACancelOfTheOwnerReachesTheTasks) {
  IOManager iom(workers(), false, "cancel");
  Event never;
  std::atomic<int> cancelled{0};
  for (const bool with_deadline : {false, true}) {
    cancelled = 0;
    const Fiber::ptr owner = waiterOn(iom, [&] {
      TaskGroup group;
      for (int i = 0; i < 5; ++i) group.spawn([&] { cancelled += never.wait() ? 0 : 1; });
      with_deadline ? void(group.join(Deadline::never())) : group.join();
      EXPECT_EQ(cancelled, 5);
    });
    owner->cancel();
    owner->join();
    EXPECT_EQ(cancelled, 5);
  }
}

TEST_P(TaskGroupTest, ADeadlineEndsTheWaitAndNotTheTasks) {
  inGroup([](TaskGroup& group) {
    Event go_on;
    std::atomic<int> ran{0};
    group.spawn([&] { ran += go_on.wait() ? 1 : 0; });
    EXPECT_FALSE(group.join(Deadline::after(1ms)));
    EXPECT_EQ(ran, 0);
    go_on.set();
    EXPECT_TRUE(group.join(Deadline::never()));
    EXPECT_EQ(ran, 1);
  });
}

TEST_P(TaskGroupTest, ADeadlineScopeReachesTheTasks) {
  Event never;
  std::atomic<int> ended{0}, own{0};
  test::inFiber(
      [&] {
        TaskGroup older;
        older.spawn([&] { own += never.wait() ? 0 : 1; });
        const Deadline deadline = Deadline::after(1ms);
        withDeadline(deadline, [&] {
          TaskGroup group;
          for (int i = 0; i < 5; ++i) {
            group.spawn([&] {
              EXPECT_EQ(this_fiber::deadline(), deadline);
              ended += never.wait() ? 0 : 1;
            });
          }
          group.join();
          EXPECT_EQ(ended, 5);
          older.join();
          EXPECT_EQ(own, 1) << "cancelled, because time is up for those who wait for it";
        });
      },
      workers());
}

// After the deadline a primitive still gives what it has, and a lock without a deadline of its own is waited for.
TEST_P(TaskGroupTest, ADeadlineScopeBoundsThePrimitives) {
  Event set, never;
  set.set();
  Mutex mutex;
  IOManager iom(workers(), false, "bound");
  mutex.lock();
  Event locking;
  const auto fiber = std::make_shared<Fiber>([&] {
    withDeadline(Deadline::after(0ns), [&] {
      EXPECT_TRUE(set.wait());
      EXPECT_FALSE(never.wait());
      EXPECT_FALSE(mutex.lock(Deadline::never()));
      locking.set();
      const Mutex::Lock lock(mutex);
    });
  });
  iom.schedule(fiber);
  EXPECT_TRUE(locking.wait());
  mutex.unlock();
  fiber->join();
}

TEST_P(TaskGroupTest, SoManyRunAtATime) {
  std::atomic<int> running{0}, most{0}, ran{0};
  test::inFiber(
      [&] {
        TaskGroup group(3);
        for (int i = 0; i < 50; ++i) {
          EXPECT_TRUE(group.spawn([&] {
            const int now = ++running;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
            Fiber::YieldToReady();
            --running;
            ++ran;
          }));
        }
        group.join();
      },
      workers());
  EXPECT_EQ(ran, 50);
  EXPECT_LE(most, 3);
}

TEST_P(TaskGroupTest, ATaskMaySpawnOthers) {
  inGroup([](TaskGroup& group) {
    std::atomic<int> ran{0};
    std::function<void(int)> tree = [&](int depth) {
      ++ran;
      for (int i = 0; depth > 0 && i < 3; ++i) group.spawn([&tree, depth] { tree(depth - 1); });
    };
    group.spawn([&] { tree(4); });
    group.join();
    EXPECT_EQ(ran, 1 + 3 + 9 + 27 + 81);
  });
}

TEST_P(TaskGroupTest, AThreadSpawnsAndJoins) {
  IOManager iom(workers(), false, "thread");
  std::atomic<int> ran{0};
  TaskGroup group(2, &iom);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(group.spawn([&] { ++ran; }));
  group.join();
  EXPECT_EQ(ran, 20);
}

TEST(TaskGroup, WhatItsSchedulerRefusesIsNotWaitedFor) {
  IOManager iom(1, false, "over");
  iom.stop();
  TaskGroup group(1, &iom);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(group.spawn([] { ADD_FAILURE(); }));
  group.join();
}

TEST(TaskGroup, AnExceptionThatNoJoinHasThrownIsLogged) {
  testing::internal::CaptureStderr();
  test::inFiber([] {
    TaskGroup group;
    group.spawn([] { throw std::runtime_error("unjoined"); });
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no join() has thrown: unjoined"), std::string::npos);
}

TEST(TaskGroup, WithoutASchedulerItIsRefused) { EXPECT_THROW(TaskGroup(), std::invalid_argument); }

}  // namespace
}  // namespace sylar
