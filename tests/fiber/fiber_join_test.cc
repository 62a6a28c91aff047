#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fiber/make.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::make;

TEST(FiberJoin, ReturnsAtOnceIfTheFiberHasEnded) {
  const auto fiber = make([] {});
  fiber->resume();
  fiber->join();
  fiber->join();
}

// CD-F9
TEST(FiberJoin, ThrowsWhatTheFunctionThrewOnce) {
  const auto fiber = make([] { throw std::runtime_error("taken by join"); });
  fiber->resume();
  testing::internal::CaptureStderr();
  try {
    fiber->join();
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "taken by join");
  }
  fiber->join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // taken, so not reported
}

TEST(FiberJoin, FiberMayJoinOneOnItsOwnPlainThreadThatHasEnded) {
  bool done = false;
  const auto outer = make([&] {
    const auto inner = make([] { throw 5; });
    inner->resume();
    EXPECT_THROW(inner->join(), int);
    done = true;
  });
  outer->resume();
  EXPECT_TRUE(done);
}

TEST(FiberJoinDeathTest, OneselfIsAProgrammerError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto join = [] {
    Fiber::GetThis()->setName("lonely");
    Fiber::GetThis()->join();
  };
  EXPECT_DEATH(make(join)->resume(), "fiber [0-9]+ lonely joins itself");
  EXPECT_DEATH(test::inFiber(join), "fiber [0-9]+ lonely joins itself");
}

// It never ends while it could be joined.
TEST(FiberJoinDeathTest, HandleOfAnOwnStackIsAProgrammerError) { EXPECT_DEATH(Fiber::GetThis()->join(), "check failed"); }

class FiberJoinOver : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, FiberJoinOver, test::kWorkerCounts);

TEST_P(FiberJoinOver, PlainThreadWaitsForAScheduledFiber) {
  IOManager iom(workers(), false, "join");
  for (int i = 0; i < 100; ++i) {
    int result = 0;  // plain: what the fiber wrote is visible after join()
    const auto fiber = make([&] {
      Fiber::YieldToReady();
      result = 42;
    });
    iom.schedule(fiber);
    fiber->join();
    EXPECT_EQ(result, 42);
    EXPECT_EQ(fiber->getState(), Fiber::TERM);
  }
}

TEST_P(FiberJoinOver, FiberIsSuspendedWhileItWaits) {
  std::atomic<int> joined{0};
  test::inFiber(
      [&] {
        Scheduler& scheduler = *Scheduler::GetThis();
        for (int i = 0; i < 50; ++i) {
          int result = 0;
          const auto fiber = make([&] {
            for (int turn = 0; turn < i % 5; ++turn) Fiber::YieldToReady();
            result = i + 1;
          });
          scheduler.schedule(fiber);
          fiber->join();  // with one worker the other can only run if this one is suspended
          EXPECT_EQ(result, i + 1);
          ++joined;
        }
      },
      workers());
  EXPECT_EQ(joined, 50);
}

TEST_P(FiberJoinOver, ManyMayJoinOneAndOneOfThemGetsTheException) {
  std::atomic<int> returned{0};
  std::atomic<int> caught{0};
  test::inFiber(
      [&] {
        Scheduler& scheduler = *Scheduler::GetThis();
        const auto awaited = make([] {
          for (int turn = 0; turn < 10; ++turn) Fiber::YieldToReady();
          throw std::runtime_error("for one of you");
        });
        std::vector<Fiber::ptr> joiners;
        for (int i = 0; i < 20; ++i) {
          joiners.push_back(make([&, awaited] {
            try {
              awaited->join();
            } catch (const std::runtime_error&) {
              ++caught;
            }
            ++returned;
          }));
          scheduler.schedule(joiners.back());
        }
        scheduler.schedule(awaited);
        for (const auto& joiner : joiners) joiner->join();
      },
      workers());
  EXPECT_EQ(returned, 20);
  EXPECT_EQ(caught, 1);
}

TEST_P(FiberJoinOver, FiberOnAWorkerMayResumeAndJoinByHand) {
  bool done = false;
  test::inFiber(
      [&] {
        const auto inner = make([] { Fiber::YieldToHold(); });
        inner->resume();
        inner->resume();
        inner->join();
        done = true;
      },
      workers());
  EXPECT_TRUE(done);
}

// Two threads, one fiber: join races with the end, in both orders.
TEST_P(FiberJoinOver, JoinRacesWithTheEnd) {
  IOManager iom(workers(), false, "join");
  for (int i = 0; i < 500; ++i) {
    const auto fiber = make([] { throw 1; });
    iom.schedule(fiber);
    if (i % 2 == 0) {
      EXPECT_THROW(fiber->join(), int);
    } else {
      std::thread other([fiber] { EXPECT_THROW(fiber->join(), int); });
      other.join();
    }
  }
}

}  // namespace
}  // namespace sylar
