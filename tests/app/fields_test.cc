#include "sylar/config/fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sylar/app_settings.h"
#include "sylar/config/checks.h"

namespace sylar {

struct Engine {
  uint32_t cylinders = 4;
  std::string fuel;
  std::vector<std::string> owners;

  bool operator==(const Engine&) const = default;
};

template <class Visit>
void eachField(Engine& engine, Visit&& visit) {
  visit("cylinders", engine.cylinders, inRange(1u, 16u));
  visit("fuel", engine.fuel, notEmpty());
  visit("owners", engine.owners);
}

template <>
class LexicalCast<std::string, Engine> : public FieldsFromText<Engine> {};
template <>
class LexicalCast<Engine, std::string> : public FieldsToText<Engine> {};

namespace {

Engine read(const std::string& text) { return detail::castNode<LexicalCast<std::string, Engine>>(parseYaml(text)); }

/// Returns the mistakes that reading `text` reports: path, line and reason.
std::string mistake(const std::string& text) {
  try {
    read(text);
    return "none";
  } catch (const BadValue& bad) {
    return bad.path() + " line " + std::to_string(bad.line()) + ": " + bad.what();
  }
}

TEST(Fields, AreReadAndTheOthersKeepTheirDefaults) {
  EXPECT_EQ(read("fuel: gas"), (Engine{4, "gas", {}}));
  EXPECT_EQ(read("cylinders: 8\nfuel: gas\nowners: [a, b]\n"), (Engine{8, "gas", {"a", "b"}}));
}

TEST(Fields, ComeBackFromTheirText) {
  const Engine engine{6, "a: b # c", {"x", "", "true"}};
  EXPECT_EQ(read(LexicalCast<Engine, std::string>()(engine)), engine);
}

TEST(Fields, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(mistake("fuel: gas\ncolour: red"), ".colour line 2: is unknown here; known are cylinders, fuel, owners");
}

TEST(Fields, AreChecked) {
  EXPECT_EQ(mistake("fuel: gas\ncylinders: 17"), ".cylinders line 2: must be from 1 to 16");
  EXPECT_EQ(mistake("fuel: ''"), ".fuel line 1: must not be empty");
}

TEST(Fields, MayBeRequiredByTheirCheck) { EXPECT_EQ(mistake("cylinders: 8"), ".fuel line 1: must not be empty"); }

TEST(Fields, SayWhereAPartIsWrong) {
  EXPECT_TRUE(mistake("fuel: gas\nowners:\n  - a\n  - [b]\n").starts_with(".owners[1] line 4: "));
}

TEST(Fields, WantAMap) { EXPECT_TRUE(mistake("[1, 2]").starts_with(" line 1: ")); }

// CD-G7: `args` is a string or YAML of any shape.
TEST(ServerSetting, KeepsItsArgumentsAsText) {
  const LexicalCast<std::string, ServerSetting> cast;
  EXPECT_EQ(cast("{address: [a], args: 'n: 1'}").args.text, "n: 1");
  const LexicalCast<std::string, std::vector<int>> numbers;
  EXPECT_EQ(numbers(cast("{address: [a], args: [1, 2]}").args.text), (std::vector<int>{1, 2}));
}

TEST(ServerSetting, ComesBackFromItsText) {
  ServerSetting setting;
  setting.address = {"127.0.0.1:80", "/run/x.sock"};
  setting.type = "echo";
  setting.keepalive = true;
  setting.timeout = 7;
  setting.args = {"a: [1, 2]"};
  EXPECT_EQ((LexicalCast<std::string, ServerSetting>()(LexicalCast<ServerSetting, std::string>()(setting))), setting);
}

}  // namespace
}  // namespace sylar
