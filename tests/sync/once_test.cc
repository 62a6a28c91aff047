#include "sylar/sync/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/singleton.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using test::waiterOn;

class OnceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, OnceTest, test::kWorkerCounts);

TEST_P(OnceTest, OthersWaitUntilTheFirstCallHasReturned) {
  Once once;
  std::atomic<bool> go_on{false};
  std::atomic<int> calls{0}, over{0};
  IOManager iom(workers(), false, "once");
  Semaphore begun;
  const auto call = [&] {
    once.call([&] {
      ++calls;
      begun.notify();
      while (!go_on) Fiber::YieldToReady();
    });
    ++over;
  };
  iom.schedule(call);
  EXPECT_TRUE(begun.wait());
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 10; ++i) fibers.push_back(waiterOn(iom, call));
  EXPECT_EQ(over, 0);
  go_on = true;
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  call();
  EXPECT_EQ(calls, 1);
}

TEST_P(OnceTest, FibersAndThreadsFindItDone) {
  for (int i = 0; i < 50; ++i) {
    Once once;
    int calls = 0;  // plain: what the function wrote is visible to all
    const auto call = [&] {
      once.call([&] {
        Fiber::YieldToReady();
        ++calls;
      });
      EXPECT_EQ(calls, 1);
    };
    IOManager one(workers(), false, "one"), other(1, false, "other");
    for (int k = 0; k < 4; ++k) (k == 3 ? other : one).schedule(call);
    std::thread thread(call);
    call();
    thread.join();
  }
}

TEST_P(OnceTest, ADeadlineEndsTheWaitForAnotherCall) {
  Once once;
  Semaphore go_on;
  IOManager iom(workers(), false, "late");
  const Fiber::ptr first = waiterOn(iom, [&] { once.call([&] { go_on.wait(); }); });
  const auto late = std::make_shared<Fiber>(
      [&] { EXPECT_FALSE(once.call([] { ADD_FAILURE(); }, Deadline::after(std::chrono::milliseconds(1)))); });
  iom.schedule(late);
  late->join();
  go_on.notify();
  first->join();
  EXPECT_TRUE(once.call([] { ADD_FAILURE(); }, Deadline::after(std::chrono::nanoseconds(0)))) << "it is done";
  int calls = 0;
  EXPECT_TRUE(Once().call([&] { ++calls; }, Deadline::after(std::chrono::nanoseconds(0)))) << "nobody is waited for";
  EXPECT_EQ(calls, 1);
}

TEST(Once, AfterAnExceptionTheNextOneTries) {
  Once once;
  EXPECT_THROW(once.call([] { throw std::runtime_error("the first"); }), std::runtime_error);
  int calls = 0;
  for (int i = 0; i < 2; ++i) once.call([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(OnceDeathTest, ACallWithinItselfIsAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Once once;
  EXPECT_DEATH(once.call([&] { once.call([] {}); }), "locks a sylar::Mutex that it holds already");
}

struct Slow {
  Slow() {
    ++made;
    while (!go_on) Fiber::YieldToReady();
  }
  static inline std::atomic<int> made{0};
  static inline std::atomic<bool> go_on{false};
};

// On one worker, a static variable's own initialisation would stand still here forever.
TEST(Singleton, AConstructorMayWaitAndOthersWaitForIt) {
  IOManager iom(1, false, "singleton");
  Slow* seen[2] = {};
  const auto first = std::make_shared<Fiber>([&] { seen[0] = Singleton<Slow>::GetInstance(); });
  iom.schedule(first);
  EXPECT_TRUE(test::eventually([] { return Slow::made == 1; }));
  const Fiber::ptr second = waiterOn(iom, [&] { seen[1] = Singleton<Slow>::GetInstance(); });
  Slow::go_on = true;
  first->join();
  second->join();
  EXPECT_NE(seen[0], nullptr);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(Slow::made, 1);
}

}  // namespace
}  // namespace sylar
