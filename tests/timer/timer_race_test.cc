// Many threads on one manager, for a bounded number of operations. Made for ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/clock.h"
#include "sylar/timer.h"
#include "tests/support/seed.h"
#include "tests/support/timer_queue_kind.h"

namespace sylar {
namespace {

constexpr int kThreads = 8;

class RaceTimers final : public TimerManager {
 public:
  explicit RaceTimers(const Clock& clock) : TimerManager(clock, test::queueKind()) {}
  ~RaceTimers() override { close(); }
  using TimerManager::anyWillFallDue;

 protected:
  void onTimerInsertedAtFront() override { observeNextDue(); }
  void onLastTimerGone() override { anyWillFallDue(); }
};

/// What happened to one timer.
struct Record {
  bool recurring = false;
  bool conditional = false;
  std::shared_ptr<int> condition = std::make_shared<int>(0);
  std::atomic<int> runs{0};
  std::atomic<int> cancels{0};
};

/// A timer that all threads may get hold of.
struct Slot {
  struct Entry {
    Timer::ptr timer;
    std::shared_ptr<Record> record;
  };

  Entry get() {
    Lock lock(m_lock);
    return m_entry;
  }
  void put(Entry entry) {
    {
      Lock lock(m_lock);
      std::swap(m_entry, entry);
    }  // the old one is let go of outside the lock
  }

 private:
  Spinlock m_lock;
  Entry m_entry SYLAR_GUARDED_BY(m_lock);
};

/// One thread's share of the operations.
class Player {
 public:
  Player(RaceTimers& timers, ManualClock& clock, std::array<Slot, 64>& slots, uint64_t seed)
      : m_timers(timers), m_clock(clock), m_slots(slots), m_random(seed) {}

  void play(int operations) {
    for (int i = 0; i < operations; ++i) step();
  }
  const std::vector<std::shared_ptr<Record>>& records() const { return m_records; }

 private:
  void step() {
    const Slot::Entry entry = m_slots[m_random() % m_slots.size()].get();
    const uint64_t ms = m_random() % 20;
    switch (m_random() % 12) {
      case 0:
      case 1:
      case 2: return add(ms);
      case 3:
      case 4: return cancel(entry);
      case 5: return entry.timer ? void(entry.timer->refresh()) : void();
      case 6: return entry.timer ? void(entry.timer->reset(ms, m_random() % 2 == 0)) : void();
      case 7: return runListed();
      case 8:
      case 9: return dispatch();
      case 10: return m_clock.advance(std::chrono::milliseconds(m_random() % 4 == 0 ? -1 : 2));
      default: return look();
    }
  }

  void add(uint64_t ms) {
    auto record = std::make_shared<Record>();
    record->recurring = m_random() % 4 == 0;
    record->conditional = m_random() % 4 == 0;
    const auto cb = [record] { record->runs.fetch_add(1); };
    Timer::ptr timer = record->conditional ? m_timers.addConditionTimer(ms, cb, record->condition, record->recurring)
                                           : m_timers.addTimer(ms, cb, record->recurring);
    m_records.push_back(record);
    m_slots[m_random() % m_slots.size()].put({std::move(timer), std::move(record)});
  }

  static void cancel(const Slot::Entry& entry) {
    if (entry.timer && entry.timer->cancel()) entry.record->cancels.fetch_add(1);
  }

  void runListed() {
    std::vector<std::function<void()>> cbs;
    m_timers.listExpiredCb(cbs);
    for (const auto& cb : cbs) cb();
  }

  void dispatch() {
    std::vector<Timer::ptr> due;
    const size_t budget = 1 + m_random() % 8;
    m_random() % 2 == 0 ? m_timers.collectDue(budget, due) : m_timers.tryCollectDue(budget, due);
    for (const auto& timer : due) timer->fire();
  }

  void look() {
    m_timers.getNextTimer();
    m_timers.hasTimer();
    m_timers.anyWillFallDue();
    m_timers.nextDueNs();
    m_timers.observeNextDue();
    EXPECT_FALSE(m_timers.detectClockRollover());
  }

  RaceTimers& m_timers;
  ManualClock& m_clock;
  std::array<Slot, 64>& m_slots;
  std::mt19937_64 m_random;
  std::vector<std::shared_ptr<Record>> m_records;
};

/// A one-shot ran or was cancelled; a recurring one was cancelled at most once.
void expectOneFate(const std::vector<std::shared_ptr<Record>>& records) {
  for (const auto& record : records) {
    if (record->recurring) {
      EXPECT_LE(record->cancels, 1);
    } else {
      EXPECT_EQ(record->runs + record->cancels, 1);
    }
  }
}

// C-53, TD-8
TEST(TimerRace, EveryTimerRunsOrIsCancelledNeverBothNeverTwice) {
  const uint64_t seed = test::seed();
  ManualClock clock(std::chrono::minutes(22));
  RaceTimers timers(clock);
  std::array<Slot, 64> slots;
  std::vector<Player> players;
  for (int i = 0; i < kThreads; ++i) players.emplace_back(timers, clock, slots, seed + static_cast<uint64_t>(i));
  std::vector<std::thread> threads;
  for (auto& player : players) threads.emplace_back([&player] { player.play(10'000); });
  for (auto& thread : threads) thread.join();

  // What is left: one-shots run now; a cancelled recurring timer has stopped, one that was not goes on.
  clock.advance(std::chrono::seconds(1));
  std::vector<std::vector<int>> runs_before;
  for (const auto& player : players) {
    auto& runs = runs_before.emplace_back();
    for (const auto& record : player.records()) runs.push_back(record->runs);
  }
  std::vector<Timer::ptr> due;
  while (timers.collectDue(100, due)) continue;
  for (const auto& timer : due) timer->fire();
  for (size_t p = 0; p < players.size(); ++p) {
    const auto& records = players[p].records();
    expectOneFate(records);
    for (size_t i = 0; i < records.size(); ++i) {
      if (!records[i]->recurring) continue;
      EXPECT_EQ(records[i]->runs - runs_before[p][i], 1 - records[i]->cancels);
    }
  }
}

// C-24: there are more timers than close() takes out at a time.
TEST(TimerRace, TimersMayBeUsedWhileTheirManagerEnds) {
  for (int round = 0; round < 300; ++round) {
    ManualClock clock(std::chrono::hours(1));
    std::optional<RaceTimers> timers(std::in_place, clock);
    std::vector<Timer::ptr> handles;
    std::vector<std::vector<ScopedTimer>> scoped(3);
    for (uint64_t i = 0; i < 100; ++i) {
      handles.push_back(timers->addTimer(
          10 + i, [] {}, i % 2 == 0));
      scoped[i % 3].emplace_back(
          *timers, std::chrono::milliseconds(10 + i), [] {}, i % 2 == 0 ? Repeat::kDelay : Repeat::kNo);
    }
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&handles, &ready, t, own = std::move(scoped[t])]() mutable {
        ready.fetch_add(1);
        for (size_t i = 0; i < handles.size() && ready.load() > 0; ++i) {
          handles[(i + t) % handles.size()]->reset(1 + i % 20, true);
          handles[(i + 2 * t) % handles.size()]->refresh();
          if (t == 2) handles[i]->cancel();
          if (!own.empty()) own.pop_back();
        }
      });
    }
    while (ready.load() < 3) std::this_thread::yield();
    timers.reset();
    for (const auto& timer : handles) EXPECT_FALSE(timer->cancel() || timer->refresh() || timer->reset(1, true));
    for (auto& thread : threads) thread.join();
  }
}

// A run under way holds the captures that cancel() lets go of.
TEST(TimerRace, CancelWhileRunningLeavesTheRunIntact) {
  for (int round = 0; round < 300; ++round) {
    ManualClock clock(std::chrono::hours(1));
    RaceTimers timers(clock);
    auto data = std::make_shared<std::string>(64, 'x');
    const std::weak_ptr<std::string> watch = data;
    std::atomic<bool> running{false};
    const auto timer = timers.addTimer(
        1,
        [&running, data = std::move(data)] {
          running = true;
          for (int i = 0; i < 100; ++i) EXPECT_EQ(data->size(), 64u);
        },
        true);
    clock.advance(std::chrono::milliseconds(1));
    std::vector<Timer::ptr> due;
    timers.collectDue(1, due);
    std::thread other([&] {
      while (!running) std::this_thread::yield();
      EXPECT_TRUE(timer->cancel());
    });
    due.at(0)->fire();
    other.join();
    EXPECT_TRUE(watch.expired());
  }
}

// Cause: the second run looked at the condition that the end of the first one was just emptying.
TEST(TimerRace, TwoRunsOfATimerWhoseConditionHasDied) {
  for (int round = 0; round < 300; ++round) {
    ManualClock clock(std::chrono::hours(1));
    RaceTimers timers(clock);
    auto condition = std::make_shared<int>(0);
    bool ran = false;
    timers.addConditionTimer(
        1, [&ran] { ran = true; }, condition, true);
    std::vector<Timer::ptr> due[2];
    for (auto& some : due) {
      clock.advance(std::chrono::milliseconds(1));
      timers.collectDue(1, some);
      ASSERT_EQ(some.size(), 1u);
      condition.reset();
    }
    std::thread other([&] { due[0][0]->fire(); });
    due[1][0]->fire();
    other.join();
    EXPECT_FALSE(ran);
    EXPECT_FALSE(timers.hasTimer());
  }
}

}  // namespace
}  // namespace sylar
