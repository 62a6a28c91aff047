#include "sylar/compat/fs_util.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace sylar {
namespace {

class FSUtilTest : public testing::Test {
 protected:
  void SetUp() override {
    m_root = testing::TempDir() + "sylar_fs_XXXXXX";
    ASSERT_NE(mkdtemp(m_root.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(m_root); }

  std::string at(const std::string& name) const { return m_root + '/' + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream stream;
    ASSERT_TRUE(FSUtil::OpenForWrite(stream, at(name), std::ios::out)) << name;
    stream << text;
  }

  std::string m_root;
};

TEST_F(FSUtilTest, ListsRegularFilesBelowInOrder) {
  write("b.log", "");
  write("a/c.log", "");
  write("a/d.txt", "");
  ASSERT_TRUE(FSUtil::Symlink("b.log", at("e.log")));
  std::vector<std::string> files{"kept"};
  FSUtil::ListAllFile(files, m_root, ".log");
  EXPECT_EQ(files, (std::vector<std::string>{"kept", at("a/c.log"), at("b.log")}));
  FSUtil::ListAllFile(files, at("none"), "");
  EXPECT_EQ(files.size(), 3U);
}

TEST_F(FSUtilTest, MakesAndRemovesTrees) {
  EXPECT_TRUE(FSUtil::Mkdir(at("x/y/z")));
  EXPECT_TRUE(FSUtil::Mkdir(at("x/y/z")));
  EXPECT_TRUE(FSUtil::Rm(at("x")));
  EXPECT_FALSE(std::filesystem::exists(at("x")));
  EXPECT_TRUE(FSUtil::Rm(at("x")));
  write("file", "");
  EXPECT_FALSE(FSUtil::Mkdir(at("file/z")));
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_F(FSUtilTest, MovesLinksAndUnlinks) {
  write("a", "text");
  write("b", "other");
  EXPECT_TRUE(FSUtil::Mv(at("a"), at("b")));
  EXPECT_FALSE(FSUtil::Mv(at("a"), at("c")));
  EXPECT_TRUE(FSUtil::Symlink(at("b"), at("l")));
  EXPECT_TRUE(FSUtil::Symlink(at("b"), at("l")));
  std::string real, expected;
  ASSERT_TRUE(FSUtil::Realpath(m_root, expected));
  EXPECT_TRUE(FSUtil::Realpath(at("l"), real));
  EXPECT_EQ(real, expected + "/b");
  EXPECT_FALSE(FSUtil::Realpath(at("none"), real));
  std::ifstream stream;
  ASSERT_TRUE(FSUtil::OpenForRead(stream, at("l"), std::ios::in));
  std::string text;
  stream >> text;
  EXPECT_EQ(text, "text");
  EXPECT_TRUE(FSUtil::Unlink(at("l"), true));
  EXPECT_TRUE(FSUtil::Unlink(at("l")));
  EXPECT_FALSE(FSUtil::Unlink(at("l"), true));
}

TEST_F(FSUtilTest, PidFileIsRunningWhileItsProcessIs) {
  EXPECT_FALSE(FSUtil::IsRunningPidfile(at("none")));
  write("pid", std::to_string(getpid()));
  EXPECT_TRUE(FSUtil::IsRunningPidfile(at("pid")));
  for (const char* text : {"", "x", "0", "-1", "999999999"}) {
    write("pid", text);
    EXPECT_FALSE(FSUtil::IsRunningPidfile(at("pid"))) << text;
  }
}

TEST_F(FSUtilTest, SplitsPaths) {
  EXPECT_EQ(FSUtil::Dirname("a/b/c"), "a/b");
  EXPECT_EQ(FSUtil::Dirname("a"), ".");
  EXPECT_EQ(FSUtil::Dirname("/a"), "/");
  EXPECT_EQ(FSUtil::Basename("a/b/c"), "c");
  EXPECT_EQ(FSUtil::Basename("c"), "c");
}

}  // namespace
}  // namespace sylar
