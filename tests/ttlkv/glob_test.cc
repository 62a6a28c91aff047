// Patterns. Those that clients of Redis use are also compared with Redis, in replies.txt.
#include "examples/ttlkv/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace ttlkv {
namespace {

TEST(TtlkvGlob, Matches) {
  const struct {
    const char *pattern, *text;
    bool matches;
  } kCases[] = {
      {"", "", true},         {"", "a", false},       {"*", "", false},         {"*", "abc", true},        {"a*", "abc", true},
      {"*c", "abc", true},    {"*b*", "abc", true},   {"a*b*c", "aXbXc", true}, {"a*b*c", "aXcXb", false}, {"?", "", false},
      {"?", "a", true},       {"??", "a", false},     {"[ab]", "b", true},      {"[ab]", "c", false},      {"[^ab]", "c", true},
      {"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[\\]]", "]", true},     {"\\*", "*", true},        {"\\*", "a", false},
      {"a\\", "a\\", true},   {"[a", "a", true},      {"[", "a", false},        {"**a", "ba", true},       {"a", "ab", false},
      {"**", "", false},
  };
  for (const auto& [pattern, text, matches] : kCases) EXPECT_EQ(globMatches(pattern, text), matches) << pattern << " " << text;
}

// A backtracking matcher takes longer than the age of the universe for this.
TEST(TtlkvGlob, IsQuickOnAnEvilPattern) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  EXPECT_FALSE(globMatches(pattern + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace ttlkv
