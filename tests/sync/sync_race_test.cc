// Many fibers and threads at the primitives at once, with deadlines and cancels at every moment: nothing is lost or doubled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/semaphore.h"
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
  FiberSemaphore semaphore(3);
  std::atomic<int> in{0}, most{0};
  {
    IOManager iom(workers(), false, "race");
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

}  // namespace
}  // namespace sylar
