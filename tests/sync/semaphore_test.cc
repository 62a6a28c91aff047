#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class SemaphoreTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, SemaphoreTest, test::kWorkerCounts);

TEST(Semaphore, CountsOnAPlainThread) {
  Semaphore semaphore(2);
  EXPECT_TRUE(semaphore.tryWait());
  EXPECT_TRUE(semaphore.wait());
  EXPECT_FALSE(semaphore.tryWait());
  EXPECT_FALSE(semaphore.wait(Deadline::after(0ns)));
  semaphore.notify(3);
  EXPECT_EQ(semaphore.getConcurrency(), 3u);
  EXPECT_TRUE(semaphore.wait());
  EXPECT_EQ(semaphore.getConcurrency(), 2u);
}

TEST_P(SemaphoreTest, ServesAHundredWaitersInTheOrderOfTheirArrival) {
  Semaphore semaphore;
  std::vector<int> order;
  Semaphore served;
  IOManager iom(workers(), false, "order");
  for (int i = 0; i < 100; ++i) {
    waiterOn(iom, [&, i] {
      EXPECT_TRUE(semaphore.wait());
      order.push_back(i);
      served.notify();
    });
  }
  for (int i = 0; i < 100; ++i) {
    semaphore.notify();
    EXPECT_TRUE(served.wait());
    ASSERT_EQ(order.size(), static_cast<size_t>(i) + 1);
    EXPECT_EQ(order.back(), i);
  }
  EXPECT_EQ(semaphore.getConcurrency(), 0u);
}

TEST_P(SemaphoreTest, ManyAreLetInByOneCall) {
  Semaphore semaphore;
  std::atomic<int> in{0};
  IOManager iom(workers(), false, "many");
  for (int i = 0; i < 5; ++i) {
    waiterOn(iom, [&] {
      EXPECT_TRUE(semaphore.wait());
      ++in;
    });
  }
  semaphore.notify(7);
  iom.stop();
  EXPECT_EQ(in, 5);
  EXPECT_EQ(semaphore.getConcurrency(), 2u);
}

// A newcomer finds nothing while what was notified belongs to one who waited.
TEST_P(SemaphoreTest, NobodyOvertakesAWaiter) {
  Semaphore semaphore;
  IOManager iom(workers(), false, "fair");
  waiterOn(iom, [&] { EXPECT_TRUE(semaphore.wait()); });
  semaphore.notify();
  EXPECT_FALSE(semaphore.tryWait());
}

TEST_P(SemaphoreTest, AWaitEndsAtItsDeadlineAndTakesNothing) {
  Semaphore semaphore;
  test::inFiber([&] { EXPECT_FALSE(semaphore.wait(Deadline::after(1ms))); }, workers());
  semaphore.notify();
  EXPECT_TRUE(semaphore.tryWait());
}

TEST_P(SemaphoreTest, ACancelledFiberTakesWhatIsThereButDoesNotWait) {
  Semaphore semaphore;
  IOManager iom(workers(), false, "cancel");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    EXPECT_FALSE(semaphore.wait());
    semaphore.notify();
    EXPECT_TRUE(semaphore.wait());
    EXPECT_FALSE(semaphore.wait());
  });
  fiber->cancel();
  fiber->join();
  EXPECT_EQ(semaphore.getConcurrency(), 0u);
}

// One that was cancelled while it waited in the middle leaves the others in their order.
TEST_P(SemaphoreTest, OneThatLeavesTheQueueDoesNotDisturbIt) {
  Semaphore semaphore;
  std::atomic<int> passed{0};
  IOManager iom(workers(), false, "leave");
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 3; ++i) fibers.push_back(waiterOn(iom, [&] { passed += semaphore.wait() ? 1 : 0; }));
  fibers[1]->cancel();
  fibers[1]->join();
  semaphore.notify(2);
  iom.stop();
  EXPECT_EQ(passed, 2);
}

TEST_P(SemaphoreTest, FibersAndThreadsWaitForOneAnother) {
  Semaphore there, back;
  IOManager iom(workers(), false, "mixed");
  iom.schedule([&] {
    for (int i = 0; i < 1'000; ++i) {
      EXPECT_TRUE(there.wait());
      back.notify();
    }
  });
  for (int i = 0; i < 1'000; ++i) {
    there.notify();
    EXPECT_TRUE(back.wait());
  }
}

// stop(deadline) ends a wait, and nobody is left in the queue.
TEST_P(SemaphoreTest, AStopWithADeadlineEndsTheWaits) {
  Semaphore semaphore;
  IOManager iom(workers(), false, "stop");
  for (int i = 0; i < 10; ++i) waiterOn(iom, [&] { EXPECT_FALSE(semaphore.wait()); });
  EXPECT_TRUE(iom.stop(Deadline::after(test::kPatience)).clean);
  semaphore.notify();
  EXPECT_TRUE(semaphore.tryWait());
}

}  // namespace
}  // namespace sylar
