// What holds for those who wait at any primitive: fibers of two managers and plain threads stand in one queue, a wait ends at its
// deadline, and nobody remembers a fiber that was abandoned.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/sync/event.h"
#include "sylar/sync/future.h"
#include "sylar/sync/latch.h"
#include "sylar/sync/select.h"
#include "sylar/sync/wait_group.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/sync/arrivals.h"
#include "tests/sync/error_of.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::Arrivals;

constexpr int kWaiters = 100;

std::vector<int> inOrder() {
  std::vector<int> order(kWaiters);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// ---- In the order of arrival. ------------------------------------------------------------------------------------------------

class ArrivalOrder : public test::OverWorkers {
 protected:
  /// Lets those who wait for a lock in, which `held` keeps from them, and expects them in their order.
  template <class Lock>
  void expectOrderOf(Lock& held) {
    std::vector<int> order;
    held.lock();
    Arrivals arrivals(workers());
    for (int i = 0; i < kWaiters; ++i) {
      arrivals.add([&, i] {
        const std::lock_guard lock(held);
        order.push_back(i);
      });
    }
    held.unlock();
    arrivals.join();
    EXPECT_EQ(order, inOrder());
  }

  /// The same for those who are let go one by one. Waiter i calls `wait`, and `letGo` lets the oldest go.
  void expectOrderOf(const std::function<void()>& wait, const std::function<void()>& letGo) {
    std::vector<int> order;
    test::Gate served;
    Arrivals arrivals(workers());
    for (int i = 0; i < kWaiters; ++i) {
      arrivals.add([&, i] {
        wait();
        order.push_back(i);
        served.open();
      });
    }
    for (size_t i = 1; i <= kWaiters; ++i) {
      letGo();
      ASSERT_TRUE(served.wait(i));
    }
    arrivals.join();
    EXPECT_EQ(order, inOrder());
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, ArrivalOrder, test::kWorkerCounts);

TEST_P(ArrivalOrder, Mutex) {
  Mutex mutex;
  expectOrderOf(mutex);
}

TEST_P(ArrivalOrder, WritersOfARWMutex) {
  RWMutex mutex;
  expectOrderOf(mutex);
}

TEST_P(ArrivalOrder, Semaphore) {
  Semaphore semaphore;
  expectOrderOf([&] { EXPECT_TRUE(semaphore.wait()); }, [&] { semaphore.notify(); });
}

TEST_P(ArrivalOrder, ConditionVariable) {
  Mutex mutex;
  ConditionVariable changed;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait(lock));
  };
  expectOrderOf(wait, [&] { changed.notify_one(); });
}

TEST_P(ArrivalOrder, SendersOfAChannel) {
  for (const size_t capacity : {0, 3}) {
    Channel<int> channel(capacity);
    for (size_t i = 0; i < capacity; ++i) ASSERT_TRUE(channel.trySend(-1));
    Arrivals arrivals(workers());
    for (int i = 0; i < kWaiters; ++i) {
      arrivals.add([&, i] {
        if (i % 4 == 0) {
          EXPECT_TRUE(select(onSend(channel, int{i}, [](bool sent) { EXPECT_TRUE(sent); })));
        } else {
          EXPECT_TRUE(channel.send(i));
        }
      });
    }
    for (size_t i = 0; i < capacity; ++i) EXPECT_EQ(channel.tryReceive(), -1);
    for (int i = 0; i < kWaiters; ++i) EXPECT_EQ(channel.tryReceive(), i);
  }
}

TEST_P(ArrivalOrder, ReceiversOfAChannel) {
  for (const size_t capacity : {0, 3}) {
    Channel<int> channel(capacity);
    Arrivals arrivals(workers());
    for (int i = 0; i < kWaiters; ++i) {
      arrivals.add([&, i] {
        if (i % 4 == 0) {
          EXPECT_TRUE(select(onReceive(channel, [i](std::optional<int> got) { EXPECT_EQ(got, i); })));
        } else {
          EXPECT_EQ(channel.receive(), i);
        }
      });
    }
    for (int i = 0; i < kWaiters; ++i) EXPECT_TRUE(channel.trySend(int{i}));
  }
}

// ---- Waits that end in vain. -------------------------------------------------------------------------------------------------

class Waiters : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, Waiters, test::kWorkerCounts);

/// All there is to wait for, and none of it comes.
struct Nothing {
  Nothing() {
    mutex.lock();
    read.rdlock();
    written.wrlock();
    EXPECT_TRUE(full.trySend(1));
    group.add();
  }

  Mutex mutex, free;
  RWMutex read, written;
  Semaphore semaphore;
  ConditionVariable changed;
  Event event;
  Latch latch{1};
  WaitGroup group;
  Channel<int> nobody_receives, nobody_sends, empty{1}, full{1};
  Promise<int> promise;
  Future<int> future = promise.getFuture();

  /// Each returns false if its wait has ended in vain.
  std::vector<std::function<bool(Deadline)>> waits() {
    return {
        [this](Deadline deadline) { return mutex.lock(deadline); },
        [this](Deadline deadline) { return read.wrlock(deadline); },
        [this](Deadline deadline) { return written.rdlock(deadline); },
        [this](Deadline deadline) { return written.wrlock(deadline); },
        [this](Deadline deadline) { return semaphore.wait(deadline); },
        [this](Deadline deadline) {
          std::unique_lock lock(free);
          return changed.wait(lock, deadline);
        },
        [this](Deadline deadline) { return event.wait(deadline); },
        [this](Deadline deadline) { return latch.wait(deadline); },
        [this](Deadline deadline) { return group.wait(deadline); },
        [this](Deadline deadline) { return nobody_receives.send(2, deadline); },
        [this](Deadline deadline) { return nobody_sends.receive(deadline).has_value(); },
        [this](Deadline deadline) { return empty.receive(deadline).has_value(); },
        [this](Deadline deadline) { return full.send(2, deadline); },
        [this](Deadline deadline) { return future.wait(deadline); },
        [this](Deadline deadline) {
          bool late = false;
          const auto came = [](auto&&...) { ADD_FAILURE(); };
          return select(onReceive(empty, came), onSend(full, 3, came), onSet(event, came), onReady(future, came),
                        onTimeout(deadline, [&] { late = true; })) &&
                 !late;
        },
    };
  }

  /// What was handed to nobody is there.
  void expectWhole() {
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    read.unlock();
    EXPECT_TRUE(read.try_lock());
    written.unlock();
    EXPECT_TRUE(written.try_lock());
    EXPECT_TRUE(free.try_lock());
    changed.notify_one();
    semaphore.notify();
    EXPECT_EQ(semaphore.getConcurrency(), 1u);
    event.set();
    latch.count_down();
    group.done();
    promise.setValue(7);
    EXPECT_FALSE(nobody_sends.trySend(4));
    EXPECT_EQ(nobody_receives.tryReceive(), std::nullopt);
    EXPECT_TRUE(empty.trySend(5));
    EXPECT_EQ(empty.size(), 1u);
    EXPECT_EQ(full.tryReceive(), 1);
    EXPECT_EQ(full.tryReceive(), std::nullopt);
    for (Mutex* locked : {&mutex, &free}) locked->unlock();
    for (RWMutex* locked : {&read, &written}) locked->unlock();
  }
};

TEST_P(Waiters, EveryWaitEndsAtItsDeadline) {
  Nothing nothing;
  {
    const Deadline deadline = Deadline::after(1ms);
    IOManager iom(workers(), false, "deadline");
    std::vector<std::thread> threads;
    for (const auto& wait : nothing.waits()) {
      const auto waitInVain = [wait, deadline] {
        EXPECT_FALSE(wait(deadline));
        EXPECT_GE(steadyClock().nowNs(), deadline.ns());
      };
      iom.schedule(waitInVain);
      threads.emplace_back(waitInVain);
    }
    for (std::thread& thread : threads) thread.join();
  }
  nothing.expectWhole();
}

TEST_P(Waiters, EveryWaitOfAFiberEndsWhenItIsCancelled) {
  Nothing nothing;
  {
    IOManager iom(workers(), false, "cancel");
    std::vector<Fiber::ptr> fibers;
    for (const auto& wait : nothing.waits())
      fibers.push_back(test::waiterOn(iom, [wait] { EXPECT_FALSE(wait(Deadline::never())); }));
    for (const Fiber::ptr& fiber : fibers) fiber->cancel();
  }
  nothing.expectWhole();
}

// What a fiber that was given up waits for is not handed to it.
TEST_P(Waiters, NobodyRemembersAFiberThatWasAbandoned) {
  auto nothing = std::make_unique<Nothing>();
  IOManager iom(workers(), false, "abandon");
  const auto waits = nothing->waits();
  for (const auto& wait : waits) {
    test::waiterOn(iom, [wait] {
      const this_fiber::CancelShield shield;
      while (!wait(Deadline::never())) continue;
    });
  }
  const StopResult result = iom.stop(Deadline::after(1ms));
  leaks().excuseLateWorkersOf(iom);
  EXPECT_EQ(result.abandoned.size(), waits.size());
  if (test::lateWorkersOf(iom) > 0) {
    [[maybe_unused]] static const Nothing* const s_kept = nothing.release();  // a late worker's fiber is about to wait once more
    return;
  }
  nothing->expectWhole();
}

// There the wait blocks the thread, and is bounded nevertheless.
TEST(Waiters, ADeadlineScopeBoundsFibersOfAPlainThread) {
  std::make_shared<Fiber>([] {
    withDeadline(Deadline::after(1ms), [] {
      Event never;
      Promise<int> promise;
      Future<int> future = promise.getFuture();
      EXPECT_FALSE(never.wait());
      EXPECT_FALSE(select(onSet(never, [] {})));
      EXPECT_EQ(test::errorOf([&] { future.get(); }), ETIMEDOUT);
      std::make_shared<Fiber>([&] { EXPECT_FALSE(never.wait()); })->resume();
    });
  })->resume();
}

}  // namespace
}  // namespace sylar
