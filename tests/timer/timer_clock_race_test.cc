// A clock that jumps to and fro under many threads. Made for ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

constexpr size_t kThreads = 8;

class SteppedTimers final : public TimerManager {
 public:
  explicit SteppedTimers(const Clock& clock) : TimerManager(clock, test::queueKind()) {}
  ~SteppedTimers() override { close(); }

 protected:
  void onTimerInsertedAtFront() override { observeNextDue(); }
};

/// The manager's time, as far as others can know it while the clock is being moved: it goes forward with the clock and stands
/// still on its steps back. Whoever moves it has the manager notice the step before the next.
class SteppedTime {
 public:
  explicit SteppedTime(SteppedTimers& timers, ManualClock& clock) : m_timers(timers), m_clock(clock) {}

  void step(std::chrono::milliseconds step) {
    const std::lock_guard lock(m_stepping);
    const bool rollover = step < -1h;
    if (rollover) m_rollovers_begun.fetch_add(1);
    if (step > 0ms) m_latest_ms.fetch_add(step.count());
    m_clock.advance(step);
    EXPECT_EQ(m_timers.detectClockRollover(), rollover) << step.count() << " ms";
    EXPECT_FALSE(m_timers.detectClockRollover()) << "once";
    if (step > 0ms) m_earliest_ms.fetch_add(step.count());
    if (rollover) m_rollovers_over.fetch_add(1);
    ++m_steps;
  }

  int64_t earliestMs() const { return m_earliest_ms; }
  int64_t latestMs() const { return m_latest_ms; }
  int rolloversBegun() const { return m_rollovers_begun; }
  int rolloversOver() const { return m_rollovers_over; }  ///< one that has begun may still make a timer due that is armed now
  int steps() const { return m_steps; }                   ///< at the end

 private:
  SteppedTimers& m_timers;
  ManualClock& m_clock;
  std::atomic<int64_t> m_earliest_ms{0}, m_latest_ms{0};
  std::atomic<int> m_rollovers_begun{0}, m_rollovers_over{0};
  std::mutex m_stepping;
  int m_steps = 0;
};

struct Record {
  bool recurring = false;
  std::atomic<int> runs{0};
  std::atomic<int> cancels{0};
};

constexpr std::chrono::milliseconds kJumps[] = {1h, -1ms, -59min, -61min};

/// One thread that adds, cancels and runs timers, and moves the clock now and then.
class Player {
 public:
  Player(SteppedTimers& timers, SteppedTime& time, uint64_t seed) : m_timers(timers), m_time(time), m_random(seed) {}

  void play(uint64_t operations) {
    for (uint64_t i = 0; i < operations; ++i) {
      const uint64_t any = m_random() % 64;
      any == 0 ? step() : any < 20 ? add() : any < 36 ? cancel() : run();
    }
  }
  const std::vector<std::shared_ptr<Record>>& records() const { return m_records; }
  bool ranEarly() const { return m_ran_early; }

 private:
  void add() {
    auto record = std::make_shared<Record>();
    record->recurring = m_random() % 8 == 0;
    const uint64_t ms = delay();
    const int rollovers = m_time.rolloversOver();
    const int64_t armed_ms = m_time.earliestMs();
    const auto cb = [this, record, due_ms = armed_ms + static_cast<int64_t>(ms), rollovers] {
      record->runs.fetch_add(1);
      if (m_time.latestMs() < due_ms && m_time.rolloversBegun() == rollovers) m_ran_early = true;
    };
    m_timers_made[m_random() % m_timers_made.size()] = {m_timers.addTimer(ms, cb, record->recurring), record};
    m_records.push_back(std::move(record));
  }

  /// Mostly a little; of the jumps as many go an hour forward as back.
  void step() {
    const uint64_t any = m_random() % 16;
    m_time.step(any < std::size(kJumps) ? kJumps[any] : any == 4 ? 1h : std::chrono::milliseconds(1 + any % 2));
  }

  /// Near, beyond every step that is no rollover, and in between.
  uint64_t delay() {
    constexpr uint64_t kHourMs = 3'600'000;
    const uint64_t any = m_random();
    return any % 3 == 0 ? any % 20 : any % 3 == 1 ? any % kHourMs : any % (8 * kHourMs);
  }

  void cancel() {
    const auto& [timer, record] = m_timers_made[m_random() % m_timers_made.size()];
    if (timer != nullptr && timer->cancel()) record->cancels.fetch_add(1);
  }

  void run() {
    std::vector<Timer::ptr> due;
    m_timers.collectDue(1 + m_random() % 64, due);
    for (const auto& timer : due) timer->fire();
  }

  SteppedTimers& m_timers;
  SteppedTime& m_time;
  std::mt19937_64 m_random;
  std::array<std::pair<Timer::ptr, std::shared_ptr<Record>>, 64> m_timers_made;
  std::vector<std::shared_ptr<Record>> m_records;
  std::atomic<bool> m_ran_early{false};  // by any thread
};

// TD-1, TD-2, C-42, C-45 under load: nothing early, nothing lost, nothing twice, each rollover told once; a recurring timer runs
// at most once a step, however far that goes.
TEST(TimerClockRace, StepsWhileThreadsAddCancelAndRun) {
  const uint64_t seed = test::seed();
  ManualClock clock(std::chrono::hours(100));
  SteppedTimers timers(clock);
  SteppedTime time(timers, clock);
  std::vector<std::unique_ptr<Player>> players;
  for (size_t i = 0; i < kThreads; ++i) players.push_back(std::make_unique<Player>(timers, time, seed + i));
  for (const auto jump : kJumps) time.step(jump);  // each, whatever the seed
  std::vector<std::thread> threads;
  for (auto& player : players) threads.emplace_back([&player] { player->play(test::scaled(10'000)); });
  for (auto& thread : threads) thread.join();

  // What is left: a rollover and then the far end of all delays make everything due that was not cancelled.
  time.step(-61min);
  std::vector<Timer::ptr> due;
  while (timers.collectDue(1'000, due)) continue;
  for (const auto& timer : due) timer->fire();
  for (const auto& player : players) {
    EXPECT_FALSE(player->ranEarly());
    for (const auto& record : player->records()) {
      if (!record->recurring) {
        ASSERT_EQ(record->runs + record->cancels, 1) << "one fate";
      } else {
        ASSERT_LE(record->cancels, 1);
        ASSERT_LE(record->runs, time.steps()) << "a storm";
      }
    }
  }
}

}  // namespace
}  // namespace sylar
