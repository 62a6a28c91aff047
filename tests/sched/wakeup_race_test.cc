// The hunt for lost wake-ups (RT-7.2): nothing runs but the one thing that must run next, so that a wake-up that gets lost
// stops everything. Bounded rounds; who waits longer than kPatience waits forever.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/rounds.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using test::LeakCheck;
using test::Rounds;

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kWakeupScale = 10;
#else
constexpr int kWakeupScale = 1;
#endif

/// One thread tells another; cheaper than a Gate. The waiter spins for a while, so that rounds differ in their phase.
class Signal {
 public:
  void set() {
    m_word.store(1, std::memory_order_release);
    sys::futexWake(m_word, 1);
  }
  [[nodiscard]] bool wait() {
    const int64_t end_ns = steadyClock().nowNs() + std::chrono::nanoseconds(test::kPatience).count();
    while (m_word.exchange(0, std::memory_order_acquire) == 0) {
      if (sys::futexWait(m_word, 0, end_ns) == -ETIMEDOUT) return false;
    }
    return true;
  }

 private:
  std::atomic<uint32_t> m_word{0};
};

void spin(uint64_t loops) {
  for (uint64_t i = 0; i < loops; ++i) StdMemory::relax();
}

class WakeupRace : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, WakeupRace, test::kWorkerCounts);

/// Schedules one task at a time from outside, at random phases of the workers' way to sleep.
void oneAtATime(SchedulerOptions options, int most) {
  std::mt19937_64 random(test::seed());
  options.use_caller = false;
  Scheduler scheduler(options);
  scheduler.start();
  Signal done;
  for (Rounds rounds(most); rounds.next();) {
    scheduler.schedule([&] { done.set(); });
    ASSERT_TRUE(done.wait()) << "lost in round " << rounds.begun();
    spin(random() % 512);
  }
  scheduler.stop();
}

// CD-S1, RT-7.2
TEST_P(WakeupRace, OneTaskAtATimeFromOutsideIsNeverLost) {
  oneAtATime({.threads = workers(), .name = "hunt"}, 100'000 / kWakeupScale);
}

// The same with the seed's cap on sleeps.
TEST(WakeupRaceCapped, OneTaskAtATimeFromOutsideIsNeverLost) {
  const LeakCheck leaks;
  oneAtATime({.threads = 2, .name = "hunt", .max_wait = std::chrono::milliseconds(3'000)}, 20'000 / kWakeupScale);
}

// RT-7.2: several sources, each of which waits for its own task before it offers the next.
TEST_P(WakeupRace, OneTaskAtATimeOfSeveralSourcesIsNeverLost) {
  Scheduler scheduler(workers(), false, "hunt");
  scheduler.start();
  std::vector<std::thread> sources;
  const uint64_t seed = test::seed();
  for (uint64_t s = 0; s < 3; ++s) {
    sources.emplace_back([&scheduler, seed, s] {
      std::mt19937_64 random(seed + s);
      Signal done;
      for (Rounds rounds(10'000 / kWakeupScale); rounds.next();) {
        scheduler.schedule([&] { done.set(); });
        ASSERT_TRUE(done.wait()) << "lost in round " << rounds.begun();
        spin(random() % 512);
      }
    });
  }
  for (auto& source : sources) source.join();
  scheduler.stop();
}

// P2: pinned work through the mailbox, from a fiber of one worker to the next, round and round.
TEST_P(WakeupRace, PinnedWorkHandedRoundIsNeverLost) {
  Scheduler scheduler(workers(), false, "hunt");
  scheduler.start();
  std::vector<int> ids;
  for (const auto& worker : coreOf(scheduler).workers()) ids.push_back(worker->threadId());
  Rounds rounds(40'000 / kWakeupScale);
  test::Gate over;
  const std::function<void()> next = [&] {
    if (!rounds.next()) return over.open();
    scheduler.schedule([&next] { next(); }, ids[static_cast<size_t>(rounds.begun()) % ids.size()]);
  };
  next();
  EXPECT_TRUE(over.wait());
  scheduler.stop();
}

// RT-7.1: a fiber parks and a plain thread wakes it; each wake leads to one resume, none is lost, none is left over.
TEST_P(WakeupRace, EveryWakeOfAParkedFiberLeadsToOneResume) {
  Scheduler scheduler(workers(), false, "hunt");
  scheduler.start();
  Rounds rounds(50'000 / kWakeupScale);
  struct Handed {
    Waker waker;  // plain: handed over by `ready`, as what follows
    bool over = false;
    Signal ready;
  } handed;
  int resumed = 0;
  const auto fiber = std::make_shared<Fiber>([&] {
    for (; rounds.next(); ++resumed) {
      Wait wait;
      handed.waker = wait.waker();
      handed.ready.set();
      ASSERT_EQ(wait.park(), WakeReason::kReady);
    }
    handed.over = true;
    handed.ready.set();
  });
  scheduler.schedule(fiber);
  std::mt19937_64 random(test::seed());
  while (true) {
    ASSERT_TRUE(handed.ready.wait()) << "lost in round " << rounds.begun();
    if (handed.over) break;
    const Waker waker = handed.waker;
    spin(random() % 256);
    ASSERT_TRUE(waker.wake(WakeReason::kReady));
    ASSERT_FALSE(waker.wake(WakeReason::kReady));
  }
  fiber->join();
  EXPECT_EQ(resumed, rounds.begun());
  scheduler.stop();
}

// RT-7.1, FM-51: several wakers and a deadline compete for each wait; one wins.
TEST_P(WakeupRace, OfManyWakersOneWins) {
  Scheduler scheduler(workers(), false, "hunt");
  scheduler.start();
  const int rounds = 5'000 / kWakeupScale;
  constexpr size_t kWakers = 3;
  std::atomic<uint64_t> epoch{0};  // of the present wait; published after the core
  std::atomic<FiberCore*> core{nullptr};
  std::atomic<int> wins{0};
  std::atomic<bool> over{false};
  int timeouts = 0;
  int wakes = 0;
  const auto fiber = std::make_shared<Fiber>([&] {
    for (int round = 0; round < rounds; ++round) {
      const Deadline deadline = Deadline::after(std::chrono::microseconds(round % 3 == 0 ? 0 : 20));
      ASSERT_TRUE(reserveTimeout(deadline));
      Wait wait;
      core = wait.waker().core;
      epoch = wait.waker().epoch;
      wait.park(deadline) == WakeReason::kTimeout ? ++timeouts : ++wakes;
    }
  });
  std::vector<std::thread> wakers;
  for (size_t i = 0; i < kWakers; ++i) {
    wakers.emplace_back([&] {
      while (!over) {
        const Waker waker{core.load(), epoch.load()};
        if (waker.core != nullptr && waker.wake(WakeReason::kReady)) wins.fetch_add(1);
        spin(64);
      }
    });
  }
  scheduler.schedule(fiber);
  fiber->join();
  over = true;
  for (auto& waker : wakers) waker.join();
  scheduler.stop();
  EXPECT_EQ(wakes, wins.load());
  EXPECT_EQ(wakes + timeouts, rounds);
}

// CD-S8: the end meets work that is just being offered, sleeping workers, and workers about to sleep.
TEST_P(WakeupRace, AThousandEndsLoseNothing) {
  for (int round = 0; round < 1'000; ++round) {
    Scheduler scheduler(workers(), false, "hunt");
    scheduler.start();
    std::atomic<int> runs{0};
    for (int i = 0; i < round % 5; ++i) {
      scheduler.schedule([&] {
        runs.fetch_add(1);
        scheduler.schedule([&] { runs.fetch_add(1); });
        Fiber::YieldToReady();
        scheduler.place([&] { runs.fetch_add(1); });
        if (runs % 2 == 0) Fiber::YieldToHold();
      });
    }
    scheduler.stop();
    ASSERT_EQ(runs.load(), 3 * (round % 5));
  }
}

}  // namespace
}  // namespace sylar
