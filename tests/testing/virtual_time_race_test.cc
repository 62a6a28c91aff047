// Virtual time with many threads: pairs of fibers that sleep, write and receive, on two schedulers at once. Each receive must
// come at its own time to the nanosecond. A clock that moved too early makes it late or lets it time out; one that misses its
// moment stands still forever.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/base/sanitizers.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/testing/virtual_time.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kRounds = 100;
#else
constexpr int kRounds = 500;
#endif

class VirtualTimeRace : public OverWorkers {};

/// One end is written to by a fiber that sleeps between, the other is read; what the reader sees is compared with what was slept.
class Pair {
 public:
  Pair(VirtualTime& time, BlockingPool& pool, uint64_t seed) : m_time(time), m_pool(pool), m_random(seed) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    m_here = UniqueFd(fds[0]);
    m_there = UniqueFd(fds[1]);
    const timeval longest{1, 0};
    EXPECT_EQ(setsockopt(m_here.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest), 0);
    for (int i = 0; i < kRounds; ++i) m_pauses.emplace_back(m_random() % 999'999);
  }

  void write() {
    for (int i = 0; i < kRounds; ++i) {
      const auto pause = static_cast<useconds_t>(m_pauses[static_cast<size_t>(i)].count());
      switch (pause % 8) {
        case 0: {  // by a timer, in another fiber
          const Fiber::ptr me = Fiber::GetThis();
          Scheduler* const home = Scheduler::GetThis();
          const TimerId timer =
              IOManager::GetThis()->startTimer(std::chrono::microseconds(pause), [me, home] { home->schedule(me); });
          EXPECT_NE(timer, 0U);
          Fiber::YieldToHold();
          break;
        }
        case 1:  // after a function on a helper thread, which takes no time
          EXPECT_EQ(m_pool.run([] {}), 0);
          [[fallthrough]];
        default: usleep(pause);
      }
      EXPECT_EQ(::write(m_there.get(), "x", 1), 1);
    }
  }

  void read() {
    std::chrono::nanoseconds expected{0};
    for (const std::chrono::microseconds pause : m_pauses) {
      expected += pause;
      char byte;
      m_in_time += ::recv(m_here.get(), &byte, 1, 0) == 1 && m_time.elapsed() == expected;
    }
  }

  int inTime() const { return m_in_time; }

 private:
  VirtualTime& m_time;
  BlockingPool& m_pool;
  std::mt19937_64 m_random;
  UniqueFd m_here;
  UniqueFd m_there;
  std::vector<std::chrono::microseconds> m_pauses;
  int m_in_time = 0;
};

// Virtual time over several workers: it moves when all are idle, and only then.
TEST_P(VirtualTimeRace, EveryReceiveComesAtItsTime) {
  std::mt19937_64 random(seed());
  const uint64_t rounds = scaled(1);
  for (uint64_t round = 0; round < rounds; ++round) {
    VirtualTime time;
    BlockingPool pool({.max_threads = 4});
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 20; ++i) pairs.push_back(std::make_unique<Pair>(time, pool, random()));
    {
      const SchedulerOptions options{.threads = workers(), .use_caller = false, .name = "race", .clock = &time};
      IOManager writers(options);
      IOManager readers(options);
      const VirtualTime::Hold all_begin(time);
      for (const auto& pair : pairs) {
        readers.schedule([&pair] { pair->read(); });
        writers.schedule([&pair] { pair->write(); });
      }
    }
    for (const auto& pair : pairs) ASSERT_EQ(pair->inTime(), kRounds);
  }
}

// A thread that holds the clock while it brings work meets workers on their way to sleep: its work is done at the time of the
// hold.
TEST_P(VirtualTimeRace, WorkFromAPlainThreadIsDoneAtTheTimeOfTheHold) {
  VirtualTime time;
  std::atomic<bool> goes_on{true};
  IOManager iom({.threads = workers(), .use_caller = false, .name = "race", .clock = &time});
  iom.schedule([&] {
    while (goes_on) usleep(1);  // the clock moves all the time
  });
  int at_its_time = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<int64_t> ran{-1};
    std::chrono::nanoseconds now;
    {
      const VirtualTime::Hold hold(time);
      now = time.elapsed();
      if (i % 2 == 0) {
        iom.schedule([&] { ran = time.nowNs(); });
      } else {
        iom.addTimer(0, [&] { ran = time.nowNs(); });
      }
    }
    ASSERT_TRUE(eventually([&] { return ran >= 0; }));
    at_its_time += ran == now.count();
  }
  goes_on = false;
  EXPECT_EQ(at_its_time, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Workers, VirtualTimeRace, kWorkerCounts);

}  // namespace
}  // namespace sylar::test
