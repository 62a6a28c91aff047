#include <gtest/gtest.h>

#include "sylar/log/log_level.h"

namespace sylar {
namespace {

TEST(LogLevel, HasSylarsNumbers) {
  EXPECT_EQ(static_cast<int>(LogLevel::UNKNOW), 0);
  EXPECT_EQ(static_cast<int>(LogLevel::DEBUG), 1);
  EXPECT_EQ(static_cast<int>(LogLevel::INFO), 2);
  EXPECT_EQ(static_cast<int>(LogLevel::WARN), 3);
  EXPECT_EQ(static_cast<int>(LogLevel::ERROR), 4);
  EXPECT_EQ(static_cast<int>(LogLevel::FATAL), 5);
}

TEST(LogLevel, ToStringAndBack) {
  for (int level = LogLevel::DEBUG; level <= LogLevel::FATAL; ++level) {
    const auto one = static_cast<LogLevel::Level>(level);
    EXPECT_EQ(LogLevel::FromString(LogLevel::ToString(one)), one);
  }
  EXPECT_STREQ(LogLevel::ToString(LogLevel::WARN), "WARN");
  EXPECT_STREQ(LogLevel::ToString(LogLevel::UNKNOW), "UNKNOW");
  EXPECT_STREQ(LogLevel::ToString(static_cast<LogLevel::Level>(6)), "UNKNOW");
}

TEST(LogLevel, FromStringTakesOneCaseOnly) {
  EXPECT_EQ(LogLevel::FromString("fatal"), LogLevel::FATAL);
  EXPECT_EQ(LogLevel::FromString("FATAL"), LogLevel::FATAL);
  for (const char* other : {"Fatal", "fata", "fatall", "", " fatal", "unknow"})
    EXPECT_EQ(LogLevel::FromString(other), LogLevel::UNKNOW);
}

// At each threshold of the five, the tutorial's three pass or not as they would among its own eight.
TEST(LogLevel, TutorialsLevelsStandForOnesThatThresholdsTreatAlike) {
  EXPECT_EQ(LogLevel::FromString("notice"), LogLevel::INFO);
  EXPECT_EQ(LogLevel::FromString("CRIT"), LogLevel::ERROR);
  EXPECT_EQ(LogLevel::FromString("alert"), LogLevel::ERROR);
}

}  // namespace
}  // namespace sylar
