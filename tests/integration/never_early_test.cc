// On the real clock: nothing that waits for a time comes before it.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "sylar/clock.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

constexpr int kChains = 200;
constexpr int kRounds = 50;

int64_t nowNs() { return steadyClock().nowNs(); }

/// Counts what came before its time.
class Samples {
 public:
  void add(int64_t start_ns, int64_t wanted_ns) {
    const int64_t took_ns = nowNs() - start_ns;
    ++m_count;
    if (took_ns < wanted_ns) ++m_early;
  }
  ~Samples() {
    EXPECT_EQ(m_count, kChains * kRounds);
    EXPECT_EQ(m_early, 0);
  }

 private:
  std::atomic<int> m_count{0};
  std::atomic<int> m_early{0};
};

class NeverEarlyOver : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, NeverEarlyOver, testing::Values(1, 4));

// C-33, TD-21: 10 000 timers.
TEST_P(NeverEarlyOver, Timers) {
  Samples samples;
  const uint64_t seed = test::seed();
  std::function<void(IOManager&, std::shared_ptr<std::mt19937_64>, int)> chain;  // outlives the callbacks
  IOManager iom(workers(), false, "timers");
  chain = [&](IOManager& manager, std::shared_ptr<std::mt19937_64> random, int left) {
    const uint64_t ms = (*random)() % 10;
    const int64_t start_ns = nowNs();
    manager.addTimer(ms, [&, random, left, ms, start_ns] {
      samples.add(start_ns, msToNs(ms));
      if (left > 1) chain(manager, random, left - 1);
    });
  };
  for (uint64_t i = 0; i < kChains; ++i) chain(iom, std::make_shared<std::mt19937_64>(seed + i), kRounds);
  iom.stop();
}

// C-33, CD-T9: 10 000 sleeps, odd lengths.
TEST_P(NeverEarlyOver, Sleeps) {
  Samples samples;
  const uint64_t seed = test::seed();
  IOManager iom(workers(), false, "sleeps");
  for (uint64_t i = 0; i < kChains; ++i) {
    iom.schedule([&samples, seed, i] {
      std::mt19937_64 random(seed + i);
      for (int round = 0; round < kRounds; ++round) {
        const auto us = static_cast<useconds_t>(random() % 8'000);
        const int64_t start_ns = nowNs();
        if (round % 2 == 0) {
          usleep(us);
          samples.add(start_ns, static_cast<int64_t>(us) * 1'000);
        } else {
          const timespec wait{0, static_cast<long>(us) * 1'000 + 7};
          nanosleep(&wait, nullptr);
          samples.add(start_ns, wait.tv_nsec);
        }
      }
    });
  }
  iom.stop();
}

}  // namespace
}  // namespace sylar
