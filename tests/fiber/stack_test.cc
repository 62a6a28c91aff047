#include "sylar/fiber/stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber.h"

namespace sylar {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kColours = 12;
constexpr size_t kLargestColour = (kColours - 1) * 128;

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
/// A sanitizer catches the fault, names it and ends the process.
#define EXPECT_FAULT(statement) EXPECT_DEATH(statement, "stack-overflow|SEGV")
#else
#define EXPECT_FAULT(statement) EXPECT_EXIT(statement, testing::KilledBySignal(SIGSEGV), "")
#endif

[[maybe_unused]] size_t mappingsOfThisProcess() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

/// True if `address` lies in a mapping.
bool isMapped(const char* address) {
  unsigned char resident;
  auto* const page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(address) & ~(kPage - 1));
  return mincore(page, kPage, &resident) == 0;
}

class StackPoolTest : public testing::Test {
 protected:
  /// Gives everything back at the end of the test.
  Stack take(size_t size) {
    const Stack stack = m_pool.take(size);
    EXPECT_TRUE(stack);
    return stack;
  }
  StackPool m_pool;
};

// RT-4.1
TEST(StackSizes, AreThoseThatThePageSays) {
  EXPECT_EQ(kDefaultStackSize, 128u * 1024);
  EXPECT_EQ(kMinStackSize, 16u * 1024);
  EXPECT_EQ(kGuardSize, 1024u * 1024);
  EXPECT_EQ(kLeastGuardSize, 64u * 1024);
}

// RT-4.1
TEST_F(StackPoolTest, SizeIsClampedAndRoundedUp) {
  constexpr size_t kPooled = StackPool::kMaxPooledSize;
  const struct {
    size_t wanted, mapped;
  } table[] = {
      {0, kMinStackSize},
      {1, kMinStackSize},
      {kMinStackSize - 1, kMinStackSize},
      {kMinStackSize, kMinStackSize},
      {kMinStackSize + 1, 2 * kMinStackSize},
      {kDefaultStackSize, kDefaultStackSize},
      {1'000'000, 1 << 20},
      {kPooled - 1, kPooled},
      {kPooled, kPooled},
      {kPooled + 1, kPooled + kPage},
      {kMaxStackSize, kMaxStackSize},
      {kMaxStackSize + 1, kMaxStackSize},
      {SIZE_MAX, kMaxStackSize},
  };
  for (const auto& row : table) {
    const Stack stack = take(row.wanted);
    EXPECT_LE(stack.size, row.mapped) << row.wanted;
    EXPECT_GE(stack.size, row.mapped - kLargestColour) << row.wanted;
    m_pool.put(stack);
  }
}

// RT-4.1
TEST_F(StackPoolTest, AllOfAStackIsUsableAndItsTopIsAligned) {
  const Stack stack = take(kMinStackSize);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(stack.top()) % 128, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(stack.base) % kPage, 0u);
  std::memset(stack.base, 0x5a, stack.size);
  EXPECT_EQ(stack.base[0], 0x5a);
  EXPECT_EQ(stack.top()[-1], 0x5a);
  m_pool.put(stack);
}

// Frames of many fibers at the same distance from the top would otherwise fight for one cache set.
TEST_F(StackPoolTest, TopsOfNewStacksDiffer) {
  std::set<uintptr_t> offsets;
  std::vector<Stack> stacks;
  for (size_t i = 0; i < kColours; ++i) {
    stacks.push_back(take(kMinStackSize));
    offsets.insert(reinterpret_cast<uintptr_t>(stacks.back().top()) % kPage);
  }
  EXPECT_EQ(offsets.size(), kColours);
  for (const Stack& stack : stacks) m_pool.put(stack);
}

// Short-lived helpers between them do not use colours up, and stacks of other sizes have colours of their own.
TEST_F(StackPoolTest, TopsOfKeptStacksDifferWhateverIsTakenBetweenThem) {
  for (const size_t helper_size : {kMinStackSize, kDefaultStackSize, StackPool::kMaxPooledSize + 1}) {
    std::set<uintptr_t> offsets;
    std::vector<Stack> kept;
    for (int i = 0; i < 32; ++i) {
      kept.push_back(take(kMinStackSize));
      offsets.insert(reinterpret_cast<uintptr_t>(kept.back().top()) % kPage);
      for (int helper = 0; helper < 15; ++helper) m_pool.put(take(helper_size));
    }
    EXPECT_EQ(offsets.size(), kColours) << helper_size;
    for (const Stack& stack : kept) m_pool.put(stack);
  }
}

TEST_F(StackPoolTest, LastInIsFirstOut) {
  const Stack first = take(kDefaultStackSize);
  const Stack second = take(kDefaultStackSize);
  EXPECT_NE(first.base, second.base);
  m_pool.put(first);
  m_pool.put(second);
  EXPECT_EQ(take(kDefaultStackSize).base, second.base);
  EXPECT_EQ(take(kDefaultStackSize).base, first.base);
  m_pool.put(second);
  m_pool.put(first);
}

TEST_F(StackPoolTest, ReusedStackKeepsItsSizeToTheByte) {
  take(kDefaultStackSize);  // so that the next one has a colour; unmapped by nobody, which a test may do
  const Stack stack = take(kDefaultStackSize);
  m_pool.put(stack);
  const Stack again = take(kDefaultStackSize);
  EXPECT_EQ(again.base, stack.base);
  EXPECT_EQ(again.size, stack.size);
  m_pool.put(again);
}

TEST_F(StackPoolTest, EachSizeIsKeptForItself) {
  const Stack small = take(kMinStackSize);
  const Stack large = take(kDefaultStackSize);
  m_pool.put(small);
  m_pool.put(large);
  EXPECT_EQ(take(kMinStackSize).base, small.base);
  EXPECT_EQ(take(kDefaultStackSize).base, large.base);
  m_pool.put(small);
  m_pool.put(large);
}

TEST_F(StackPoolTest, StackAboveTheLargestPooledSizeIsUnmapped) {
  const Stack large = take(StackPool::kMaxPooledSize + 1);
  m_pool.put(large);
  EXPECT_FALSE(isMapped(large.base));
  EXPECT_FALSE(isMapped(large.top() - 1));
  EXPECT_FALSE(isMapped(large.base - kGuardSize));
}

// RT-4.5: whole groups leave, in whatever order they came; every stack that stays can be used.
TEST_F(StackPoolTest, StacksAboveTheCapAreUnmapped) {
  constexpr size_t kAbove = 3;
  std::vector<Stack> stacks;
  constexpr size_t kKept = StackPool::kKeptBytes / (kGuardSize + kMinStackSize);
  for (size_t i = 0; i < kKept + kAbove; ++i) stacks.push_back(take(kMinStackSize));
  std::mt19937 random(1);
  std::shuffle(stacks.begin(), stacks.end(), random);
  for (const Stack& stack : stacks) m_pool.put(stack);
  size_t mapped = 0;
  for (const Stack& stack : stacks) {
    const bool here = isMapped(stack.base);
    EXPECT_EQ(isMapped(stack.top() - 1), here);
    EXPECT_EQ(isMapped(stack.base - 1), here);
    EXPECT_EQ(isMapped(stack.base - kGuardSize), here);
    mapped += here;
    if (here) std::memset(stack.base, 0x5a, kPage);
  }
  EXPECT_EQ(mapped, kKept + kAbove - StackClass::kReturned);
}

constexpr size_t pages(size_t bytes) { return bytes / kPage; }

/// Pages of these stacks that still hold what takeTouched() wrote.
size_t heldPages(const std::vector<Stack>& stacks) {
  size_t held = 0;
  for (const Stack& stack : stacks) {
    if (!isMapped(stack.base)) continue;
    for (size_t at = 0; at < stack.size; at += kPage) held += stack.base[at] == 0x5a;
  }
  return held;
}

size_t mappedBytes(const std::vector<Stack>& stacks) {
  size_t mapped = 0;
  for (const Stack& stack : stacks) mapped += isMapped(stack.base) ? kGuardSize + (stack.size + kPage - 1) / kPage * kPage : 0;
  return mapped;
}

/// `bytes` of stacks of `size` bytes, all of which fibers have touched.
void takeTouched(StackPool& pool, size_t size, size_t bytes, std::vector<Stack>& stacks) {
  for (size_t i = 0; i < bytes / size; ++i) {
    stacks.push_back(pool.take(size));
    ASSERT_TRUE(stacks.back());
    std::memset(stacks.back().base, 0x5a, stacks.back().size);
  }
}

// The bounds hold over all sizes together, whatever the fibers before have used.
TEST(StackPool, IdleStacksAreBoundedInBytes) {
  std::vector<Stack> stacks;
  StackPool pool;
  for (const size_t size : {2048 * 1024, 512 * 1024, 128 * 1024, 16 * 1024}) takeTouched(pool, size, 72 << 20, stacks);
  for (const Stack& stack : stacks) pool.put(stack);
  EXPECT_LE(mappedBytes(stacks), StackPool::kKeptBytes);
  EXPECT_GE(mappedBytes(stacks), StackPool::kKeptBytes / 2);
  EXPECT_LE(heldPages(stacks), pages(StackPool::kWarmBytes) + stacks.size()) << "a page of each besides the warm ones";
}

TEST(StackPool, StacksThatCameLastStayWarm) {
  std::vector<Stack> stacks;
  StackPool pool;
  takeTouched(pool, kDefaultStackSize, 2 * StackPool::kWarmBytes, stacks);
  for (const Stack& stack : stacks) pool.put(stack);
  for (size_t warm = 0; warm < StackPool::kWarmBytes / kDefaultStackSize / 2; ++warm) {
    EXPECT_EQ(heldPages({pool.take(kDefaultStackSize)}), pages(kDefaultStackSize)) << warm;
  }
  // Those below are used like new ones.
  for (size_t i = 0; i < stacks.size() / 2; ++i) {
    const Stack stack = pool.take(kDefaultStackSize);
    std::memset(stack.base, 0x33, stack.size);
    EXPECT_EQ(stack.base[0], 0x33);
    pool.put(stack);
  }
}

// A swing within the warm ones costs nothing.
TEST(StackPool, WarmStacksKeepTheirMemory) {
  StackPool pool;
  for (int round = 0; round < 3; ++round) {
    std::vector<Stack> stacks;
    takeTouched(pool, kDefaultStackSize, StackPool::kWarmBytes, stacks);
    for (const Stack& stack : stacks) pool.put(stack);
    EXPECT_EQ(heldPages(stacks), pages(StackPool::kWarmBytes));
  }
}

// The second one is mapped together with a third that nobody takes.
TEST(StackPool, UnmapsWhatItHoldsAtItsEnd) {
  std::array<Stack, 2> stacks;
  const char* third;
  {
    StackPool pool;
    for (Stack& stack : stacks) stack = pool.take(kDefaultStackSize);
    third = stacks[1].base + kDefaultStackSize;
    for (const Stack& stack : stacks) pool.put(stack);
    EXPECT_TRUE(isMapped(stacks[0].base));
    EXPECT_TRUE(isMapped(third + kGuardSize));
  }
  for (const Stack& stack : stacks) EXPECT_FALSE(isMapped(stack.base - kGuardSize));
  EXPECT_FALSE(isMapped(third));
  EXPECT_FALSE(isMapped(third + kGuardSize));
}

#ifndef SYLAR_TSAN  // its runtime maps shadow memory beside each mapping
// RT-4.3, as far as it goes without a million of them: a guard is no mapping of its own where the kernel can do that.
TEST_F(StackPoolTest, GuardsTakeNoMappings) {
  const Stack probe = take(kMinStackSize);
  const bool light = madvise(probe.base - kGuardSize, kGuardSize, 102 /* MADV_GUARD_INSTALL */) == 0;
  m_pool.put(probe);
  if (!light) GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
  const size_t before = mappingsOfThisProcess();
  std::vector<Stack> stacks;
  for (int i = 0; i < 1000; ++i) stacks.push_back(take(kMinStackSize));
  EXPECT_LT(mappingsOfThisProcess(), before + 100);
  for (const Stack& stack : stacks) m_pool.put(stack);
}
#endif

bool hugePagesAreOff(const Stack& stack) {
  const auto address = reinterpret_cast<uintptr_t>(stack.base);
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  bool off = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long low, high;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) inside = low <= address && address < high;
    if (inside && line.starts_with("VmFlags:")) off = line.find(" nh") != std::string::npos;
  }
  return off;
}

// RT-4.9: for every stack of those that are mapped together, too.
TEST_F(StackPoolTest, HugePagesAreOff) {
  std::vector<Stack> stacks = {take(kMaxStackSize)};
  for (int i = 0; i < 8; ++i) stacks.push_back(take(kDefaultStackSize));
  for (const Stack& stack : stacks) {
    EXPECT_TRUE(hugePagesAreOff(stack));
    m_pool.put(stack);
  }
}

// CD-F2, RT-4.1, RD-5: every part of the guard faults, for new stacks, alone in their mapping or not, and for those from the
// pool.
TEST(StackPoolDeathTest, GuardFaults) {
  StackPool pool;
  for (int use = 0; use < 2; ++use) {
    std::array<Stack, 4> stacks;
    for (Stack& stack : stacks) stack = pool.take(kMinStackSize);
    for (const Stack& stack : stacks) {
      for (const size_t below : {size_t{1}, kPage, kGuardSize / 2, kGuardSize}) {
        volatile char* const at = stack.base - below;
        EXPECT_FAULT(*at = 1) << below;
      }
    }
    for (const Stack& stack : stacks) pool.put(stack);
  }
}

// RT-4.1: a wide guard costs page tables, so a million stacks do not all have one. Room is made again by those that go.
TEST(StackPool, SoManyStacksHaveWideGuards) {
  const auto is_wide = [](const Stack& stack) { return stack.guard == kGuardSize; };
  {
    StackPool pool;
    std::vector<Stack> stacks;
    for (long i = 0; i < kWideGuards + 1000; ++i) stacks.push_back(pool.take(kMinStackSize));
    const auto wide = std::ranges::count_if(stacks, is_wide);
    EXPECT_GT(wide, kWideGuards / 2) << "the others are of earlier tests of the process";
    EXPECT_TRUE(std::ranges::is_partitioned(stacks, is_wide));
    EXPECT_LE(wide, kWideGuards + static_cast<long>(StackClass::kMappedAtOnce / (kGuardSize + kMinStackSize)));
    EXPECT_EQ(stacks.back().guard, kLeastGuardSize);
    EXPECT_FAULT(*static_cast<volatile char*>(stacks.back().base - kLeastGuardSize) = 1);
    for (const Stack& stack : stacks) pool.put(stack);
  }
  StackPool pool;
  EXPECT_TRUE(is_wide(pool.take(kMinStackSize)));
}

#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)  // these map what they please
/// Takes a stack where addresses are left for one with a narrow guard. Returns what is wrong, or 0.
int takeANarrowOne() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * kPage + kGuardSize / 2;
  const rlimit limits{limit, limit};
  StackPool pool;
  if (setrlimit(RLIMIT_AS, &limits) != 0) return 1;
  const Stack stack = pool.take(kMinStackSize);
  if (!stack) return 2;
  if (stack.guard != kLeastGuardSize) return 3;
  stack.base[0] = stack.top()[-1] = 1;
  pool.put(stack);
  return 0;
}

// RT-4.4: where addresses are limited, a stack with a narrow guard is better than none.
TEST(StackPoolDeathTest, AStackWhoseWideGuardIsRefusedHasANarrowOne) {
  EXPECT_EXIT(std::_Exit(takeANarrowOne()), testing::ExitedWithCode(0), "");
}
#endif

/// A frame of `Size` bytes of which only the lowest is used.
template <size_t Size>
[[gnu::noinline]] void useFrame() {
  char frame[Size];
  frame[0] = 1;
  asm volatile("" : : "r"(frame) : "memory");
}

TEST(StackOverflow, WhatFitsRuns) {
  bool ran = false;
  const auto fiber = std::make_shared<Fiber>(
      [&] {
        useFrame<30 * 1024>();
        ran = true;
      },
      96 * 1024);
  fiber->resume();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sylar
