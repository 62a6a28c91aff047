// Many threads on one list, for a bounded number of operations. Made for ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/idle_list.h"
#include "sylar/timer.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 10ms;

class RaceTimers final : public TimerManager {
 public:
  explicit RaceTimers(const Clock& clock) : TimerManager(clock) {}
  ~RaceTimers() override { close(); }

 protected:
  void onTimerInsertedAtFront() override { observeNextDue(); }
};

struct Session {
  IdleList<Session>::Entry idle;
  std::atomic<int> called{0};
};

/// A session that all threads may get hold of, and replace.
class Slot {
 public:
  std::shared_ptr<Session> get() {
    const Lock lock(m_lock);
    return m_session;
  }
  void put(std::shared_ptr<Session> session) {
    const Lock lock(m_lock);
    m_session.swap(session);
  }  // the old one is let go of outside the lock

 private:
  Spinlock m_lock;
  std::shared_ptr<Session> m_session SYLAR_GUARDED_BY(m_lock);
};

/// Adds, touches, removes and drops at random, moves the clock, and fires what is due, on 6 threads.
class IdleListRace : public testing::TestWithParam<std::chrono::nanoseconds> {};

TEST_P(IdleListRace, EachIsCalledAfterItsTimeOrNotAtAll) {
  const uint64_t seed = test::seed();
  ManualClock clock(10h);
  RaceTimers timers(clock);
  std::array<Slot, 16> slots;
  std::atomic<int> calls{0}, inside{0};
  {
    IdleList<Session> list(
        timers, kTimeout,
        [&](const std::shared_ptr<Session>& session) {
          EXPECT_EQ(inside.fetch_add(1), 0) << "two at once";
          ++session->called;
          if (++calls % 3 == 0) session->idle.touch();
          inside.fetch_sub(1);
        },
        GetParam());
    const auto play = [&](uint64_t thread) {
      std::mt19937_64 random(seed + thread);
      std::vector<Timer::ptr> due;
      for (uint64_t i = 0; i < test::scaled(20'000); ++i) {
        Slot& slot = slots[random() % slots.size()];
        const auto session = slot.get();
        switch (random() % 8) {
          case 0: {
            const auto fresh = std::make_shared<Session>();
            list.add(fresh->idle, fresh);
            slot.put(fresh);
            break;
          }
          case 1: slot.put(nullptr); break;
          case 2:
            if (session != nullptr) session->idle.remove();
            break;
          case 3:
            clock.advance(1ms);
            timers.collectDue(8, due);
            for (const auto& timer : due) timer->fire();
            due.clear();
            break;
          default:
            if (session != nullptr) session->idle.touch();
        }
      }
    };
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 6; ++thread) threads.emplace_back(play, thread);
    for (auto& thread : threads) thread.join();
    EXPECT_GT(calls, 0);

    // At rest: the guard is armed if and only if something is linked, and what is linked falls due.
    EXPECT_EQ(timers.hasTimer(), list.size() > 0);
    for (auto& slot : slots) slot.put(nullptr);
    EXPECT_EQ(list.size(), 0u);
    EXPECT_FALSE(timers.hasTimer());
  }
  const auto last = std::make_shared<Session>();
  last->idle.touch();
  EXPECT_FALSE(timers.hasTimer());
}

INSTANTIATE_TEST_SUITE_P(Slack, IdleListRace, testing::Values(0ms, 2ms));

}  // namespace
}  // namespace sylar
