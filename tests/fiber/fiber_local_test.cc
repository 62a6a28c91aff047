#include "sylar/fiber_local.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber.h"

namespace sylar {
namespace {

TEST(FiberLocal, EachFiberAndThreadHasItsOwn) {
  const FiberLocal<int> number;
  EXPECT_EQ(number.ifAny(), nullptr);
  *number = 1;
  std::vector<Fiber::ptr> fibers;
  for (int i = 2; i < 5; ++i) {
    fibers.push_back(std::make_shared<Fiber>([&, i] {
      EXPECT_EQ(number.ifAny(), nullptr);
      EXPECT_EQ(*number, 0);
      *number = i;
      Fiber::YieldToHold();
      EXPECT_EQ(*number, i);
    }));
  }
  for (const Fiber::ptr& fiber : fibers) fiber->resume();
  for (const Fiber::ptr& fiber : fibers) fiber->resume();
  std::thread([&] { EXPECT_EQ(*number, 0); }).join();
  EXPECT_EQ(*number, 1);
  number.reset();
  EXPECT_EQ(*number, 0);
}

/// Says when it ends, and where.
struct Noisy {
  ~Noisy() {
    if (log != nullptr) log->push_back(name + " in " + std::to_string(Fiber::GetFiberId()));
  }
  std::vector<std::string>* log = nullptr;
  std::string name;
};

// FM-50
TEST(FiberLocal, TheYoungestIsDestroyedFirstAtTheEndOfTheFunction) {
  const FiberLocal<Noisy> first, second;
  std::vector<std::string> ended;
  const auto fiber = std::make_shared<Fiber>([&] {
    *first = {&ended, "first"};
    *second = {&ended, "second"};
    ended.clear();  // what the assignments destroyed
  });
  const std::string in = " in " + std::to_string(fiber->getId());
  fiber->resume();
  EXPECT_EQ(ended, (std::vector<std::string>{"second" + in, "first" + in}));
  ended.clear();
  fiber->reset([&] { EXPECT_EQ(first.ifAny(), nullptr) << "the next function begins with none"; });
  fiber->resume();
  EXPECT_TRUE(ended.empty());
}

TEST(FiberLocal, ADestructorFindsTheOthersAndMayMakeNewOnes) {
  static const FiberLocal<std::string> g_word;
  static const FiberLocal<std::shared_ptr<int>> g_late;
  static std::string g_seen;
  struct Last {
    ~Last() {
      if (!armed) return;
      g_seen = *g_word;
      *g_late = counted;
    }
    bool armed = false;
    std::shared_ptr<int> counted;
  };
  const FiberLocal<Last> last;
  const auto counted = std::make_shared<int>(0);
  std::make_shared<Fiber>([&] {
    *g_word = "still there";
    last->counted = counted;
    last->armed = true;
  })->resume();
  EXPECT_EQ(g_seen, "still there");
  EXPECT_EQ(counted.use_count(), 1) << "what was made at the end is destroyed, too";
}

TEST(FiberLocal, ValuesEndWithTheirThreadAndWithAFiberThatIsDropped) {
  const auto counted = std::make_shared<int>(0);
  const FiberLocal<std::shared_ptr<int>> pointer;
  std::thread([&] { *pointer = counted; }).join();
  EXPECT_EQ(counted.use_count(), 1);
  auto fiber = std::make_shared<Fiber>([&] {
    *pointer = counted;
    Fiber::YieldToHold();
  });
  fiber->resume();
  EXPECT_EQ(counted.use_count(), 2);
  fiber = nullptr;
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(FiberLocal, WhatIsNotInheritedNeedNoCopy) {
  const FiberLocal<std::unique_ptr<int>> number(Inherit::kNo);
  *number = std::make_unique<int>(7);
  EXPECT_EQ(**number, 7);
  static_assert(!std::is_constructible_v<FiberLocal<std::unique_ptr<int>>, bool>);
}

TEST(FiberLocal, AnotherAtTheSameAddressBeginsAnew) {
  alignas(FiberLocal<int>) unsigned char memory[sizeof(FiberLocal<int>)];
  static_assert(sizeof(FiberLocal<std::string>) == sizeof(FiberLocal<int>));
  auto* const number = ::new (memory) FiberLocal<int>;
  **number = 7;
  std::destroy_at(number);
  auto* const word = ::new (memory) FiberLocal<std::string>;
  EXPECT_EQ(**word, "");
  std::destroy_at(word);
}

}  // namespace
}  // namespace sylar
