// A text cannot ask for more than the limits allow, whatever it contains. Tests each limit, and one beyond.
#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "sylar/config.h"
#include "sylar/config/conf_dir.h"
#include "sylar/config/yaml_limits.h"
#include "sylar/config/yaml_reader.h"
#include "tests/config/conf_dir_fixture.h"

namespace sylar {
namespace {

std::string firstError(const std::string& text) {
  std::vector<ConfigError> errors;
  readYaml(text, "t", errors);
  return errors.empty() ? "" : errors.front().toString();
}

std::string repeat(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

class ConfigLimits : public test::ConfDir {
 public:
  using test::ConfDir::load;
};

// SEC-52
TEST_F(ConfigLimits, SizeOfAFile) {
  const auto a = Config::Lookup("size.a", 1);
  const std::string text = "size.a: 2\n#";
  write("a.yml", text + std::string(YamlLimits::kBytes - text.size(), 'x'));
  EXPECT_TRUE(load().ok());
  EXPECT_EQ(a->getValue(), 2);
  write("a.yml", text + std::string(YamlLimits::kBytes - text.size() + 1, 'x'));
  EXPECT_EQ(load().toString(), pathOf("a.yml") + ": the limit is 1048576 bytes\n");
  EXPECT_EQ(firstError(std::string(YamlLimits::kBytes + 1, '#')), "t: 1048577 bytes; the limit is 1048576");
}

// SEC-52
TEST_F(ConfigLimits, DepthOfBlocksFlowsAndAliases) {
  const size_t most = YamlLimits::kDepth;
  EXPECT_EQ(firstError(std::string(most, '[') + std::string(most, ']')), "");
  EXPECT_NE(firstError(std::string(most + 1, '[') + std::string(most + 1, ']')).find("nested deeper than 64 levels"),
            std::string::npos);
  EXPECT_EQ(firstError(repeat("- ", most)), "");
  EXPECT_NE(firstError(repeat("- ", most + 1)).find("nested deeper than 64 levels"), std::string::npos);
  EXPECT_EQ(firstError("a: &a " + std::string(most - 2, '[') + std::string(most - 2, ']') + "\nb: [*a]"), "");
  EXPECT_NE(firstError("a: &a " + std::string(most - 1, '[') + std::string(most - 1, ']') + "\nb: [*a]")
                .find("t:2: b[0]: nested deeper"),
            std::string::npos);
}

// SEC-53
TEST_F(ConfigLimits, CyclesAreMistakes) {
  EXPECT_EQ(firstError("a: &a\n  b: *a"), "t:2: a.b: an alias inside of what it stands for; that would never end");
  EXPECT_EQ(firstError("&a a: *a"), "t:1: a: an alias of a key; an alias may stand for a value only");
  const LoadResult result = Config::LoadFromYaml(YAML::Load("cycle: &a [*a]"));
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].reason, "nested deeper than 64 levels");
}

// SEC-54
TEST_F(ConfigLimits, AliasesCountAsWhatTheyRepeat) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += 'a' + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + repeat(", " + before, 8) + "]\n";
  }
  EXPECT_NE(firstError(bomb).find("more than 100000 values"), std::string::npos);
  const LoadResult result = Config::LoadFromYaml(YAML::Load(bomb));
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_NE(result.errors[0].reason.find("more than 100000 values"), std::string::npos);
}

// SEC-54: few values, each of them long.
TEST_F(ConfigLimits, AliasesCountWithTheTextTheyRepeat) {
  const std::string half(512 * 1024, 'x');
  EXPECT_EQ(firstError("a: &a " + half + "\nb: [" + repeat("*a,", 13) + "]"), "");
  EXPECT_EQ(firstError("a: &a " + half + "\nb: [" + repeat("*a,", 1500) + "]"),
            "t:2: b[13]: more than 8388608 bytes of text, counting what aliases repeat");
  EXPECT_NE(firstError("a: &a {? " + half + " : 1}\nb: [" + repeat("*a,", 1500) + "]").find("bytes of text"), std::string::npos);
  const LoadResult result = Config::LoadFromYaml(YAML::Load("a: &a " + half + "\nb: [" + repeat("*a,", 1500) + "]"));
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_NE(result.errors[0].reason.find("bytes of text"), std::string::npos);
}

// SEC-54: and not a thousand times in a thousand files.
TEST_F(ConfigLimits, ValuesOfAllFiles) {
  const std::string text = "- &a [" + repeat("1,", 300) + "]\n- [" + repeat("*a,", 300) + "]";
  for (char name = 'a'; name <= 'z'; ++name) write(std::string(1, name) + ".yml", std::string(1, name) + "_all:\n" + text);
  const LoadResult result = load();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.errors.front().toString(),
            pathOf("l.yml") + ": the limit is 1000000 values and 67108864 bytes of text in all files");
}

// SEC-54: a service that reloads goes on.
TEST_F(ConfigLimits, ALoadThatGetsNoMemoryIsAMistakeAndChangesNothing) {
  const auto a = Config::Lookup("memory.a", 1);
  const auto b = Config::Lookup("memory.b", 1, "", [](const int& value) -> std::string {
    if (value == 2) throw std::bad_alloc();
    return "";
  });
  write("a.yml", "memory: {a: 2, b: 2}");
  EXPECT_EQ(load().toString(), path() + ": not enough memory\n");
  EXPECT_EQ(a->getValue(), 1);
  write("a.yml", "memory: {a: 2, b: 3}");
  EXPECT_TRUE(load().ok());
  EXPECT_EQ(b->getValue(), 3);
}

TEST_F(ConfigLimits, NumberOfValues) {
  const size_t items = YamlLimits::kNodes - 1;  // and the list itself
  EXPECT_EQ(firstError("[" + repeat("1,", items) + "]"), "");
  EXPECT_NE(firstError("[" + repeat("1,", items + 1) + "]").find("more than 100000 values"), std::string::npos);
}

TEST_F(ConfigLimits, NumberOfFiles) {
  for (int i = 0; i < 1000; ++i) write(std::to_string(i) + ".yml", "");
  EXPECT_TRUE(load().ok());
  write("x.yml", "");
  EXPECT_EQ(load().toString(), pathOf("x.yml") + ": the limit is 1000 files\n");
}

TEST_F(ConfigLimits, SizeOfAllFiles) {
  const std::string text(YamlLimits::kBytes, '#');
  for (char name = 'a'; name < 'a' + 16; ++name) write(std::string(1, name) + ".yml", text);
  std::vector<ConfigError> errors;
  EXPECT_EQ(readConfDir(path(), errors).size(), 16U);
  EXPECT_TRUE(errors.empty());
  write("z.yml", "#");
  readConfDir(path(), errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].toString(), pathOf("z.yml") + ": the limit is 16777216 bytes in all files");
}

// SEC-55: each key once through a hash, never yaml-cpp's own maps, for which this takes minutes.
TEST_F(ConfigLimits, FiftyThousandKeys) {
  const auto map = Config::Lookup("many.keys", std::map<std::string, int>{});
  std::string text = "many.keys:\n";
  for (int i = 0; i < 50'000; ++i) text += "  k" + std::to_string(i) + ": 1\n";
  write("a.yml", text);
  EXPECT_TRUE(load().ok());
  EXPECT_EQ(map->getValue().size(), 50'000U);
}

// SEC-52, RD-9: a caller may have a stack as small as a fiber's.
TEST_F(ConfigLimits, SmallStackIsEnoughForTheDeepestText) {
  const auto var = Config::Lookup("deep.text", std::vector<std::string>{});
  write("a.yml", "deep.text: [x]\ndeep.other: " + std::string(60, '[') + std::string(60, ']'));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
  pthread_t thread;
  const auto body = [](void* self) -> void* {
    EXPECT_TRUE(static_cast<ConfigLimits*>(self)->load().ok());
    EXPECT_TRUE(Config::Lookup<std::vector<std::string>>("deep.text")->fromString("[a, b]"));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, this), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(var->getValue(), (std::vector<std::string>{"a", "b"}));
}

// A parser that is fed its input cut at every byte: it says yes or no, and never anything worse.
TEST_F(ConfigLimits, TextCutAtEveryByte) {
  const std::string text =
      "%YAML 1.2\n---\na: &x {b: [1, 'two', \"th\\u00e9\\x41\"], c: |\n  block\n  text\n , d: ~}\n"
      "# comment\ne: *x\n? f\n: >-\n  folded\n  text\ng:\n  - h: i\n    j: \xc3\xbc\n  -\n  - - k\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    std::vector<ConfigError> errors;
    const YamlNode node = readYaml(text.substr(0, size), "t", errors);
    for (const ConfigError& error : errors) {
      EXPECT_GE(error.line, 1) << error.toString();
      EXPECT_LE(error.line, 25) << error.toString();
    }
    if (errors.empty()) {
      EXPECT_NO_THROW(parseYaml(toYamlText(node))) << size;
    }
  }
}

}  // namespace
}  // namespace sylar
