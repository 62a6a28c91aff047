#include "sylar/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace sylar {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { log::setLevel(log::Level::kInfo); }
};

TEST_F(Log, LinesBelowTheLevelAreDropped) {
  testing::internal::CaptureStderr();
  log::debug("number {}", 1);
  log::info("number {}", 2);
  log::setLevel(log::Level::kError);
  log::warn("number {}", 3);
  log::error("number {}", 4);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("number 1"), std::string::npos);
  EXPECT_NE(text.find("info sylar: number 2\n"), std::string::npos);
  EXPECT_EQ(text.find("number 3"), std::string::npos);
  EXPECT_NE(text.find("error sylar: number 4\n"), std::string::npos);
}

TEST_F(Log, LineIsTakenAsItIs) {
  testing::internal::CaptureStderr();
  log::write(log::Level::kInfo, "100 % {} %v");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("100 % {} %v\n"), std::string::npos);
}

TEST_F(Log, EnabledFollowsTheLevel) {
  EXPECT_FALSE(log::enabled(log::Level::kDebug));
  EXPECT_TRUE(log::enabled(log::Level::kInfo));
  log::setLevel(log::Level::kDebug);
  EXPECT_TRUE(log::enabled(log::Level::kDebug));
}

}  // namespace
}  // namespace sylar
