// Tokens are told to stop at every moment of the life of their scopes, by other workers and by threads.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include "sylar/cancel.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/wait_group.h"
#include "tests/hook/support.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

class CancelScopeRaceTest : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, CancelScopeRaceTest, kWorkerCounts);

TEST_P(CancelScopeRaceTest, AStopEndsItsOwnScopeOnly) {
  const LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t rounds = scaled(300);
  Channel<std::stop_source> sources(64);
  const auto stops = [&](uint64_t number) {  // outlives `other`, whose fiber may be in it to the end
    std::mt19937_64 random(seed + number);
    while (std::optional<std::stop_source> source = sources.receive()) {
      for (uint64_t spin = random() % 200; spin > 0; --spin) asm volatile("");
      source->request_stop();
    }
  };
  {
    IOManager iom(workers(), false, "scopes");
    IOManager other(1, false, "stops");
    std::thread thread([&] { stops(0); });
    other.schedule([&] { stops(1); });
    WaitGroup fibers;
    for (uint64_t i = 0; i < 8; ++i) {
      fibers.add();
      iom.schedule([&, i] {
        const Pair pair = unixPair();
        std::mt19937_64 random(seed + 100 + i);
        for (uint64_t round = 0; round < rounds; ++round) {
          std::stop_source stop;
          {
            const this_fiber::CancelScope scope(stop.get_token());
            EXPECT_TRUE(sources.trySend(std::stop_source(stop)) || sources.send(std::stop_source(stop)) || stop.stop_requested());
            if (random() % 2 == 0) {
              char byte;
              if (!stop.stop_requested() && random() % 2 == 0) stop.request_stop();
              const ssize_t n = random() % 3 == 0 ? 0 : ::read(pair.a, &byte, 1);
              EXPECT_TRUE(n == 0 || (n == -1 && errno == ECANCELED));
            }
          }
          EXPECT_FALSE(this_fiber::cancelled());
          EXPECT_EQ(::write(pair.a, "x", 1), 1);
          char byte;
          EXPECT_EQ(::read(pair.b, &byte, 1), 1) << "a stop that comes late does not reach beyond its scope";
        }
        fibers.done();
      });
    }
    fibers.wait();
    sources.close();
    thread.join();
  }
}

}  // namespace
}  // namespace sylar::test
