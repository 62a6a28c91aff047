// Directories of settings: which files, in which order, and what a second load does.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sylar/config.h"
#include "sylar/config/conf_dir.h"
#include "tests/config/conf_dir_fixture.h"

namespace sylar {
namespace {

class ConfigDir : public test::ConfDir {
 protected:
  std::vector<std::string> names() const {
    std::vector<ConfigError> errors;
    std::vector<std::string> result;
    for (const ConfFile& file : readConfDir(path(), errors)) result.push_back(file.path.substr(path().size() + 1));
    EXPECT_TRUE(errors.empty());
    return result;
  }
};

// CD-G5
TEST_F(ConfigDir, FilesComeInTheOrderOfTheirPaths) {
  for (const char* name : {"z.yml", "b/x.yml", "a.yaml", "b.yml", "B.yml", "c.txt", ".hidden.yml", ".git/x.yml", "yml"})
    write(name, "");
  EXPECT_EQ(names(), (std::vector<std::string>{"B.yml", "a.yaml", "b/x.yml", "b.yml", "z.yml"}));
}

// CD-G5: as Kubernetes mounts a ConfigMap.
TEST_F(ConfigDir, LinksAreFollowed) {
  write("..2026_01/a.yml", "a: 1");
  std::filesystem::create_directory_symlink("..2026_01", pathOf("..data"));
  std::filesystem::create_symlink("..data/a.yml", pathOf("a.yml"));
  EXPECT_EQ(names(), std::vector<std::string>{"a.yml"});
}

TEST_F(ConfigDir, LinksInACircleEnd) {
  write("sub/a.yml", "a: 1");
  std::filesystem::create_directory_symlink("..", pathOf("sub/up"));
  std::filesystem::create_directory_symlink(".", pathOf("self"));
  EXPECT_EQ(names(), std::vector<std::string>{"sub/a.yml"});
}

TEST_F(ConfigDir, WhatCannotBeReadIsAMistake) {
  const auto a = Config::Lookup("unreadable.a", 1);
  write("a.yml", "unreadable.a: 2");
  std::filesystem::create_symlink("nowhere", pathOf("b.yml"));
  ASSERT_EQ(mkfifo(pathOf("c.yml").c_str(), 0600), 0);
  const LoadResult result = load();
  EXPECT_EQ(result.toString(),
            pathOf("b.yml") + ": cannot be read: No such file or directory\n" + pathOf("c.yml") + ": is no regular file\n");
  EXPECT_EQ(a->getValue(), 1);
  EXPECT_EQ(Config::LoadFromConfDir(pathOf("none")).toString(),
            pathOf("none") + ": cannot read the directory: No such file or directory\n");
  EXPECT_EQ(Config::LoadFromConfDir(pathOf("a.yml")).toString(),
            pathOf("a.yml") + ": cannot read the directory: Not a directory\n");
}

TEST_F(ConfigDir, EmptyFilesSayNothing) {
  write("a.yml", "");
  write("b.yml", "# nothing\n");
  write("c.yml", "---\n");
  write("d.yml", "\xef\xbb\xbf# with a mark\r\n");
  const LoadResult result = load(false, UnknownKeys::kRefuse);
  EXPECT_TRUE(result.ok()) << result.toString();
}

TEST_F(ConfigDir, AllFilesAreOneLoad) {
  const auto a = Config::Lookup("one.a", 1);
  const auto b = Config::Lookup("one.b", 1);
  write("a.yml", "one: {a: 2}");
  write("b.yml", "one: {b: x}");
  EXPECT_FALSE(load().ok());
  EXPECT_EQ(a->getValue(), 1);
  write("b.yml", "one: {b: 3}");
  EXPECT_EQ(load().changed, 2U);
  EXPECT_EQ(a->getValue(), 2);
  EXPECT_EQ(b->getValue(), 3);
}

// CD-G5: whether a file changed is a matter of its text, not of its time.
TEST_F(ConfigDir, SecondLoadIsANoOpUntilTheTextChanges) {
  const auto a = Config::Lookup("again.a", 1);
  const auto b = Config::Lookup("again.b", 1);
  write("a.yml", "again: {a: 2}");
  write("b.yml", "again: {b: 2}");
  EXPECT_EQ(load().changed, 2U);
  a->setValue(5);
  b->setValue(5);
  EXPECT_EQ(load().changed, 0U);
  EXPECT_EQ(a->getValue(), 5);
  write("b.yml", "again: {b: 3}");  // within the same second
  EXPECT_EQ(load().changed, 1U);
  EXPECT_EQ(a->getValue(), 5);
  EXPECT_EQ(b->getValue(), 3);
}

TEST_F(ConfigDir, ForceTakesTheTextAgain) {
  const auto a = Config::Lookup("force.a", 1);
  write("a.yml", "force: {a: 2}");
  load();
  a->setValue(5);
  EXPECT_EQ(load(true).changed, 1U);
  EXPECT_EQ(a->getValue(), 2);
}

TEST_F(ConfigDir, MistakesAreToldAgainWhileTheyStand) {
  Config::Lookup("stand.a", 1);
  write("a.yml", "stand: {a: x}");
  EXPECT_EQ(load().errors.size(), 1U);
  EXPECT_EQ(load().errors.size(), 1U);
  write("a.yml", "stand: {a: 1}\nstand_unknown: 1");
  EXPECT_EQ(load().unknown.size(), 1U);
  EXPECT_EQ(load().unknown.size(), 1U);
  EXPECT_EQ(load(false, UnknownKeys::kRefuse).errors.size(), 1U);
}

TEST_F(ConfigDir, NameThatIsGoneKeepsItsValue) {
  const auto a = Config::Lookup("gone.a", 1);
  write("a.yml", "gone: {a: 2}");
  load();
  std::filesystem::remove(pathOf("a.yml"));
  EXPECT_TRUE(load().ok());
  EXPECT_EQ(a->getValue(), 2);
}

TEST_F(ConfigDir, LaterSettingTakesWhatTheFilesSayNow) {
  write("a.yml", "later_dir: {a: 2}");
  write("b.yml", "later_gone: {a: 2}");
  load();
  write("a.yml", "later_dir: {a: 3}");
  std::filesystem::remove(pathOf("b.yml"));
  load();
  EXPECT_EQ(Config::Lookup("later_dir.a", 1)->getValue(), 3);
  EXPECT_EQ(Config::Lookup("later_gone.a", 1)->getValue(), 1);
}

TEST_F(ConfigDir, LaterSettingThatDoesNotFitNamesItsFile) {
  write("a.yml", "\nlater_misfit: {a: x}");
  load();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Config::Lookup("later_misfit.a", 1)->getValue(), 1);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(pathOf("a.yml") + ":2: later_misfit.a: 'x': expected an integer"), std::string::npos) << log;
}

TEST_F(ConfigDir, ACheckTellsAllAndTakesNothing) {
  const auto var = Config::Lookup("checked.a", 1, "", inRange(0, 9));
  int told = 0;
  var->addListener([&](int, int) { ++told; });
  write("a.yml", "checked: {a: 2}");
  EXPECT_EQ(Config::CheckConfDir(path()).changed, 1u) << "would change";
  const auto refuse = [&](const ConfigPreview& next) {
    EXPECT_EQ(next.value(*var), 2);
    return std::vector<ConfigError>{next.errorAt("checked.a", "", "no")};
  };
  EXPECT_EQ(Config::CheckConfDir(path(), UnknownKeys::kReport, refuse).errors.size(), 1u);
  write("b.yml", "checked: {b: 2}");
  EXPECT_EQ(Config::CheckConfDir(path(), UnknownKeys::kRefuse).errors.size(), 1u);
  EXPECT_EQ(Config::CheckConfDir(path()).unknown.size(), 1u);
  EXPECT_EQ(var->getValue(), 1);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(Config::Lookup("checked.b", 7)->getValue(), 7) << "nothing was kept for settings to come";
  EXPECT_EQ(load().changed, 2u);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace sylar
