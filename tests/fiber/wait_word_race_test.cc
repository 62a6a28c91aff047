// Threads that compete for the wait of one fiber, for a bounded number of epochs. Made for ThreadSanitizer: what the fiber and
// the winner tell one another is plain memory, and only the wait word and the delivery order it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sylar/fiber/wait_word.h"

namespace sylar {
namespace {

constexpr uint64_t kEpochs = 50'000;
constexpr WakeReason kReasons[] = {WakeReason::kReady, WakeReason::kTimeout, WakeReason::kCanceled, WakeReason::kClosed};

struct Waiting {
  WaitWord<> word;
  uint64_t home = 0;     // plain: written before prepare(), read by the winner only
  uint64_t link = 0;     // plain: the winner's between claim and delivery, then the fiber's
  WakeReason won_for{};  // plain, as `link`
  // Relaxed, so that it orders nothing: which epoch a waker may try.
  alignas(64) std::atomic<uint64_t> hint{0};
  alignas(64) std::atomic<uint64_t> delivered{0};
  alignas(64) std::array<std::atomic<uint8_t>, kEpochs + 1> winners{};
};

void competeAs(WakeReason reason, Waiting& waiting) {
  uint64_t failures = 0;
  for (uint64_t epoch = 0; epoch < kEpochs;) {
    epoch = waiting.hint.load(std::memory_order_relaxed);
    // The one before is over, and a claim for it must not touch the present one.
    if (epoch > 1 && waiting.word.claim(epoch - 1, reason)) waiting.winners[epoch - 1].fetch_add(1, std::memory_order_relaxed);
    if (epoch == 0 || !waiting.word.claim(epoch, reason)) {
      if (++failures % 64 == 0) std::this_thread::yield();
      continue;
    }
    waiting.winners[epoch].fetch_add(1, std::memory_order_relaxed);
    EXPECT_EQ(waiting.home, epoch);
    waiting.link = epoch;
    waiting.won_for = reason;
    waiting.delivered.store(epoch, std::memory_order_release);
  }
}

// P1
TEST(WaitWordRace, EveryEpochHasOneWinnerOrWasWithdrawn) {
  const auto state = std::make_unique<Waiting>();
  Waiting& waiting = *state;
  std::vector<std::thread> wakers;
  for (const WakeReason reason : kReasons) wakers.emplace_back([&waiting, reason] { competeAs(reason, waiting); });

  uint64_t withdrawn = 0;
  for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    waiting.home = epoch;
    ASSERT_EQ(waiting.word.prepare(), epoch);
    waiting.hint.store(epoch, std::memory_order_relaxed);
    const bool closed = epoch % 2 == 0 && waiting.word.withdraw(epoch);
    withdrawn += closed;
    if (closed) continue;  // a delivery that came all the same would show as a second winner, or as a race on `home`
    while (waiting.delivered.load(std::memory_order_acquire) != epoch) std::this_thread::yield();
    EXPECT_EQ(waiting.link, epoch);
    EXPECT_EQ(waiting.word.reason(), waiting.won_for);
    waiting.winners[epoch].fetch_add(100, std::memory_order_relaxed);
  }
  for (auto& waker : wakers) waker.join();

  uint64_t silent = 0;
  for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const int winners = waiting.winners[epoch].load(std::memory_order_relaxed);
    EXPECT_TRUE(winners == 0 || winners == 101) << epoch << ": " << winners;
    silent += winners == 0;
  }
  EXPECT_EQ(silent, withdrawn);
}

}  // namespace
}  // namespace sylar
