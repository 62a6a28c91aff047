// Managers that start and end with everything in flight, and the hunt for lost wake-ups through timers and descriptors. Bounded
// rounds; who waits longer than kPatience waits forever.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using test::Ends;
using test::eventually;
using test::Gate;
using test::LeakCheck;
using test::makePipe;
using test::makeSockets;

#if defined(SYLAR_TSAN) || defined(SYLAR_ASAN)
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

constexpr auto READ = IOManager::READ;
constexpr auto WRITE = IOManager::WRITE;

// ---- Starts and ends. --------------------------------------------------------------------------------------------------------

/// What one cycle starts, and what must have happened at its end.
struct Cycle {
  std::atomic<int> callbacks{0};
  std::atomic<int> timers{0};
  std::atomic<int> recurring{0};
  std::atomic<int> fibers{0};
  std::atomic<int> held{0};
};

void startAndEnd(size_t workers, bool use_caller, uint64_t seed) {
  Cycle cycle;
  Ends sockets[2] = {makeSockets(), makeSockets()};
  Timer::ptr recurring;
  {
    IOManager iom(workers, use_caller, "cycle");
    // Descriptors: a callback and a fiber wait for bytes that a timer sends, others for a peer that hangs up.
    EXPECT_EQ(iom.addEvent(sockets[0][0], READ, [&] { cycle.callbacks.fetch_add(1); }), 0);
    EXPECT_EQ(iom.addEvent(sockets[1][0], READ, [&] { cycle.callbacks.fetch_add(1); }), 0);
    iom.schedule([&] {
      EXPECT_EQ(iom.addEvent(sockets[0][0], READ), 0);
      Fiber::YieldToHold();
      cycle.fibers.fetch_add(1);
    });
    iom.addTimer(seed % 2, [&] { sockets[0].put(1); });
    iom.addTimer(1, [&] { sockets[1].close(1); });
    // Timers: one-shots, and a recurring one that a fiber ends.
    for (uint64_t i = 0; i < 3; ++i) iom.addTimer(i % 2, [&] { cycle.timers.fetch_add(1); });
    recurring = iom.addTimer(
        1, [&] { cycle.recurring.fetch_add(1); }, true);
    iom.schedule([&] {
      parkUntil(Deadline::after(std::chrono::microseconds(500)));
      EXPECT_TRUE(recurring->cancel());
      cycle.fibers.fetch_add(1);
    });
    // Work: nested, placed, held forever.
    iom.schedule([&] {
      for (int i = 0; i < 4; ++i) iom.schedule([&] { cycle.fibers.fetch_add(1); });
      iom.place([&] {
        Fiber::YieldToReady();
        cycle.fibers.fetch_add(1);
      });
    });
    iom.schedule([&] {
      Fiber::YieldToHold();
      cycle.held.fetch_add(1);
    });
  }
  EXPECT_EQ(cycle.callbacks.load(), 2);
  EXPECT_EQ(cycle.timers.load(), 3);
  EXPECT_EQ(cycle.fibers.load(), 1 + 1 + 4 + 1);
  EXPECT_EQ(cycle.held.load(), 1);
  EXPECT_FALSE(recurring->refresh());
}

// CD-S8: no callback is lost, and no fiber, descriptor, timer or thread is left.
TEST(IOManagerRace, AThousandStartsAndEndsWithEverythingInFlightLeaveNothing) {
  const LeakCheck leaks;
  const uint64_t seed = test::seed();
  for (int i = 0; i < 1'000; ++i) {
    startAndEnd(1 + static_cast<size_t>(i) % 3, i % 4 == 0, seed + static_cast<uint64_t>(i));
    if (HasFailure()) FAIL() << "in cycle " << i;
  }
}

// CD-S8: the last thing that stop() waits for ends on a thread that is no worker's.
TEST(IOManagerRace, StopEndsWithTheLastTimerOrEventThatAPlainThreadTakesBack) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  for (int i = 0; i < 2'000 / kScale; ++i) {
    IOManager iom(2, false, "cycle");
    const Timer::ptr timer = iom.addTimer(3'600'000, [] { FAIL(); });
    ASSERT_EQ(iom.addEvent(pipe[0], READ, [] { FAIL(); }), 0);
    std::thread other([&] {
      if (i % 2 == 0) std::this_thread::yield();
      EXPECT_TRUE(timer->cancel());
      EXPECT_TRUE(iom.delEvent(pipe[0], READ));
    });
    iom.stop();
    other.join();
  }
}

// ---- The hunt. ---------------------------------------------------------------------------------------------------------------

/// While a timer of an hour is armed, and a fiber of every worker waits for an hour, adds a timer of 1 ms again and again.
void huntWithTimers(SchedulerOptions options, int rounds) {
  options.use_caller = false;
  IOManager iom(options);
  const Timer::ptr hour = iom.addTimer(3'600'000, [] { FAIL(); });
  std::vector<Waker> sleepers(options.threads);
  std::vector<Fiber::ptr> fibers;
  for (Waker& waker : sleepers) {
    fibers.push_back(std::make_shared<Fiber>([&waker] {
      const Deadline deadline = Deadline::after(std::chrono::hours(1));
      ASSERT_TRUE(reserveTimeout(deadline));
      Wait wait;
      waker = wait.waker();
      EXPECT_EQ(wait.park(deadline), WakeReason::kReady);
    }));
    iom.schedule(fibers.back());
    EXPECT_TRUE(eventually([&] { return stateOf(*fibers.back()) == FiberState::kParked; }));
  }
  Gate fired;
  for (int round = 0; round < rounds; ++round) {
    iom.addTimer(1, [&] { fired.open(); });
    ASSERT_TRUE(fired.wait(static_cast<size_t>(round) + 1)) << "lost in round " << round;
  }
  for (const Waker& waker : sleepers) EXPECT_TRUE(waker.wake(WakeReason::kReady));
  EXPECT_TRUE(hour->cancel());
}

/// Several hunts at a time: they mostly wait.
void hunts(size_t count, const SchedulerOptions& options, int rounds) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&] { huntWithTimers(options, rounds); });
  for (auto& thread : threads) thread.join();
}

// 10 000 rounds without a cap on sleeps.
TEST(WakeupHunt, ANearTimerIsNeverLostBehindAFarOne) {
  const LeakCheck leaks;
  hunts(8, {.threads = 2, .name = "hunt"}, 1'000 / kScale);
  hunts(2, {.threads = 1, .name = "hunt"}, 1'000 / kScale);
}

// And with the seed's cap.
TEST(WakeupHunt, ANearTimerIsNeverLostUnderACap) {
  const LeakCheck leaks;
  hunts(4, {.threads = 2, .name = "hunt", .max_wait = std::chrono::milliseconds(3'000)}, 250 / kScale);
}

class IOManagerRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, IOManagerRaceTest, test::kWorkerCounts);

// CD-S1: one task at a time, into workers that sleep in epoll.
TEST_P(IOManagerRaceTest, OneTaskAtATimeFromOutsideIsNeverLost) {
  IOManager iom(workers(), false, "hunt");
  Gate done;
  for (size_t round = 1; round <= 20'000 / kScale; ++round) {
    iom.schedule([&] { done.open(); });
    ASSERT_TRUE(done.wait(round)) << "lost in round " << round;
  }
  iom.stop();  // while what the fibers use is alive
}

// One byte at a time, there and back, between a plain thread and a fiber that waits for it.
TEST_P(IOManagerRaceTest, OneByteAtATimeIsNeverLost) {
  const Ends sockets = makeSockets();
  IOManager iom(workers(), false, "hunt");
  const int rounds = 20'000 / kScale;
  Gate echoed;
  iom.schedule([&] {
    for (int i = 0; i < rounds; ++i) {
      ASSERT_EQ(iom.addEvent(sockets[0], READ), 0);
      Fiber::YieldToHold();
      sockets.get(0);
      echoed.open();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    sockets.put(1);
    ASSERT_TRUE(echoed.wait(static_cast<size_t>(i) + 1)) << "lost in round " << i;
  }
  iom.stop();  // while what the fibers use is alive
}

// Events are added, fired, taken back and cancelled on all threads at once: each runs once or was taken back.
TEST_P(IOManagerRaceTest, EveryEventRunsOnceOrIsTakenBack) {
  constexpr int kThreads = 4;
  const int rounds = 2'000 / kScale;
  const uint64_t seed = test::seed();
  const Ends sockets[2] = {makeSockets(), makeSockets()};
  std::atomic<int> added{0};
  std::atomic<int> runs{0};
  std::atomic<int> ended{0};
  {
    IOManager iom(workers(), false, "race");
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(seed + t);
        for (int i = 0; i < rounds; ++i) {
          const Ends& pair = sockets[random() % 2];
          const auto event = random() % 2 == 0 ? READ : WRITE;
          switch (random() % 5) {
            case 0:
            case 1: {
              const std::shared_ptr<void> end(nullptr, [&](void*) { ended.fetch_add(1); });
              added.fetch_add(1);
              ASSERT_EQ(iom.addEvent(pair[0], event, [&runs, end] { runs.fetch_add(1); }), 0);
              break;
            }
            case 2: iom.delEvent(pair[0], event); break;
            case 3: iom.cancelEvent(pair[0], event); break;
            default: random() % 2 == 0 ? pair.put(1) : pair.empty(0); break;
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (const Ends& pair : sockets) iom.cancelAll(pair[0]);
  }
  EXPECT_EQ(ended.load(), added.load()) << "what is captured is destroyed, run or not";
  EXPECT_LE(runs.load(), added.load());
  EXPECT_GT(runs.load(), 0);
}

// CD-I3: registrations for numbers far apart, from two threads, while the table grows.
TEST(IOManagerRace, RegistrationsAreNotLostWhileTheTableGrows) {
  const LeakCheck leaks;
  IOManager iom(2, false, "grow");
  for (int round = 0; round < 10; ++round) {
    std::vector<Ends> pipes;
    std::vector<int> high[2];
    for (int i = 0; i < 2; ++i) {
      for (int chunk = 1; chunk <= 4; ++chunk) {
        pipes.push_back(makePipe());
        const int number = ::fcntl(pipes.back()[0], F_DUPFD_CLOEXEC, 4'096 * chunk + 100 * round);
        ASSERT_GE(number, 0);
        high[i].push_back(number);
      }
    }
    Gate fired;
    std::vector<std::thread> threads;
    for (const std::vector<int>& numbers : high) {
      threads.emplace_back([&iom, &fired, &numbers] {
        for (const int number : numbers) ASSERT_EQ(iom.addEvent(number, READ, [&] { fired.open(); }), 0);
      });
    }
    for (auto& thread : threads) thread.join();
    for (const Ends& pipe : pipes) pipe.put(1);
    ASSERT_TRUE(fired.wait(pipes.size()));
    for (const auto& numbers : high) {
      for (const int number : numbers) ::close(number);
    }
  }
  iom.stop();
}

// Cause: an event that was added while the stop dropped what was pending stayed with an engine that ended.
TEST_P(IOManagerRaceTest, EventsMayBeAddedWhileItStops) {
  const Ends sockets = makeSockets();
  const int rounds = 50 / kScale;
  for (int round = 0; round < rounds; ++round) {
    IOManager iom(workers(), false, "race");
    std::atomic<bool> end{false};
    Gate adding;
    std::thread other([&] {
      while (!end) {
        if (iom.addEvent(sockets[0], READ, [] { FAIL(); }) == 0) iom.delEvent(sockets[0], READ);
        adding.open();
      }
    });
    ASSERT_TRUE(adding.wait(static_cast<size_t>(round % 20) + 1));
    EXPECT_TRUE(iom.stop(Deadline::after(std::chrono::seconds(10))).clean);
    end = true;
    other.join();
    EXPECT_EQ(iom.addEvent(sockets[0], READ, [] { FAIL(); }), -1);
  }
}

// C-53, TD-8 on the real thing: timers added, changed and cancelled from all threads while workers serve them.
TEST_P(IOManagerRaceTest, EveryTimerRunsOrIsCancelled) {
  constexpr int kThreads = 4;
  const int rounds = 5'000 / kScale;
  const uint64_t seed = test::seed();
  std::atomic<int> runs{0};
  std::atomic<int> cancels{0};
  {
    IOManager iom(workers(), false, "race");
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(seed + t);
        std::vector<Timer::ptr> mine;
        for (int i = 0; i < rounds; ++i) {
          mine.push_back(iom.addTimer(random() % 4, [&] { runs.fetch_add(1); }));
          const Timer::ptr& some = mine[random() % mine.size()];
          switch (random() % 4) {
            case 0: cancels.fetch_add(some->cancel()); break;
            case 1: some->refresh(); break;
            case 2: some->reset(random() % 4, random() % 2 == 0); break;
            default: break;
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(runs.load() + cancels.load(), kThreads * rounds);
}

}  // namespace
}  // namespace sylar
