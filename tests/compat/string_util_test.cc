#include "sylar/compat/string_util.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace sylar {
namespace {

TEST(StringUtil, FormatsTextsOfAnyLength) {
  EXPECT_EQ(StringUtil::Format("%d %s", 7, "x"), "7 x");
  EXPECT_EQ(StringUtil::Format("%s", std::string(5000, 'x').c_str()), std::string(5000, 'x'));
  EXPECT_EQ(StringUtil::Format("%s", ""), "");
}

TEST(StringUtil, UrlsGoRound) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const bool plus : {true, false}) EXPECT_EQ(StringUtil::UrlDecode(StringUtil::UrlEncode(all, plus), plus), all);
  EXPECT_EQ(StringUtil::UrlEncode("a b~/\xff"), "a+b~%2F%FF");
  EXPECT_EQ(StringUtil::UrlEncode("a b", false), "a%20b");
  EXPECT_EQ(StringUtil::UrlDecode("a+b%2f%41"), "a b/A");
  EXPECT_EQ(StringUtil::UrlDecode("a+b", false), "a+b");
  for (const char* text : {"%", "%4", "%zz", "%%", "x%4g"}) EXPECT_EQ(StringUtil::UrlDecode(text), text);
}

TEST(StringUtil, TrimTakesWhatStandsAtTheEnds) {
  EXPECT_EQ(StringUtil::Trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(StringUtil::TrimLeft("xxaxx", "x"), "axx");
  EXPECT_EQ(StringUtil::TrimRight("xxaxx", "x"), "xxa");
  EXPECT_EQ(StringUtil::Trim("  "), "");
  EXPECT_EQ(StringUtil::Trim(""), "");
}

TEST(StringUtil, WideTextsFollowTheLocale) {
  ASSERT_NE(std::setlocale(LC_ALL, "C.UTF-8"), nullptr);
  EXPECT_EQ(StringUtil::StringToWString("\xc3\xa4x"), L"\u00e4x");
  EXPECT_EQ(StringUtil::WStringToString(L"\u00e4x"), "\xc3\xa4x");
  EXPECT_EQ(StringUtil::StringToWString("\xff"), L"");
}

TEST(TypeUtil, ReadsTheBeginning) {
  EXPECT_EQ(TypeUtil::ToChar("ab"), 'a');
  EXPECT_EQ(TypeUtil::ToChar(std::string("ab")), 'a');
  EXPECT_EQ(TypeUtil::Atoi("-42x"), -42);
  EXPECT_EQ(TypeUtil::Atoi(std::string(" 9000000000")), 9'000'000'000);
  EXPECT_EQ(TypeUtil::Atoi("99999999999999999999"), INT64_MAX);
  EXPECT_EQ(TypeUtil::Atof("1.5e3 m"), 1500);
  EXPECT_EQ(TypeUtil::Atof(std::string("x")), 0);
  const char* const none = nullptr;
  EXPECT_EQ(TypeUtil::ToChar(""), 0);
  EXPECT_EQ(TypeUtil::ToChar(none), 0);
  EXPECT_EQ(TypeUtil::Atoi(none), 0);
  EXPECT_EQ(TypeUtil::Atof(none), 0);
}

}  // namespace
}  // namespace sylar
