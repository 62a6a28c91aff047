#include "sylar/compat/params.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sylar {
namespace {

TEST(Params, AreConvertedOrReplaced) {
  const std::map<std::string, std::string> params = {{"page", "7"}, {"ratio", "0.5"}, {"name", "a b"}, {"bad", "7x"}};
  EXPECT_EQ(GetParamValue(params, "page", 1), 7);
  EXPECT_EQ(GetParamValue<double>(params, "ratio"), 0.5);
  EXPECT_EQ(GetParamValue<std::string>(params, "name"), "a b");
  EXPECT_EQ(GetParamValue(params, "bad", 1), 1);
  EXPECT_EQ(GetParamValue(params, "none", 1), 1);
  EXPECT_EQ(GetParamValue<int>(params, "none"), 0);
  int value = 5;
  EXPECT_FALSE(CheckGetParamValue(params, "bad", value));
  EXPECT_FALSE(CheckGetParamValue(params, "none", value));
  EXPECT_EQ(value, 5);
  EXPECT_TRUE(CheckGetParamValue(params, "page", value));
  EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace sylar
