#include "sylar/check.h"

#include <gtest/gtest.h>

#include "sylar/macro.h"

namespace sylar {
namespace {

enum class Colour { kRed = 1, kBlue = 2 };

TEST(Check, WhatHoldsPasses) {
  int value = 3;
  SYLAR_CHECK(value == 3);
  SYLAR_CHECK_EQ(value, 3);
  SYLAR_CHECK_NE(value, 4);
  SYLAR_CHECK_LT(value, 4);
  SYLAR_CHECK_LE(value, 3);
  SYLAR_CHECK_GT(value, 2);
  SYLAR_CHECK_GE(value, 3);
  SYLAR_CHECK_EQ(&value, &value);
  SYLAR_CHECK_EQ(Colour::kRed, Colour::kRed);
  SYLAR_ASSERT(value);
  SYLAR_ASSERT2(value == 3, "not shown");
}

TEST(Check, ArgumentsAreEvaluatedOnce) {
  int count = 0;
  SYLAR_CHECK(++count == 1);
  SYLAR_CHECK_EQ(++count, 2);
  SYLAR_CHECK_EQ(3, ++count);
  EXPECT_EQ(count, 3);
}

TEST(Check, IsOneStatement) {
  bool reached = false;
  if (reached)
    SYLAR_CHECK_EQ(1, 2);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(CheckDeathTest, FailureNamesPlaceAndCondition) {
  EXPECT_DEATH(SYLAR_CHECK(1 + 1 == 3), "check_test\\.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, ComparisonPrintsBothValues) {
  const int three = 3;
  EXPECT_DEATH(SYLAR_CHECK_EQ(three, 4), "three == 4: 3 against 4");
  EXPECT_DEATH(SYLAR_CHECK_NE(three, 3), "three != 3: 3 against 3");
  EXPECT_DEATH(SYLAR_CHECK_LT(three, -1), "three < -1: 3 against -1");
  EXPECT_DEATH(SYLAR_CHECK_LE(three, 2), "3 against 2");
  EXPECT_DEATH(SYLAR_CHECK_GT(three, 3), "3 against 3");
  EXPECT_DEATH(SYLAR_CHECK_GE(three, 4), "3 against 4");
  EXPECT_DEATH(SYLAR_CHECK_EQ(Colour::kRed, Colour::kBlue), "1 against 2");
}

TEST(CheckDeathTest, AssertIsSylarsSpelling) {
  EXPECT_DEATH(SYLAR_ASSERT(false), "check failed: false");
  EXPECT_DEATH(SYLAR_ASSERT2(false, "the moon is full"), "check failed: false: the moon is full");
  const int fd = 7;
  EXPECT_DEATH(SYLAR_ASSERT2(fd < 0, "fd=" << fd << " is open"), "check failed: fd < 0: fd=7 is open");
}

TEST(CheckDeathTest, FailureShowsABacktrace) { EXPECT_DEATH(SYLAR_CHECK(false), "check failed: false\n.*(/|\\[0x)"); }

TEST(CheckDeathTest, DebugCheckWorksInDebugBuildsOnly) {
  int count = 0;
#ifdef NDEBUG
  SYLAR_DCHECK(++count == 7);
  SYLAR_DCHECK_EQ(++count, 7);
  EXPECT_EQ(count, 0);
#else
  EXPECT_DEATH(SYLAR_DCHECK(count == 7), "count == 7");
  EXPECT_DEATH(SYLAR_DCHECK_EQ(count, 7), "0 against 7");
#endif
}

}  // namespace
}  // namespace sylar
