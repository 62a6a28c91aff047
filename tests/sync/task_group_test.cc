#include "sylar/sync/task_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/event.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/sync/error_of.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::errorOf;
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

TEST_P(TaskGroupTest, ATaskMayOnlyBeMoved) {
  test::inFiber(
      [] {
        int seen = 0;
        TaskGroup group;
        group.spawn([&seen, number = std::make_unique<int>(7)] { seen = *number; });
        group.join();
        EXPECT_EQ(seen, 7);
      },
      workers());
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
      EXPECT_EQ(errorOf([&] { with_deadline ? void(group.join(Deadline::never())) : group.join(); }), ECANCELED);
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
          const int error = errorOf([&] { group.join(); });
          EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << "its tasks have the same deadline";
          EXPECT_EQ(ended, 5);
          EXPECT_EQ(errorOf([&] { older.join(Deadline::after(24h)); }), ETIMEDOUT);
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

// A shield hides the cancel, so the wait ends at its own deadline.
TEST_P(TaskGroupTest, AJoinInAShieldEndsAtItsDeadline) {
  IOManager iom(workers(), false, "shield");
  const auto owner = std::make_shared<Fiber>([] {
    Fiber::GetThis()->cancel();
    EXPECT_TRUE(this_fiber::cancelled());
    const this_fiber::CancelShield shield;
    Event go_on;
    TaskGroup group;
    group.spawn([&] { EXPECT_TRUE(go_on.wait()); });
    EXPECT_FALSE(group.join(Deadline::after(1ms)));
    go_on.set();
    group.join();
  });
  iom.schedule(owner);
  owner->join();
}

// Clean-up in a shield has all the time it needs, also where it spawns.
TEST_P(TaskGroupTest, TasksOfAShieldAreNotBounded) {
  test::inFiber(
      [] {
        withDeadline(Deadline::after(0ns), [] {
          const this_fiber::CancelShield shield;
          TaskGroup group;
          group.spawn([] { EXPECT_TRUE(this_fiber::deadline().isNever()); });
          group.join();
        });
      },
      workers());
}

// What a task owns is gone when the group says that it has ended.
TEST_P(TaskGroupTest, TheFunctionIsGoneWhenItHasEnded) {
  inGroup([](TaskGroup& group) {
    const auto owned = std::make_shared<int>(0);
    for (int i = 0; i < 100; ++i) {
      for (int k = 0; k < 5; ++k) group.spawn([owned] { Fiber::YieldToReady(); });
      group.join();
      ASSERT_EQ(owned.use_count(), 1);
    }
  });
}

// The tasks end within the grace of the stop, and so does their owner, with its destructors.
TEST_P(TaskGroupTest, AStopSparesTheOwnerOfTasksThatEnd) {
  std::atomic<bool> cleaned_up{false};
  test::Gate computing;
  IOManager iom(workers() + 1, false, "stop");
  iom.schedule([&] {
    struct CleanUp {
      ~CleanUp() { flag = true; }
      std::atomic<bool>& flag;
    } const clean_up{cleaned_up};
    TaskGroup group;
    group.spawn([&] {
      computing.open();
      // Computes until the deadline of the stop has passed and ended all shields, and then a little.
      const Deadline end = Deadline::after(30ms);
      while (steadyClock().nowNs() < end.ns()) continue;
    });
    (void)errorOf([&] { group.join(); });
  });
  ASSERT_TRUE(computing.wait());
  const StopResult result = iom.stop(Deadline::after(10ms));
  leaks().excuseLateWorkersOf(iom);
  if (result.clean) {
    EXPECT_TRUE(cleaned_up);
  }
  for (const FiberInfo& left : result.abandoned)
    EXPECT_NE(left.waits_for, "waits") << "a slow machine may leave the task, but not its owner alone";
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

// Who waits for a slot in vain has none to give back.
TEST_P(TaskGroupTest, ATaskWithoutASlotGivesNoneBack) {
  test::inFiber(
      [] {
        Event go_on;
        std::atomic<bool> running{false};
        const auto alone = [&] {
          EXPECT_FALSE(running.exchange(true));
          EXPECT_TRUE(go_on.wait());
          EXPECT_TRUE(running.exchange(false));
        };
        const auto second = [] { ADD_FAILURE() << "runs beside another"; };
        TaskGroup group(1);
        EXPECT_TRUE(group.spawn(alone));
        withDeadline(Deadline::after(0ns), [&] {
          for (int i = 0; i < 3; ++i) EXPECT_FALSE(group.spawn(second));
        });
        go_on.set();
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(group.spawn(alone));
        group.join();
      },
      workers());
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

TEST(TaskGroupDeathTest, ATaskThatJoinsItsGroupIsNamed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto join = [](auto how) {
    test::inFiber([how] {
      TaskGroup group;
      group.spawn([&] {
        Fiber::GetThis()->setName("lonely");
        how(group);
      });
      group.join();
    });
  };
  const char* const says = "fiber [0-9]+ lonely joins the sylar::TaskGroup that it is a task of";
  EXPECT_DEATH(join([](TaskGroup& group) { (void)group.join(Deadline::after(1ms)); }), says);
  EXPECT_DEATH(join([](TaskGroup& group) { group.join(); }), says);
}

TEST(TaskGroup, WithoutASchedulerItIsRefused) { EXPECT_THROW(TaskGroup(), std::invalid_argument); }

}  // namespace
}  // namespace sylar
