// Fibers whose yields return to a worker, and what becomes of them by hand.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fiber/make.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::make;

class FiberScheduled : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, FiberScheduled, test::kWorkerCounts);

// CD-F6
TEST_P(FiberScheduled, HeldFibersEndWithTheirSchedulerThroughTheirOwnReturns) {
  constexpr int kFibers = 100;
  std::atomic<int> destroyed{0};
  struct OnTheStack {
    ~OnTheStack() { ++*count; }
    std::atomic<int>* count;
  };
  {
    IOManager iom(workers(), false, "held");
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&] {
        const OnTheStack guard{&destroyed};
        Fiber::YieldToHold();
      });
    }
  }
  EXPECT_EQ(destroyed, kFibers);
}  // LeakCheck: TotalFibers is back to what it was

// CD-F7
TEST_P(FiberScheduled, EachScheduledFunctionIsAFiberOfItsOwn) {
  constexpr int kFunctions = 300;
  std::vector<Fiber::ptr> fibers(kFunctions);
  {
    IOManager iom(workers(), false, "ids");
    for (auto& fiber : fibers) iom.schedule([&fiber] { fiber = Fiber::GetThis(); });
  }
  std::set<uint64_t> ids;
  for (const auto& fiber : fibers) EXPECT_TRUE(ids.insert(fiber->getId()).second);
}

// CD-F7: a stale handle does not reach the next task.
TEST_P(FiberScheduled, StaleHandleResumesNothing) {
  Fiber::ptr stale;
  int runs = 0;
  test::inFiber([&] {
    stale = Fiber::GetThis();
    ++runs;
  });
  testing::internal::CaptureStderr();
  test::inFiber([&] {
    const auto next = make([&] {
      ++runs;
      Fiber::YieldToHold();
      ++runs;
    });
    next->resume();
    stale->resume();
    EXPECT_EQ(runs, 2);
    next->resume();
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("resume refused, it is ended"), std::string::npos);
  EXPECT_EQ(runs, 3);
}

// CD-F1: resume on a worker returns to the resumer, not to the worker.
TEST_P(FiberScheduled, ResumeByHandReturnsToItsResumerOnAWorkerToo) {
  std::string order;
  test::inFiber(
      [&] {
        const auto inner = make([&] {
          order += 'b';
          Fiber::YieldToHold();
          order += 'd';
        });
        order += 'a';
        inner->resume();
        order += 'c';
        inner->resume();
        order += 'e';
      },
      workers());
  EXPECT_EQ(order, "abcde");
}

TEST_P(FiberScheduled, ResumeOfOneThatStandsInAQueueIsRefused) {
  testing::internal::CaptureStderr();
  int runs = 0;
  test::inFiber(
      [&] {
        const auto queued = make([&] { ++runs; });
        Scheduler::GetThis()->schedule(queued, static_cast<int>(sys::threadId()));
        queued->resume();
        EXPECT_EQ(runs, 0);
        queued->join();
      },
      workers());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("resume refused, it is in a scheduler's queue"), std::string::npos);
  EXPECT_EQ(runs, 1);
}

TEST_P(FiberScheduled, ResumeOfAParkedOneIsRefused) {
  testing::internal::CaptureStderr();
  std::string order;
  test::inFiber(
      [&] {
        const auto awaited = make([&] {
          Fiber::YieldToHold();
          order += 'c';
        });
        const auto parked = make([&] {
          order += 'a';
          awaited->join();
          order += 'd';
        });
        Scheduler& scheduler = *Scheduler::GetThis();
        const int here = static_cast<int>(sys::threadId());
        scheduler.schedule(awaited, here);
        scheduler.schedule(parked, here);
        while (order.empty()) Fiber::YieldToReady();
        parked->resume();
        EXPECT_EQ(parked->getState(), Fiber::HOLD);
        order += 'b';
        scheduler.schedule(awaited);
        parked->join();
      },
      workers());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("resume refused, it is parked"), std::string::npos);
  EXPECT_EQ(order, "abcd");
}

// A fiber may wait in the middle of a chain of resumes: the whole chain is suspended, and comes back where it was.
TEST_P(FiberScheduled, ParkedChainComesBackInOrder) {
  std::string order;
  test::inFiber(
      [&] {
        const auto awaited = make([&] { order += 'c'; });
        const auto inner = make([&] {
          order += 'b';
          Scheduler::GetThis()->schedule(awaited, static_cast<int>(sys::threadId()));
          awaited->join();
          order += 'd';
          Fiber::YieldToHold();
          order += 'f';
        });
        order += 'a';
        inner->resume();
        order += 'e';
        inner->resume();
        order += 'g';
      },
      workers());
  EXPECT_EQ(order, "abcdefg");
}

// A fiber that was started by hand on a plain thread may be given to a scheduler while it is held.
TEST_P(FiberScheduled, HandStartedOneMayBeScheduled) {
  std::string order;
  const auto fiber = make([&] {
    order += 'a';
    Fiber::YieldToHold();
    order += 'b';
    Fiber::YieldToReady();
    order += 'c';
  });
  fiber->resume();
  {
    IOManager iom(workers(), false, "adopt");
    iom.schedule(fiber);
    fiber->join();
  }
  EXPECT_EQ(order, "abc");
}

// CD-F9
TEST_P(FiberScheduled, ExceptionThatLeavesAFunctionIsReportedAndTheWorkerGoesOn) {
  testing::internal::CaptureStderr();
  std::atomic<int> after{0};
  {
    IOManager iom(workers(), false, "throws");
    for (int i = 0; i < 10; ++i) {
      iom.schedule([] { throw std::runtime_error("nobody joins me"); });
      iom.schedule([&] { ++after; });
    }
  }
  const std::string text = testing::internal::GetCapturedStderr();
  int reports = 0;
  for (size_t at = text.find("nobody joins me"); at != std::string::npos; at = text.find("nobody joins me", at + 1)) ++reports;
  EXPECT_EQ(reports, 10);
  EXPECT_EQ(after, 10);
}

// CD-F5, FM-38, the part of this module: a fiber is runnable only after it has left its stack.
TEST_P(FiberScheduled, RescheduledByOthersWhileItYields) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  constexpr int kRounds = 200;
#else
  constexpr int kRounds = 2'000;
#endif
  constexpr int kFibers = 64;
  std::atomic<int> ended{0};
  {
    IOManager iom(workers(), false, "stress");
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&] {
        for (int round = 0; round < kRounds; ++round) {
          Scheduler::GetThis()->schedule(Fiber::GetThis());  // a permit, or a wake
          Fiber::YieldToHold();
        }
        ++ended;
      });
    }
  }
  EXPECT_EQ(ended, kFibers);
}

}  // namespace
}  // namespace sylar
