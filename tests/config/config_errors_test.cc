// The reports about broken files: each with its line, its key, its value, and what would be right.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sylar/config.h"
#include "tests/config/conf_dir_fixture.h"

namespace sylar {
namespace {

struct Broken {
  const char* text;
  int line;
  const char* key;
  const char* value;
  const char* reason;  // a part of it
};

class ConfigErrors : public test::ConfDir {
 protected:
  static void SetUpTestSuite() {
    Config::Lookup("e.int", 1);
    Config::Lookup<uint8_t>("e.u8", 1);
    Config::Lookup<uint32_t>("e.u32", 1);
    Config::Lookup<int64_t>("e.i64", 1);
    Config::Lookup("e.bool", false);
    Config::Lookup("e.double", 1.0);
    Config::Lookup("e.text", std::string("t"));
    Config::Lookup("e.char", 'c');
    Config::Lookup("e.list", std::vector<int>{});
    Config::Lookup("e.map", std::map<std::string, std::vector<uint8_t>>{});
    Config::Lookup("e.ratio", 0.5, "", inRange(0, 1));
    Config::Lookup<uint64_t>("e.big", 1, "", inRange(-1, 9));
    Config::Lookup("e.port", 80, "", inRange(1, 65535));
    Config::Lookup("e.mode", std::string("fast"), "", oneOf<std::string>({"fast", "safe"}));
    Config::Lookup("tcp.connect.timeout", 5000);
  }
};

// SEC-56 CD-G2
TEST_F(ConfigErrors, EachNamesFileLineKeyValueAndWhatIsRight) {
  const std::vector<Broken> table{
      // values
      {"e:\n  int: abc\n", 2, "e.int", "abc", "expected an integer from -2147483648 to 2147483647"},
      {"e:\n  int: 2147483648\n", 2, "e.int", "2147483648", "expected an integer from -2147483648 to 2147483647"},
      {"e:\n  int: 1.5\n", 2, "e.int", "1.5", "expected an integer"},
      {"e:\n  int:\n", 2, "e.int", "", "expected a single value, found nothing"},
      {"e:\n  int: ~\n", 2, "e.int", "", "expected a single value, found nothing"},
      {"e:\n  int: ''\n", 2, "e.int", "", "expected an integer"},
      {"e:\n  int: true\n", 2, "e.int", "true", "expected an integer"},
      {"e:\n  int: [1]\n", 2, "e.int", "", "expected a single value, found a list"},
      {"e:\n  int:\n    x: 1\n", 3, "e.int", "", "expected a single value, found a map"},
      {"e.u8: 256\n", 1, "e.u8", "256", "expected an integer from 0 to 255"},
      {"e.u8: -1\n", 1, "e.u8", "-1", "expected an integer from 0 to 255"},
      {"e.u8: a\n", 1, "e.u8", "a", "expected an integer from 0 to 255"},
      {"e.u32: -1\n", 1, "e.u32", "-1", "expected an integer from 0 to 4294967295"},
      {"e.i64: 9223372036854775808\n", 1, "e.i64", "9223372036854775808", "to 9223372036854775807"},
      {"e.bool: maybe\n", 1, "e.bool", "maybe", "expected true or false"},
      {"e.bool: 2\n", 1, "e.bool", "2", "expected true or false"},
      {"e.double: 1,5\n", 1, "e.double", "1,5", "expected a number"},
      {"e.double: 1e999\n", 1, "e.double", "1e999", "expected a number of magnitude"},
      {"e.text: [a]\n", 1, "e.text", "", "expected a single value, found a list"},
      {"e.text: {a: b}\n", 1, "e.text", "", "expected a single value, found a map"},
      {"e.char: ab\n", 1, "e.char", "ab", "no text of a char"},
      {"e.list: 5\n", 1, "e.list", "5", "expected a list (lines of '- value'), found '5'"},
      {"e.list: {a: 1}\n", 1, "e.list", "", "expected a list (lines of '- value'), found a map"},
      {"e.list:\n  - 1\n  - x\n", 3, "e.list[1]", "x", "expected an integer"},
      {"e.list:\n  - 1\n  -\n", 3, "e.list[1]", "", "expected a single value, found nothing"},
      {"e.map: [1]\n", 1, "e.map", "", "expected a map (lines of 'key: value'), found a list"},
      {"e.map:\n  a: [1]\n  b:\n    - 1\n    - 300\n", 5, "e.map.b[1]", "300", "expected an integer from 0 to 255"},
      {"e.port: 0\n", 1, "e.port", "0", "must be from 1 to 65535"},
      {"e.port: 65536\n", 1, "e.port", "65536", "must be from 1 to 65535"},
      {"e.ratio: 1.5\n", 1, "e.ratio", "1.5", "must be from 0 to 1"},
      {"e.big: 10\n", 1, "e.big", "10", "must be from -1 to 9"},
      {"e:\n  int: # x\n  # y\n\n  u8: 1\n", 2, "e.int", "", "expected a single value, found nothing"},
      {"e.mode: slow\n", 1, "e.mode", "slow", "must be one of: fast, safe"},
      {"e.int: \"a\\x01\\nb\"\n", 1, "e.int", "a\\x01\\nb", "expected an integer"},
      // names
      {"tcp:\n  conect:\n    timeout: 1\n", 2, "tcp.conect", "", "no setting has this name; did you mean tcp.connect.timeout?"},
      {"tcp:\n  connect:\n    timeuot: 1\n", 3, "tcp.connect.timeuot", "1", "did you mean tcp.connect.timeout?"},
      {"nothing_like_it: 1\n", 1, "nothing_like_it", "1", "no setting has this name"},
      {"tcp:\n  connect: 5\n", 2, "tcp.connect", "5", "expected a map with settings such as tcp.connect.timeout, found '5'"},
      {"tcp: [1]\n", 1, "tcp", "", "expected a map with settings such as tcp.connect.timeout, found a list"},
      {"e x: 1\n", 1, "e x", "1", "a name is of a-z 0-9 . _ - only"},
      {"<<: {a: 1}\n", 1, "<<", "", "a name is of a-z 0-9 . _ - only"},
      {"'': 1\n", 1, "", "1", "a name is of a-z 0-9 . _ - only"},
      {"[a, b]: 1\n", 1, "", "", "a key must be a plain word or a quoted string, not a list"},
      {"? {a: 1}\n: 1\n", 1, "", "", "a key must be a plain word or a quoted string, not a map"},
      {"~: 1\n", 1, "", "", "a key must be a plain word or a quoted string, not nothing"},
      // twice
      {"e:\n  int: 1\n  u8: 1\n  int: 2\n", 4, "e.int", "", "in the map twice, first in line 2"},
      {"e:\n  int: 1\ne:\n  u8: 1\n", 3, "e", "", "in the map twice, first in line 1"},
      {"e.int: 1\ne:\n  int: 2\n", 3, "e.int", "2", "is set twice, first at FILE:1"},
      {"e.int: 1\nE.Int: 2\n", 2, "e.int", "2", "is set twice, first at FILE:1"},
      {"e.map:\n  a: []\n  a: []\n", 3, "e.map.a", "", "in the map twice, first in line 2"},
      // form
      {"e:\n\tint: 1\n", 2, "e", "", "a tab in the indentation"},
      {"e:\n  u8: 1\n \tint: 1\n", 3, "e.u8", "", "a tab in the indentation"},
      {"e:\n  int: [1\n", 3, "e.int[1]", "", "no valid YAML"},
      {"e:\n  text: \"abc\n\n", 2, "", "", "a quoted string that does not end"},
      {"e:\n  text: &x 'abc''\n", 2, "", "", "a quoted string that does not end"},
      {"e:\n  int: 1\n u8: 2\n", 3, "", "", "no valid YAML"},
      {"e: int: 1\n", 1, "", "", "no valid YAML"},
      {"e: }\n", 1, "e", "", "no valid YAML"},
      {"e: @x\n", 1, "e", "", "no valid YAML"},
      {"e.int: *none\n", 1, "e.int", "", "no valid YAML"},
      {"e.list: &a [*a]\n", 1, "e.list[0]", "", "an alias inside of what it stands for"},
      {"e.int: !!int 5\n", 1, "e.int", "tag:yaml.org,2002:int", "leave the tag out"},
      {"e.int: !mine 5\n", 1, "e.int", "!mine", "leave the tag out"},
      {"e.int: 1\n---\ne.int: 2\n", 2, "", "", "a second document"},
      {"just text\n", 1, "", "just text", "expected a map (lines of 'key: value'), found 'just text'"},
      {"- 1\n", 1, "", "", "expected a map (lines of 'key: value'), found a list"},
      {"e.int: 1\n# \x04\n", 2, "", "", "a control byte"},
      {"e.int: 1\x7f\n", 1, "e.int", "1\\x7f", "expected an integer"},
      {"e.text: \xff\n", 1, "", "", "no UTF-8; save the file as UTF-8 text"},
  };
  const std::string file = pathOf("x.yml");
  for (const Broken& broken : table) {
    SCOPED_TRACE(broken.text);
    write("x.yml", broken.text);
    const LoadResult result = load(true, UnknownKeys::kRefuse);
    EXPECT_FALSE(result.ok());
    if (result.ok()) continue;
    const ConfigError& error = result.errors.front();
    EXPECT_EQ(error.file, file);
    EXPECT_EQ(error.line, broken.line);
    EXPECT_EQ(error.key, broken.key);
    EXPECT_EQ(error.value, broken.value);
    std::string reason = broken.reason;
    if (const size_t at = reason.find("FILE"); at != std::string::npos) reason.replace(at, 4, file);
    EXPECT_NE(error.reason.find(reason), std::string::npos) << error.reason;
    EXPECT_EQ(result.errors.size(), 1U) << result.toString();
    EXPECT_EQ(result.changed, 0U);
  }
  EXPECT_EQ(Config::Lookup<int>("e.int")->getValue(), 1);
  EXPECT_EQ(Config::Lookup<std::string>("e.text")->getValue(), "t");
}

TEST_F(ConfigErrors, TextHasAllPartsInOneLine) {
  EXPECT_EQ((ConfigError{"a.yml", 3, "x.y", "7", "must be 8"}.toString()), "a.yml:3: x.y: '7': must be 8");
  EXPECT_EQ((ConfigError{"a.yml", 0, "", "", "is no regular file"}.toString()), "a.yml: is no regular file");
}

// CD-G2: every mistake of every file, in the order of files and lines.
TEST_F(ConfigErrors, AllAreToldTogether) {
  write("b.yml", "e:\n  port: 0\n  int: x\nunknown: 1\n");
  write("a.yml", "e:\n  u8: 1\n  u8: 2\n  bool: 7\n");
  write("c.yml", "e: [\n");
  const LoadResult result = load(true, UnknownKeys::kRefuse);
  EXPECT_EQ(result.toString(), pathOf("a.yml") + ":3: e.u8: this key is in the map twice, first in line 2; keep one of them\n" +
                                   pathOf("a.yml") + ":4: e.bool: '7': expected true or false\n" + pathOf("b.yml") +
                                   ":2: e.port: '0': must be from 1 to 65535\n" + pathOf("b.yml") +
                                   ":3: e.int: 'x': expected an integer from -2147483648 to 2147483647\n" + pathOf("b.yml") +
                                   ":4: unknown: '1': no setting has this name\n" + pathOf("c.yml") +
                                   ":2: e[0]: no valid YAML: end of sequence flow not found\n");
}

TEST_F(ConfigErrors, SameNameInTwoFilesIsAMistake) {
  write("a.yml", "e:\n  int: 3\n");
  write("sub/b.yml", "\ne:\n  int: 4\n");
  const LoadResult result = load(true);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].toString(),
            pathOf("sub/b.yml") + ":3: e.int: '4': is set twice, first at " + pathOf("a.yml") + ":2; keep one of them");
}

TEST_F(ConfigErrors, AreToldUpToTheHundredth) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "e x" + std::to_string(i) + ": 1\n";
  write("a.yml", text);
  const LoadResult result = load(true);
  ASSERT_EQ(result.errors.size(), 101U);
  EXPECT_EQ(result.errors[99].line, 100);
  EXPECT_EQ(result.errors[100].toString(), pathOf("a.yml") + ": there are more; 100 are told");
}

TEST_F(ConfigErrors, UnknownNamesAreToldUpToTheHundredth) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "none" + std::to_string(i) + ": 1\n";
  write("a.yml", text);
  const LoadResult result = load(true);
  EXPECT_TRUE(result.ok());
  ASSERT_EQ(result.unknown.size(), 101U);
  EXPECT_EQ(result.unknown[0].key, "none0");
}

TEST_F(ConfigErrors, LongNamesAreShortened) {
  write("a.yml", "? " + std::string(1'000'000, 'x') + "\n: 1\n");
  const LoadResult result = load(true);
  ASSERT_EQ(result.unknown.size(), 1U) << result.toString().substr(0, 1000);
  EXPECT_EQ(result.unknown[0].key, std::string(200, 'x') + "...");
}

TEST_F(ConfigErrors, ArePrintedWithoutControlBytesAndShort) {
  write("a.yml", "e.int: \"" + std::string(1000, 'x') + "\"\n");
  const LoadResult result = load(true);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].value, std::string(60, 'x') + "...");
  EXPECT_EQ(printable("a\x1b[1m\x7f\tb"), "a\\x1b[1m\\x7f\\x09b");
}

// CD-G2
TEST_F(ConfigErrors, AreInTheLogToo) {
  write("a.yml", "e:\n  int: x\n");
  testing::internal::CaptureStderr();
  load(true);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(pathOf("a.yml") + ":2: e.int: 'x': expected an integer"), std::string::npos) << log;
}

}  // namespace
}  // namespace sylar
