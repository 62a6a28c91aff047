// Validators: they see what a load is about to set, and may refuse all of it.
#include "sylar/config/config_preview.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/config.h"
#include "tests/config/conf_dir_fixture.h"

namespace sylar {
namespace {

using Errors = std::vector<ConfigError>;

class ConfigPreviewTest : public test::ConfDir {
 protected:
  LoadResult loadWith(const ConfigValidator& validate) const {
    return Config::LoadFromConfDir(path(), true, UnknownKeys::kRefuse, validate);
  }
};

// CD-G5: all or nothing, over what no single setting can see.
TEST_F(ConfigPreviewTest, WhatAValidatorRefusesChangesNothingAndIsToldAtItsPlace) {
  const auto names = Config::Lookup("refuse.names", std::vector<std::string>{"old"});
  const auto user = Config::Lookup("refuse.user", std::vector<std::string>{"old"});
  int told = 0;
  names->addListener([&](const auto&, const auto&) { ++told; });
  write("a.yml", "refuse:\n  names: [new]\n  user:\n    - new\n    - none\n");
  const auto validate = [&](const ConfigPreview& next) -> Errors {
    EXPECT_EQ(next.value(*names), std::vector<std::string>{"new"});
    EXPECT_EQ(names->getValue(), std::vector<std::string>{"old"});
    return {next.errorAt("refuse.user", "[1]", "is no name")};
  };
  const LoadResult result = loadWith(validate);
  EXPECT_EQ(result.toString(), pathOf("a.yml") + ":5: refuse.user[1]: 'none': is no name\n");
  EXPECT_EQ(result.changed, 0U);
  EXPECT_EQ(names->getValue(), std::vector<std::string>{"old"});
  EXPECT_EQ(user->getValue(), std::vector<std::string>{"old"});
  EXPECT_EQ(told, 0);
  EXPECT_EQ(Config::Lookup("refuse", std::map<std::string, std::vector<std::string>>{})->getValue().size(), 0U);
}

TEST_F(ConfigPreviewTest, WhatIsNotLoadedHasItsPresentValue) {
  const auto loaded = Config::Lookup("present.loaded", 1);
  const auto kept = Config::Lookup("present.kept", 1);
  kept->setValue(7);
  write("a.yml", "present.loaded: 2");
  int seen = 0;
  const LoadResult result = loadWith([&](const ConfigPreview& next) -> Errors {
    seen = 10 * next.value(*loaded) + next.value(*kept);
    return {};
  });
  EXPECT_TRUE(result.ok()) << result.toString();
  EXPECT_EQ(result.changed, 1U);
  EXPECT_EQ(seen, 27);
  EXPECT_EQ(loaded->getValue(), 2);
}

TEST_F(ConfigPreviewTest, NoValidatorIsAskedAboutWhatIsWrongAlready) {
  Config::Lookup("wrong.a", 1);
  write("a.yml", "wrong.a: x");
  int asked = 0;
  const auto count = [&](const ConfigPreview&) -> Errors {
    ++asked;
    return {};
  };
  EXPECT_FALSE(loadWith(count).ok());
  EXPECT_EQ(asked, 0);
  write("a.yml", "wrong.a: 2");
  EXPECT_TRUE(loadWith(count).ok());
  EXPECT_EQ(asked, 1);
}

TEST_F(ConfigPreviewTest, AValidatorMayLookSettingsUpAndSeesThemLoaded) {
  write("a.yml", "lookup_late.a: 5");
  std::vector<int> seen;
  const LoadResult result = Config::LoadFromConfDir(path(), true, UnknownKeys::kReport, [&](const ConfigPreview& next) -> Errors {
    seen.push_back(next.value(*Config::Lookup("lookup_late.a", 1)));
    return {};
  });
  EXPECT_TRUE(result.ok()) << result.toString();
  EXPECT_EQ(seen, (std::vector<int>{1, 5}));
  EXPECT_EQ(Config::Lookup("lookup_late.a", 1)->getValue(), 5);
}

TEST_F(ConfigPreviewTest, WhatAValidatorThrowsComesOutAndNothingChanges) {
  const auto a = Config::Lookup("throw.a", 1);
  write("a.yml", "throw.a: 2");
  EXPECT_THROW(loadWith([](const ConfigPreview&) -> Errors { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(loadWith([this](const ConfigPreview&) -> Errors { return load().errors; }), std::logic_error);
  EXPECT_EQ(a->getValue(), 1);
  EXPECT_TRUE(load().ok());  // the lock of loads is free again
  EXPECT_EQ(a->getValue(), 2);
}

TEST_F(ConfigPreviewTest, PlacesAreThoseOfTheLoadAndNotOfTheOneBefore) {
  const auto a = Config::Lookup("place.a", 1);
  write("a.yml", "place.a: 2");
  ASSERT_TRUE(load().ok());
  write("a.yml", "\n\nplace.a: 3");
  const LoadResult result =
      loadWith([](const ConfigPreview& next) -> Errors { return {next.errorAt("place.a", "", "is wrong")}; });
  EXPECT_EQ(result.toString(), pathOf("a.yml") + ":3: place.a: '3': is wrong\n");
  EXPECT_EQ(Config::errorAt("place.a", "", "is wrong").toString(), pathOf("a.yml") + ":1: place.a: '2': is wrong");
  EXPECT_EQ(a->getValue(), 2);
}

}  // namespace
}  // namespace sylar
