#include "sylar/log/logger.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/log_sink.h"
#include "sylar/fiber.h"
#include "sylar/log.h"
#include "sylar/thread.h"
#include "tests/log/recorder.h"

namespace sylar {
namespace {

using Lines = std::vector<std::string>;
using test::Recorder;

class LoggerTest : public testing::Test {
 protected:
  // The lines of root go to the recorder as long as the test lasts.
  LoggerTest() {
    m_root->clearAppenders();
    m_root->addAppender(m_at_root);
  }
  ~LoggerTest() override {
    m_root->clearAppenders();
    m_root->setLevel(LogLevel::DEBUG);
    m_root->addAppender(std::make_shared<StdoutLogAppender>());
  }

  const Logger::ptr m_root = SYLAR_LOG_ROOT();
  const Recorder::ptr m_at_root = std::make_shared<Recorder>("%c:%m");
};

TEST_F(LoggerTest, WithoutAppendersForwardsToRoot) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  SYLAR_LOG_INFO(logger) << 1;
  EXPECT_EQ(m_at_root->lines(), Lines{"a:1"});
  m_root->setLevel(LogLevel::WARN);
  SYLAR_LOG_INFO(logger) << 2;
  SYLAR_LOG_WARN(logger) << 3;
  EXPECT_EQ(m_at_root->lines(), (Lines{"a:1", "a:3"}));
}

TEST_F(LoggerTest, WithAppendersDoesNotForward) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto first = std::make_shared<Recorder>("%m"), second = std::make_shared<Recorder>("%p");
  logger->addAppender(first);
  logger->addAppender(second);
  SYLAR_LOG_INFO(logger) << 1;
  logger->delAppender(second);
  SYLAR_LOG_INFO(logger) << 2;
  EXPECT_EQ(first->lines(), (Lines{"1", "2"}));
  EXPECT_EQ(second->lines(), Lines{"INFO"});
  EXPECT_EQ(m_at_root->lines(), Lines{});
  logger->clearAppenders();
  SYLAR_LOG_INFO(logger) << 3;
  EXPECT_EQ(m_at_root->lines(), Lines{"a:3"});
}

TEST_F(LoggerTest, RootWithoutAppendersDropsItsLines) {
  m_root->clearAppenders();
  SYLAR_LOG_INFO(m_root) << 1;
  EXPECT_EQ(m_at_root->lines(), Lines{});
}

TEST_F(LoggerTest, AppenderWithoutFormatterInheritsTheLoggers) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto heir = std::make_shared<Recorder>(), own = std::make_shared<Recorder>("own %m");
  logger->setFormatter("first %m");
  logger->addAppender(heir);
  logger->addAppender(own);
  SYLAR_LOG_INFO(logger) << 1;
  logger->setFormatter("second %m");
  SYLAR_LOG_INFO(logger) << 2;
  heir->setFormatter(std::make_shared<LogFormatter>("now its own %m"));
  logger->setFormatter("third %m");
  SYLAR_LOG_INFO(logger) << 3;
  EXPECT_EQ(heir->lines(), (Lines{"first 1", "second 2", "now its own 3"}));
  EXPECT_EQ(own->lines(), (Lines{"own 1", "own 2", "own 3"}));
}

TEST_F(LoggerTest, AppenderHasALevelOfItsOwn) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto strict = std::make_shared<Recorder>("%m");
  EXPECT_EQ(strict->getLevel(), LogLevel::UNKNOW);
  strict->setLevel(LogLevel::ERROR);
  logger->addAppender(strict);
  SYLAR_LOG_WARN(logger) << 1;
  SYLAR_LOG_ERROR(logger) << 2;
  EXPECT_EQ(strict->lines(), Lines{"2"});
}

// CD-L1
TEST_F(LoggerTest, WrongPatternIsReportedAndTheOldOneStays) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  logger->setFormatter("%m");
  logger->setFormatter("%q");
  EXPECT_EQ(logger->getFormatter()->getPattern(), "%m");
  EXPECT_EQ(m_at_root->lines(), Lines{"system:log: logger a keeps its formatter, this is no pattern: %q"});
  logger->setFormatter(LogFormatter::ptr());
  EXPECT_EQ(logger->getFormatter()->getPattern(), LogFormatter::kDefaultPattern);
}

TEST_F(LoggerTest, LevelFunctionsPassEventsOn) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto recorder = std::make_shared<Recorder>("%p");
  logger->addAppender(recorder);
  const LogEvent::ptr event = LogEvent::make(logger, LogLevel::INFO, "", 0);
  logger->debug(event);
  logger->info(event);
  logger->warn(event);
  logger->error(event);
  logger->setLevel(LogLevel::FATAL);
  logger->error(event);
  logger->fatal(event);
  EXPECT_EQ(recorder->lines(), (Lines{"DEBUG", "INFO", "WARN", "ERROR", "FATAL"}));
}

class Thrower : public LogAppender {
 public:
  void log(std::shared_ptr<Logger>, LogLevel::Level, LogEvent::ptr) override { throw std::runtime_error("no ink"); }
  std::string toYamlString() override { return "type: Thrower\n"; }
};

TEST_F(LoggerTest, WhatAnAppenderThrowsIsReportedAndTheOthersGetTheLine) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto recorder = std::make_shared<Recorder>("%m");
  logger->addAppender(std::make_shared<Thrower>());
  logger->addAppender(recorder);
  testing::internal::CaptureStderr();
  SYLAR_LOG_INFO(logger) << 1;
  EXPECT_NE(testing::internal::GetCapturedStderr().find("an appender of logger a threw: no ink"), std::string::npos);
  EXPECT_EQ(recorder->lines(), Lines{"1"});
}

class ThrowerOfANumber : public Thrower {
 public:
  void log(std::shared_ptr<Logger>, LogLevel::Level, LogEvent::ptr) override { throw 42; }
};

TEST_F(LoggerTest, WhatAnAppenderThrowsNeedNotBeAStandardException) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  const auto recorder = std::make_shared<Recorder>("%m");
  logger->addAppender(std::make_shared<ThrowerOfANumber>());
  logger->addAppender(recorder);
  testing::internal::CaptureStderr();
  SYLAR_LOG_INFO(logger) << 1;
  EXPECT_NE(testing::internal::GetCapturedStderr().find("an appender of logger a threw: no std::exception"), std::string::npos);
  EXPECT_EQ(recorder->lines(), Lines{"1"});
}

TEST_F(LoggerTest, ManagerMakesALoggerOnceForEachName) {
  EXPECT_EQ(SYLAR_LOG_NAME("one"), SYLAR_LOG_NAME("one"));
  EXPECT_NE(SYLAR_LOG_NAME("one"), SYLAR_LOG_NAME("other"));
  EXPECT_EQ(SYLAR_LOG_NAME("root"), m_root);
  EXPECT_EQ(SYLAR_LOG_NAME("one")->getName(), "one");
  EXPECT_EQ(SYLAR_LOG_NAME("one")->getLevel(), LogLevel::DEBUG);
}

TEST_F(LoggerTest, LinesOfTheLibraryGoToSystem) {
  const auto recorder = std::make_shared<Recorder>("%c %p %m");
  const Logger::ptr system = SYLAR_LOG_NAME("system");
  system->addAppender(recorder);
  log::info("number {}", 1);
  system->setLevel(LogLevel::ERROR);
  EXPECT_FALSE(log::enabled(log::Level::kWarn));
  log::warn("number {}", 2);
  log::error("number {}", 3);
  system->setLevel(LogLevel::DEBUG);
  EXPECT_TRUE(log::enabled(log::Level::kDebug));
  log::debug("100 % {}", "{}");
  system->clearAppenders();
  EXPECT_EQ(recorder->lines(), (Lines{"system INFO number 1", "system ERROR number 3", "system DEBUG 100 % {}"}));
}

std::string kernelName() {
  char name[16];
  EXPECT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
  return name;
}

// Only threads that `Thread` has named had a name in their lines, and all lines of the library came from "sylar:0".
TEST_F(LoggerTest, LinesOfTheLibraryNameTheirThreadAndNoFalsePlace) {
  const auto recorder = std::make_shared<Recorder>("%N %F %f:%l %f %l %l:%f %m");
  const Logger::ptr system = SYLAR_LOG_NAME("system");
  system->addAppender(recorder);
  log::info("main");
  Thread([] { log::info("named"); }, "of_many_more_bytes").join();
  std::string inherited;
  std::thread([&] {
    inherited = kernelName();
    log::info("unnamed");
    ::pthread_setname_np(::pthread_self(), "helper");
    log::info("named later");
  }).join();
  const auto fiber = std::make_shared<Fiber>([] { log::info("fiber"); });
  const std::string id = std::to_string(fiber->getId());
  fiber->swapIn();
  system->clearAppenders();
  const std::string place = "- - - -:- ";
  EXPECT_EQ(recorder->lines(), (Lines{kernelName() + " 0 " + place + "main", "of_many_more_bytes 0 " + place + "named",
                                      inherited + " 0 " + place + "unnamed", "helper 0 " + place + "named later",
                                      kernelName() + ' ' + id + ' ' + place + "fiber"}));
}

// SEC-59
TEST_F(LoggerTest, LinesOfTheLibraryOnStderrAreEscapedToo) {
  testing::internal::CaptureStderr();
  log::writeToStderr(log::Level::kError, "GET /\n2026 forged\x1b[2J");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("GET /\n\t2026 forged\\x1b[2J\n"), std::string::npos) << told;
}

TEST_F(LoggerTest, StdoutAppenderWritesToStdout) {
  const Logger::ptr logger = std::make_shared<Logger>("a");
  logger->setFormatter("<%m>%n");
  logger->addAppender(std::make_shared<StdoutLogAppender>());
  testing::internal::CaptureStdout();
  SYLAR_LOG_INFO(logger) << "two\nlines";
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "<two\n\tlines>\n");
}

TEST_F(LoggerTest, YamlIsThatOfLogYml) {
  const Logger::ptr logger = SYLAR_LOG_NAME("yaml \"quoted\"");
  logger->setLevel(LogLevel::WARN);
  logger->setFormatter("%m\t\\%n");
  const auto out = std::make_shared<StdoutLogAppender>();
  const auto file = std::make_shared<FileLogAppender>("/dev/null");
  file->setLevel(LogLevel::ERROR);
  file->setFormatter(std::make_shared<LogFormatter>("%p"));
  logger->addAppender(out);
  logger->addAppender(file);
  const std::string wanted =
      "name: \"yaml \\\"quoted\\\"\"\n"
      "level: WARN\n"
      "formatter: \"%m\\x09\\\\%n\"\n"
      "appenders:\n"
      "  - type: StdoutLogAppender\n"
      "  - type: FileLogAppender\n"
      "    file: \"/dev/null\"\n"
      "    level: ERROR\n"
      "    formatter: \"%p\"\n";
  EXPECT_EQ(logger->toYamlString(), wanted);
  const std::string all = LoggerMgr::GetInstance()->toYamlString();
  EXPECT_NE(all.find("- name: \"yaml \\\"quoted\\\"\"\n  level: WARN\n"), std::string::npos);
  EXPECT_NE(all.find("- name: \"root\"\n"), std::string::npos);
  logger->clearAppenders();
}

}  // namespace
}  // namespace sylar
