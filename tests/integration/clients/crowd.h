// For the tests of libraries that wait in locks: many fibers of a few workers use one at the same time. While they wait, a ticker
// on each worker must go on.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar::test {

/// Fibers that all run one function. The test's own thread is none of them: it holds up what they wait for, and lets it go.
class Crowd {
 public:
  static constexpr size_t kSize = 24;

  /// Runs `body(i)` in fiber i, spread over all workers. It may arrive() at this crowd.
  Crowd(size_t workers, std::function<void(Crowd& crowd, size_t i)> body, FiberIdentity identity = FiberIdentity::kOwn)
      : m_body(std::move(body)),
        m_ticks(workers),
        m_workers({.threads = workers, .use_caller = false, .name = "crowd", .identity = identity}) {
    for (std::atomic<int>& one : m_ticks) {
      m_workers.place([&] {
        for (; !m_ends; ++one) ::usleep(2000);
      });
    }
    for (size_t i = 0; i < kSize; ++i) m_workers.place([this, i] { run(i); });
  }
  ~Crowd() { end(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// For a fiber, before a call that waits for something that the test's thread holds up.
  void arrive() { m_arrived.fetch_add(1); }

  /// Returns when each fiber has arrived `times` times in all, and all wait without their workers.
  void untilAllWait(size_t times = 1) { untilWaiting(times * kSize); }
  /// The same where not all arrive as often.
  void untilWaiting(size_t arrivals) {
    EXPECT_TRUE(eventually([&] { return m_arrived == arrivals; })) << m_arrived << " have arrived";
    workersGoOn();
    EXPECT_EQ(m_done.load(), 0u) << "somebody did not wait";
  }

  /// Expects each worker to run other fibers.
  void workersGoOn() {
    for (const std::atomic<int>& one : m_ticks) {
      const int before = one;
      EXPECT_TRUE(eventually([&] { return one >= before + 3; })) << "somebody blocks its worker";
    }
  }

  /// Returns when all fibers are done. The workers go on until then.
  void end() {
    EXPECT_TRUE(eventually([&] { return m_done == kSize; })) << m_done << " are done";
    if (!m_ends) workersGoOn();
    m_ends = true;
    m_workers.stop();
    BlockingPool::process().endAll();
  }

 private:
  void run(size_t i) {
    m_body(*this, i);
    m_done.fetch_add(1);
  }

  const std::function<void(Crowd&, size_t)> m_body;
  std::vector<std::atomic<int>> m_ticks;
  std::atomic<size_t> m_arrived{0};
  std::atomic<size_t> m_done{0};
  std::atomic<bool> m_ends{false};
  IOManager m_workers;
};

/// Tests with one worker and with two. They leave no fiber, thread or descriptor behind.
class Crowds : public OverWorkers {};
inline const auto kOneAndTwo = testing::Values(1, 2);

}  // namespace sylar::test
