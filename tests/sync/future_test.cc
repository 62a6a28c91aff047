#include "sylar/sync/future.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class FutureTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, FutureTest, test::kWorkerCounts);

TEST_P(FutureTest, GoBringsTheValueOrTheException) {
  test::inFiber(
      [] {
        Future<std::string> value = go([] { return std::string(1000, 'x'); });
        Future<void> nothing = go([] { Fiber::YieldToReady(); });
        Future<int> failed = go([]() -> int { throw std::runtime_error("no number"); });
        Future<std::unique_ptr<int>> moved = go([] { return std::make_unique<int>(7); });
        EXPECT_EQ(value.get(), std::string(1000, 'x'));
        EXPECT_FALSE(value.valid());
        nothing.get();
        try {
          failed.get();
          ADD_FAILURE();
        } catch (const std::runtime_error& e) {
          EXPECT_STREQ(e.what(), "no number");
        }
        EXPECT_EQ(*moved.get(), 7);
      },
      workers());
}

// A loop that takes what is ready would otherwise meet the same failure again and again.
TEST(Future, IsEmptyAfterItHasThrown) {
  Promise<int> promise;
  Future<int> future = promise.getFuture();
  promise.setException(std::make_exception_ptr(std::runtime_error("no number")));
  EXPECT_THROW(future.get(), std::runtime_error);
  EXPECT_FALSE(future.valid());
}

TEST_P(FutureTest, FibersAndThreadsBringAndWait) {
  Promise<int> there, back;
  Future<int> asked = there.getFuture(), answer = back.getFuture();
  IOManager iom(workers(), false, "future");
  iom.schedule([&] { back.setValue(asked.get() + 1); });
  EXPECT_FALSE(answer.isReady());
  EXPECT_FALSE(answer.wait(Deadline::after(0ns)));
  there.setValue(41);
  EXPECT_EQ(answer.get(), 42);
}

TEST_P(FutureTest, AWaitEndsWhenCancelledAndTheFutureIsKept) {
  Promise<int> promise;
  Future<int> future = promise.getFuture();
  IOManager iom(workers(), false, "cancel");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    try {
      future.get();
      ADD_FAILURE();
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code().value(), ECANCELED);
    }
  });
  fiber->cancel();
  fiber->join();
  promise.setValue(1);
  EXPECT_EQ(future.get(), 1);
}

TEST_P(FutureTest, TheFunctionIsGoneWhenTheValueIsThere) {
  test::inFiber(
      [] {
        for (int i = 0; i < 200; ++i) {
          const auto owned = std::make_shared<int>(7);
          EXPECT_EQ(go([owned] { return *owned; }).get(), 7);
          ASSERT_EQ(owned.use_count(), 1);
          EXPECT_THROW(go([owned] { throw std::runtime_error("out"); }).get(), std::runtime_error);
          ASSERT_EQ(owned.use_count(), 1);
        }
      },
      workers());
}

TEST_P(FutureTest, TheDeadlineOfAScopeIsATimeout) {
  Promise<int> promise;
  Future<int> future = promise.getFuture();
  test::inFiber(
      [&] {
        try {
          withDeadline(Deadline::after(1ms), [&] { return future.get(); });
          ADD_FAILURE();
        } catch (const std::system_error& e) {
          EXPECT_EQ(e.code().value(), ETIMEDOUT);
        }
      },
      workers());
}

TEST(FutureDeathTest, ANullExceptionIsAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Promise<int> promise;
  EXPECT_DEATH(promise.setException(nullptr), "exception != nullptr");
}

TEST(Future, APromiseThatGoesIsBroken) {
  Future<int> future;
  {
    Promise<int> promise;
    future = promise.getFuture();
    Promise<int> other(std::move(promise));
    EXPECT_FALSE(future.isReady());
  }
  try {
    future.get();
    ADD_FAILURE();
  } catch (const std::future_error& e) {
    EXPECT_EQ(e.code(), std::future_errc::broken_promise);
  }
}

TEST(Future, ASecondFutureIsRefused) {
  Promise<int> first;
  const Future<int> future = first.getFuture();
  Promise<int> promise(std::move(first));
  try {
    promise.getFuture();
    ADD_FAILURE();
  } catch (const std::future_error& e) {
    EXPECT_EQ(e.code(), std::future_errc::future_already_retrieved);
  }
}

TEST(Future, ASecondValueIsRefused) {
  Promise<int> promise;
  Future<int> future = promise.getFuture();
  promise.setValue(1);
  EXPECT_THROW(promise.setValue(2), std::future_error);
  EXPECT_THROW(promise.setException(nullptr), std::future_error);
  EXPECT_EQ(future.get(), 1);
}

struct Fails {
  Fails() = default;
  Fails(const Fails&) { throw std::runtime_error("no copy"); }
  Fails(Fails&&) noexcept {}
};

TEST(Future, AValueThatCannotBeStoredWasNotBrought) {
  Promise<Fails> promise;
  Future<Fails> future = promise.getFuture();
  const Fails value;
  EXPECT_THROW(promise.setValue(value), std::runtime_error);
  EXPECT_FALSE(future.isReady());
  promise.setValue(Fails());
  EXPECT_TRUE(future.isReady());
}

TEST(Future, WhatASchedulerRefusesBreaksThePromise) {
  IOManager iom(1, false, "over");
  iom.stop();
  Future<void> future = go([] {}, &iom);
  EXPECT_THROW(future.get(), std::future_error);
  EXPECT_THROW(go([] {}), std::invalid_argument);
}

TEST(Future, AnExceptionThatNobodyAskedForIsLogged) {
  testing::internal::CaptureStderr();
  test::inFiber([] { go([] { throw std::runtime_error("unasked"); }); });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ended by an exception: unasked"), std::string::npos);
}

}  // namespace
}  // namespace sylar
