#include "sylar/config/config_var.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sylar/config.h"

namespace sylar {
namespace {

using Changes = std::vector<std::pair<int, int>>;

TEST(ConfigVar, NameIsLowerCased) { EXPECT_EQ(ConfigVar<int>("A.B", 1, "what it is").getName(), "a.b"); }

class Celsius : public ConfigVarBase {
 public:
  using ConfigVarBase::ConfigVarBase;
  std::string toString() override { return m_text; }
  bool fromString(const std::string& text) override {
    m_text = text;
    return true;
  }
  std::string getTypeName() const override { return "celsius"; }

 private:
  std::string m_text;
};

// As users of sylar derive: three overrides.
TEST(ConfigVar, BaseAsksThreeThingsOfThoseThatDerive) {
  const ConfigVarBase::ptr var = std::make_shared<Celsius>("Room.Warmth", "in degrees");
  EXPECT_EQ(var->getName(), "room.warmth");
  EXPECT_TRUE(var->fromString("21"));
  EXPECT_EQ(var->toString(), "21");
  EXPECT_EQ(var->getTypeName(), "celsius");
}

// Trap 2: users write `auto& v = var->getValue();`.
TEST(ConfigVar, ValueBindsToAReference) {
  ConfigVar<std::vector<int>> var("v", {1, 2});
  auto& value = var.getValue();
  static_assert(std::is_const_v<std::remove_reference_t<decltype(value)>>);
  var.setValue({3});
  EXPECT_EQ(value, (std::vector<int>{1, 2}));
  EXPECT_EQ(var.getValue(), (std::vector<int>{3}));
}

TEST(ConfigVar, TellsItsTypeAndDescription) {
  ConfigVar<std::map<std::string, int>> var("v", {}, "what it is");
  EXPECT_EQ(var.getDescription(), "what it is");
  EXPECT_NE(var.getTypeName().find("std::map<"), std::string::npos) << var.getTypeName();
  EXPECT_EQ(ConfigVar<unsigned>("v", 1).getTypeName(), "unsigned int");
}

// CD-G2
TEST(ConfigVar, FromStringSaysWhetherItTookTheText) {
  ConfigVar<int> var("v", 1, "", inRange(0, 9));
  EXPECT_TRUE(var.fromString("7"));
  EXPECT_EQ(var.getValue(), 7);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(var.fromString("x"));
  EXPECT_FALSE(var.fromString("10"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("v: keeps its value: 'x': expected an integer"), std::string::npos) << log;
  EXPECT_NE(log.find("'10': setting v: must be from 0 to 9"), std::string::npos) << log;
  EXPECT_EQ(var.getValue(), 7);
  EXPECT_EQ(var.toString(), "7");
}

TEST(ConfigVar, CheckRefusesDefaultAndValue) {
  EXPECT_THROW(ConfigVar<int>("v", 0, "", inRange(1, 9)), std::invalid_argument);
  EXPECT_THROW(ConfigVar<std::string>("v", "", "", notEmpty()), std::invalid_argument);
  ConfigVar<int> var("v", 1, "", inRange(1, 9));
  EXPECT_THROW(var.setValue(10), std::invalid_argument);
  EXPECT_EQ(var.getValue(), 1);
}

struct Doubled {
  int operator()(const std::string& text) const { return 2 * std::stoi(text); }
};
struct Halved {
  std::string operator()(int value) const { return std::to_string(value / 2); }
};

// Trap 5: three parameters.
TEST(ConfigVar, CastsAreParameters) {
  ConfigVar<int, Doubled, Halved> var("v", 2);
  EXPECT_TRUE(var.fromString("21"));
  EXPECT_EQ(var.getValue(), 42);
  EXPECT_EQ(var.toString(), "21");
  EXPECT_FALSE(var.fromString("x"));
}

TEST(ConfigListener, GetsOldAndNewOnce) {
  ConfigVar<int> var("v", 1);
  Changes changes;
  EXPECT_NE(var.addListener([&](int was, int is) { changes.emplace_back(was, is); }), 0U);
  var.setValue(2);
  var.setValue(2);
  var.fromString("3");
  EXPECT_EQ(changes, (Changes{{1, 2}, {2, 3}}));
}

// CD-G4
TEST(ConfigListener, SeesTheNewValueCommitted) {
  ConfigVar<int> var("v", 1);
  int seen = 0;
  var.addListener([&](int, int) { seen = var.getValue(); });
  var.setValue(2);
  EXPECT_EQ(seen, 2);
}

TEST(ConfigListener, AreCalledByAscendingId) {
  ConfigVar<int> var("v", 1);
  std::string calls;
  const uint64_t first = var.addListener([&](int, int) { calls += 'a'; });
  const uint64_t second = var.addListener([&](int, int) { calls += 'b'; });
  EXPECT_LT(first, second);
  var.addListener([&](int, int) { calls += 'c'; });
  var.setValue(2);
  EXPECT_EQ(calls, "abc");
}

TEST(ConfigListener, CanBeFoundDeletedAndCleared) {
  ConfigVar<int> var("v", 1);
  int calls = 0;
  const uint64_t id = var.addListener([&](int, int) { ++calls; });
  ASSERT_TRUE(var.getListener(id));
  var.getListener(id)(0, 0);
  EXPECT_EQ(calls, 1);
  var.delListener(id);
  EXPECT_FALSE(var.getListener(id));
  var.addListener([&](int, int) { ++calls; });
  var.clearListener();
  var.setValue(2);
  EXPECT_EQ(calls, 1);
}

TEST(ConfigListener, MayDeleteItselfAndThoseAfterIt) {
  ConfigVar<int> var("v", 1);
  std::string calls;
  uint64_t first = 0, second = 0;
  const auto token = std::make_shared<int>(0);
  first = var.addListener([&, token](int, int) {
    calls += 'a';
    var.delListener(first);
    var.delListener(second);
  });
  second = var.addListener([&, token](int, int) { calls += 'b'; });
  var.addListener([&](int, int) { calls += 'c'; });
  var.setValue(2);
  EXPECT_EQ(token.use_count(), 1);
  var.setValue(3);
  EXPECT_EQ(calls, "acc");
}

TEST(ConfigListener, AddedByAListenerIsCalledFromTheNextChangeOn) {
  ConfigVar<int> var("v", 1);
  Changes changes;
  bool added = false;
  var.addListener([&](int, int) {
    if (!std::exchange(added, true)) var.addListener([&](int was, int is) { changes.emplace_back(was, is); });
  });
  var.setValue(2);
  EXPECT_TRUE(changes.empty());
  var.setValue(3);
  EXPECT_EQ(changes, (Changes{{2, 3}}));
}

TEST(ConfigListener, ThatThrowsIsLoggedAndTheOthersAreCalled) {
  ConfigVar<int> var("v", 1);
  int calls = 0;
  var.addListener([](int, int) { throw std::runtime_error("no disk"); });
  var.addListener([](int, int) { throw 5; });
  var.addListener([&](int, int) { ++calls; });
  testing::internal::CaptureStderr();
  var.setValue(2);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("v: a listener threw: no disk"), std::string::npos) << log;
  EXPECT_NE(log.find("no std::exception"), std::string::npos) << log;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(var.getValue(), 2);
}

TEST(ConfigListener, ThatIsEmptyIsPassedOver) {
  ConfigVar<int> var("v", 1);
  var.addListener(nullptr);
  var.setValue(2);
  EXPECT_EQ(var.getValue(), 2);
}

// CD-G4: re-entrant sets do not deadlock; each listener sees a chain without gaps.
TEST(ConfigListener, MaySetTheValueAgain) {
  ConfigVar<int> var("v", 1);
  Changes before, after;
  var.addListener([&](int was, int is) { before.emplace_back(was, is); });
  var.addListener([&](int, int is) {
    if (is == 2) {
      var.setValue(3);
      var.setValue(4);
    }
  });
  var.addListener([&](int was, int is) { after.emplace_back(was, is); });
  var.setValue(2);
  EXPECT_EQ(before, (Changes{{1, 2}, {2, 4}}));
  EXPECT_EQ(after, (Changes{{1, 2}, {2, 4}}));
  EXPECT_EQ(var.getValue(), 4);
}

TEST(ConfigListener, HearsNothingOfAChangeThatIsTakenBack) {
  ConfigVar<int> var("v", 1);
  Changes changes;
  var.addListener([&](int was, int is) {
    changes.emplace_back(was, is);
    if (is == 2) {
      var.setValue(3);
      var.setValue(2);
    }
  });
  var.setValue(2);
  EXPECT_EQ(changes, (Changes{{1, 2}}));
}

}  // namespace
}  // namespace sylar
