// The array under a manager's lock: what its growth costs does not depend on how much is in it.
#include "sylar/timer/growing_array.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sylar/base/sanitizers.h"

namespace sylar {
namespace {

using Array = GrowingArray<uint64_t>;

TEST(GrowingArrayTest, KeepsWhatIsInItAtEachGrowth) {
  constexpr size_t kItems = 100'000;
  Array array;
  for (size_t i = 0; i < kItems; ++i) {
    array.push_back(i);
    if (array.size() == array.capacity()) {
      array.push_back(++i);
      for (size_t k = 0; k <= i; ++k) ASSERT_EQ(array[k], k);
    }
  }
  while (array.size() > 10) array.pop_back();
  EXPECT_EQ(array.size(), 10u);
  EXPECT_EQ(array.back(), 9u);
  EXPECT_EQ(array.end() - array.begin(), 10);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.begin()) % 64, 0u);
}

/// How many pages of the memory are there.
size_t resident(const void* memory, size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(bytes / page);
  EXPECT_EQ(::mincore(const_cast<void*>(memory), bytes, pages.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char is) { return (is & 1) != 0; }));
}

// TG-1, the worst case: no other thread waits for a copy of a million timers.
TEST(GrowingArrayTest, AGrowthTouchesNothingThatIsInIt) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "it is copied there";
#endif
  Array array;
  while (array.capacity() * sizeof(uint64_t) < 1024 * 1024 || array.size() < array.capacity()) array.push_back(0);
  const size_t bytes = array.size() * sizeof(uint64_t);
  ASSERT_EQ(::madvise(array.begin(), bytes, MADV_NOHUGEPAGE), 0);
  ASSERT_EQ(::madvise(array.begin(), bytes, MADV_DONTNEED), 0);
  ASSERT_EQ(resident(array.begin(), bytes), 0u);
  array.push_back(1);
  EXPECT_EQ(resident(array.begin(), bytes), 0u) << "pages of what was in it";
  EXPECT_EQ(array.back(), 1u);
}

}  // namespace
}  // namespace sylar
