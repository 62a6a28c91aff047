// A CancelScope ends what libraries wait for, from outside and for a while: hooked calls fail with ECANCELED.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sylar/cancel.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/task_group.h"
#include "tests/hook/support.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using this_fiber::CancelReason;

class CancelScopeTest : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, CancelScopeTest, kWorkerCounts);

void expectCanceled(ssize_t result) {
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, ECANCELED) << ::strerror(errno);
}

TEST_P(CancelScopeTest, EndsWhatTheFiberWaitsForAndNothingAfterIt) {
  const Pair pair = unixPair();
  Channel<int> channel;
  Mutex mutex;
  mutex.lock();
  const std::vector<std::function<void()>> waits = {
      [&] {
        char byte;
        expectCanceled(::read(pair.a, &byte, 1));
      },
      [&] {
        pollfd one{pair.a, POLLIN, 0};
        expectCanceled(::poll(&one, 1, -1));
      },
      [&] { EXPECT_GT(::sleep(3600), 0u); },
      [&] { EXPECT_FALSE(channel.receive().has_value()); },
      [&] { EXPECT_FALSE(mutex.lock(Deadline::never())); },
  };
  IOManager iom(workers(), false, "scopes");
  for (const auto& wait : waits) {
    std::stop_source stop;
    bool after = false;
    const Fiber::ptr fiber = waiterOn(iom, [&] {
      withCancel(stop.get_token(), [&] {
        EXPECT_FALSE(this_fiber::cancelled());
        wait();
        EXPECT_TRUE(this_fiber::cancelled());
        EXPECT_EQ(this_fiber::cancelReason(), CancelReason::kToken);
        wait();  // it lasts as long as the scope
      });
      EXPECT_FALSE(this_fiber::cancelled());
      EXPECT_EQ(this_fiber::cancelReason(), CancelReason::kNone);
      ::usleep(1);
      after = !this_fiber::cancelled();
    });
    stop.request_stop();
    fiber->join();
    EXPECT_TRUE(after);
  }
  mutex.unlock();
}

TEST_P(CancelScopeTest, DataThatIsThereIsDelivered) {
  const Pair pair = unixPair();
  std::stop_source stop;
  stop.request_stop();
  IOManager iom(workers(), false, "there");
  const auto fiber = std::make_shared<Fiber>([&] {
    withCancel(stop.get_token(), [&] {
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      char byte = 0;
      EXPECT_EQ(::read(pair.a, &byte, 1), 1);
      EXPECT_EQ(byte, 'x');
      expectCanceled(::read(pair.a, &byte, 1));
    });
  });
  iom.schedule(fiber);
  fiber->join();
}

TEST_P(CancelScopeTest, TheInnerScopeEndsAlone) {
  std::stop_source outer, inner;
  IOManager iom(workers(), false, "nested");
  Semaphore at_outer;
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    withCancel(outer.get_token(), [&] {
      withCancel(inner.get_token(), [] { EXPECT_GT(::sleep(3600), 0u); });
      EXPECT_FALSE(this_fiber::cancelled());
      at_outer.notify();
      EXPECT_GT(::sleep(3600), 0u);
      withCancel(std::stop_token(), [] { EXPECT_TRUE(this_fiber::cancelled()) << "of the outer scope"; });
    });
    EXPECT_FALSE(this_fiber::cancelled());
  });
  inner.request_stop();
  EXPECT_TRUE(at_outer.wait());
  outer.request_stop();
  fiber->join();
}

TEST_P(CancelScopeTest, AShieldHidesIt) {
  const Pair pair = unixPair();
  std::stop_source stop;
  IOManager iom(workers(), false, "shield");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    const this_fiber::CancelScope scope(stop.get_token());
    char byte = 0;
    {
      const this_fiber::CancelShield shield;
      EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    }
    expectCanceled(::read(pair.a, &byte, 1));
  });
  stop.request_stop();
  EXPECT_EQ(::write(pair.b, "x", 1), 1);
  fiber->join();
}

TEST_P(CancelScopeTest, ReachesThoseThatTheFiberResumesByHand) {
  std::stop_source stop;
  IOManager iom(workers(), false, "by hand");
  const auto fiber = std::make_shared<Fiber>([&] {
    const auto inner = std::make_shared<Fiber>([] {
      EXPECT_GT(::sleep(3600), 0u);
      EXPECT_TRUE(this_fiber::cancelled());
      Fiber::YieldToHold();
      EXPECT_FALSE(this_fiber::cancelled()) << "it has outlived the scope of its resumer";
      EXPECT_EQ(::usleep(1), 0);
    });
    withCancel(stop.get_token(), [&] { inner->resume(); });
    inner->resume();
    EXPECT_EQ(inner->getState(), Fiber::TERM);
  });
  iom.schedule(fiber);
  EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kResuming; }));
  stop.request_stop();
  fiber->join();
}

TEST(CancelScope, OfAResumerLeavesNothingBehind) {
  IOManager iom(1, false, "resumer");
  const auto fiber = std::make_shared<Fiber>([] {
    const auto inner = std::make_shared<Fiber>([] {
      EXPECT_EQ(::usleep(1000), -1);
      Fiber::YieldToHold();
      for (int i = 0; i < 1100; ++i) EXPECT_EQ(::usleep(1), 0);
    });
    std::stop_source stop;
    stop.request_stop();
    withCancel(stop.get_token(), [&] { inner->resume(); });
    Scheduler::GetThis()->schedule(inner);
    EXPECT_NO_THROW(inner->join());
  });
  iom.schedule(fiber);
  fiber->join();
}

TEST(CancelScope, WaitsInManyScopesOfResumersAreNotAddedUp) {
  IOManager iom(1, false, "generator");
  const auto fiber = std::make_shared<Fiber>([] {
    const auto generator = std::make_shared<Fiber>([] {
      for (int i = 0; i < 1100; ++i) {
        ::usleep(1);
        Fiber::YieldToHold();
      }
    });
    for (int i = 0; i < 1101; ++i) {
      std::stop_source stop;
      stop.request_stop();
      withCancel(stop.get_token(), [&] { generator->resume(); });
    }
    EXPECT_EQ(generator->getState(), Fiber::TERM);
  });
  iom.schedule(fiber);
  EXPECT_NO_THROW(fiber->join());
}

// The request of a stop reaches a fiber that is held, and whose resumer has gone.
TEST(CancelScope, AResumerMayGoBeforeTheRequestComes) {
  IOManager iom(1, false, "gone");
  const auto fiber = std::make_shared<Fiber>([] {
    std::stop_source stop, never;
    const auto inner = std::make_shared<Fiber>([&] {
      withCancel(stop.get_token(), [&] { stop.request_stop(); });
      Fiber::YieldToHold();
    });
    std::make_shared<Fiber>([&] {
      const this_fiber::CancelScope scope(never.get_token());
      inner->resume();
      Fiber::YieldToHold();
    })->resume();
    ::usleep(1000);
    inner->resume();
    EXPECT_EQ(inner->getState(), Fiber::TERM);
  });
  iom.schedule(fiber);
  fiber->join();
}

TEST(CancelScope, OfADroppedFiberMayBeToldToStop) {
  std::stop_source stop;
  auto fiber = std::make_shared<Fiber>([&] {
    const this_fiber::CancelScope scope(stop.get_token());
    Fiber::YieldToHold();
  });
  fiber->resume();
  fiber = nullptr;
  EXPECT_TRUE(stop.request_stop());
}

TEST(CancelScope, AShieldOfTheResumerHidesIt) {
  IOManager iom(1, false, "shielded");
  const auto fiber = std::make_shared<Fiber>([] {
    std::stop_source stop;
    stop.request_stop();
    const this_fiber::CancelScope scope(stop.get_token());
    const this_fiber::CancelShield shield;
    const auto inner = std::make_shared<Fiber>([] { EXPECT_EQ(::usleep(1), 0); });
    inner->resume();
    EXPECT_EQ(inner->getState(), Fiber::TERM);
  });
  iom.schedule(fiber);
  fiber->join();
}

TEST(CancelScope, TheFiberMayBeCancelledBesides) {
  std::stop_source stop;
  IOManager iom(1, false, "both");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    withCancel(stop.get_token(), [] { EXPECT_GT(::sleep(3600), 0u); });
    EXPECT_EQ(this_fiber::cancelReason(), CancelReason::kFiber) << "the end of the scope does not undo it";
    EXPECT_GT(::sleep(3600), 0u);
  });
  fiber->cancel();
  fiber->join();
}

TEST(CancelScope, AStopIsToldFromACancel) {
  IOManager iom(1, false, "stop");
  const auto sleepUntil = [](CancelReason reason) {
    return [reason] {
      EXPECT_GT(::sleep(3600), 0u);
      EXPECT_EQ(this_fiber::cancelReason(), reason);
    };
  };
  const Fiber::ptr stopped = waiterOn(iom, sleepUntil(CancelReason::kStop));
  const Fiber::ptr cancelled = waiterOn(iom, sleepUntil(CancelReason::kFiber));
  cancelled->cancel();
  cancelled->join();
  EXPECT_TRUE(iom.stop(Deadline::after(std::chrono::hours(1))).clean);
}

TEST(CancelScope, OnAThreadItDoesNothing) {
  std::stop_source stop;
  stop.request_stop();
  withCancel(stop.get_token(), [] {
    EXPECT_FALSE(this_fiber::cancelled());
    EXPECT_EQ(::usleep(1), 0);
  });
  EXPECT_EQ(withCancel(stop.get_token(), [] { return std::string("its result"); }), "its result");
}

TEST(CancelScope, OneWhoGoesOnRegardlessIsGivenUp) {
  std::stop_source stop;
  stop.request_stop();
  IOManager iom(1, false, "spins");
  const auto fiber = std::make_shared<Fiber>([&] {
    const this_fiber::CancelScope scope(stop.get_token());
    for (;;) ::usleep(1);
  });
  iom.schedule(fiber);
  EXPECT_THROW(fiber->join(), std::runtime_error);
}

// The waits before a scope was told do not count against those after it.
TEST(CancelScope, ManyScopesAreNotAddedUp) {
  IOManager iom(1, false, "many");
  const auto fiber = std::make_shared<Fiber>([&] {
    for (int i = 0; i < 3; ++i) {
      std::stop_source stop;
      stop.request_stop();
      const this_fiber::CancelScope scope(stop.get_token());
      for (int wait = 0; wait < 900; ++wait) ::usleep(1);
    }
  });
  iom.schedule(fiber);
  EXPECT_NO_THROW(fiber->join());
}

// The owner of a task group is cancelled with its scope, and its tasks with it.
TEST_P(CancelScopeTest, EndsTheTasksOfAGroupWithIt) {
  std::stop_source stop;
  IOManager iom(workers(), false, "group");
  std::atomic<int> ended{0};
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    const this_fiber::CancelScope scope(stop.get_token());
    TaskGroup group;
    for (int i = 0; i < 10; ++i) {
      group.spawn([&] {
        EXPECT_GT(::sleep(3600), 0u);
        ++ended;
      });
    }
    EXPECT_THROW(group.join(), std::system_error);
  });
  stop.request_stop();
  fiber->join();
  EXPECT_EQ(ended, 10);
}

}  // namespace
}  // namespace sylar::test
