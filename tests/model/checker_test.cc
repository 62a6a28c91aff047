// The checker itself, on programs whose outcomes are known (RT-7.8, RD-7): what each memory allows it must show, what it forbids
// it must never show.
#include "tests/model/checker.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "tests/model/memory.h"

namespace sylar::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

constexpr Plan kTso{MemoryModel::kTso, 100, 0, 0};
constexpr Plan kWeak{MemoryModel::kWeak, 100, 0, 0};

using Seen = std::set<std::string>;

/// All results of `program`, which returns what its threads saw.
template <class Program>
Seen outcomes(Program program, const Plan& plan) {
  Seen seen;
  const Outcome outcome = explore([&] { seen.insert(program()); }, plan);
  EXPECT_EQ(outcome.failure, "");
  return seen;
}

std::string pair(int a, int b) { return std::to_string(a) + std::to_string(b); }

// Store buffering: each thread stores to its own place and then looks at the other's.
auto storeBuffering(std::memory_order store, std::memory_order load) {
  return [=] {
    Atomic<int> x, y;
    int a = -1, b = -1;
    addThread("a", [&] {
      x.store(1, store);
      a = y.load(load);
    });
    addThread("b", [&] {
      y.store(1, store);
      b = x.load(load);
    });
    runThreads();
    return pair(a, b);
  };
}

// RT-7.8
TEST(Checker, StoreBuffering) {
  const Seen with_buffers{"00", "01", "10", "11"};
  const Seen without{"01", "10", "11"};
  for (const Plan& plan : {kTso, kWeak}) {
    EXPECT_EQ(outcomes(storeBuffering(kRelaxed, kRelaxed), plan), with_buffers);
    EXPECT_EQ(outcomes(storeBuffering(kRelease, kAcquire), plan), with_buffers);
    EXPECT_EQ(outcomes(storeBuffering(kSeqCst, kSeqCst), plan), without);
  }
}

// A locked instruction is a fence on x86, an acq_rel one is none in C++.
TEST(Checker, StoreBufferingByExchange) {
  const auto program = [](std::memory_order order) {
    return [order] {
      Atomic<int> x, y;
      int a = -1, b = -1;
      addThread("a", [&] {
        x.exchange(1, order);
        a = y.load(kAcquire);
      });
      addThread("b", [&] {
        y.exchange(1, order);
        b = x.load(kAcquire);
      });
      runThreads();
      return pair(a, b);
    };
  };
  EXPECT_FALSE(outcomes(program(kAcqRel), kTso).contains("00"));
  EXPECT_TRUE(outcomes(program(kAcqRel), kWeak).contains("00"));
}

// Message passing: a flag says that the data is there.
auto messagePassing(std::memory_order store, std::memory_order load) {
  return [=] {
    Atomic<int> data, flag;
    int a = -1, b = -1;
    addThread("writer", [&] {
      data.store(1, kRelaxed);
      flag.store(1, store);
    });
    addThread("reader", [&] {
      a = flag.load(load);
      b = data.load(kRelaxed);
    });
    runThreads();
    return pair(a, b);
  };
}

TEST(Checker, MessagePassing) {
  EXPECT_FALSE(outcomes(messagePassing(kRelaxed, kRelaxed), kTso).contains("10"));
  EXPECT_TRUE(outcomes(messagePassing(kRelaxed, kRelaxed), kWeak).contains("10"));
  EXPECT_TRUE(outcomes(messagePassing(kRelease, kRelaxed), kWeak).contains("10"));
  EXPECT_TRUE(outcomes(messagePassing(kRelaxed, kAcquire), kWeak).contains("10"));
  EXPECT_FALSE(outcomes(messagePassing(kRelease, kAcquire), kWeak).contains("10"));
}

// Two readers may disagree about the order of two independent stores, unless all is seq_cst.
TEST(Checker, IndependentReadsOfIndependentWrites) {
  const auto program = [](std::memory_order store, std::memory_order load) {
    return [=] {
      Atomic<int> x, y;
      int r[4];
      addThread("x", [&] { x.store(1, store); });
      addThread("y", [&] { y.store(1, store); });
      addThread("xy", [&] {
        r[0] = x.load(load);
        r[1] = y.load(load);
      });
      addThread("yx", [&] {
        r[2] = y.load(load);
        r[3] = x.load(load);
      });
      runThreads();
      return pair(r[0], r[1]) + pair(r[2], r[3]);
    };
  };
  constexpr Plan kTsoOfThree{MemoryModel::kTso, 3, 0, 0};  // four threads have many orders
  constexpr Plan kWeakOfThree{MemoryModel::kWeak, 3, 0, 0};
  EXPECT_FALSE(outcomes(program(kRelease, kAcquire), kTsoOfThree).contains("1010"));
  EXPECT_TRUE(outcomes(program(kRelease, kAcquire), kWeakOfThree).contains("1010"));
  EXPECT_FALSE(outcomes(program(kSeqCst, kSeqCst), kWeakOfThree).contains("1010"));
}

// The values of one place are seen in one order by each thread.
TEST(Checker, Coherence) {
  const auto program = [] {
    Atomic<int> x;
    int a = -1, b = -1;
    addThread("writer", [&] {
      x.store(1, kRelaxed);
      x.store(2, kRelaxed);
    });
    addThread("reader", [&] {
      a = x.load(kRelaxed);
      b = x.load(kRelaxed);
    });
    runThreads();
    return pair(a, b);
  };
  const Seen ordered{"00", "01", "02", "11", "12", "22"};
  EXPECT_EQ(outcomes(program, kTso), ordered);
  EXPECT_EQ(outcomes(program, kWeak), ordered);
}

// The knowledge of a thread goes on through a third: causality.
TEST(Checker, WhatIsKnownIsHandedOn) {
  const auto program = [] {
    Atomic<int> x, y, z;
    int a = -1, b = -1;
    addThread("first", [&] {
      x.store(1, kRelaxed);
      y.store(1, kRelease);
    });
    addThread("second", [&] {
      if (y.load(kAcquire) == 1) z.store(1, kRelease);
    });
    addThread("third", [&] {
      a = z.load(kAcquire);
      b = x.load(kRelaxed);
    });
    runThreads();
    return pair(a, b);
  };
  EXPECT_FALSE(outcomes(program, kWeak).contains("10"));
}

// A read-modify-write goes on with the release sequence that it read from, whatever its own order.
TEST(Checker, ReleaseSequence) {
  const auto program = [] {
    Atomic<int> data, count;
    int a = -1, b = -1;
    addThread("writer", [&] {
      data.store(1, kRelaxed);
      count.store(1, kRelease);
    });
    addThread("adder", [&] { count.fetch_add(1, kRelaxed); });
    addThread("reader", [&] {
      a = count.load(kAcquire);
      b = data.load(kRelaxed);
    });
    runThreads();
    return pair(a, b);
  };
  const Seen seen = outcomes(program, kWeak);
  EXPECT_TRUE(seen.contains("21"));
  EXPECT_FALSE(seen.contains("20"));
}

TEST(Checker, ReadModifyWriteLosesNothing) {
  const auto program = [] {
    Atomic<int> x;
    for (const char* name : {"a", "b", "c"}) addThread(name, [&] { x.fetch_add(1, kRelaxed); });
    runThreads();
    return std::to_string(x.peek());
  };
  EXPECT_EQ(outcomes(program, kTso), Seen{"3"});
  EXPECT_EQ(outcomes(program, kWeak), Seen{"3"});
}

// Two threads of two steps each, and one more to begin: 20 orders, 6 of them with at most one preemption.
TEST(Checker, CountsOrdersAndPreemptions) {
  const auto program = [] {
    Atomic<int> x, y;
    addThread("a", [&] {
      x.fetch_add(1);
      x.fetch_add(1);
    });
    addThread("b", [&] {
      y.fetch_add(1);
      y.fetch_add(1);
    });
    runThreads();
  };
  EXPECT_EQ(explore(program, {MemoryModel::kTso, 100, 0, 0}).executions, 20U);
  EXPECT_EQ(explore(program, {MemoryModel::kTso, 0, 0, 0}).executions, 2U);
  EXPECT_EQ(explore(program, {MemoryModel::kTso, 1, 0, 0}).executions, 6U);
}

TEST(Checker, FindsDeadlock) {
  const auto program = [] {
    Mutex m, n;
    addThread("mn", [&] {
      m.lock();
      n.lock();
      n.unlock();
      m.unlock();
    });
    addThread("nm", [&] {
      n.lock();
      m.lock();
      m.unlock();
      n.unlock();
    });
    runThreads();
  };
  EXPECT_EQ(explore(program, {MemoryModel::kTso, 0, 0, 0}).failure, "");
  const std::string failure = explore(program, {MemoryModel::kTso, 1, 0, 0}).failure;
  EXPECT_NE(failure.find("nobody can go on"), std::string::npos) << failure;
  EXPECT_NE(failure.find("mn waits at checker_test.cc"), std::string::npos) << failure;
}

TEST(Checker, LocksExclude) {
  const auto program = [](auto lock) {
    return [lock] {
      const auto mutex = lock();
      Var<int> sum;
      for (const char* name : {"a", "b", "c"}) {
        addThread(name, [&] {
          mutex->lock();
          sum.set(sum.get() + 1);
          mutex->unlock();
        });
      }
      runThreads();
      return std::to_string(sum.get());
    };
  };
  for (const Plan& plan : {kTso, kWeak}) {
    EXPECT_EQ(outcomes(program([] { return std::make_shared<Mutex>(); }), plan), Seen{"3"});
    EXPECT_EQ(outcomes(program([] { return std::make_shared<Spinlock>(); }), plan), Seen{"3"});
  }
}

// The store that frees a spinlock is no fence: a later load may overtake it.
TEST(Checker, UnlockIsNoFence) {
  const auto program = [] {
    Spinlock mine, other;
    Atomic<int> x, y;
    int a = -1, b = -1;
    addThread("a", [&] {
      mine.lock();
      x.store(1, kRelaxed);
      mine.unlock();
      a = y.load(kRelaxed);
    });
    addThread("b", [&] {
      other.lock();
      y.store(1, kRelaxed);
      other.unlock();
      b = x.load(kRelaxed);
    });
    runThreads();
    return pair(a, b);
  };
  EXPECT_TRUE(outcomes(program, kTso).contains("00"));
  EXPECT_TRUE(outcomes(program, kWeak).contains("00"));
}

TEST(Checker, FindsDataRace) {
  const auto program = [](std::memory_order order) {
    return [order] {
      Var<int> data;
      Atomic<int> flag;
      addThread("writer", [&] {
        data.set(1);
        flag.store(1, order);
      });
      addThread("reader", [&] {
        if (flag.load(kAcquire) == 1) require(data.get() == 1, "the data is there");
      });
      runThreads();
    };
  };
  for (const Plan& plan : {kTso, kWeak}) {
    EXPECT_EQ(explore(program(kRelease), plan).failure, "");
    const std::string failure = explore(program(kRelaxed), plan).failure;
    EXPECT_NE(failure.find("a read comes after the write before it"), std::string::npos) << failure;
  }
}

// A lost wake-up: looks, and then sleeps, without looking again.
TEST(Checker, FindsLostWakeUp) {
  const auto program = [] {
    Atomic<int> work, asleep, bell;
    addThread("sleeper", [&] {
      if (work.load() == 0) {
        asleep.store(1);
        await("the bell", [&] { return bell.peek() != 0; });
      }
    });
    addThread("producer", [&] {
      work.store(1);
      if (asleep.load() == 1) bell.store(1);
    });
    runThreads();
  };
  const std::string failure = explore(program, kTso).failure;
  EXPECT_NE(failure.find("sleeper waits"), std::string::npos) << failure;
  EXPECT_NE(failure.find("the bell"), std::string::npos) << failure;
}

TEST(Checker, ASpinningThreadLetsOthersOn) {
  const auto program = [] {
    Atomic<int> flag;
    addThread("spinner", [&] {
      while (flag.load(kRelaxed) == 0) ModelMemory::relax();
    });
    addThread("setter", [&] { flag.store(1, kRelaxed); });
    runThreads();
  };
  EXPECT_EQ(explore(program, kTso).failure, "");
  EXPECT_EQ(explore(program, kWeak).failure, "");
}

// One preemption is enough for a store to end a spin before its thread has gone on.
TEST(Checker, AStoreReachesASpinningThread) {
  const auto program = [] {
    Atomic<int> x, z, began;
    int r = -1;
    addThread("spinner", [&] {
      began.fetch_add(1);
      while (x.load(kAcquire) == 0) ModelMemory::relax();
      z.store(1, kSeqCst);
    });
    addThread("storer", [&] {
      x.store(1, kRelease);
      r = z.load(kRelaxed);
    });
    runThreads();
    require(r == 0, "the storer looked before the spinner went on");
  };
  EXPECT_NE(explore(program, {MemoryModel::kTso, 1, 0, 0}).failure, "");
}

TEST(Checker, FindsThatNobodyEndsASpin) {
  const auto program = [] {
    Atomic<int> flag;
    addThread("spinner", [&] {
      while (flag.load(kRelaxed) == 0) ModelMemory::relax();
    });
    runThreads();
  };
  EXPECT_NE(explore(program, kTso).failure.find("nobody can go on"), std::string::npos);
}

TEST(Checker, InterruptsBetweenAnyTwoSteps) {
  Seen seen;
  const Outcome outcome = explore(
      [&] {
        Atomic<int> x;
        std::string at = "never";
        addThread("thread", [&] {
          mayBeInterruptedBy([&] { at = std::to_string(x.load(kRelaxed)); });
          x.store(1, kRelaxed);
          x.store(2, kRelaxed);
        });
        runThreads();
        seen.insert(at);
      },
      kTso);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(seen, (Seen{"never", "0", "1"}));
}

// A failure is repeated, step by step, and names thread and line.
TEST(Checker, TracesAFailure) {
  const auto program = [] {
    Atomic<int> x;
    addThread("adder", [&] { x.store(x.load() + 1); });
    addThread("other", [&] { x.store(x.load() + 1); });
    runThreads();
    require(x.peek() == 2, "both have added");
  };
  const std::string failure = explore(program, kTso).failure;
  EXPECT_EQ(failure.rfind("does not hold: both have added", 0), 0U) << failure;
  EXPECT_NE(failure.find("adder        checker_test.cc:"), std::string::npos) << failure;
  EXPECT_EQ(failure.find("could not be repeated"), std::string::npos) << failure;
}

TEST(Checker, RandomRunsFindAndRepeat) {
  const auto program = [] {
    Atomic<int> x;
    for (const char* name : {"a", "b", "c", "d"}) addThread(name, [&] { x.store(x.load() + 1); });
    runThreads();
    require(x.peek() == 4, "all have added");
  };
  const std::string first = explore(program, {MemoryModel::kTso, 0, 1000, 7}).failure;
  EXPECT_NE(first.find("(--random "), std::string::npos) << first;
  EXPECT_EQ(first.find("could not be repeated"), std::string::npos) << first;
  EXPECT_EQ(first, explore(program, {MemoryModel::kTso, 0, 1000, 7}).failure);
}

TEST(Checker, ReportsAnException) {
  const auto program = [] {
    addThread("thrower", [] { throw std::runtime_error("thrown here"); });
    runThreads();
  };
  EXPECT_NE(explore(program, kTso).failure.find("uncaught exception: thrown here"), std::string::npos);
}

}  // namespace
}  // namespace sylar::model
