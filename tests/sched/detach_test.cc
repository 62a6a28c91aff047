// Tests what happens to the others when stop(deadline) leaves a worker behind whose fiber does not come back. No leak check: the
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
#include "sylar/clock.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/counting.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/thread_state.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::Counting;
using test::eventually;

Deadline atOnce() { return Deadline::after(0ms); }

void stayParked() {
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
  bool holdsAny() const { return m_state->inside > 0; }

 private:
  struct State {
    std::atomic<size_t> inside{0};
    std::atomic<bool> over{false};
  };
  const std::shared_ptr<State> m_state = std::make_shared<State>();
};

std::vector<std::string> namesOf(const StopResult& result) {
  std::vector<std::string> names;
  for (const FiberInfo& info : result.abandoned) names.push_back(info.name);
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

// Cause: what a worker that was left behind had was told nothing, and who joined it waited forever.
TEST_P(DetachTest, WhoJoinsItsFibersGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  Scheduler other(1, false, "other");
  const Trap trap;
  scheduler.start();
  other.start();
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  const Fiber::ptr parked = make("parked", [] {
    for (;;) stayParked();
  });
  const Fiber::ptr computes = make("computes", trap.function());
  const Fiber::ptr pinned = make("pinned", [] { FAIL(); });
  scheduler.schedule(parked, thread);
  ASSERT_TRUE(eventually([&] { return stateOf(*parked) == FiberState::kParked; }));
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
    ASSERT_TRUE(eventually([&] { return stateOf(*joiner) == FiberState::kParked; }));
    threads.emplace_back([&, fiber] { expect_exception(fiber); });
  }
  const StopResult result = scheduler.stop(atOnce());
  EXPECT_EQ(namesOf(result), (std::vector<std::string>{"computes", "parked", "pinned"}));
  for (const Fiber::ptr& fiber : {parked, computes, pinned}) expect_exception(fiber);  // afterwards
  other.stop();
  for (std::thread& joiner : threads) joiner.join();
  EXPECT_EQ(told, 9);
}

/// Counts who asks it.
class AskedClock final : public Clock {
 public:
  int64_t nowNs() const override {
    ++m_asked;
    return steadyClock().nowNs();
  }
  int asked() const { return m_asked; }

 private:
  mutable std::atomic<int> m_asked{0};
};

// Cause: where its batch was due to look at the clock, the thread asked that of a scheduler that was gone.
TEST(Detach, TheThreadThatComesBackAsksNoClock) {
  for (const int yields : {15, 31, 63}) {
    AskedClock clock;
    struct State {
      std::atomic<pid_t> thread{0};
      std::atomic<bool> over{false};
    };
    const auto state = std::make_shared<State>();
    Scheduler scheduler(SchedulerOptions{.threads = 1, .use_caller = false, .name = "stuck", .clock = &clock});
    scheduler.start();
    scheduler.schedule([state, yields] {
      for (int i = 0; i < yields; ++i) Fiber::YieldToReady();
      state->thread = sys::threadId();
      while (!state->over) sched_yield();
      Fiber::YieldToReady();
    });
    ASSERT_TRUE(eventually([&] { return state->thread != 0; }));
    EXPECT_EQ(scheduler.stop(atOnce()).abandoned.size(), 1u);
    const int asked = clock.asked();
    state->over = true;
    ASSERT_TRUE(eventually([&] { return test::stateOfThread(state->thread) == 'S'; }));
    EXPECT_EQ(clock.asked(), asked) << yields;
  }
}

// Cause: a message in its mailbox was opened, which frees it, and then looked at: a use after free.
TEST_P(DetachTest, WhatItsFibersWereAskedMeanwhileEnds) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  const Fiber::ptr parked = make("parked", [] {
    for (;;) stayParked();
  });
  const Fiber::ptr held = make("held", [] {
    for (;;) Fiber::YieldToHold();
  });
  for (const Fiber::ptr& fiber : {parked, held}) scheduler.schedule(fiber, thread);
  ASSERT_TRUE(eventually([&] { return stateOf(*parked) == FiberState::kParked && stateOf(*held) == FiberState::kHeld; }));
  scheduler.schedule(make("computes", trap.function()), thread);
  ASSERT_TRUE(trap.holds(1));
  scheduler.schedule(held);
  parked->cancel();
  EXPECT_EQ(held.use_count(), 3);  // the scheduler's, and the message's
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"computes", "held", "parked"}));
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_EQ(parked.use_count(), 2);
}

// Cause: pinned work that it had taken from its mailbox already was not looked for: it was not reported, who joined it waited for
// ever, and what it captured stayed.
TEST_P(DetachTest, WhoJoinsWhatIsPinnedBehindItsFiberGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  const auto capture = std::make_shared<int>(0);
  const Fiber::ptr pinned = make("pinned", [capture] { FAIL(); });
  scheduler.schedule(
      [&, stay = trap.function()] {  // one batch of mail: the second waits in the run queue
        scheduler.schedule(make("computes", stay), thread);
        scheduler.schedule(pinned, thread);
      },
      thread);
  ASSERT_TRUE(trap.holds(1));
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"computes", "pinned"}));
  // A worker that destroys it may be left behind in its turn.
  EXPECT_TRUE(eventually([&] { return capture.use_count() == 1; }));
  ASSERT_EQ(stateOf(*pinned), FiberState::kAbandoned);  // else join() would wait forever
  EXPECT_THROW(pinned->join(), std::runtime_error);
}

// The same for what is on its way there: a fiber that moves.
TEST_P(DetachTest, WhoJoinsAFiberThatMovedBehindItsFiberGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  Scheduler other(1, false, "other");
  const Trap trap;
  scheduler.start();
  other.start();
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  test::Gate inside;
  test::Gate moved;
  scheduler.schedule(
      [&, stay = trap.function()] {
        scheduler.schedule(make("computes", stay), thread);
        inside.open();
        ASSERT_TRUE(moved.wait());
      },
      thread);
  ASSERT_TRUE(inside.wait());
  const Fiber::ptr mover = make("moves", [&] {
    EXPECT_TRUE(scheduler.switchTo(thread));
    FAIL();
  });
  other.schedule(mover);
  other.stop();  // it has gone for good
  moved.open();
  ASSERT_TRUE(trap.holds(1));
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"computes", "moves"}));
  EXPECT_THROW(mover->join(), std::runtime_error);
}

// Cause: a fiber that was resumed by hand and computes stood in no list.
TEST_P(DetachTest, WhoJoinsWhatItsFiberResumedByHandGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const Fiber::ptr inner = make("inner", trap.function());
  const Fiber::ptr middle = make("middle", [inner] { inner->resume(); });
  scheduler.schedule(make("outer", [middle] { middle->resume(); }));
  ASSERT_TRUE(trap.holds(1));
  std::thread joiner([&] { EXPECT_THROW(inner->join(), std::runtime_error); });
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"inner", "middle", "outer"}));
  joiner.join();
  EXPECT_THROW(middle->join(), std::runtime_error);
}

// Cause: one that parked there asked the scheduler, which may be gone by then, whether it cancels all.
TEST_P(DetachTest, WhatItsFiberResumedByHandMayParkWhenTheSchedulerIsGone) {
  const auto computes = std::make_shared<test::Gate>();
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const Fiber::ptr inner = make("inner", [computes, over] {
    computes->open();
    while (!*over) sched_yield();
    stayParked();
  });
  {
    Scheduler scheduler(GetParam(), false, "stuck");
    scheduler.start();
    scheduler.schedule([inner] { inner->resume(); });
    ASSERT_TRUE(computes->wait());
    EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  }
  *over = true;
  EXPECT_TRUE(eventually([&] { return stateOf(*inner) == FiberState::kParked; }));
}

// A fiber that is resumed by hand leaves that list when it parks, yields or ends.
TEST_P(DetachTest, OnlyTheFibersOfItsChainAreReported) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const Fiber::ptr parked = make("parked", [] {
    for (;;) stayParked();
  });
  const Fiber::ptr held = make("held", [] { Fiber::YieldToHold(); });
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  scheduler.schedule(make("waits", [parked] { parked->resume(); }), thread);
  ASSERT_TRUE(eventually([&] { return stateOf(*parked) == FiberState::kParked; }));
  scheduler.schedule(make("computes",
                          [held, stay = trap.function()] {
                            held->resume();
                            const auto ended = std::make_shared<Fiber>([] {});
                            ended->resume();
                            stay();
                          }),
                     thread);
  ASSERT_TRUE(trap.holds(1));
  EXPECT_EQ(namesOf(scheduler.stop(atOnce())), (std::vector<std::string>{"computes", "parked", "waits"}));
  EXPECT_THROW(parked->join(), std::runtime_error);
  // The held one is its holder's: it may go on elsewhere.
  Scheduler next(1, false, "next");
  EXPECT_TRUE(next.trySchedule(held));
  next.stop();
  EXPECT_EQ(stateOf(*held), FiberState::kEnded);
}

// Cause: the waits of its fibers stayed open: who handed something over to one of them won, and it was lost.
TEST_P(DetachTest, AWakerOfItsFibersComesTooLate) {
  Scheduler scheduler(GetParam(), false, "stuck");
  scheduler.start();
  const Worker& stuck = *coreOf(scheduler).workers()[0];
  Waker parked;
  const Fiber::ptr before = make("parked before", [&parked] {
    Wait wait;
    parked = wait.waker();
    wait.park();
  });
  scheduler.schedule(before, stuck.threadId());
  ASSERT_TRUE(eventually([&] { return stateOf(*before) == FiberState::kParked; }));
  struct Shared {  // the fiber outlives the test
    std::atomic<bool> inside{false}, parks{false};
    Waker waker;
  };
  const auto shared = std::make_shared<Shared>();
  scheduler.schedule(make("parks later",
                          [shared] {
                            Wait wait;
                            shared->waker = wait.waker();
                            shared->inside = true;
                            while (!shared->parks) sched_yield();
                            wait.park();
                          }),
                     stuck.threadId());
  ASSERT_TRUE(eventually([&] { return shared->inside.load(); }));
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_FALSE(parked.wake(WakeReason::kReady));
  shared->parks = true;
  EXPECT_TRUE(eventually([&] { return !shared->waker.core->wait.isOpen(); }));
  EXPECT_FALSE(shared->waker.wake(WakeReason::kReady));
}

// Cause: what refused work had captured was destroyed before the next one's joiners were told.
TEST_P(DetachTest, AllAreToldBeforeRefusedWorkIsDestroyed) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  for (size_t i = 0; i < GetParam(); ++i) scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(GetParam()));
  std::atomic<int> told{0};
  const auto wait_for_both =
      std::shared_ptr<void>(nullptr, [&told](void*) { EXPECT_TRUE(eventually([&] { return told == 2; })); });
  Fiber::ptr fibers[2];
  std::vector<std::thread> joiners;
  for (Fiber::ptr& fiber : fibers) {
    fiber = make("refused", [wait_for_both] { FAIL(); });
    scheduler.schedule(fiber);
    joiners.emplace_back([fiber, &told] {
      EXPECT_THROW(fiber->join(), std::runtime_error);
      ++told;
    });
  }
  const_cast<std::shared_ptr<void>&>(wait_for_both).reset();
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  for (std::thread& joiner : joiners) joiner.join();
}

/// Returns true if a worker was left behind. On a busy machine others may be late, too.
bool leavesBehind(Scheduler& scheduler) {
  const auto& workers = coreOf(scheduler).workers();
  return std::any_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->detached(); });
}

// Cause: the program's exception handler ran as if it were the library's own, and a worker in its loop is never left behind.
TEST_P(DetachTest, AnExceptionHandlerThatBlocksIsLeftBehind) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  Fiber::SetExceptionHandler([stay = trap.function()](uint64_t, const std::string&, const std::exception_ptr&) { stay(); });
  scheduler.schedule([] { throw std::runtime_error("for the handler"); });
  ASSERT_TRUE(trap.holds(1));
  EXPECT_TRUE(scheduler.stop(atOnce()).clean);  // no fiber is left, a thread is
  Fiber::SetExceptionHandler(nullptr);
  EXPECT_TRUE(leavesBehind(scheduler));
}

// Cause: the same if a message to the fiber had its last handle, because somebody had cancelled it in between.
TEST_P(DetachTest, AnExceptionHandlerThatBlocksAtTheEndOfAMessageIsLeftBehind) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  Fiber::SetExceptionHandler([stay = trap.function()](uint64_t, const std::string&, const std::exception_ptr&) { stay(); });
  test::Gate runs, cancelled;
  auto fiber = std::make_shared<Fiber>([&] {
    runs.open();
    EXPECT_TRUE(cancelled.wait());
    throw std::runtime_error("for the handler");
  });
  scheduler.schedule(fiber);
  ASSERT_TRUE(runs.wait());
  fiber->cancel();
  fiber = nullptr;
  cancelled.open();
  ASSERT_TRUE(trap.holds(1));
  EXPECT_TRUE(scheduler.stop(atOnce()).clean);
  Fiber::SetExceptionHandler(nullptr);
  EXPECT_TRUE(leavesBehind(scheduler));
}

// Cause: the same for the destructor of an exception that nobody took.
TEST_P(DetachTest, ADestructorOfAnExceptionThatBlocksIsLeftBehind) {
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
  Fiber::SetExceptionHandler([](uint64_t, const std::string&, const std::exception_ptr&) {});
  scheduler.schedule([&] { throw std::make_shared<Blocks>(trap.function()); });
  ASSERT_TRUE(trap.holds(1));
  EXPECT_TRUE(scheduler.stop(atOnce()).clean);
  Fiber::SetExceptionHandler(nullptr);
}

// Cause: the handler counted as its worker's loop; the worker came back to that twice, and stood still as if it were detached.
TEST_P(DetachTest, AnExceptionHandlerThatStopsAnotherSchedulerLeavesItsOwnWorkerInPlace) {
  Scheduler other(1, false, "other");
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  other.start();
  scheduler.start();
  scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(1));
  test::Gate handled;
  Fiber::SetExceptionHandler([&](uint64_t, const std::string&, const std::exception_ptr&) {
    EXPECT_FALSE(scheduler.stop(atOnce()).clean);
    handled.open();
  });
  other.schedule([] { throw std::runtime_error("for the handler"); });
  ASSERT_TRUE(handled.wait());
  test::Gate ran;
  other.schedule([&ran] { ran.open(); });
  ASSERT_TRUE(ran.wait());
  other.stop();
  Fiber::SetExceptionHandler(nullptr);
}

// Cause: the same for what its own fiber had scheduled and nobody could take any more.
TEST_P(DetachTest, WhoJoinsWhatItsFiberScheduledGetsAnException) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  for (size_t i = 1; i < GetParam(); ++i) scheduler.schedule(trap.function());
  ASSERT_TRUE(trap.holds(GetParam() - 1));
  const Fiber::ptr unstarted = make("unstarted", [] { FAIL(); });
  scheduler.schedule([&scheduler, unstarted, stay = trap.function()] {
    scheduler.schedule(unstarted);
    stay();
  });
  ASSERT_TRUE(trap.holds(GetParam()));
  const Fiber::ptr offered = make("offered", [] { FAIL(); });
  scheduler.schedule(offered);
  EXPECT_FALSE(scheduler.stop(atOnce()).clean);
  EXPECT_EQ(stateOf(*offered), FiberState::kAbandoned);
  EXPECT_THROW(offered->join(), std::runtime_error);
  ASSERT_EQ(stateOf(*unstarted), FiberState::kAbandoned);  // else join() would wait forever
  EXPECT_THROW(unstarted->join(), std::runtime_error);
}

// Work that had been offered when the last worker was left behind is reported, too.
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

// Cause: the list of what it had abandoned went with the worker.
TEST_P(DetachTest, WhatWasAbandonedBeforeIsReported) {
  Scheduler scheduler(GetParam(), false, "stuck");
  const Trap trap;
  scheduler.start();
  const int thread = coreOf(scheduler).workers()[0]->threadId();
  const Fiber::ptr stubborn = make("stubborn", [] {
    for (;;) stayParked();
  });
  stubborn->cancel();
  scheduler.schedule(stubborn, thread);
  ASSERT_TRUE(eventually([&] { return stateOf(*stubborn) == FiberState::kAbandoned; }));
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
  const Trap trap;
  // On a busy machine the worker may be left behind in a function, before it has refused one. Then it is tried again.
  while (!trap.holdsAny()) {
    Scheduler scheduler(GetParam(), false, "stuck");
    scheduler.start();
    std::atomic<bool> begun{false};
    const auto running = std::make_shared<std::atomic<int>>(0);
    const auto stay_elsewhere = [stay = trap.function(), here = sys::threadId()] {
      if (sys::threadId() != here) stay();  // what such a worker leaves is destroyed by stop()
    };
    const std::function<void()> again = [&, running] {
      ++*running;
      begun = true;
      scheduler.schedule([&again, blocks = std::make_shared<Blocks>(stay_elsewhere)] { again(); });
      --*running;
    };
    scheduler.schedule(again);
    ASSERT_TRUE(eventually([&] { return begun.load(); }));
    (void)scheduler.stop(atOnce());
    EXPECT_TRUE(leavesBehind(scheduler));
    EXPECT_TRUE(eventually([&] { return *running == 0; }));  // it uses what ends here
  }
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
      if (coreOf(*mine).isStopping()) (void)mine->trySchedule([] {});
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
  const Worker& stuck = *coreOf(scheduler).workers()[1];
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
