#include "sylar/sync/blocking.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sylar/fiber_local.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/testing/virtual_time.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/sync/error_of.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::errorOf;
using test::Gate;
using test::waiterOn;

class Blocking : public testing::Test {
 public:
  Blocking() = default;
  ~Blocking() override {
    setBlockingLimits({});
    BlockingPool::process().endAll();
  }

 private:
  const test::LeakCheck m_leaks;
};

TEST_F(Blocking, TheResultOrTheExceptionComesBack) {
  test::inFiber([] {
    const auto here = std::this_thread::get_id();
    EXPECT_NE(blocking([] { return std::this_thread::get_id(); }), here);
    EXPECT_EQ(blocking([] { return std::string(100, 'x'); }), std::string(100, 'x'));
    EXPECT_EQ(*blocking([] { return std::make_unique<int>(7); }), 7);
    blocking([] {});
    EXPECT_THROW(blocking([]() -> int { throw std::range_error("out"); }), std::range_error);
  });
}

// A helper thread serves many, and what one has left there is nothing to the next.
TEST_F(Blocking, AHelperHasNoValuesOfAnother) {
  setBlockingLimits({.max_threads = 1});
  const FiberLocal<std::string> name;
  const FiberLocal<std::shared_ptr<int>> pointer;
  const auto counted = std::make_shared<int>(0);
  test::inFiber([&] {
    *name = "of the fiber";
    blocking([&] {
      EXPECT_EQ(*name, "");
      *name = "of the first";
      *pointer = counted;
    });
    EXPECT_EQ(counted.use_count(), 1) << "values end before the promise is kept";
    EXPECT_EQ(blocking([&] { return *name; }), "");
    EXPECT_EQ(*name, "of the fiber");
  });
}

TEST_F(Blocking, AHelperInheritsWhatIsMarked) {
  setBlockingLimits({.max_threads = 1});
  const FiberLocal<std::string> id(Inherit::kYes);
  test::inFiber([&] {
    *id = "a";
    blocking([&] {
      EXPECT_EQ(*id, "a");
      *id = "changed by the helper";
    });
    EXPECT_EQ(*id, "a");
    go([&] {
      *id = "b";
      EXPECT_EQ(goBlocking([&] { return *id; }).get(), "b");
    }).get();
  });
}

TEST_F(Blocking, OnAPlainThreadValuesStay) {
  const FiberLocal<std::string> id(Inherit::kYes);
  *id = "a";
  blocking([&] { EXPECT_EQ(*id, "a"); });
  EXPECT_EQ(*id, "a");
}

TEST_F(Blocking, OnAPlainThreadItRunsHere) {
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
}

TEST_F(Blocking, OthersOfTheWorkerGoOn) {
  Gate gate;
  IOManager iom(1, false, "one");
  const Fiber::ptr waiter = waiterOn(iom, [&] { blocking([&gate] { EXPECT_TRUE(gate.wait()); }); });
  const auto other = std::make_shared<Fiber>([] {});
  iom.schedule(other);
  other->join();
  gate.open();
  waiter->join();
}

// The function goes on, and what it owns goes with it.
TEST_F(Blocking, ADeadlineOrACancelEndsTheWaitAndNotTheWork) {
  const auto gate = std::make_shared<Gate>();
  const auto work = [gate] { EXPECT_TRUE(gate->wait()); };
  IOManager iom(1, false, "late");
  const auto late = std::make_shared<Fiber>([&] {
    EXPECT_EQ(errorOf([&] { blocking(work, Deadline::after(1ms)); }), ETIMEDOUT);
    EXPECT_EQ(errorOf([&] { withDeadline(Deadline::after(1ms), [&] { blocking(work); }); }), ETIMEDOUT);
  });
  iom.schedule(late);
  late->join();
  const Fiber::ptr cancelled = waiterOn(iom, [&] { EXPECT_EQ(errorOf([&] { blocking(work); }), ECANCELED); });
  cancelled->cancel();
  cancelled->join();
  EXPECT_GE(gate.use_count(), 4);
  gate->open();
  EXPECT_TRUE(test::eventually([&] { return gate.use_count() == 2; })) << "gate and work";
}

TEST_F(Blocking, WhatWouldNotBeWaitedForDoesNotRun) {
  test::inFiber([] {
    EXPECT_EQ(errorOf([] { blocking([] { ADD_FAILURE(); }, Deadline::after(0ns)); }), ETIMEDOUT);
    Fiber::GetThis()->cancel();
    EXPECT_TRUE(this_fiber::cancelled());
    EXPECT_EQ(errorOf([] { blocking([] { ADD_FAILURE(); }); }), ECANCELED);
    const this_fiber::CancelShield shield;
    EXPECT_EQ(blocking([] { return 7; }), 7);
  });
}

TEST_F(Blocking, BeyondTheLimitsItIsRefused) {
  setBlockingLimits({.max_threads = 1, .max_queued = 1});
  const auto gate = std::make_shared<Gate>();
  IOManager iom(1, false, "full");
  const Fiber::ptr running = waiterOn(iom, [&] { blocking([gate] { EXPECT_TRUE(gate->wait()); }); });
  ASSERT_TRUE(test::eventually([] { return BlockingPool::process().queued() == 0; }));
  std::atomic<int> ran{0};
  const Fiber::ptr queued = waiterOn(iom, [&] { blocking([&] { ++ran; }); });
  const auto refused = std::make_shared<Fiber>([&] { EXPECT_EQ(errorOf([&] { blocking([&] { ++ran; }); }), EAGAIN); });
  iom.schedule(refused);
  refused->join();
  gate->open();
  running->join();
  queued->join();
  EXPECT_EQ(ran, 1);
  EXPECT_THROW(setBlockingLimits({.max_threads = 0}), std::invalid_argument);
}

TEST_F(Blocking, AFutureIsWaitedForLater) {
  test::inFiber([] {
    Future<int> one = goBlocking([] { return 1; });
    Future<int> two = goBlocking([] { return 2; });
    EXPECT_EQ(two.get() + one.get(), 3);
  });
}

// A function that runs on a helper takes no virtual time.
TEST_F(Blocking, VirtualTimeStandsStillMeanwhile) {
  VirtualTime time;
  time.run([&] {
    withDeadline(Deadline::after(1ms, time), [] {
      EXPECT_EQ(blocking([] {
                  std::this_thread::sleep_for(20ms);
                  return 7;
                }),
                7);
    });
  });
  EXPECT_EQ(time.elapsed(), 0s);
}

}  // namespace
}  // namespace sylar
