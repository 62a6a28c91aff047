// For the tests of libraries that keep something for their thread, such as their last error: many fibers use one at the same time,
// and some of them fail. What each of them sees must be what a thread in its place sees.
//
// SYLAR_TEST_IDENTITY=worker runs the fibers as their worker. That shows what a library keeps: these tests fail then.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar::test {

/// Those who use the library at the same time, as threads or as fibers.
class Users {
 public:
  static constexpr size_t kSize = 24;

  /// Returns when all have come here as often as the caller. So what all do before it comes before what any does behind it.
  void meet() {
    std::unique_lock lock(m_mutex);
    const size_t round = m_round;
    if (++m_arrived == kSize) {
      m_arrived = 0;
      ++m_round;
      m_all.notify_all();
      return;
    }
    EXPECT_TRUE(m_all.wait_for(lock, kPatience, [&] { return m_round != round; })) << m_arrived << " have arrived";
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_all;
  size_t m_arrived = 0;
  size_t m_round = 0;
};

/// Uses the library as number `i` of all, and returns what it has seen. All meet equally often.
using Use = std::function<std::string(Users& us, size_t i)>;

inline std::vector<std::string> seenInThreads(const Use& use) {
  Users us;
  std::vector<std::string> seen(Users::kSize);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < Users::kSize; ++i) threads.emplace_back([&, i] { seen[i] = use(us, i); });
  for (std::thread& thread : threads) thread.join();
  return seen;
}

inline std::vector<std::string> seenInFibers(const Use& use, size_t workers) {
  const char* const identity = std::getenv("SYLAR_TEST_IDENTITY");
  const bool as_worker = identity != nullptr && std::string_view(identity) == "worker";
  const LeakCheck leaks;
  Users us;
  std::vector<std::string> seen(Users::kSize);
  {
    IOManager iom({.threads = workers,
                   .use_caller = false,
                   .name = "users",
                   .identity = as_worker ? FiberIdentity::kWorker : FiberIdentity::kOwn});
    for (size_t i = 0; i < Users::kSize; ++i) iom.place([&, i] { seen[i] = use(us, i); });
  }
  BlockingPool::process().endAll();
  return seen;
}

/// Expects the fibers of one worker, and of two, to see what threads do. That must be of at least `kinds` kinds.
inline void seesInFibersWhatItSeesInThreads(size_t kinds, const Use& use) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  const std::vector<std::string> expected = seenInThreads(use);
  EXPECT_GE(std::set<std::string>(expected.begin(), expected.end()).size(), kinds);
  for (const size_t workers : {1, 2}) {
    SCOPED_TRACE(workers);
    const std::vector<std::string> seen = seenInFibers(use, workers);
    for (size_t i = 0; i < Users::kSize; ++i) EXPECT_EQ(seen[i], expected[i]) << "number " << i;
  }
  testing::Test::RecordProperty("seen", expected[0] + expected[1] + expected[2] + expected[3]);
}

}  // namespace sylar::test
