// Tests SchedulerOptions::trim_after: the memory that waiting fibers give back, and the times at which a worker looks. The clock is
// the test's.
#include "sylar/sched/stack_trimmer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/clock.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/park.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/coroutine.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPage = 4096;
constexpr size_t kDeep = 64 * 1024;

/// Touches kDeep bytes of stack below the caller's frame.
[[gnu::noinline]] char goDeep(char seed) {
  volatile char deep[kDeep];
  for (size_t i = 0; i < kDeep; i += 512) deep[i] = static_cast<char>(seed + static_cast<char>(i / 512));
  char sum = 0;
  for (size_t i = 0; i < kDeep; i += 512) sum = static_cast<char>(sum + deep[i]);
  return sum;
}

size_t residentPages(const Stack& stack) {
  std::vector<unsigned char> pages((stack.size + kPage - 1) / kPage);
  EXPECT_EQ(mincore(stack.base, stack.size, pages.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

class StackTrimmerTest : public testing::Test {
 protected:
  explicit StackTrimmerTest(std::chrono::milliseconds after = 10s)
      : m_scheduler(
            SchedulerOptions{.threads = 1, .use_caller = false, .name = "trims", .clock = &m_clock, .trim_after = after}) {
    m_scheduler.start();
  }
  ~StackTrimmerTest() override { m_scheduler.stop(); }

  /// A fiber that goes deep, then waits until it is let on, again and again.
  struct Waiter {
    Fiber::ptr fiber;
    std::atomic<Waker*> waker{nullptr};
    std::atomic<int> waits{0};
    bool intact = true;
  };

  void begin(Waiter& waiter, int waits, bool in_coroutine = false) {
    const auto body = [&waiter, waits] {
      std::array<char, 300> mine;
      mine.fill('m');
      for (int i = 0; i < waits; ++i) {
        const char sum = goDeep('a');
        Wait wait;
        Waker waker = wait.waker();
        waiter.waker = &waker;
        ++waiter.waits;
        EXPECT_EQ(wait.park(), WakeReason::kReady);
        waiter.intact = waiter.intact && goDeep('a') == sum && std::ranges::all_of(mine, [](char c) { return c == 'm'; });
      }
    };
    waiter.fiber = std::make_shared<Fiber>([=] {
      goDeep('a');
      in_coroutine ? test::inCoroutine(body) : body();
    });
    m_scheduler.schedule(waiter.fiber);
    awaitWait(waiter, 1);
  }
  static void awaitWait(Waiter& waiter, int number) {
    EXPECT_TRUE(test::eventually([&] { return waiter.waits == number && stateOf(*waiter.fiber) == FiberState::kParked; }));
  }
  static void letOn(Waiter& waiter) {
    Waker waker = *waiter.waker.load();
    EXPECT_TRUE(waker.claim(WakeReason::kReady));
    Waker::deliver(*waker.core);
  }
  static const Stack& stackOf(const Waiter& waiter) { return ThreadFibers::coreOf(*waiter.fiber)->stack; }

  /// Sets the clock. Afterwards the worker has done what it does at that time: a turn runs at most 256 fibers, so this one sees the
  /// end of a turn that began after it.
  void at(std::chrono::seconds time) {
    m_clock.set(time);
    const auto fiber = std::make_shared<Fiber>([] {
      for (int i = 0; i < 600; ++i) Fiber::YieldToReady();
    });
    m_scheduler.schedule(fiber);
    fiber->join();
  }
  uint64_t trimmed() const { return m_scheduler.getWorkerStats().stacks_trimmed; }

 private:
  test::LeakCheck m_leaks;
  ManualClock m_clock;
  Scheduler m_scheduler;
};

class UntrimmedStackTest : public StackTrimmerTest {
 protected:
  UntrimmedStackTest() : StackTrimmerTest(0ms) {}
};

// P-9
TEST_F(StackTrimmerTest, AFiberThatWaitsForLongKeepsItsFramesOnly) {
  Waiter waiter;
  begin(waiter, 1);
  const size_t deep = residentPages(stackOf(waiter));
  EXPECT_GE(deep, kDeep / kPage);
  at(1s);
  at(11s);  // this sweep sees it for the first time
  EXPECT_EQ(trimmed(), 0u);
  EXPECT_EQ(residentPages(stackOf(waiter)), deep);
  at(21s);
  EXPECT_EQ(trimmed(), 1u);
  EXPECT_LE(residentPages(stackOf(waiter)), deep - kDeep / kPage + 2);  // what goDeep() shared with its neighbours stays
  letOn(waiter);
  waiter.fiber->join();
  EXPECT_TRUE(waiter.intact);
}

TEST_F(StackTrimmerTest, EachLongWaitIsTrimmedOnce) {
  Waiter waiter;
  begin(waiter, 2);
  at(1s);
  for (int second = 11; second <= 91; second += 10) at(std::chrono::seconds(second));
  EXPECT_EQ(trimmed(), 1u);
  letOn(waiter);
  awaitWait(waiter, 2);
  EXPECT_GE(residentPages(stackOf(waiter)), kDeep / kPage);
  for (int second = 101; second <= 181; second += 10) at(std::chrono::seconds(second));
  EXPECT_EQ(trimmed(), 2u);
  letOn(waiter);
  waiter.fiber->join();
  EXPECT_TRUE(waiter.intact);
}

TEST_F(StackTrimmerTest, AFiberThatHasRunBetweenTwoSweepsKeepsItsStack) {
  constexpr int kWaits = 6;
  Waiter waiter;
  begin(waiter, kWaits);
  at(1s);
  for (int i = 1; i < kWaits; ++i) {
    at(std::chrono::seconds(1 + 10 * i));
    letOn(waiter);
    awaitWait(waiter, i + 1);
  }
  EXPECT_EQ(trimmed(), 0u);
  EXPECT_GE(residentPages(stackOf(waiter)), kDeep / kPage);
  letOn(waiter);
  waiter.fiber->join();
  EXPECT_TRUE(waiter.intact);
}

#ifndef SYLAR_TSAN  // it takes another stack for deep calls
// Which pages of a stack are in use, only its own frames tell.
TEST_F(StackTrimmerTest, AFiberThatWaitsOnAStackOfItsOwnKeepsBoth) {
  Waiter waiter;
  begin(waiter, 1, true);
  const size_t deep = residentPages(stackOf(waiter));
  for (int second = 1; second <= 51; second += 10) at(std::chrono::seconds(second));
  EXPECT_EQ(trimmed(), 0u);
  EXPECT_EQ(residentPages(stackOf(waiter)), deep);
  letOn(waiter);
  waiter.fiber->join();
  EXPECT_TRUE(waiter.intact);
}
#endif

TEST_F(UntrimmedStackTest, NothingIsTrimmedWithoutTheSetting) {
  Waiter waiter;
  begin(waiter, 1);
  for (int second = 1; second <= 1001; second += 100) at(std::chrono::seconds(second));
  EXPECT_EQ(trimmed(), 0u);
  EXPECT_GE(residentPages(stackOf(waiter)), kDeep / kPage);
  letOn(waiter);
  waiter.fiber->join();
}

// C-55
TEST(StackTrimmer, SweepsEndWhenNothingRuns) {
  StackTrimmer trimmer(10);
  LiveFibers none;
  ManualClock clock;
  const auto next_after = [&](int64_t now_ns, uint64_t switches) {
    clock.set(std::chrono::nanoseconds(now_ns));
    EXPECT_FALSE(trimmer.run(clock, switches, none));
    return trimmer.nextNs();
  };
  EXPECT_EQ(next_after(0, 0), kNever);
  EXPECT_EQ(next_after(5, 1), 15);
  EXPECT_EQ(next_after(16, 1), 26);  // what has run may wait since
  EXPECT_EQ(next_after(26, 1), kNever);
  EXPECT_EQ(next_after(1000, 1), kNever);
  EXPECT_EQ(next_after(1000, 2), 1010);
}

TEST(StackTrimmer, ASweepOverManyTakesSeveralTurnsInWhichFibersComeAndGo) {
  constexpr size_t kFibers = 200;
  const auto cores = std::make_unique<FiberCore[]>(kFibers + 1);
  LiveFibers fibers;
  for (size_t i = 0; i < kFibers; ++i) fibers.add(cores[i]);
  StackTrimmer trimmer(10);
  ManualClock clock;
  EXPECT_FALSE(trimmer.run(clock, 1, fibers));
  clock.set(10ns);
  size_t turns = 1;
  while (trimmer.run(clock, 1, fibers)) {
    FiberCore* const next = fibers.walk();  // the one that the sweep would look at next goes, and one comes
    ASSERT_NE(next, nullptr);
    fibers.remove(*next);
    clock.advance(1ns);
    if (turns++ == 1) fibers.add(cores[kFibers]);
  }
  EXPECT_EQ(turns, 4u);
  EXPECT_EQ(trimmer.nextNs(), 23);  // a fiber at which it has looked late has then waited for 10 ns as well
  while (fibers.first() != nullptr) fibers.remove(*fibers.first());
}

}  // namespace
}  // namespace sylar
