#include "sylar/config/lexical_cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <string>
#include <typeinfo>
#include <vector>

#include <boost/lexical_cast/bad_lexical_cast.hpp>

#include "sylar/config/yaml_node.h"

namespace sylar {
namespace {

template <class T>
T read(const std::string& text) {
  return LexicalCast<std::string, T>()(text);
}
template <class T>
std::string write(const T& value) {
  return LexicalCast<T, std::string>()(value);
}
template <class T>
void expectRoundTrip(const T& value) {
  EXPECT_EQ(read<T>(write(value)), value) << write(value);
}
template <class T>
std::string refusal(const std::string& text) {
  try {
    read<T>(text);
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "taken";
}

// CD-G3
TEST(LexicalCast, BoolTakesTheWordsOfYamlAndNumbers) {
  for (const char* text : {"true", "True", "TRUE", "yes", "on", "1"}) EXPECT_TRUE(read<bool>(text)) << text;
  for (const char* text : {"false", "False", "NO", "no", "off", "0"}) EXPECT_FALSE(read<bool>(text)) << text;
  for (const char* text : {"", "2", "tru", "y", " true"}) EXPECT_EQ(refusal<bool>(text), "expected true or false") << text;
}

// CD-G3
TEST(LexicalCast, IntegersAreCheckedForRangeAndSign) {
  EXPECT_EQ(read<uint8_t>("7"), 7);
  EXPECT_EQ(read<int8_t>("-128"), -128);
  EXPECT_EQ(read<uint32_t>("0x10"), 16U);
  EXPECT_EQ(read<int>("-0x10"), -16);
  EXPECT_EQ(read<int>("0o17"), 15);
  EXPECT_EQ(read<int>("+5"), 5);
  EXPECT_EQ(read<int>("010"), 10);
  EXPECT_EQ(read<uint32_t>("-0"), 0U);
  EXPECT_EQ(read<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(read<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(refusal<uint8_t>("256"), "expected an integer from 0 to 255");
  EXPECT_EQ(refusal<int8_t>("-129"), "expected an integer from -128 to 127");
  EXPECT_EQ(refusal<uint32_t>("-1"), "expected an integer from 0 to 4294967295");
  EXPECT_NE(refusal<uint64_t>("18446744073709551616"), "taken");
  EXPECT_NE(refusal<int64_t>("9223372036854775808"), "taken");
  for (const char* text : {"", "-", "+", "0x", "1.0", "1e3", "1_000", " 1", "1 ", "--1", "+-1", "0x-1", "-0x-1", "abc"}) {
    EXPECT_NE(refusal<int>(text), "taken") << text;
    EXPECT_NE(refusal<uint64_t>(text), "taken") << text;
  }
}

TEST(LexicalCast, ContainersNest) {
  using Nested = std::map<std::string, std::vector<std::set<int>>>;
  const Nested value{{"a", {{1, 2}, {}}}, {"b", {}}};
  EXPECT_EQ(read<Nested>("a: [[2, 1], []]\nb:\n"), value);
  expectRoundTrip(value);
}

// CD-G3
TEST(LexicalCast, StringsOfAllKindsGoRound) {
  const std::vector<std::string> value{"a: b", "# c", "",   "~",   "null", "true", "12",  "'",   "\"", "a\nb\n", " x ",
                                       "-",    "- a", "*a", "&a",  "%",    "@",    "`",   "{",   "[",  "a\tb",   "!x",
                                       "|",    "\\",  "ü",  "a: ", ":",    "?",    "? a", "---", "..."};
  expectRoundTrip(value);
  for (const std::string& text : value) {
    expectRoundTrip(text);
    expectRoundTrip(std::map<std::string, std::string>{{text, text}});
  }
}

TEST(LexicalCast, AllPairsOfAsciiGoRound) {
  std::vector<std::string> value;
  for (int a = 0; a < 128; ++a) {
    for (int b = 0; b < 128; ++b) value.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  EXPECT_EQ(read<std::vector<std::string>>(write(value)), value);
}

TEST(LexicalCast, NumbersGoRound) {
  expectRoundTrip(std::numeric_limits<double>::denorm_min());
  expectRoundTrip(std::numeric_limits<float>::max());
  expectRoundTrip(0.1);
  expectRoundTrip(-std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read<double>(write(std::nan("")))));
  EXPECT_TRUE(std::isnan(read<double>(".nan")));
  EXPECT_EQ(read<double>("-.inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(read<double>("+1e3"), 1000.0);
  expectRoundTrip(std::vector<uint8_t>{0, 7, 255});
  expectRoundTrip('#');
  expectRoundTrip(std::vector<char>{'#', ' ', '~'});
  for (const char* text : {"", "1,5", "+-1", "0x10", "1e999", "1 ", "..nan"}) EXPECT_NE(refusal<double>(text), "taken") << text;
}

/// A type that has no casts, only streams.
struct Point {
  int x = 0;
  int y = 0;

  bool operator==(const Point&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Point& point) { return out << point.x << ',' << point.y; }
  friend std::istream& operator>>(std::istream& in, Point& point) {
    char comma = 0;
    if (in >> point.x >> comma >> point.y && comma != ',') in.setstate(std::ios::failbit);
    return in;
  }
};

TEST(LexicalCast, OtherTypesAreThoseOfStreams) {
  expectRoundTrip(Point{-1, 2});
  expectRoundTrip(std::map<std::string, std::vector<Point>>{{"a", {{1, 2}, {3, 4}}}});
  for (const char* text : {"", "1", "1,", "1;2", "1,2 ", " 1,2", "1, 2", "1,2,3"}) {
    EXPECT_EQ(refusal<Point>(text), "no text of a sylar::(anonymous namespace)::Point") << text;
  }
  EXPECT_EQ((LexicalCast<int, std::string>()(5)), "5");
  EXPECT_EQ((LexicalCast<double, int>()(5.0)), 5);
  EXPECT_EQ((LexicalCast<double, float>()(0.1)), 0.1F);
  EXPECT_EQ((LexicalCast<Point, std::string>()({1, 2})), "1,2");
  EXPECT_EQ(read<char>("x"), 'x');
  EXPECT_EQ(refusal<char>("xy"), "no text of a char");
}

// Casts of programs throw it.
TEST(LexicalCast, AMistakeOfBoostIsToldByItsType) {
  EXPECT_EQ(detail::reasonOf(boost::bad_lexical_cast(typeid(std::string), typeid(Point))),
            "no text of a sylar::(anonymous namespace)::Point");
}

}  // namespace
}  // namespace sylar
