// Many fibers and threads at the primitives at once, with deadlines and cancels at every moment: nothing is lost or doubled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/sync/event.h"
#include "sylar/sync/latch.h"
#include "sylar/sync/task_group.h"
#include "sylar/sync/wait_group.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

class SyncRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, SyncRaceTest, test::kWorkerCounts);

Deadline randomDeadline(std::mt19937_64& random) {
  return random() % 3 == 0 ? Deadline::after(std::chrono::microseconds(random() % 300)) : Deadline::never();
}

/// Each value arrives once if its send returned true, else never.
// CD-S11.
TEST_P(SyncRaceTest, NoValueIsLostOrDoubled) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t each = test::scaled(5'000);
  constexpr uint64_t kSenders = 8;
  for (const size_t capacity : {0, 1, 16}) {
    Channel<uint64_t> channel(capacity);
    std::atomic<uint64_t> sent{0}, sent_sum{0}, got{0}, got_sum{0};
    IOManager iom(workers(), false, "race");
    IOManager other(1, false, "other");
    WaitGroup senders;
    const auto send = [&](uint64_t number) {
      std::mt19937_64 random(seed + number);
      for (uint64_t i = 0; i < each; ++i) {
        const uint64_t value = number * each + i;
        if (this_fiber::cancelled()) break;
        if (!channel.send(uint64_t{value}, randomDeadline(random))) continue;
        ++sent;
        sent_sum += value;
      }
      senders.done();
    };
    const auto receive = [&](uint64_t number) {
      std::mt19937_64 random(seed - number);
      while (!channel.isClosed() || channel.size() > 0) {
        const std::optional<uint64_t> value = channel.receive(randomDeadline(random));
        if (!value) continue;
        ++got;
        got_sum += *value;
      }
    };
    senders.add(kSenders);
    std::vector<std::thread> threads;
    std::vector<Fiber::ptr> fibers;
    for (uint64_t i = 0; i < kSenders; ++i) {
      if (i % 4 == 3) {
        threads.emplace_back(send, i);
      } else {
        fibers.push_back(std::make_shared<Fiber>([&, i] { send(i); }));
        (i % 2 == 0 ? iom : other).schedule(fibers.back());
      }
    }
    for (uint64_t i = 0; i < 4; ++i) iom.schedule([&, i] { receive(i); });
    threads.emplace_back(receive, 9);
    fibers.front()->cancel();
    EXPECT_TRUE(senders.wait());
    channel.close();
    for (auto& thread : threads) thread.join();
    iom.stop();
    other.stop();
    EXPECT_EQ(got, sent) << capacity;
    EXPECT_EQ(got_sum, sent_sum) << capacity;
  }
}

/// As many pass as were let in, whatever deadlines and cancels do to those who wait.
TEST_P(SyncRaceTest, NoPermitIsLostOrDoubled) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t each = test::scaled(5'000);
  Semaphore semaphore(3);
  std::atomic<int> in{0}, most{0};
  const auto play = [&](uint64_t number) {
    std::mt19937_64 random(seed + number);
    for (uint64_t i = 0; i < each; ++i) {
      if (!semaphore.wait(randomDeadline(random))) {
        if (this_fiber::cancelled()) return;
        continue;
      }
      const int now = ++in;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      if (random() % 16 == 0) Fiber::YieldToReady();
      --in;
      semaphore.notify();
    }
  };
  {
    IOManager iom(workers(), false, "race");
    std::vector<Fiber::ptr> fibers;
    for (uint64_t i = 0; i < 12; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] { play(i); }));
      iom.schedule(fibers.back());
    }
    std::thread thread([&] { play(99); });
    for (size_t i = 0; i < fibers.size(); i += 3) fibers[i]->cancel();
    thread.join();
  }
  EXPECT_LE(most, 3);
  EXPECT_EQ(semaphore.getConcurrency(), 3u);
}

/// The group may go as soon as a wait has returned.
TEST_P(SyncRaceTest, AGroupMayEndWithItsWait) {
  const test::LeakCheck leaks;
  IOManager iom(workers(), false, "race");
  const auto round = [&] {
    for (uint64_t i = 0; i < test::scaled(2'000); ++i) {
      WaitGroup group;
      group.add(2);
      for (int k = 0; k < 2; ++k) iom.schedule([&group] { group.done(); });
      EXPECT_TRUE(group.wait());
    }
  };
  iom.schedule(round);
  std::thread thread(round);
  thread.join();
}

/// Nobody is in twice, and nobody who asked is forgotten, whatever deadlines and cancels do to those who wait.
TEST_P(SyncRaceTest, LocksExclude) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t each = test::scaled(5'000);
  Mutex mutex;
  RWMutex rw_mutex;
  uint64_t by_mutex = 0, by_writers = 0, copy = 0;
  std::atomic<uint64_t> locked{0}, written{0};
  const auto play = [&](uint64_t number) {
    std::mt19937_64 random(seed + number);
    for (uint64_t i = 0; i < each && !this_fiber::cancelled(); ++i) {
      const bool yields = random() % 16 == 0;
      switch (random() % 4) {
        case 0:
          if (!mutex.lock(randomDeadline(random))) break;
          ++by_mutex;
          if (yields) Fiber::YieldToReady();
          ++locked;
          mutex.unlock();
          break;
        case 1: {
          const Mutex::Lock lock(mutex);
          ++by_mutex;
          ++locked;
          break;
        }
        case 2:
          if (!rw_mutex.wrlock(randomDeadline(random))) break;
          ++by_writers;
          if (yields) Fiber::YieldToReady();
          ++copy;
          ++written;
          rw_mutex.unlock();
          break;
        case 3:
          if (!rw_mutex.rdlock(randomDeadline(random))) break;
          if (yields) Fiber::YieldToReady();
          EXPECT_EQ(by_writers, copy);
          rw_mutex.unlock();
      }
    }
  };
  {
    IOManager iom(workers(), false, "race"), other(1, false, "other");
    std::vector<Fiber::ptr> fibers;
    for (uint64_t i = 0; i < 12; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] { play(i); }));
      (i % 4 == 0 ? other : iom).schedule(fibers.back());
    }
    std::thread thread([&] { play(99); });
    for (size_t i = 0; i < fibers.size(); i += 3) fibers[i]->cancel();
    thread.join();
  }
  EXPECT_EQ(by_mutex, locked);
  EXPECT_EQ(by_writers, written);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(rw_mutex.try_lock());
  rw_mutex.unlock();
}

/// A queue of a mutex and two conditions hands over each value once.
TEST_P(SyncRaceTest, ConditionsLoseNoNotification) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t each = test::scaled(3'000);
  constexpr uint64_t kProducers = 4;
  Mutex mutex;
  ConditionVariable not_empty, not_full;
  std::deque<uint64_t> values;
  uint64_t sum = 0, left = kProducers * each;
  const auto produce = [&](uint64_t number) {
    for (uint64_t i = 0; i < each; ++i) {
      std::unique_lock lock(mutex);
      not_full.wait(lock, [&] { return values.size() < 3; });
      values.push_back(number * each + i);
      not_empty.notify_one();
    }
  };
  const auto consume = [&](uint64_t number) {
    std::mt19937_64 random(seed + number);
    for (;;) {
      Mutex::Lock lock(mutex);
      const bool some = not_empty.wait(
          lock, [&] { return !values.empty() || left == 0; }, randomDeadline(random));
      if (left == 0) return not_empty.notify_all();
      if (!some) continue;
      sum += values.front();
      values.pop_front();
      --left;
      not_full.notify_one();
      if (left == 0) not_empty.notify_all();
    }
  };
  {
    IOManager iom(workers(), false, "race");
    for (uint64_t i = 0; i < kProducers; ++i) iom.schedule([&, i] { produce(i); });
    for (uint64_t i = 0; i < 3; ++i) iom.schedule([&, i] { consume(i); });
    std::thread([&] { consume(99); }).join();
  }
  const uint64_t all = kProducers * each;
  EXPECT_EQ(sum, all * (all - 1) / 2);
}

/// A group has no task left when its scope ends, whoever cancels, throws or is late.
TEST_P(SyncRaceTest, AGroupLeavesNoTask) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const auto play = [&](uint64_t number) {
    std::mt19937_64 random(seed + number);
    for (uint64_t i = 0; i < test::scaled(300); ++i) {
      std::atomic<int> running{0};
      Event event;
      try {
        TaskGroup group(random() % 4);
        const uint64_t tasks = random() % 8, thrower = random() % 16;
        for (uint64_t k = 0; k < tasks; ++k) {
          group.spawn([&, k, waits = random() % 2 == 0] {
            ++running;
            if (waits) event.wait(Deadline::after(50us));
            --running;
            if (k == thrower) throw std::runtime_error("of a task");
          });
        }
        if (random() % 4 == 0) group.cancel();
        if (random() % 2 == 0) group.join(randomDeadline(random));
        event.set();
        group.join();
      } catch (const std::runtime_error&) {
      }
      EXPECT_EQ(running, 0);
    }
  };
  IOManager iom(workers(), false, "race");
  std::vector<Fiber::ptr> fibers;
  for (uint64_t i = 0; i < 4; ++i) {
    fibers.push_back(std::make_shared<Fiber>([&, i] { play(i); }));
    iom.schedule(fibers.back());
  }
  fibers[0]->cancel();
}

/// A task that is being spawned while a sibling fails is cancelled, and not forgotten.
TEST_P(SyncRaceTest, ACancelMeetsASpawn) {
  const test::LeakCheck leaks;
  IOManager iom(workers(), false, "race"), other(1, false, "other");
  for (uint64_t i = 0; i < test::scaled(2'000); ++i) {
    Event never;
    TaskGroup group(0, &iom);
    std::atomic<bool> go{false};
    std::thread failing([&] {
      go = true;
      group.cancel();
    });
    while (!go) std::this_thread::yield();
    for (int k = 0; k < 4; ++k) group.spawn([&never] { EXPECT_FALSE(never.wait()); });
    failing.join();
    group.join();
  }
}

/// A latch may go as soon as its owner's wait has returned, whoever arrives last.
TEST_P(SyncRaceTest, ALatchMayEndWithItsWait) {
  const test::LeakCheck leaks;
  IOManager iom(workers(), false, "race");
  for (uint64_t i = 0; i < test::scaled(3'000); ++i) {
    auto latch = std::make_unique<Latch>(2);
    iom.schedule([latch = latch.get()] { EXPECT_TRUE(latch->arrive_and_wait()); });
    if (i % 2 == 0) {
      latch->count_down();
      EXPECT_TRUE(latch->wait());
    } else {
      EXPECT_TRUE(latch->arrive_and_wait());
    }
  }
}

}  // namespace
}  // namespace sylar
