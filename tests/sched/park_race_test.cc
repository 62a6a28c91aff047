// RG-03: wake-ups by the million, each counted on both sides. Two players pass a ball: whoever has it opens its next wait, wakes
// the other, and parks; so the answer may come before it has left its stack. A wake-up that is lost stops both forever, one that
// is doubled makes their numbers differ.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "sylar/check.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using test::LeakCheck;
using test::scaled;

constexpr uint64_t kWakeUps = 20'000'000;
constexpr uint64_t kIdleWakeUps = 200'000;

/// All plain: the other's, until the ball comes.
struct alignas(64) Player {
  int thread = 0;
  bool timed = false;  // waits with a deadline, which is never reached
  Waker waker;
  uint64_t wakes = 0;
  uint64_t woken = 0;
};
struct Pair {
  Player first;
  Player second;
};

class Match {
 public:
  /// `rounds`: how often each player is woken.
  Match(Scheduler& scheduler, uint64_t rounds) : m_scheduler(scheduler), m_rounds(rounds) {}

  /// The second player sits down, then calls the first.
  void begin(Pair& pair) {
    m_playing.fetch_add(2);
    const auto first = [this, &pair] {
      for (Player& me = pair.first; me.woken < m_rounds;) wait(me, pair.second, [&] { wake(me, pair.second); });
      m_playing.fetch_sub(1);
    };
    const auto second = [this, &pair, first] {
      Player& me = pair.second;
      wait(me, pair.first, [&] { m_scheduler.schedule(first, pair.first.thread); });
      while (me.woken < m_rounds) wait(me, pair.first, [&] { wake(me, pair.first); });
      wake(me, pair.first);
      m_playing.fetch_sub(1);
    };
    m_scheduler.schedule(second, pair.second.thread);
  }

  /// Until all have played to their end. False: nobody moves any more.
  [[nodiscard]] bool watch() const {
    uint64_t seen = 0;
    auto seen_at = std::chrono::steady_clock::now();
    while (m_playing.load() > 0) {
      std::this_thread::sleep_for(1ms);
      const auto now = std::chrono::steady_clock::now();
      const uint64_t moves = m_moves.load(std::memory_order_relaxed);
      if (moves == seen && now - seen_at > kPatience) return false;
      if (moves != seen) seen_at = now;
      seen = moves;
    }
    return true;
  }

 private:
  template <class Move>
  void wait(Player& me, const Player& other, Move move) {
    const Deadline deadline = me.timed ? Deadline::after(1h) : Deadline::never();
    SYLAR_CHECK(reserveTimeout(deadline));
    Wait wait;
    me.waker = wait.waker();
    move();
    SYLAR_CHECK(wait.park(deadline) == WakeReason::kReady);
    SYLAR_CHECK_EQ(++me.woken, other.wakes);
    if (me.woken % 256 == 0) m_moves.fetch_add(1, std::memory_order_relaxed);
  }

  static void wake(Player& me, const Player& other) {
    const Waker waker = other.waker;
    ++me.wakes;
    SYLAR_CHECK(waker.wake(WakeReason::kReady));
    SYLAR_CHECK(!waker.wake(WakeReason::kReady));  // its wait is over, and another one is none of this waker's business
  }

  Scheduler& m_scheduler;
  const uint64_t m_rounds;
  std::atomic<int> m_playing{0};
  std::atomic<uint64_t> m_moves{0};
};

/// Where the two players of a pair sit.
struct Seats {
  size_t first;
  size_t second;
};

/// `total` wake-ups of as many pairs as there are seats.
void play(Scheduler& scheduler, const std::vector<Seats>& seats, uint64_t total) {
  const uint64_t rounds = total / (2 * seats.size());
  scheduler.start();
  std::vector<Pair> pairs(seats.size());
  Match match(scheduler, rounds);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].first.thread = coreOf(scheduler).workers()[seats[i].first]->threadId();
    pairs[i].second.thread = coreOf(scheduler).workers()[seats[i].second]->threadId();
    pairs[i].first.timed = i % 8 >= 4;
    pairs[i].second.timed = i % 16 >= 8;
    match.begin(pairs[i]);
  }
  SYLAR_CHECK(match.watch());  // else nobody moves any more, and nothing could be cleaned up
  scheduler.stop();
  for (const Pair& pair : pairs) {
    for (const Player& player : {pair.first, pair.second}) {
      EXPECT_EQ(player.woken, rounds);
      EXPECT_EQ(player.wakes, rounds);
    }
  }
}

// RG-03, RT-7.1: many pairs, so that no worker sleeps; half of them on one worker, half on two.
TEST(ParkRace, NoWakeUpIsLostOrDoubledAmongMany) {
  const LeakCheck leaks;
  std::vector<Seats> seats;
  for (size_t i = 0; i < 64; ++i) seats.push_back({i % 2, i / 2 % 2});
  Scheduler scheduler(2, false, "match");
  play(scheduler, seats, scaled(kWakeUps));
}

// RT-7.2: one pair on two workers, so that each wake-up meets a worker that falls asleep.
TEST(ParkRace, NoWakeUpIsLostBetweenIdleWorkers) {
  const LeakCheck leaks;
  Scheduler plain(2, false, "match");
  play(plain, {{0, 1}}, scaled(kIdleWakeUps));
  IOManager io(2, false, "match");
  play(io, {{0, 1}}, scaled(kIdleWakeUps));
}

}  // namespace
}  // namespace sylar
