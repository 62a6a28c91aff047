#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sylar/log.h"
#include "tests/log/directory.h"
#include "tests/log/recorder.h"

namespace sylar {
namespace {

using test::contentOf;
using Texts = std::vector<std::string>;

class Apply : public testing::Test {
 protected:
  ~Apply() override { apply({}); }
  void apply(const std::vector<LogDefine>& defines) { EXPECT_EQ(m_manager.apply(defines), Texts{}); }
  void say(const std::string& logger, LogLevel::Level level, const std::string& text) {
    SYLAR_LOG_LEVEL(SYLAR_LOG_NAME(logger), level) << text;
    EXPECT_TRUE(m_manager.flush());
  }

  const test::Directory m_directory;
  LoggerManager& m_manager = *LoggerMgr::GetInstance();
};

TEST_F(Apply, MakesLoggersWhatIsDefined) {
  const std::string path = m_directory / "d/x.log", errors = m_directory / "errors.log";
  apply({{.name = "a",
          .level = "info",
          .formatter = "%p %m%n",
          .appenders = {{.type = "FileLogAppender", .file = path},
                        {.type = "FileLogAppender", .file = errors, .formatter = "! %m%n", .level = "ERROR"}}}});
  say("a", LogLevel::DEBUG, "1");
  say("a", LogLevel::INFO, "2");
  say("a", LogLevel::ERROR, "3");
  EXPECT_EQ(contentOf(path), "INFO 2\nERROR 3\n");
  EXPECT_EQ(contentOf(errors), "! 3\n");  // CD-G6: the appender's level
}

// CD-G6
TEST_F(Apply, ChangeOfAnAppenderAloneIsSeen) {
  const std::string path = m_directory / "x.log";
  LogDefine define{.name = "a", .level = "", .formatter = "", .appenders = {{.type = "FileLogAppender", .file = path}}};
  const LogDefine first = define;
  define.appenders[0].formatter = "%m%n";
  EXPECT_FALSE(first == define);
  apply({first});
  apply({define});
  say("a", LogLevel::INFO, "line");
  EXPECT_EQ(contentOf(path), "line\n");
}

TEST_F(Apply, LoggerThatIsNotDefinedAnyMoreGoesBackToItsBeginning) {
  const std::string path = m_directory / "x.log";
  const LogDefine kept{.name = "kept", .formatter = "%m%n", .appenders = {{.type = "FileLogAppender", .file = path}}};
  apply({kept, {.name = "gone", .level = "fatal", .formatter = "%m", .appenders = {{.type = "StdoutLogAppender"}}}});
  SYLAR_LOG_NAME("by hand")->setLevel(LogLevel::WARN);
  apply({kept});
  const Logger::ptr gone = SYLAR_LOG_NAME("gone");
  EXPECT_EQ(gone->getLevel(), LogLevel::DEBUG);
  EXPECT_EQ(gone->getFormatter()->getPattern(), LogFormatter::kDefaultPattern);
  EXPECT_EQ(gone->toYamlString().find("appenders"), std::string::npos);
  EXPECT_EQ(SYLAR_LOG_NAME("by hand")->getLevel(), LogLevel::WARN);
  say("kept", LogLevel::INFO, "line");
  EXPECT_EQ(contentOf(path), "line\n");
}

TEST_F(Apply, RootGoesBackToStdout) {
  const std::string path = m_directory / "x.log";
  apply({{.name = "root", .formatter = "%m%n", .appenders = {{.type = "FileLogAppender", .file = path}}}});
  say("forwards to it", LogLevel::INFO, "line");
  EXPECT_EQ(contentOf(path), "line\n");
  apply({});
  EXPECT_NE(SYLAR_LOG_ROOT()->toYamlString().find("StdoutLogAppender"), std::string::npos);
}

TEST_F(Apply, EveryMistakeIsToldWithItsPlace) {
  std::ofstream(m_directory / "file") << "no directory";
  const std::string beyond = m_directory / "file/x.log";
  const std::vector<LogDefine> kWrong = {
      {.name = ""},
      {.name = "a", .level = "loud"},
      {.name = "a", .formatter = "%q"},
      {.name = "b",
       .appenders = {{.type = "SmokeAppender"},
                     {.type = ""},
                     {.type = "FileLogAppender"},
                     {.type = "FileLogAppender", .file = beyond},
                     {.type = "StdoutLogAppender", .formatter = "%", .level = "Info"}}},
  };
  const Texts kTold = {
      "logs[0].name: is missing",
      "logs[1].level: \"loud\" is no level; debug, info, warn, error and fatal are",
      "logs[2].formatter: \"%q\" is no pattern; see log_formatter.h",
      "logs[2].name: \"a\" is defined twice",
      "logs[3].appenders[0].type: \"SmokeAppender\" is no type; StdoutLogAppender and FileLogAppender are",
      "logs[3].appenders[1].type: \"\" is no type; StdoutLogAppender and FileLogAppender are",
      "logs[3].appenders[2].file: is missing; a FileLogAppender needs one",
      "logs[3].appenders[3].file: cannot open " + beyond + ": Not a directory",
      "logs[3].appenders[4].level: \"Info\" is no level; debug, info, warn, error and fatal are",
      "logs[3].appenders[4].formatter: \"%\" is no pattern; see log_formatter.h",
  };
  EXPECT_EQ(m_manager.check(kWrong), kTold);
  EXPECT_EQ(m_manager.apply(kWrong), kTold);
}

TEST_F(Apply, FileHasOneRotation) {
  const std::string path = m_directory / "x.log", same = m_directory / "d/../x.log";
  const LogAppenderDefine plain{.type = "FileLogAppender", .file = path};
  const LogAppenderDefine rotated{.type = "FileLogAppender", .file = same, .rotation = {.bytes = 1'000}};
  const Texts kTold{"logs[1].appenders[0].rotation: " + same + " is rotated otherwise above"};
  EXPECT_EQ(m_manager.apply({{.name = "a", .appenders = {plain}}, {.name = "b", .appenders = {rotated}}}), kTold);
  apply({{.name = "a", .appenders = {rotated}}, {.name = "b", .appenders = {rotated}}});
}

TEST_F(Apply, CheckMakesNothing) {
  const std::string path = m_directory / "d/e/x.log", beside = m_directory / "x.log";
  const LogDefine define{.name = "checked",
                         .appenders = {{.type = "FileLogAppender", .file = path}, {.type = "FileLogAppender", .file = beside}}};
  const std::string before = m_manager.toYamlString();
  EXPECT_EQ(m_manager.check({define}), Texts{});
  EXPECT_FALSE(std::filesystem::exists(m_directory / "d"));
  EXPECT_FALSE(std::filesystem::exists(beside));
  EXPECT_EQ(m_manager.toYamlString(), before);
  EXPECT_EQ(m_manager.apply({define, {.name = ""}}).size(), 1u);  // and so does apply() that refuses
  EXPECT_FALSE(std::filesystem::exists(m_directory / "d"));
  apply({define});
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(m_manager.check({define}), Texts{});
}

TEST_F(Apply, CheckFindsFilesThatCannotBeOpened) {
  const auto errorsOf = [&](const std::string& file) {
    const LogDefine define{.name = "a", .appenders = {{.type = "FileLogAppender", .file = file}}};
    return std::pair(m_manager.check({define}), m_manager.apply({define}));
  };
  const auto cannot = [](const std::string& file, const std::string& why) {
    const Texts told{"logs[0].appenders[0].file: cannot open " + file + ": " + why};
    return std::pair(told, told);
  };
  const std::string directory = m_directory / "closed", file = directory + "/x.log", deep = directory + "/d/x.log";
  std::filesystem::create_directory(directory);
  EXPECT_EQ(errorsOf(directory), cannot(directory, "Is a directory"));
  EXPECT_EQ(errorsOf("."), cannot(".", "Is a directory"));
  std::filesystem::permissions(m_directory / "", std::filesystem::perms{0755});
  std::ofstream(file) << "old";
  std::filesystem::permissions(file, std::filesystem::perms{0444});
  std::filesystem::permissions(directory, std::filesystem::perms{0555});
  const uid_t user = ::geteuid();
  ASSERT_TRUE(user != 0 || ::seteuid(65534) == 0);  // root is not stopped by modes
  EXPECT_EQ(errorsOf(file), cannot(file, "Permission denied"));
  EXPECT_EQ(errorsOf(directory + "/y.log"), cannot(directory + "/y.log", "Permission denied"));
  EXPECT_EQ(errorsOf(deep).first, cannot(deep, "Permission denied").first);
  ASSERT_EQ(::seteuid(user), 0);
  std::filesystem::permissions(directory, std::filesystem::perms{0755});
}

TEST_F(Apply, OneMistakeChangesNothing) {
  const std::string path = m_directory / "x.log";
  const LogDefine good{
      .name = "a", .level = "warn", .formatter = "%m%n", .appenders = {{.type = "FileLogAppender", .file = path}}};
  apply({good});
  const std::string before = m_manager.toYamlString();
  const LogDefine changed{.name = "a", .level = "debug"};
  EXPECT_EQ(m_manager.apply({changed, {.name = "b", .level = "loud"}}).size(), 1u);
  EXPECT_EQ(m_manager.toYamlString(), before);
  say("a", LogLevel::WARN, "line");
  EXPECT_EQ(contentOf(path), "line\n");
}

}  // namespace
}  // namespace sylar
