#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "sylar/log.h"
#include "tests/log/directory.h"

namespace sylar {
namespace {

namespace fs = std::filesystem;
using test::contentOf;

class File : public testing::Test {
 protected:
  File() { m_logger->setFormatter("%m%n"); }
  FileLogAppender::ptr add(const std::string& path, LogRotation rotation = {}) {
    auto appender = std::make_shared<FileLogAppender>(path, rotation);
    m_logger->addAppender(appender);
    return appender;
  }
  void say(const std::string& text) {
    SYLAR_LOG_INFO(m_logger) << text;
    EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  }

  const test::Directory m_directory;
  const Logger::ptr m_logger = std::make_shared<Logger>("file");
};

TEST_F(File, MakesDirectoriesAndAppends) {
  const std::string path = m_directory / "a/b/c.log";
  add(path);
  EXPECT_TRUE(fs::exists(path));
  say("one");
  m_logger->clearAppenders();
  add(path);
  say("two");
  EXPECT_EQ(contentOf(path), "one\ntwo\n");
}

TEST_F(File, LinesOfALastHandleAreWrittenBehindIt) {
  const std::string path = m_directory / "x.log";
  add(path);
  std::string wanted;
  for (int i = 0; i < 10'000; ++i) {
    SYLAR_LOG_INFO(m_logger) << i;
    wanted += std::to_string(i) + "\n";
  }
  m_logger->clearAppenders();
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  EXPECT_EQ(contentOf(path), wanted);
}

// logrotate: the next lines make a new file, without any waiting.
TEST_F(File, MovedFileIsOpenedAnew) {
  const std::string path = m_directory / "x.log";
  add(path);
  say("before");
  fs::rename(path, path + ".old");
  say("after");
  EXPECT_EQ(contentOf(path + ".old"), "before\n");
  EXPECT_EQ(contentOf(path), "after\n");
}

TEST_F(File, DeletedFileIsMadeAnewWithItsDirectory) {
  const std::string path = m_directory / "d/x.log";
  add(path);
  say("before");
  fs::remove_all(m_directory / "d");
  say("after");
  EXPECT_EQ(contentOf(path), "after\n");
}

TEST_F(File, ReplacedFileIsAppendedTo) {
  const std::string path = m_directory / "x.log";
  add(path);
  say("before");
  std::ofstream(path + ".new") << "first\n";
  fs::rename(path + ".new", path);
  say("after");
  EXPECT_EQ(contentOf(path), "first\nafter\n");
}

TEST_F(File, ReopenTellsWhatItCannot) {
  const std::string path = m_directory / "d/x.log";
  const auto appender = add(path);
  EXPECT_TRUE(appender->reopen());
  say("one");
  fs::rename(m_directory / "d", m_directory / "e");
  std::ofstream(m_directory / "d") << "a file where a directory should be";
  errno = 0;
  EXPECT_FALSE(appender->reopen());
  EXPECT_EQ(errno, ENOTDIR);
  testing::internal::CaptureStderr();
  say("two");  // goes on to the file that is open
  EXPECT_NE(testing::internal::GetCapturedStderr().find("d/x.log: cannot open: Not a directory"), std::string::npos);
  EXPECT_EQ(contentOf(m_directory / "e/x.log"), "one\ntwo\n");
  EXPECT_EQ(appender->lost(), 0u);
}

TEST_F(File, ThatCannotBeOpenedIsReportedOnceAndTriedAgain) {
  testing::internal::CaptureStderr();
  std::ofstream(m_directory / "d") << "in the way";
  const auto appender = add(m_directory / "d/x.log");
  say("one");
  say("two");
  EXPECT_EQ(appender->lost(), 2u);
  fs::remove(m_directory / "d");
  say("three");
  EXPECT_EQ(contentOf(m_directory / "d/x.log"), "three\n");
  EXPECT_EQ(appender->lost(), 2u);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("cannot"), told.rfind("cannot")) << told;
  EXPECT_NE(told.find("d/x.log: cannot open: Not a directory"), std::string::npos) << told;
  EXPECT_NE(told.find("d/x.log: can open again; 2 lines are lost by now"), std::string::npos) << told;
}

// FM-36
TEST_F(File, FullDeviceIsReportedOnceAndLinesAreCounted) {
  testing::internal::CaptureStderr();
  const auto appender = add("/dev/full");
  say("one");
  say("two");
  EXPECT_EQ(appender->lost(), 2u);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("cannot"), told.rfind("cannot")) << told;
  EXPECT_NE(told.find("/dev/full: cannot write: No space left on device"), std::string::npos) << told;
}

// FM-36: a line that the disk took in part ends there, the next one is whole, and what is not missing is not counted.
TEST_F(File, FullDiskTearsOneLineAndOnlyWhatIsMissingIsCounted) {
  const std::string path = m_directory / "x.log";
  const auto appender = add(path);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{1'000, limit.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::string line(29, 'x');
  for (int i = 0; i < 100; ++i) SYLAR_LOG_INFO(m_logger) << line;
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  say("one");
  say("two");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("can write again; 67 lines are lost by now"), std::string::npos);
  std::string wanted;
  for (int i = 0; i < 33; ++i) wanted += line + "\n";
  EXPECT_EQ(contentOf(path), wanted + line.substr(0, 10) + "\none\ntwo\n");
  EXPECT_EQ(appender->lost(), 67u);
}

TEST_F(File, IsRotatedBeforeItBecomesTooLarge) {
  const std::string path = m_directory / "x.log";
  add(path, {.bytes = 10, .keep = 2});
  for (const char* line : {"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "a line that is too long by itself", "gggg"})
    say(line);
  EXPECT_EQ(contentOf(path), "gggg\n");
  EXPECT_EQ(contentOf(path + ".1"), "a line that is too long by itself\n");
  EXPECT_EQ(contentOf(path + ".2"), "eeee\nffff\n");
  EXPECT_FALSE(fs::exists(path + ".3"));
}

TEST_F(File, BurstIsRotatedAsItIsWritten) {
  const std::string path = m_directory / "x.log";
  std::string text, wanted;
  add(path, {.bytes = 1'000, .keep = 100});
  for (int i = 0; i < 3'000; ++i) {
    SYLAR_LOG_INFO(m_logger) << i;
    wanted += std::to_string(i) + "\n";
  }
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  for (int number = 99; number > 0; --number) text += contentOf(path + "." + std::to_string(number));
  EXPECT_EQ(text + contentOf(path), wanted);
  for (const auto& file : fs::directory_iterator(m_directory / "")) EXPECT_LE(file.file_size(), 1'000u) << file.path();
}

TEST_F(File, ThatCannotBeRotatedGrows) {
  const std::string path = m_directory / "x.log";
  fs::create_directories(path + ".1/in the way");
  testing::internal::CaptureStderr();
  const auto appender = add(path, {.bytes = 10, .keep = 1});
  for (const char* line : {"aaaa", "bbbb", "cccc", "dddd"}) say(line);
  EXPECT_EQ(contentOf(path), "aaaa\nbbbb\ncccc\ndddd\n");
  fs::remove_all(path + ".1");
  say("eeee");
  EXPECT_EQ(contentOf(path), "eeee\n");
  EXPECT_EQ(appender->lost(), 0u);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("x.log: cannot rotate: "), told.rfind("x.log: cannot rotate: ")) << told;
  EXPECT_NE(told.find("x.log: can rotate again; 0 lines are lost by now"), std::string::npos) << told;
}

TEST_F(File, AppendersOfOneFileKeepOneOrder) {
  const std::string path = m_directory / "x.log";
  const Logger::ptr other = std::make_shared<Logger>("other");
  other->setFormatter("%m%n");
  add(path);
  other->addAppender(std::make_shared<FileLogAppender>(m_directory / "./y/../x.log"));
  std::string wanted;
  for (int i = 0; i < 1'000; ++i) {
    SYLAR_LOG_INFO(i % 2 == 0 ? m_logger : other) << i;
    wanted += std::to_string(i) + "\n";
  }
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  EXPECT_EQ(contentOf(path), wanted);
}

TEST_F(File, RelativePathCountsFromWhereItWasNamed) {
  const fs::path was = fs::current_path();
  fs::create_directories(m_directory / "here");
  fs::create_directories(m_directory / "there");
  fs::current_path(m_directory / "here");
  add("x.log");
  fs::current_path(m_directory / "there");
  fs::remove(m_directory / "here/x.log");
  say("line");
  fs::current_path(was);
  EXPECT_EQ(contentOf(m_directory / "here/x.log"), "line\n");
  EXPECT_FALSE(fs::exists(m_directory / "there/x.log"));
}

TEST_F(File, LevelAndFormatterAreTheAppendersOwn) {
  const std::string path = m_directory / "x.log";
  const auto appender = add(path);
  appender->setLevel(LogLevel::ERROR);
  SYLAR_LOG_INFO(m_logger) << "info";
  SYLAR_LOG_ERROR(m_logger) << "error";
  appender->setFormatter(std::make_shared<LogFormatter>("[%p]%n"));
  SYLAR_LOG_FATAL(m_logger) << "fatal";
  appender->setFormatter(nullptr);
  SYLAR_LOG_FATAL(m_logger) << "by the logger's";
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  EXPECT_EQ(contentOf(path), "error\n[FATAL]\nby the logger's\n");
}

TEST_F(File, EmptyNameIsNoFile) {
  EXPECT_FALSE(FileLogAppender("").reopen());
  EXPECT_EQ(errno, EISDIR);
}

}  // namespace
}  // namespace sylar
