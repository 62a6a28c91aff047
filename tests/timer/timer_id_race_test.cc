// Many threads start, stop and run timers with ids, for a bounded number of operations. Made for ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/timer.h"
#include "tests/support/manual_timers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::ManualTimers;

struct Fate {
  std::atomic<int> runs{0};
  std::atomic<int> cancels{0};
  bool recurring = false;
};

/// A timer that all threads may get hold of.
struct Slot {
  struct Entry {
    TimerId id = 0;
    Fate* fate = nullptr;
  };

  Entry get() {
    Lock lock(m_lock);
    return m_entry;
  }
  void put(Entry entry) {
    Lock lock(m_lock);
    m_entry = entry;
  }

 private:
  Spinlock m_lock;
  Entry m_entry SYLAR_GUARDED_BY(m_lock);
};

// C-53 for ids, RT-7.4: cancel against expiry, with ids that may be stale by the time they are used.
TEST(TimerIdRace, EveryTimerRunsOrIsCancelledNeverBothNeverTwice) {
  constexpr int kThreads = 8;
  const uint64_t operations = test::scaled(10'000);
  const uint64_t seed = test::seed();
  std::vector<std::vector<std::unique_ptr<Fate>>> fates(kThreads);
  ManualTimers timers;
  std::array<Slot, 64> slots;
  const auto play = [&](size_t t) {
    std::mt19937_64 random(seed + t);
    for (uint64_t i = 0; i < operations; ++i) {
      Slot& slot = slots[random() % slots.size()];
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          Fate* const fate = fates[t].emplace_back(std::make_unique<Fate>()).get();
          fate->recurring = random() % 4 == 0;
          const TimerId id = timers.startTimer(
              std::chrono::milliseconds(random() % 20), [fate] { fate->runs.fetch_add(1); },
              fate->recurring ? Repeat::kSkip : Repeat::kNo);
          slot.put({id, fate});
          break;
        }
        case 3:
        case 4: {
          const auto [id, fate] = slot.get();
          const TimerStop result = random() % 2 == 0 ? timers.stopTimer(id) : timers.stopTimerSync(id);
          if (result == TimerStop::kCancelled) fate->cancels.fetch_add(1);
          break;
        }
        case 5: timers.advanceMs(2); break;
        default: timers.dispatchDue(1 + random() % 8); break;
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back(play, t);
  for (auto& thread : threads) thread.join();
  timers.advanceMs(1'000);
  while (timers.dispatchDue(100) > 0) continue;
  for (const auto& of_thread : fates) {
    for (const auto& fate : of_thread) {
      if (!fate->recurring) {
        ASSERT_EQ(fate->runs + fate->cancels, 1);
      }
      ASSERT_LE(fate->cancels, 1);
    }
  }
}

// C-54: when stopTimerSync() returns, the callback is not running and will not run, and its captures are gone.
TEST(TimerIdRace, SyncStopWaitsForTheCallback) {
  for (int round = 0; round < 500; ++round) {
    for (const Repeat repeat : {Repeat::kNo, Repeat::kDelay}) {
      ManualTimers timers;
      auto running = std::make_shared<std::atomic<bool>>(false);
      const std::weak_ptr<std::atomic<bool>> watch = running;
      std::atomic<bool> begun{false};
      auto data = std::make_unique<int>(0);
      const TimerId id = timers.startTimer(
          1ms,
          [running = std::move(running), &begun, target = data.get()] {
            *running = true;
            begun = true;
            for (int i = 0; i < 100; ++i) *target += i;
            *running = false;
          },
          repeat);
      timers.advanceMs(1);
      std::thread driver([&] { timers.dispatchDue(); });
      while (!begun) std::this_thread::yield();
      const TimerStop result = timers.stopTimerSync(id);
      EXPECT_TRUE(watch.expired());
      data.reset();  // a use of it after the stop is one after free
      EXPECT_TRUE(result == TimerStop::kDone || result == TimerStop::kGone || result == TimerStop::kCancelled);
      driver.join();
      EXPECT_EQ(timers.dispatchDue(), 0u);
    }
  }
}

}  // namespace
}  // namespace sylar
