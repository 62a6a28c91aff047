#include "sylar/sync/when.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "sylar/fiber_local.h"
#include "sylar/iomanager.h"
#include "sylar/sync/select.h"
#include "sylar/sync/task_group.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class WhenTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, WhenTest, test::kWorkerCounts);

TEST_P(WhenTest, AnyIsTheFirstThatIsReady) {
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (Promise<int>& promise : promises) futures.push_back(promise.getFuture());
  IOManager iom(workers(), false, "any");
  std::optional<size_t> first;
  const Fiber::ptr waiter = waiterOn(iom, [&] { first = whenAny(futures); });
  promises[1].setValue(4);
  waiter->join();
  EXPECT_EQ(first, 1u);
  promises[0].setException(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_EQ(whenAny(futures), 0u) << "an exception counts, and the lowest index";
  EXPECT_FALSE(whenAll(futures, Deadline::after(1ms)));
  std::thread last([&] { promises[2].setValue(5); });
  EXPECT_TRUE(whenAll(futures));
  last.join();
  EXPECT_EQ(whenAny(std::vector<Future<int>>()), std::nullopt);
}

TEST_P(WhenTest, FibersEndOrWillNotEnd) {
  Semaphore go_on;
  IOManager iom(workers(), false, "fibers");
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(waiterOn(iom, [&, i] {
      go_on.wait();
      if (i == 1) throw std::runtime_error("one");
    }));
  }
  EXPECT_EQ(whenAny(fibers, Deadline::after(1ms)), std::nullopt);
  go_on.notify();
  EXPECT_EQ(whenAny(fibers), 0u) << "the oldest waiter of the semaphore";
  EXPECT_FALSE(whenAll(fibers, Deadline::after(1ms)));
  std::optional<size_t> any;
  bool all = false;
  const Fiber::ptr waiter = waiterOn(iom, [&] {
    all = whenAll(fibers);
    any = whenAny(fibers);
  });
  go_on.notify(2);
  waiter->join();
  EXPECT_TRUE(all);
  EXPECT_EQ(any, 0u);
  EXPECT_THROW(fibers[1]->join(), std::runtime_error);
}

TEST(When, ARefusedFiberIsNotWaitedFor) {
  std::vector<Fiber::ptr> fibers;
  {
    IOManager stopped(1, false, "stopped");
    stopped.stop();
    fibers.push_back(std::make_shared<Fiber>([] {}));
    stopped.schedule(fibers[0]);
  }
  EXPECT_TRUE(whenAll(fibers));
  EXPECT_EQ(whenAny(fibers), 0u);
}

TEST_P(WhenTest, ParallelForCallsEachOnceAndNoMoreThanTheLimitAtATime) {
  IOManager iom(workers(), false, "for");
  std::vector<std::atomic<int>> calls(100);
  std::atomic<int> running{0}, most{0};
  const auto fiber = std::make_shared<Fiber>([&] {
    parallelFor(10, 90, 7, [&](size_t i) {
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      Fiber::YieldToReady();
      --running;
      ++calls[i];
    });
    parallelFor(5, 5, 3, [](size_t) { ADD_FAILURE(); });
    parallelFor(7, 5, 3, [](size_t) { ADD_FAILURE(); });
    EXPECT_THROW(parallelFor(0, 1, 0, [](size_t) {}), std::invalid_argument);
  });
  iom.schedule(fiber);
  fiber->join();
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i >= 10 && i < 90 ? 1 : 0) << i;
  EXPECT_LE(most, 7);
  EXPECT_THROW(parallelFor(0, 1, 1, [](size_t) {}), std::invalid_argument) << "outside of a scheduler";
}

TEST(When, ParallelForStopsAtAnException) {
  IOManager iom(1, false, "throws");
  std::atomic<int> calls{0};
  const auto fiber = std::make_shared<Fiber>([&] {
    parallelFor(0, 1000, 1, [&](size_t i) {
      ++calls;
      if (i == 3) throw std::runtime_error("three");
    });
  });
  iom.schedule(fiber);
  EXPECT_THROW(fiber->join(), std::runtime_error);
  EXPECT_EQ(calls, 4);
}

TEST(When, ParallelForSaysIfNotAllCallsWereMade) {
  IOManager iom(1, false, "gives up");
  std::atomic<int> calls{0};
  const auto fiber = std::make_shared<Fiber>([&] {
    parallelFor(0, 10, 1, [&](size_t i) {
      ++calls;
      if (i == 3) Fiber::GetThis()->cancel();
    });
  });
  iom.schedule(fiber);
  EXPECT_THROW(fiber->join(), std::system_error);
  EXPECT_EQ(calls, 4);
}

TEST(When, ParallelForEndsAtTheLastNumber) {
  IOManager iom(1, false, "last");
  std::atomic<int> calls{0};
  const auto fiber = std::make_shared<Fiber>([&] { parallelFor(SIZE_MAX - 3, SIZE_MAX, 8, [&](size_t) { ++calls; }); });
  iom.schedule(fiber);
  fiber->join();
  EXPECT_EQ(calls, 3);
}

TEST(When, NoFiberIsPassedOver) {
  test::inFiber([] {
    const auto fiber = std::make_shared<Fiber>([] {});
    Scheduler::GetThis()->schedule(fiber);
    const std::vector<Fiber::ptr> fibers{nullptr, fiber};
    EXPECT_EQ(whenAny(fibers), 1u);
    EXPECT_TRUE(whenAll(fibers));
    EXPECT_THROW(onEnd(nullptr, [] {}), std::invalid_argument);
  });
}

TEST(When, EmptyFuturesArePassedOver) {
  std::vector<Future<int>> futures(1);
  for (int i = 1; i <= 3; ++i) {
    Promise<int> promise;
    promise.setValue(i);
    futures.push_back(promise.getFuture());
  }
  int sum = 0;
  while (const std::optional<size_t> i = whenAny(futures)) sum += futures[*i].get();
  EXPECT_EQ(sum, 6);
  EXPECT_TRUE(whenAll(futures));
}

/// Its end takes a while.
struct SlowToDie {
  ~SlowToDie() {
    if (live == nullptr) return;
    Fiber::YieldToReady();
    --*live;
  }
  std::atomic<int>* live = nullptr;
};

TEST_P(WhenTest, ValuesHaveEndedWhenTheFiberIsAwaited) {
  const FiberLocal<SlowToDie> slow;
  std::atomic<int> live{0};
  IOManager iom(workers(), false, "ends");
  const auto task = [&] {
    slow->live = &live;
    ++live;
  };
  const auto fiber = std::make_shared<Fiber>([&] {
    TaskGroup group;
    for (int i = 0; i < 4; ++i) group.spawn(task);
    group.join();
    EXPECT_EQ(live, 0) << "of a group";
    go(task).get();
    EXPECT_EQ(live, 0) << "of a future";
  });
  iom.schedule(fiber);
  fiber->join();
}

/// Copying it makes other values.
struct MakesOthers {
  MakesOthers() = default;
  MakesOthers(const MakesOthers& other) : word(other.word) {
    for (const FiberLocal<int>& one : others()) *one = 1;
  }
  static const std::array<FiberLocal<int>, 8>& others() {
    static const std::array<FiberLocal<int>, 8> s_others;
    return s_others;
  }
  std::string word = "long enough for the heap, so that a dangling copy shows";
};

TEST(When, CopyingAnInheritedValueMayMakeOthers) {
  const FiberLocal<MakesOthers> first(Inherit::kYes), second(Inherit::kYes);
  IOManager iom(1, false, "copies");
  const auto fiber = std::make_shared<Fiber>([&] {
    (void)*first;
    (void)*second;
    EXPECT_EQ(go([&] { return first->word + second->word; }).get(), MakesOthers().word + MakesOthers().word);
  });
  iom.schedule(fiber);
  fiber->join();
}

TEST(When, ATimersCallbackFindsNoValuesOfAnother) {
  const FiberLocal<std::string> id;
  IOManager iom(1, false, "timers");
  std::atomic<int> found{0};
  for (int i = 0; i < 4; ++i) {
    iom.addTimer(1, [&] {
      found += !id->empty();
      *id = "of this timer";
    });
  }
  iom.stop();
  EXPECT_EQ(found, 0);
}

TEST_P(WhenTest, FibersInheritWhatIsMarked) {
  const FiberLocal<std::string> request(Inherit::kYes);
  const FiberLocal<std::string> own;
  IOManager iom(workers(), false, "inherit");
  const auto fiber = std::make_shared<Fiber>([&] {
    *request = "r-1";
    *own = "mine";
    Future<std::string> seen = go([&] {
      const std::string was = *request + "/" + *own;
      *request = "changed";
      return was;
    });
    EXPECT_EQ(seen.get(), "r-1/");
    EXPECT_EQ(*request, "r-1");
    TaskGroup group;
    group.spawn([&] {
      EXPECT_EQ(*request, "r-1");
      EXPECT_EQ(go([&] { return *request; }).get(), "r-1") << "and on to the next";
    });
    group.join();
  });
  iom.schedule(fiber);
  fiber->join();
}

}  // namespace
}  // namespace sylar
