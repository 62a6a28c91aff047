// Fibers by hand: resume and yield on a plain thread.
#include "sylar/fiber.h"

#include <execinfo.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/fiber/stack.h"
#include "tests/fiber/make.h"

namespace sylar {
namespace {

using test::make;

/// Returns what the library logs while `body` runs.
std::string logOf(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

/// resume() of `fiber` is refused: one log line that says `why`, and no effect.
void expectRefused(const Fiber::ptr& fiber, const std::string& why) {
  const Fiber::State before = fiber->getState();
  const std::string log = logOf([&] { fiber->resume(); });
  EXPECT_NE(log.find("fiber " + std::to_string(fiber->getId()) + ": resume refused, it is " + why), std::string::npos) << log;
  EXPECT_EQ(fiber->getState(), before);
}

TEST(Fiber, ResumeRunsUntilYieldAndYieldGoesOnAtResume) {
  std::string order;
  const auto fiber = make([&] {
    order += 'b';
    Fiber::GetThis()->yield();
    order += 'd';
  });
  order += 'a';
  fiber->resume();
  order += 'c';
  fiber->resume();
  order += 'e';
  EXPECT_EQ(order, "abcde");
}

// Trap 10
TEST(Fiber, EveryPairOfSpellingsSuspendsAndGoesOn) {
  using Call = void (*)(Fiber&);
  const Call resumes[] = {[](Fiber& f) { f.resume(); }, [](Fiber& f) { f.swapIn(); }, [](Fiber& f) { f.call(); }};
  const struct {
    Call yield;
    Fiber::State state;
  } yields[] = {
      {[](Fiber& f) { f.yield(); }, Fiber::HOLD},
      {[](Fiber& f) { f.swapOut(); }, Fiber::HOLD},
      {[](Fiber& f) { f.back(); }, Fiber::HOLD},
      {[](Fiber&) { Fiber::YieldToHold(); }, Fiber::HOLD},
      {[](Fiber&) { Fiber::YieldToReady(); }, Fiber::READY},
  };
  for (const Call resume : resumes) {
    for (const auto& row : yields) {
      int step = 0;
      const auto fiber = make([&] {
        step = 1;
        row.yield(*Fiber::GetThis());
        step = 2;
      });
      resume(*fiber);
      EXPECT_EQ(step, 1);
      EXPECT_EQ(fiber->getState(), row.state);
      resume(*fiber);
      EXPECT_EQ(step, 2);
      EXPECT_EQ(fiber->getState(), Fiber::TERM);
    }
  }
}

TEST(Fiber, StatesThroughALife) {
  EXPECT_EQ(Fiber::RUNNING, Fiber::EXEC);
  Fiber::ptr fiber;
  fiber = make([&] {
    EXPECT_EQ(fiber->getState(), Fiber::EXEC);
    const auto inner = make([&] { EXPECT_EQ(fiber->getState(), Fiber::EXEC); });  // it has resumed one that runs
    inner->resume();
    Fiber::YieldToHold();
    Fiber::YieldToReady();
  });
  EXPECT_EQ(fiber->getState(), Fiber::INIT);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::HOLD);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::READY);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);

  const auto failing = make([] { throw std::runtime_error("expected"); });
  failing->resume();
  EXPECT_EQ(failing->getState(), Fiber::EXCEPT);
  EXPECT_THROW(failing->join(), std::runtime_error);
}

// CD-F1
TEST(Fiber, ReturnsToItsResumerAtEveryDepth) {
  std::string order;
  std::function<void(int)> nest = [&](int depth) {
    order += static_cast<char>('0' + depth);
    if (depth < 5) {
      const auto inner = make([&nest, depth] { nest(depth + 1); });
      inner->resume();
      order += '<';
      inner->resume();
    }
    Fiber::YieldToHold();
    order += static_cast<char>('0' + depth);
  };
  const auto outer = make([&] { nest(0); });
  outer->resume();
  EXPECT_EQ(order, "012345<5<4<3<2<1");
  outer->resume();
  EXPECT_EQ(order, "012345<5<4<3<2<10");
  EXPECT_EQ(outer->getState(), Fiber::TERM);
}

// CD-F1: a fiber goes back to who resumed it now, not to who resumed it first.
TEST(Fiber, ResumerMayChange) {
  std::string order;
  const auto shared = make([&] {
    order += 'x';
    Fiber::YieldToHold();
    order += 'y';
    Fiber::YieldToHold();
    order += 'z';
  });
  const auto first = make([&] {
    shared->resume();
    order += '1';
  });
  const auto second = make([&] {
    shared->resume();
    order += '2';
  });
  first->resume();
  second->resume();
  shared->resume();
  EXPECT_EQ(order, "x1y2z");
  EXPECT_EQ(shared->getState(), Fiber::TERM);
}

// CD-F1
TEST(Fiber, RunsOnAnyPlainThread) {
  int runs = 0;
  std::thread([&] {
    const auto fiber = make([&] {
      ++runs;
      Fiber::YieldToHold();
      ++runs;
    });
    fiber->resume();
    fiber->resume();
    EXPECT_EQ(fiber->getState(), Fiber::TERM);
  }).join();
  EXPECT_EQ(runs, 2);
}

TEST(Fiber, TwoFibersTakeTurns) {
  std::string order;
  const auto speak = [&order](char letter) {
    return make([&order, letter] {
      for (int i = 0; i < 3; ++i) {
        order += letter;
        Fiber::YieldToReady();
      }
    });
  };
  const auto a = speak('a');
  const auto b = speak('b');
  for (int i = 0; i < 4; ++i) {
    a->resume();
    b->resume();
  }
  EXPECT_EQ(order, "ababab");
}

TEST(Fiber, UsesTheStackSizeThatWasAskedFor) {
  constexpr size_t kLarge = 1024 * 1024;
  const auto fiber = std::make_shared<Fiber>(
      [] {
        char frame[kLarge - 64 * 1024];
        frame[0] = 1;
        asm volatile("" : : "r"(frame) : "memory");
      },
      kLarge);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

TEST(Fiber, DefaultStackSizeIsForFibersMadeFromNowOn) {
  Fiber::SetDefaultStackSize(1024 * 1024);
  const auto fiber = make([] {
    char frame[768 * 1024];
    frame[0] = 1;
    asm volatile("" : : "r"(frame) : "memory");
  });
  Fiber::SetDefaultStackSize(kDefaultStackSize);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

// ---- Identity. ---------------------------------------------------------------------------------------------------------------

TEST(Fiber, GetThisIsTheRunningFiber) {
  Fiber::ptr outer, inner;
  inner = make([&] {
    EXPECT_EQ(Fiber::GetThis(), inner);
    EXPECT_EQ(Fiber::GetFiberId(), inner->getId());
    Fiber::YieldToHold();
    EXPECT_EQ(Fiber::GetThis(), inner);
  });
  outer = make([&] {
    inner->resume();
    EXPECT_EQ(Fiber::GetThis(), outer);
    EXPECT_EQ(Fiber::GetFiberId(), outer->getId());
    inner->resume();
    EXPECT_EQ(Fiber::GetThis(), outer);
  });
  outer->resume();
  EXPECT_EQ(Fiber::GetFiberId(), 0u);
}

// As in sylar, the first GetThis() on a thread creates its main fiber, id 0.
TEST(Fiber, OwnStackOfAThreadHasAHandleWithIdZero) {
  const Fiber::ptr here = Fiber::GetThis();
  EXPECT_EQ(here->getId(), 0u);
  EXPECT_EQ(here->getState(), Fiber::EXEC);
  EXPECT_EQ(Fiber::GetThis(), here);
  std::thread([&] {
    EXPECT_EQ(Fiber::GetThis()->getId(), 0u);
    EXPECT_NE(Fiber::GetThis(), here);
  }).join();
}

TEST(Fiber, HandleOfTheOwnStackRefusesEverything) {
  const Fiber::ptr here = Fiber::GetThis();
  expectRefused(here, "running");
  EXPECT_NE(logOf([&] { here->yield(); }).find("yield refused"), std::string::npos);
  EXPECT_THROW(here->reset([] {}), std::logic_error);
  Fiber::YieldToHold();
  Fiber::YieldToReady();
  EXPECT_EQ(here->getState(), Fiber::EXEC);
}

// CD-F7
TEST(Fiber, IdsAreNeverUsedAgain) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(ids.insert(make([] {})->getId()).second);
  for (int t = 0; t < 4; ++t) {
    std::thread([&] {
      for (int i = 0; i < 1500; ++i) EXPECT_TRUE(ids.insert(make([] {})->getId()).second);
    }).join();
  }
  EXPECT_EQ(ids.count(0), 0u);
}

// ---- Refusals. ---------------------------------------------------------------------------------------------------------------

TEST(Fiber, NullFunctionIsRefused) {
  const uint64_t before = Fiber::TotalFibers();
  EXPECT_THROW(make(nullptr), std::invalid_argument);
  EXPECT_EQ(Fiber::TotalFibers(), before);
  const auto fiber = make([] {});
  EXPECT_THROW(fiber->reset(nullptr), std::invalid_argument);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

TEST(Fiber, ResumeOfTheRunningOneIsRefused) {
  Fiber::ptr fiber;
  bool went_on = false;
  fiber = make([&] {
    expectRefused(fiber, "running");
    went_on = true;
  });
  fiber->resume();
  EXPECT_TRUE(went_on);
}

TEST(Fiber, ResumeOfOneThatHasResumedUsIsRefused) {
  Fiber::ptr outer;
  outer = make([&] {
    const auto inner = make([&] { expectRefused(outer, "waiting for a fiber that it resumed"); });
    inner->resume();
    EXPECT_EQ(inner->getState(), Fiber::TERM);
  });
  outer->resume();
  EXPECT_EQ(outer->getState(), Fiber::TERM);
}

// CD-F7
TEST(Fiber, ResumeOfOneThatHasEndedIsRefused) {
  int runs = 0;
  const auto fiber = make([&] { ++runs; });
  fiber->resume();
  expectRefused(fiber, "ended");
  const auto failing = make([] { throw 1; });
  failing->resume();
  expectRefused(failing, "ended by an exception");
  EXPECT_THROW(failing->join(), int);
  EXPECT_EQ(runs, 1);
}

// CD-F4
TEST(Fiber, ResumeOnAnotherThreadIsRefused) {
  int step = 0;
  const auto fiber = make([&] {
    step = 1;
    Fiber::YieldToHold();
    step = 2;
    Fiber::YieldToReady();
    step = 3;
  });
  fiber->resume();
  std::thread([&] { expectRefused(fiber, "held on another thread"); }).join();
  EXPECT_EQ(step, 1);
  fiber->resume();
  std::thread([&] { expectRefused(fiber, "ready on another thread"); }).join();
  EXPECT_EQ(step, 2);
  fiber->resume();
  EXPECT_EQ(step, 3);
}

TEST(Fiber, UnstartedOneMayBeResumedOnAnyThread) {
  const auto fiber = make([] {});
  std::thread([&] { fiber->resume(); }).join();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

TEST(Fiber, YieldOfAnotherThanTheRunningOneIsRefused) {
  const auto other = make([] { Fiber::YieldToHold(); });
  other->resume();
  bool went_on = false;
  const auto fiber = make([&] {
    EXPECT_NE(logOf([&] { other->yield(); }).find("yield refused, it is held"), std::string::npos);
    went_on = true;
  });
  fiber->resume();
  EXPECT_TRUE(went_on);
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
  other->resume();
}

// ---- reset. ------------------------------------------------------------------------------------------------------------------

TEST(FiberReset, GivesANewFunctionInEveryStateThatHasNoStack) {
  std::string order;
  const auto fiber = make([&] { order += 'a'; });
  fiber->reset([&] { order += 'b'; });  // INIT
  fiber->resume();
  fiber->reset([&] {  // TERM
    order += 'c';
    throw 1;
  });
  EXPECT_EQ(fiber->getState(), Fiber::INIT);
  fiber->resume();
  EXPECT_THROW(fiber->join(), int);
  fiber->reset([&] { order += 'd'; });  // EXCEPT
  fiber->resume();
  EXPECT_EQ(order, "bcd");
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

TEST(FiberReset, IsRefusedWhileThereIsAStack) {
  Fiber::ptr fiber;
  fiber = make([&] {
    EXPECT_THROW(fiber->reset([] {}), std::logic_error);
    Fiber::YieldToHold();
    Fiber::YieldToReady();
  });
  fiber->resume();
  EXPECT_THROW(fiber->reset([] {}), std::logic_error);
  fiber->resume();
  EXPECT_THROW(fiber->reset([] {}), std::logic_error);
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

// CD-F9: nothing is swallowed.
TEST(FiberReset, ReportsAnExceptionThatNobodyTook) {
  const auto fiber = make([] { throw std::runtime_error("lost cause"); });
  fiber->resume();
  EXPECT_NE(logOf([&] { fiber->reset([] {}); }).find("lost cause"), std::string::npos);
  fiber->resume();
  fiber->join();
}

// ---- The end. ----------------------------------------------------------------------------------------------------------------

// RT-3.4
TEST(Fiber, BacktraceEndsAtTheEntry) {
  int depth = 0;
  const auto fiber = make([&] {
    void* frames[100];
    depth = backtrace(frames, 100);
  });
  fiber->resume();
  EXPECT_GT(depth, 0);
  EXPECT_LT(depth, 40);
}

// sylar's samples keep handles in static objects.
TEST(Fiber, HandleMayOutliveItsThread) {
  Fiber::ptr ended, held;
  std::thread([&] {
    ended = make([] {});
    ended->resume();
    held = make([] { Fiber::YieldToHold(); });
    held->resume();
  }).join();
  EXPECT_EQ(ended->getState(), Fiber::TERM);
  EXPECT_EQ(held->getState(), Fiber::HOLD);
  EXPECT_NE(logOf([&] { held.reset(); }).find("dropped while suspended"), std::string::npos);
}

}  // namespace
}  // namespace sylar
