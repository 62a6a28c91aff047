// A program's own loop over a TimerManager: getNextTimer, sleep, listExpiredCb, and onTimerInsertedAtFront to be woken. Time is
// virtual: a sleep of less than an hour passes at once, a longer one lasts until a wake-up. So a lost wake-up hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

constexpr uint64_t kHourMs = 3'600'000;

class OwnLoop final : public TimerManager {
 public:
  explicit OwnLoop(ManualClock& clock) : TimerManager(clock), m_clock(clock) {}
  ~OwnLoop() override { close(); }

  /// Serves the timers until end().
  void run() {
    for (;;) {
      uint64_t seen;
      {
        const std::lock_guard lock(m_mutex);
        if (m_over) return;
        seen = m_wakeups;
      }
      const uint64_t ms = getNextTimer();
      if (ms > 0) sleepFor(ms, seen);
      std::vector<std::function<void()>> cbs;
      listExpiredCb(cbs);
      for (const auto& cb : cbs) cb();
    }
  }

  void end() {
    const std::lock_guard lock(m_mutex);
    m_over = true;
    m_wake.notify_all();
  }

 protected:
  void onTimerInsertedAtFront() override {
    const std::lock_guard lock(m_mutex);
    ++m_wakeups;
    m_wake.notify_all();
  }

 private:
  void sleepFor(uint64_t ms, uint64_t seen) {
    std::unique_lock lock(m_mutex);
    if (ms < kHourMs && m_wakeups == seen) return m_clock.advance(std::chrono::milliseconds(ms));
    m_wake.wait(lock, [&] { return m_over || m_wakeups != seen; });
  }

  ManualClock& m_clock;
  std::mutex m_mutex;
  std::condition_variable m_wake;
  uint64_t m_wakeups = 0;
  bool m_over = false;
};

/// Runs `loops` threads that serve and `adders` threads that each run `add(i)`; ends when `left` is 0.
void serve(OwnLoop& timers, int loops, int adders, std::atomic<int>& left, const std::function<void(int)>& add) {
  std::vector<std::thread> threads;
  for (int i = 0; i < loops; ++i) threads.emplace_back([&timers] { timers.run(); });
  for (int i = 0; i < adders; ++i) threads.emplace_back([&add, i] { add(i); });
  for (int now; (now = left.load()) > 0;) left.wait(now);
  timers.end();
  for (auto& thread : threads) thread.join();
}

// C-38, C-39, CD-T3: a sleeper with nothing, or with nothing near, is woken for each timer that must not wait.
TEST(StandaloneLoop, SleeperIsWokenForEveryTimerThatComesFirst) {
  for (const bool far_timer : {false, true}) {
    ManualClock clock(std::chrono::hours{10});
    OwnLoop timers(clock);
    if (far_timer) timers.addTimer(1000 * kHourMs, [] { FAIL(); });
    constexpr int kRounds = 2'000;
    std::atomic<int> left{kRounds};
    serve(timers, 1, 1, left, [&](int) {
      for (int round = kRounds; round > 0; --round) {
        timers.addTimer(1, [&] {
          --left;
          left.notify_all();
        });
        for (int now; (now = left.load()) >= round;) left.wait(now);
      }
    });
  }
}

// C-2, C-38 to C-40: from four threads, served by two, each timer runs once and never early.
TEST(StandaloneLoop, TimersOfManyThreadsRunOnceAndNeverEarly) {
  constexpr int kAdders = 4;
  constexpr int kTimers = 2'000;
  const uint64_t seed = test::seed();
  ManualClock clock(std::chrono::hours{10});
  OwnLoop timers(clock);
  std::atomic<int> left{kAdders * kTimers};
  std::atomic<int> early{0};
  std::vector<std::atomic<int>> runs(kAdders * kTimers);
  serve(timers, 2, kAdders, left, [&](int adder) {
    std::mt19937_64 random(seed + static_cast<uint64_t>(adder));
    for (int i = 0; i < kTimers; ++i) {
      const uint64_t ms = random() % 50;
      const int64_t due_ns = clock.nowNs() + msToNs(ms);
      timers.addTimer(ms, [&, due_ns, adder, i] {
        early += clock.nowNs() < due_ns;
        ++runs[static_cast<size_t>(adder * kTimers + i)];
        --left;
        left.notify_all();
      });
    }
  });
  EXPECT_EQ(early, 0);
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  EXPECT_FALSE(timers.hasTimer());
}

// C-15, C-20: other threads put the timers off, bring them forward and cancel them while the loop runs.
TEST(StandaloneLoop, RecurringTimersAreStoppedFromTheirOwnCallbacksUnderTheLoop) {
  constexpr int kAdders = 4;
  constexpr int kTimers = 200;
  constexpr int kRuns = 5;
  ManualClock clock(std::chrono::hours{10});
  OwnLoop timers(clock);
  std::atomic<int> left{kAdders * kTimers};
  std::atomic<int> runs{0};
  serve(timers, 1, kAdders, left, [&](int) {
    for (int i = 0; i < kTimers; ++i) {
      // Filled in before the timer can be due: it is armed far away and brought forward.
      auto timer = std::make_shared<Timer::ptr>();
      auto count = std::make_shared<int>(0);
      *timer = timers.addTimer(
          2 * kHourMs,
          [&, timer, count] {
            ++runs;
            if (++*count < kRuns) return;
            EXPECT_TRUE((*timer)->cancel());
            --left;
            left.notify_all();
          },
          true);
      EXPECT_TRUE((*timer)->reset(static_cast<uint64_t>(i % 7), true));
    }
  });
  EXPECT_EQ(runs, kAdders * kTimers * kRuns);
  EXPECT_FALSE(timers.hasTimer());
}

}  // namespace
}  // namespace sylar
