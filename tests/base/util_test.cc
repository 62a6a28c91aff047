#include "sylar/base/util.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "sylar/base/macro.h"
#include "sylar/base/noncopyable.h"
#include "sylar/base/singleton.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {

TEST(Util, ThreadsHaveIdsAndNames) {
  EXPECT_EQ(GetThreadId(), ::gettid());
  std::thread([] {
    SetThreadName("worker_7");
    EXPECT_EQ(GetThreadName(), "worker_7");
  }).join();
  EXPECT_NE(GetThreadName(), "worker_7");
}

TEST(Util, ClocksGoOn) {
  const uint64_t elapsed = GetElapsedMS(), us = GetCurrentUS();
  EXPECT_GE(GetElapsedMS(), elapsed);
  EXPECT_GE(GetCurrentMS(), us / 1000 - 1000);
  EXPECT_GT(us, 1'600'000'000'000'000U);  // microseconds since 1970
}

TEST(Util, TimeGoesRound) {
  EXPECT_EQ(Str2Time(Time2Str(1'700'000'000).c_str()), 1'700'000'000);
  EXPECT_EQ(Time2Str(1'700'000'000, "%Y"), "2023");
  EXPECT_EQ(Str2Time("yesterday"), 0);
  EXPECT_EQ(Str2Time("2023-01-01 00:00:00 and more"), 0);
}

TEST(Util, CaseConcernsAsciiLettersOnly) {
  EXPECT_EQ(ToLower("AZ[`az\xc3\x84"), "az[`az\xc3\x84");
  EXPECT_EQ(ToUpper("AZ{@az\xc3\xa4"), "AZ{@AZ\xc3\xa4");
}

TEST(Util, TypesHaveNames) {
  EXPECT_STREQ(TypeToName<int>(), "int");
  EXPECT_STREQ(TypeToName<std::set<int>*>(), "std::set<int, std::less<int>, std::allocator<int> >*");
}

TEST(Util, BinarySearchTellsWhereItWouldBe) {
  const int array[] = {1, 3, 5};
  for (const auto& [value, index] : {std::pair(0, -1), {1, 0}, {2, -2}, {3, 1}, {4, -3}, {5, 2}, {6, -4}}) {
    EXPECT_EQ(BinarySearch(array, 3, value), index) << value;
  }
  EXPECT_EQ(BinarySearch(array, 0, 1), -1);
}

TEST(Util, JoinPutsSeparatorsInBetween) {
  const std::vector<int> numbers{1, 2, 3};
  EXPECT_EQ(Join(numbers.begin(), numbers.end(), ", "), "1, 2, 3");
  EXPECT_EQ(Join(numbers.begin(), numbers.begin(), ", "), "");
}

TEST(Util, BacktraceHasALineForEachFrame) {
  std::vector<std::string> frames;
  Backtrace(frames, 3, 1);
  EXPECT_EQ(frames.size(), 2U);
  const std::string text = BacktraceToString(4, 2, "> ");
  EXPECT_EQ(text.rfind("> ", 0), 0U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(BacktraceToString(0), "");
}

TEST(Util, HostHasAName) { EXPECT_FALSE(GetHostName().empty()); }

struct Counted : Noncopyable {
  Counted() { ++made; }
  static inline int made = 0;
};

TEST(Singleton, OneForEachTypeAndTag) {
  EXPECT_EQ((Singleton<Counted>::GetInstance()), (Singleton<Counted>::GetInstance()));
  EXPECT_NE((Singleton<Counted>::GetInstance()), (Singleton<Counted, int, 1>::GetInstance()));
  EXPECT_EQ(Counted::made, 2);
  EXPECT_EQ((SingletonPtr<Counted>::GetInstance()), (SingletonPtr<Counted>::GetInstance()));
  EXPECT_EQ(Counted::made, 3);
}

TEST(Noncopyable, IsNeitherCopiedNorMoved) {
  static_assert(!std::is_copy_constructible_v<Counted> && !std::is_move_constructible_v<Counted>);
  static_assert(!std::is_copy_assignable_v<Counted> && !std::is_move_assignable_v<Counted>);
}

TEST(Macro, HintsKeepTheValue) {
  EXPECT_TRUE(SYLAR_LIKELY(2));
  EXPECT_FALSE(SYLAR_UNLIKELY(0));
}

}  // namespace
}  // namespace sylar
