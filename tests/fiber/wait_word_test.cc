#include "sylar/fiber/wait_word.h"

#include <gtest/gtest.h>

namespace sylar {
namespace {

constexpr WakeReason kReasons[] = {WakeReason::kReady, WakeReason::kTimeout, WakeReason::kCanceled, WakeReason::kClosed};

// P1
TEST(WaitWord, IsClosedAtFirst) {
  WaitWord<> word;
  EXPECT_FALSE(word.isOpen());
  EXPECT_EQ(word.epoch(), 0u);
  EXPECT_FALSE(word.claim(0, WakeReason::kReady));
  EXPECT_FALSE(word.withdraw(0));
}

// P1
TEST(WaitWord, EachPrepareOpensTheNextEpoch) {
  WaitWord<> word;
  for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
    EXPECT_EQ(word.prepare(), epoch);
    EXPECT_TRUE(word.isOpen());
    EXPECT_EQ(word.epoch(), epoch);
    EXPECT_TRUE(word.withdraw(epoch));
  }
}

// P1
TEST(WaitWord, FirstClaimWinsAndItsReasonStays) {
  for (const WakeReason first : kReasons) {
    WaitWord<> word;
    const uint64_t epoch = word.prepare();
    EXPECT_TRUE(word.claim(epoch, first));
    EXPECT_FALSE(word.isOpen());
    for (const WakeReason later : kReasons) EXPECT_FALSE(word.claim(epoch, later));
    EXPECT_EQ(word.reason(), first);
    EXPECT_EQ(word.epoch(), epoch);
  }
}

// P1, RD-3
TEST(WaitWord, WrongEpochNeverWins) {
  WaitWord<> word;
  const uint64_t first = word.prepare();
  ASSERT_TRUE(word.claim(first, WakeReason::kTimeout));
  const uint64_t second = word.prepare();
  EXPECT_FALSE(word.claim(first, WakeReason::kReady));
  EXPECT_FALSE(word.withdraw(first));
  EXPECT_FALSE(word.claim(second + 1, WakeReason::kReady));
  EXPECT_FALSE(word.claim(0, WakeReason::kReady));
  EXPECT_TRUE(word.isOpen());
  EXPECT_TRUE(word.claim(second, WakeReason::kClosed));
  EXPECT_EQ(word.reason(), WakeReason::kClosed);
}

// P1
TEST(WaitWord, WonWithdrawalClosesTheEpochForEveryWaker) {
  WaitWord<> word;
  const uint64_t epoch = word.prepare();
  EXPECT_TRUE(word.withdraw(epoch));
  EXPECT_FALSE(word.isOpen());
  for (const WakeReason reason : kReasons) EXPECT_FALSE(word.claim(epoch, reason));
  EXPECT_FALSE(word.withdraw(epoch));
}

// P1
TEST(WaitWord, LostWithdrawalLeavesTheReason) {
  for (const WakeReason reason : kReasons) {
    WaitWord<> word;
    const uint64_t epoch = word.prepare();
    ASSERT_TRUE(word.claim(epoch, reason));
    EXPECT_FALSE(word.withdraw(epoch));
    EXPECT_EQ(word.reason(), reason);
  }
}

// P1
TEST(WaitWord, EpochsHave61Bits) {
  WaitWord<> word;
  const uint64_t epoch = word.prepare();
  const uint64_t beyond = epoch + (uint64_t{1} << 60);
  EXPECT_FALSE(word.claim(beyond, WakeReason::kReady));
  EXPECT_TRUE(word.isOpen());
}

TEST(WaitWordDeathTest, PrepareWhileOpenIsAProgrammerError) {
  WaitWord<> word;
  word.prepare();
#ifndef NDEBUG
  EXPECT_DEATH(word.prepare(), "kOpen");
#endif
}

/// Notes the orders that are asked for.
struct RecordingMemory {
  static inline std::memory_order stored, won, lost;

  template <class T>
  struct Atomic {
    constexpr Atomic(T initial) : value(initial) {}
    T load(std::memory_order) const { return value; }
    void store(T desired, std::memory_order order) {
      stored = order;
      value = desired;
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) {
      won = success;
      lost = failure;
      const bool equal = value == expected;
      (equal ? value : expected) = equal ? desired : value;
      return equal;
    }
    T value;
  };
};

// P1: the column "order" of its table. The model checker runs this header over a policy of its own, as this test does.
TEST(WaitWord, AsksForTheOrdersOfTheProtocol) {
  WaitWord<RecordingMemory> word;
  const uint64_t epoch = word.prepare();
  EXPECT_EQ(RecordingMemory::stored, std::memory_order_release);
  EXPECT_TRUE(word.claim(epoch, WakeReason::kReady));
  EXPECT_EQ(RecordingMemory::won, std::memory_order_acq_rel);
  EXPECT_EQ(RecordingMemory::lost, std::memory_order_relaxed);
}

}  // namespace
}  // namespace sylar
