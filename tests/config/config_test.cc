#include "sylar/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace sylar {
namespace {

struct Person {
  std::string name;
  int age = 0;
  bool operator==(const Person&) const = default;
};

}  // namespace

// Trap 5: as users of sylar write it.
template <>
class LexicalCast<std::string, Person> {
 public:
  Person operator()(const std::string& v) {
    YAML::Node node = YAML::Load(v);
    Person p;
    p.name = node["name"].as<std::string>();
    p.age = node["age"].as<int>();
    return p;
  }
};

template <>
class LexicalCast<Person, std::string> {
 public:
  std::string operator()(const Person& p) {
    YAML::Node node;
    node["name"] = p.name;
    node["age"] = p.age;
    std::stringstream ss;
    ss << node;
    return ss.str();
  }
};

namespace {

LoadResult loadText(const std::string& text, UnknownKeys unknown = UnknownKeys::kReport) {
  return Config::LoadFromYaml(YAML::Load(text), unknown);
}

TEST(Config, LookupMakesAndFinds) {
  EXPECT_EQ(Config::Lookup<int>("lookup.a"), nullptr);
  const ConfigVar<int>::ptr made = Config::Lookup("lookup.a", 5, "five");
  EXPECT_EQ(Config::Lookup("lookup.a", 6, "six"), made);
  EXPECT_EQ(made->getValue(), 5);
  EXPECT_EQ(made->getDescription(), "five");
  EXPECT_EQ(Config::Lookup<int>("lookup.a"), made);
  EXPECT_EQ(Config::LookupBase("lookup.a"), made);
  EXPECT_EQ(Config::LookupBase("lookup.none"), nullptr);
}

TEST(Config, LookupOfAnotherTypeIsNullAndLogged) {
  const int line = __LINE__;
  Config::Lookup("other.a", 5);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Config::Lookup("other.a", std::string("x")), nullptr);
  EXPECT_EQ(Config::Lookup<double>("other.a"), nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("other.a is of type int, not "), std::string::npos) << log;
  EXPECT_NE(log.find("not double"), std::string::npos) << log;
  const auto places = [](int wanted) {
    return fmt::format("made at {0}:{1}, and is wanted at {0}:{2}", __FILE__, line + 1, line + wanted);
  };
  EXPECT_NE(log.find(places(3)), std::string::npos) << log;
  EXPECT_NE(log.find(places(4)), std::string::npos) << log;
}

// CD-G1
TEST(Config, NamesAreOfLettersDigitsAndThreeSigns) {
  EXPECT_NE(Config::Lookup("name.a-z_0123456789", 1), nullptr);
  for (const char* name : {"", "a b", "a:b", "a/b", "ä", "a\n", "a*"}) {
    EXPECT_THROW(Config::Lookup(name, 1), std::invalid_argument) << name;
  }
}

// CD-G1
TEST(Config, NamesAreComparedWithoutCase) {
  const auto var = Config::Lookup("Case.Name", 1);
  EXPECT_EQ(Config::Lookup<int>("CASE.NAME"), var);
  EXPECT_EQ(Config::LookupBase("case.name"), var);
  EXPECT_TRUE(loadText("CASE: {nAme: 9}").ok());
  EXPECT_EQ(var->getValue(), 9);
}

TEST(Config, CheckThatRefusesTheDefaultThrows) {
  EXPECT_THROW(Config::Lookup("bad.default", 0, "", inRange(1, 2)), std::invalid_argument);
  EXPECT_EQ(Config::LookupBase("bad.default"), nullptr);
}

TEST(Config, VisitGoesThroughAllByName) {
  Config::Lookup("visit.b", 1);
  Config::Lookup("visit.a", 1);
  std::string names;
  Config::Visit([&](ConfigVarBase::ptr var) {
    if (var->getName().starts_with("visit.")) names += var->getName() + ' ';
    Config::Lookup("visit_inside", 1);  // no lock is held
  });
  EXPECT_EQ(names, "visit.a visit.b ");
}

TEST(Config, NestedMapsFlattenAndPrefixesTakeTheirSubtree) {
  const auto port = Config::Lookup("flat.tcp.port", 1);
  const auto dotted = Config::Lookup("flat.tcp.host", std::string());
  const auto whole = Config::Lookup("flat.tcp", std::map<std::string, std::string>{});
  const LoadResult result = loadText("flat:\n  tcp:\n    port: 7\n    host: h\n    Other: x\n");
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.unknown.empty()) << result.toString();
  EXPECT_EQ(result.changed, 3U);
  EXPECT_EQ(port->getValue(), 7);
  EXPECT_EQ(dotted->getValue(), "h");
  EXPECT_EQ(whole->getValue(), (std::map<std::string, std::string>{{"port", "7"}, {"host", "h"}, {"Other", "x"}}));
  EXPECT_TRUE(loadText("flat.tcp: {port: 8}").ok());
  EXPECT_EQ(port->getValue(), 8);
}

TEST(Config, EveryContainerIsLoaded) {
  const auto list = Config::Lookup("c.list", std::list<int>{1});
  const auto vector = Config::Lookup("c.vector", std::vector<bool>{});
  const auto set = Config::Lookup("c.set", std::set<std::string>{});
  const auto uset = Config::Lookup("c.uset", std::unordered_set<int>{});
  const auto map = Config::Lookup("c.map", std::map<std::string, std::vector<int>>{});
  const auto umap = Config::Lookup("c.umap", std::unordered_map<std::string, double>{});
  ASSERT_TRUE(loadText("c:\n  list: [3, 2]\n  vector: [yes, no]\n  set: [b, a, b]\n  uset: [1, 2]\n  map: {X y: [1]}\n"
                       "  umap: {a: .inf, b: -1.5e3}\n")
                  .ok());
  EXPECT_EQ(list->getValue(), (std::list<int>{3, 2}));
  EXPECT_EQ(vector->getValue(), (std::vector<bool>{true, false}));
  EXPECT_EQ(set->getValue(), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(uset->getValue(), (std::unordered_set<int>{1, 2}));
  EXPECT_EQ(map->getValue(), (std::map<std::string, std::vector<int>>{{"X y", {1}}}));
  EXPECT_EQ(umap->getValue().at("b"), -1500.0);
  EXPECT_TRUE(std::isinf(umap->getValue().at("a")));
  ASSERT_TRUE(loadText("c: {list: , map: ~}").ok());
  EXPECT_TRUE(list->getValue().empty());
  EXPECT_TRUE(map->getValue().empty());
}

// Trap 5
TEST(Config, TypesOfUsersAreLoadedAndWritten) {
  const auto one = Config::Lookup("user.one", Person{"a", 1});
  const auto many = Config::Lookup("user.many", std::map<std::string, std::vector<Person>>{});
  const Person zhang{"x: #y", 30};
  ASSERT_TRUE(loadText("user:\n  one: {name: 'x: #y', age: 30}\n  many: {k: [{name: 'x: #y', age: 30}]}\n").ok());
  EXPECT_EQ(one->getValue(), zhang);
  EXPECT_EQ(many->getValue().at("k"), std::vector<Person>{zhang});
  const std::string text = many->toString();
  many->setValue({});
  EXPECT_TRUE(many->fromString(text)) << text;
  EXPECT_EQ(many->getValue().at("k"), std::vector<Person>{zhang});
}

// SEC-56: inside of a value that a user's cast reads with yaml-cpp, too.
TEST(Config, WhatTheCastOfAUserThrowsIsTheReason) {
  Config::Lookup("reason.people", std::map<std::string, std::vector<Person>>{});
  const LoadResult result =
      loadText("reason:\n  people:\n    x:\n      - {name: a, age: 1}\n      - name: b\n\n        age: old\n");
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].toString(), "<yaml>:7: reason.people.x[1].age: 'old': is not of the type that is wanted here");
  const LoadResult missing = loadText("reason:\n  people:\n    x:\n      - {name: a}\n");
  ASSERT_EQ(missing.errors.size(), 1U);
  EXPECT_EQ(missing.errors[0].toString(), "<yaml>:4: reason.people.x[0]: a part of it is missing or of the wrong type");
}

struct Raw {
  std::string text;
  bool operator==(const Raw&) const = default;
};

}  // namespace

template <>
class LexicalCast<std::string, Raw> {
 public:
  Raw operator()(const std::string& v) { return {v}; }
};
template <>
class LexicalCast<Raw, std::string> {
 public:
  std::string operator()(const Raw& v) { return v.text; }
};

namespace {

TEST(Config, CastOfAUserGetsAScalarAsItIsAndPartsAsYaml) {
  const auto scalar = Config::Lookup("raw.scalar", Raw{});
  const auto part = Config::Lookup("raw.part", std::vector<Raw>{});
  const auto tree = Config::Lookup("raw.tree", Raw{});
  ASSERT_TRUE(loadText("raw:\n  scalar: '[::1]:80'\n  part: ['*.com', plain]\n  tree: {a: [1, 'x: y']}\n").ok());
  EXPECT_EQ(scalar->getValue().text, "[::1]:80");
  EXPECT_EQ(part->getValue(), (std::vector<Raw>{{"\"*.com\""}, {"plain"}}));
  EXPECT_EQ(YAML::Load(tree->getValue().text)["a"][1].as<std::string>(), "x: y");
}

// SEC-56, CD-G5, FM-37: all or nothing.
TEST(Config, OneMistakeAndNothingChanges) {
  const auto a = Config::Lookup("atom.a", 1);
  const auto b = Config::Lookup("atom.b", 1);
  int told = 0;
  a->addListener([&](int, int) { ++told; });
  const LoadResult result = loadText("atom: {a: 2, b: x}");
  EXPECT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.changed, 0U);
  EXPECT_EQ(a->getValue(), 1);
  EXPECT_EQ(b->getValue(), 1);
  EXPECT_EQ(told, 0);
}

// CD-G4: all values of a load are committed before the first listener is told.
TEST(Config, ListenerSeesTheWholeLoad) {
  const auto a = Config::Lookup("whole.a", 1);
  const auto b = Config::Lookup("whole.b", 1);
  int seen = 0;
  a->addListener([&](int, int) { seen = b->getValue(); });
  ASSERT_TRUE(loadText("whole: {a: 2, b: 2}").ok());
  EXPECT_EQ(seen, 2);
}

TEST(Config, ListenerMayLoadAndLookUp) {
  const auto a = Config::Lookup("again.a", 1);
  a->addListener([&](int, int is) {
    if (is == 2) {
      EXPECT_EQ(loadText("again.a: 3").changed, 1U);
      Config::Lookup("again.new", 1);
    }
  });
  ASSERT_TRUE(loadText("again.a: 2").ok());
  EXPECT_EQ(a->getValue(), 3);
}

TEST(Config, EqualValuesAreNoChange) {
  const auto a = Config::Lookup("equal.a", std::vector<int>{1, 2});
  int told = 0;
  a->addListener([&](const auto&, const auto&) { ++told; });
  EXPECT_EQ(loadText("equal.a: [1, 2]").changed, 0U);
  EXPECT_EQ(told, 0);
}

TEST(Config, UnknownKeysAreReportedOrRefused) {
  const auto a = Config::Lookup("unknown.a", 1);
  const LoadResult reported = loadText("unknown: {a: 2, x: 1}\nnone_such: {b: 1, c: 2}");
  EXPECT_TRUE(reported.ok());
  ASSERT_EQ(reported.unknown.size(), 2U) << reported.toString();
  EXPECT_EQ(reported.unknown[0].key, "unknown.x");
  EXPECT_EQ(reported.unknown[1].key, "none_such");
  EXPECT_EQ(a->getValue(), 2);
  const LoadResult refused = loadText("unknown: {a: 3, x: 1}", UnknownKeys::kRefuse);
  EXPECT_EQ(refused.errors.size(), 1U);
  EXPECT_TRUE(refused.unknown.empty());
  EXPECT_EQ(a->getValue(), 2);
}

TEST(Config, SettingThatIsMadeAfterALoadTakesWhatWasLoaded) {
  ASSERT_TRUE(loadText("late: {a: 7, b: {c: [1]}}").ok());
  ASSERT_TRUE(loadText("late_other: 1").ok());
  EXPECT_EQ(Config::Lookup("late.a", 1)->getValue(), 7);
  EXPECT_EQ(Config::Lookup("late.b.c", std::vector<int>{})->getValue(), std::vector<int>{1});
  EXPECT_EQ((Config::Lookup("late.b", std::map<std::string, std::vector<int>>{})->getValue().at("c")), std::vector<int>{1});
  EXPECT_EQ(Config::Lookup("late.none", 1)->getValue(), 1);
}

TEST(Config, TheNewestLoadCountsForSettingsToCome) {
  ASSERT_TRUE(loadText("newest.a: 1").ok());
  ASSERT_TRUE(loadText("newest: {a: 2}").ok());
  EXPECT_EQ(Config::Lookup("newest.a", 0)->getValue(), 2);
}

TEST(Config, RefusedLoadLeavesNothingForSettingsToCome) {
  Config::Lookup("refused.b", 1);
  ASSERT_FALSE(loadText("refused: {a: 2, b: x}").ok());
  EXPECT_EQ(Config::Lookup("refused.a", 0)->getValue(), 0);
}

TEST(Config, LoadedValueThatDoesNotFitALaterSettingIsLogged) {
  ASSERT_TRUE(loadText("\nmisfit.a: [1, x]").ok());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Config::Lookup("misfit.a", std::vector<int>{5})->getValue() == std::vector<int>{5});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("<yaml>:2: misfit.a[1]: 'x': expected an integer"), std::string::npos) << log;
}

struct Making {
  int value = 0;
  bool operator==(const Making&) const = default;
};
struct Loading {
  bool operator==(const Loading&) const = default;
};

}  // namespace

template <>
class LexicalCast<std::string, Making> {
 public:
  Making operator()(const std::string& v) { return {Config::Lookup("making.inner", 0)->getValue() + std::stoi(v)}; }
};
template <>
class LexicalCast<Making, std::string> {
 public:
  std::string operator()(const Making& v) { return std::to_string(v.value); }
};
template <>
class LexicalCast<std::string, Loading> {
 public:
  Loading operator()(const std::string&) {
    Config::LoadFromYaml(YAML::Load("a: 1"));
    return {};
  }
};
template <>
class LexicalCast<Loading, std::string> {
 public:
  std::string operator()(const Loading&) { return "x"; }
};

namespace {

TEST(Config, CastMayMakeSettings) {
  const auto outer = Config::Lookup("making.outer", Making{});
  ASSERT_TRUE(loadText("making: {outer: 3, inner: 4}").ok());
  EXPECT_EQ(Config::Lookup<int>("making.inner")->getValue(), 4);
  ASSERT_TRUE(loadText("making: {outer: 3}").ok());
  EXPECT_EQ(outer->getValue().value, 7);
}

TEST(Config, CastThatLoadsIsRefused) {
  struct Other {
    bool operator==(const Other&) const = default;
  };
  const auto var = Config::Lookup("loading.a", std::vector<Loading>{});
  const LoadResult result = loadText("loading.a: [1]");
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].reason, "a cast or a check must not load settings");
}

TEST(Config, InvalidNodesAreErrors) {
  EXPECT_FALSE(Config::LoadFromYaml(YAML::Load("[1]")).ok());
  EXPECT_TRUE(Config::LoadFromYaml(YAML::Node()).ok());
  const YAML::Node map = YAML::Load("a: 1");
  EXPECT_FALSE(Config::LoadFromYaml(map["none"]).ok());
}

}  // namespace
}  // namespace sylar
