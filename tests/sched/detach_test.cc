// What becomes of the others when stop(deadline) leaves a worker behind whose fiber does not come back. No leak check: the
// thread, the fibers and the descriptors of such a worker stay.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler.h"
#include "sylar/sched/worker.h"
#include "tests/sched/counting.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::Counting;
using test::eventually;

Deadline atOnce() { return Deadline::after(0ms); }

void parkForEver() {
  Wait wait;
  wait.park();
}

/// Keeps workers in fibers until the test ends. The fibers share it: they outlive the test.
class Trap {
 public:
  Trap() = default;
  ~Trap() { m_state->over = true; }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

  /// A function that does not come back by itself.
  std::function<void()> function() const {
    return [state = m_state] {
      ++state->inside;
      while (!state->over) sched_yield();
    };
  }
  [[nodiscard]] bool holds(size_t fibers) const {
    return eventually([&] { return m_state->inside == fibers; });
  }

 private:
  struct State {
    std::atomic<size_t> inside{0};
    std::atomic<bool> over{false};
  };
  const std::shared_ptr<State> m_state = std::make_shared<State>();
};

std::vector<std::string> namesOf(const StopResult& result) {
  std::vector<std::string> names;
  for (const FiberInfo& info : result.leftovers) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  return names;
}

Fiber::ptr make(const char* name, std::function<void()> cb) {
  auto fiber = std::make_shared<Fiber>(std::move(cb));
  fiber->setName(name);
  return fiber;
}

class DetachTest : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, DetachTest, test::kWorkerCounts);

// Cause: what a worker that was left behind had was told nothing, and who joined it waited for ever.
TEST_P(DetachTest, WhoJoinsItsFibersGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  Scheduler other(1, false, "other");
  const Trap trap;
  scheduler.start();
  other.start();
  const int thread = scheduler.workers()[0]->threadId();
  const Fiber::ptr parked = make("parked", [] {
    for (;;) parkForEver();
  });
  const Fiber::ptr computes = make("computes", trap.function());
  const Fiber::ptr pinned = make("pinned", [] { FAIL(); });
  scheduler.schedule(parked, thread);
  ASSERT_TRUE(eventually([&] { return parked->life() == Fiber::Life::kParked; }));
  scheduler.schedule(computes, thread);
  ASSERT_TRUE(trap.holds(1));
  scheduler.schedule(pinned, thread);
  std::atomic<int> told{0};
  const auto expect_exception = [&told](const Fiber::ptr& fiber) {
    EXPECT_THROW(fiber->join(), std::runtime_error) << fiber->getName();
    ++told;
  };
  std::vector<std::thread> threads;
  for (const Fiber::ptr& fiber : {parked, computes, pinned}) {
    const auto joiner = std::make_shared<Fiber>([&, fiber] { expect_exception(fiber); });
    other.schedule(joiner);  // before
    ASSERT_TRUE(eventually([&] { return joiner->life() == Fiber::Life::kParked; }));
    threads.emplace_back([&, fiber] { expect_exception(fiber); });
  }
  const StopResult result = scheduler.stop(atOnce());
  EXPECT_EQ(namesOf(result), (std::vector<std::string>{"computes", "parked", "pinned"}));
  for (const Fiber::ptr& fiber : {parked, computes, pinned}) expect_exception(fiber);  // afterwards
  other.stop();
  for (std::thread& joiner : threads) joiner.join();
  EXPECT_EQ(told, 9);
}

// Cause: the same for what its own fiber had scheduled and nobody could take any more.
TEST_P(DetachTest, WhoJoinsWhatItsFiberScheduledGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  for (size_t i = 1; i < GetParam(); ++i) scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(GetParam() - 1));
  const Fiber::ptr fresh = make("fresh", [] { FAIL(); });
  scheduler.schedule([&scheduler, fresh, stay = trap.function()] {
    scheduler.schedule(fresh);
    stay();
  });
  ASSERT_TRUE(trap.holds(GetParam()));
  const Fiber::ptr offered = make("offered", [] { FAIL(); });
  scheduler.schedule(offered);
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_EQ(offered->life(), Fiber::Life::kAbandoned);
  EXPECT_THROW(offered->join(), std::runtime_error);
  ASSERT_EQ(fresh->life(), Fiber::Life::kAbandoned);  // else join() would wait for ever
  EXPECT_THROW(fresh->join(), std::runtime_error);
}

// What had been offered when the last worker was left behind is told, too.
TEST_P(DetachTest, WhoJoinsWhatNobodyIsLeftToRunGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  for (size_t i = 0; i < GetParam(); ++i) scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(GetParam()));
  const Fiber::ptr offered = make("offered", [] { FAIL(); });
  scheduler.schedule(offered);
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_THROW(offered->join(), std::runtime_error);
}

// Cause: the list of what it had given up went with the worker.
TEST_P(DetachTest, WhatWasGivenUpBeforeIsReported) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const int thread = scheduler.workers()[0]->threadId();
  const Fiber::ptr stubborn = make("stubborn", [] {
    for (;;) parkForEver();
  });
  stubborn->cancel();
  scheduler.schedule(stubborn, thread);
  ASSERT_TRUE(eventually([&] { return stubborn->life() == Fiber::Life::kAbandoned; }));
  scheduler.schedule(make("computes", trap.function()), thread);
  ASSERT_TRUE(trap.holds(1));
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"computes", "stubborn"}));
}

// Cause: when the last worker was left behind, what had been offered was destroyed under the lock that pendingEnded() takes.
TEST_P(DetachTest, WorkThatIsRefusedMayCallBackWhenItGoes) {
  Counting scheduler(GetParam());
  const Trap trap;
  scheduler.start();
  for (size_t i = 0; i < GetParam(); ++i) scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(GetParam()));
  scheduler.schedule([job = std::make_shared<Counting::Job>(scheduler)] { FAIL(); });
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_EQ(scheduler.pending, 0);
}

// Cause: it ran as if it were the library's own, and a worker in its loop is never left behind.
TEST_P(DetachTest, ADestructorOfRefusedWorkThatBlocksIsLeftBehind) {
  struct Blocks {
    explicit Blocks(std::function<void()> stay) : function(std::move(stay)) {}
    ~Blocks() {
      if (runningFiber() == nullptr) function();
    }
    const std::function<void()> function;
  };
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  std::atomic<bool> begun{false};
  const std::function<void()> again = [&] {
    begun = true;
    scheduler.schedule([&again, blocks = std::make_shared<Blocks>(trap.function())] { again(); });
  };
  scheduler.schedule(again);
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  (void)scheduler.stop(atOnce());
  EXPECT_TRUE(trap.holds(1));
  EXPECT_EQ(std::count_if(scheduler.workers().begin(), scheduler.workers().end(),
                          [](const auto& worker) { return worker->detached(); }),
            1);
}

// Cause: it went on using its worker, which was another thread's matter by then.
TEST_P(DetachTest, ItsFiberIsAPlainThreadToTheScheduler) {
  Scheduler scheduler(GetParam(), false, "stuck");
  scheduler.start();
  const auto inside = std::make_shared<test::Gate>();
  const auto done = std::make_shared<test::Gate>();
  scheduler.schedule([inside, done] {
    inside->open();
    while (Scheduler* const mine = Scheduler::GetThis()) {
      if (mine->isStopping()) (void)mine->trySchedule([] {});
      sched_yield();
    }
    done->open();
  });
  ASSERT_TRUE(inside->wait());
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_TRUE(done->wait());
}

// Cause: its thread id was still known: what was pinned or moved there was accepted, and lost.
TEST(Detach, NothingGoesToItsThreadAnyMore) {
  Scheduler scheduler(3, true, "stuck");  // the calling thread is never left behind; the third looks at the clock
  const Trap trap;
  scheduler.start();
  const Worker& stuck = *scheduler.workers()[1];
  const int thread = stuck.threadId();
  scheduler.schedule(trap.function(), thread);
  ASSERT_TRUE(trap.holds(1));
  const auto capture = std::make_shared<int>(0);
  bool ran = false;
  scheduler.schedule(
      [&] {
        ASSERT_TRUE(eventually([&] { return stuck.detached(); }));
        EXPECT_FALSE(scheduler.trySchedule([capture] { FAIL(); }, thread));
        EXPECT_FALSE(scheduler.switchTo(thread));
        ran = true;
      },
      sys::threadId());
  EXPECT_FALSE(scheduler.stop(Deadline::after(300ms)).clean);  // not at once: after its deadline nothing begins
  EXPECT_TRUE(ran);
  EXPECT_EQ(capture.use_count(), 1);
}

}  // namespace
}  // namespace sylar
